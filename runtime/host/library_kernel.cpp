#include "runtime/host/library_kernel.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "runtime/base/half.h"
#include "runtime/base/same_numbers.h"
#include "runtime/host/attention.h"
#include "runtime/host/conv.h"
#include "runtime/plan/roles.h"

namespace gpuc {
namespace {

bool isCutInOrder(const MatmulKernel& kernel, uint32_t operand) {
  enum { a, b, c, mask = 5 };  // behind it squares, in the order of tiles
  const MatmulPlan& plan = kernel.plan();
  const MatmulShape& p = plan.problem;
  if (operand >= mask) operand = c;  // as which it lies, and so does what an update reads and writes
  if (plan.swapped && operand < c) operand = b - operand;
  if (p.batch >= 2) return operand >= c || (operand == a ? p.batch_stride_a : p.batch_stride_b) != 0;
  if (plan.rowTiles() >= 2) return (operand == c && !plan.transposed) || (operand == a && !p.transpose_a);
  return (operand == c && p.m == 1) || (operand == b && p.transpose_b);
}

/// Images come in order, what all tiles read does not; squares, and what an update reads and writes, as c.
bool isCutInOrder(const ConvKernel&, uint32_t operand) {
  enum { image = 0, c = 2, mask = 5 };
  return operand == image || operand == c || operand >= mask;
}

/// Heads do.
bool isCutInOrder(const AttentionKernel&, uint32_t) { return true; }

/// One of the classes that prepare kernels, whose operands are a struct with the fields of `kUses`, in order.
template <typename Kernel, typename Operands, const auto& kUses>
class PreparedKernel final : public LibraryKernel {
 public:
  explicit PreparedKernel(Kernel kernel) : kernel_(std::move(kernel)) {}

  int phaseCount() const override { return kernel_.phaseCount(); }
  int64_t tiles(int phase) const override { return kernel_.tiles(phase); }
  double tileNs(int phase) const override { return kernel_.tileNs(phase); }
  bool isCutInOrder(uint32_t operand) const override { return gpuc::isCutInOrder(kernel_, operand); }
  void run(int phase, void* const* operands, int64_t begin, int64_t end) const override {
    kernel_.run(phase, gather(operands, std::make_index_sequence<kUses.size()>()), begin, end);
  }

 private:
  template <size_t... indices>
  static Operands gather(void* const* operands, std::index_sequence<indices...>) {
    Operands gathered{operands[indices]...};
    if constexpr (requires { gathered.of_update; }) gathered.of_update = operands + sizeof...(indices);
    return gathered;
  }

  const Kernel kernel_;
};

using Made = std::unique_ptr<LibraryKernel>;

template <typename Operands, const auto& kUses, typename Kernel>
Result<Made> prepared(Result<Kernel> kernel) {
  if (!kernel.ok()) return kernel.status();
  return Made(std::make_unique<PreparedKernel<Kernel, Operands, kUses>>(*std::move(kernel)));
}

/// As gpuc.sum adds up its first dimension.
class SumLibraryKernel final : public LibraryKernel {
 public:
  explicit SumLibraryKernel(const fb::Sum& sum)
      : type_(static_cast<DataType>(sum.type())),
        parts_(static_cast<int64_t>(sum.parts()->size() / sum.result()->size())),
        elements_(static_cast<int64_t>(sum.result()->size()) / sizeOf(type_)) {}

  int phaseCount() const override { return 1; }
  int64_t tiles(int) const override { return (elements_ + kTile - 1) / kTile; }
  double tileNs(int) const override { return static_cast<double>(kTile * (parts_ + 1) * sizeOf(type_)) / 10; }
  bool isCutInOrder(uint32_t operand) const override { return operand == 1; }

  void run(int, void* const* operands, int64_t begin, int64_t end) const override {
    const int64_t first = begin * kTile, last = std::min(end * kTile, elements_);
    switch (type_) {
      case DataType::f64:
        return add<double, double>(operands, first, last, std::identity(), std::identity());
      case DataType::f32:
        return add<float, float>(operands, first, last, std::identity(), std::identity());
      case DataType::f16:
        return add<uint16_t, float>(operands, first, last, halfToFloat, floatToHalf);
      default:
        return add<uint16_t, float>(operands, first, last, bfloat16ToFloat, floatToBfloat16);
    }
  }

 private:
  static constexpr int64_t kTile = 1024, kBlock = 32;

  template <typename T, typename Total, typename Widen, typename Round>
  void add(void* const* operands, int64_t first, int64_t last, Widen widen, Round round) const {
    const T* parts = static_cast<const T*>(operands[0]);
    T* result = static_cast<T*>(operands[1]);
    auto addBlock = [&](int64_t count) {  // a constant for all but the last: totals stay in registers
      Total totals[kBlock] = {};
      for (int64_t part = 0; part < parts_; ++part)
        for (int64_t i = 0; i < count; ++i) totals[i] += widen(parts[part * elements_ + first + i]);
      for (int64_t i = 0; i < count; ++i) result[first + i] = round(totals[i]);
    };
    for (; first + kBlock <= last; first += kBlock) addBlock(kBlock);
    if (first < last) addBlock(last - first);
  }

  DataType type_;
  int64_t parts_, elements_;
};

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

static_assert(haveSameNumbers<fb::ConvKind, ConvKind>(
    fb::ConvKind::MAX, {{fb::ConvKind::forward, ConvKind::forward},
                        {fb::ConvKind::input_gradient, ConvKind::input_gradient},
                        {fb::ConvKind::filter_gradient, ConvKind::filter_gradient}}));
static_assert(haveSameNumbers<fb::AttentionKind, AttentionKind>(
    fb::AttentionKind::MAX, {{fb::AttentionKind::forward, AttentionKind::forward},
                             {fb::AttentionKind::gradient, AttentionKind::gradient}}));
static_assert(haveSameNumbers<fb::AttentionMask, AttentionMask>(
    fb::AttentionMask::MAX, {{fb::AttentionMask::none, AttentionMask::none},
                             {fb::AttentionMask::flags, AttentionMask::flags},
                             {fb::AttentionMask::addends, AttentionMask::addends}}));

ConvAxis axisOf(const fb::ConvAxis& axis) {
  return {.input = static_cast<int64_t>(axis.input()),
          .output = static_cast<int64_t>(axis.output()),
          .kernel = static_cast<int64_t>(axis.kernel()),
          .stride = static_cast<int64_t>(axis.stride()),
          .low = static_cast<int64_t>(axis.low()),
          .high = static_cast<int64_t>(axis.high()),
          .dilation = static_cast<int64_t>(axis.dilation())};
}

ConvShape shapeOf(const fb::Conv& conv) {
  return {.kind = static_cast<ConvKind>(conv.kind()),
          .type = static_cast<DataType>(conv.type()),
          .batch = static_cast<int64_t>(conv.batch()),
          .groups = static_cast<int64_t>(conv.groups()),
          .in_channels = static_cast<int64_t>(conv.in_channels()),
          .out_channels = static_cast<int64_t>(conv.out_channels()),
          .height = axisOf(*conv.height()),
          .width = axisOf(*conv.width()),
          .bias = conv.bias() != nullptr,
          .relu = conv.relu(),
          .mask = conv.mask() != nullptr};
}

AttentionLayout layoutOf(const fb::AttentionLayout* layout) {
  if (!layout) return {};
  return {static_cast<int64_t>(layout->batch()), static_cast<int64_t>(layout->head()),
          static_cast<int64_t>(layout->row())};
}

AttentionShape shapeOf(const fb::Attention& attention) {
  AttentionShape shape{.kind = static_cast<AttentionKind>(attention.kind()),
                       .type = static_cast<DataType>(attention.type()),
                       .batch = static_cast<int64_t>(attention.batch()),
                       .heads = static_cast<int64_t>(attention.heads()),
                       .groups = static_cast<int64_t>(attention.groups()),
                       .queries = static_cast<int64_t>(attention.queries()),
                       .keys = static_cast<int64_t>(attention.keys()),
                       .width = static_cast<int64_t>(attention.width()),
                       .value_width = static_cast<int64_t>(attention.value_width()),
                       .scale = attention.scale(),
                       .causal = attention.causal(),
                       .mask = static_cast<AttentionMask>(attention.mask_kind()),
                       .dropout = attention.dropout(),
                       .id = static_cast<int64_t>(attention.id()),
                       .query = layoutOf(attention.query_layout()),
                       .key = layoutOf(attention.key_layout()),
                       .value = layoutOf(attention.value_layout()),
                       .result = layoutOf(attention.result_layout()),
                       .cotangent = layoutOf(attention.cotangent_layout()),
                       .query_cotangent = layoutOf(attention.query_cotangent_layout()),
                       .key_cotangent = layoutOf(attention.key_cotangent_layout()),
                       .value_cotangent = layoutOf(attention.value_cotangent_layout()),
                       .mask_gradient = attention.mask_cotangent() != nullptr};
  if (const fb::MaskStrides* strides = attention.mask_strides()) {
    const uint64_t along[] = {strides->batch(), strides->head(), strides->query(), strides->key()};
    std::copy(along, along + 4, shape.mask_strides);
  }
  return shape;
}

int64_t bytesOf(const fb::Operand* workspace) {
  return workspace ? static_cast<int64_t>(workspace->size()) : 0;
}

}  // namespace

MatmulShape shapeOf(const fb::Matmul& matmul) {
  return {.type = static_cast<DataType>(matmul.type()),
          .batch = static_cast<int64_t>(matmul.batch()),
          .m = static_cast<int64_t>(matmul.m()),
          .n = static_cast<int64_t>(matmul.n()),
          .k = static_cast<int64_t>(matmul.k()),
          .transpose_a = matmul.transpose_a(),
          .transpose_b = matmul.transpose_b(),
          .batch_stride_a = static_cast<int64_t>(matmul.batch_stride_a()),
          .batch_stride_b = static_cast<int64_t>(matmul.batch_stride_b()),
          .bias = matmul.bias() != nullptr,
          .accumulate = matmul.accumulate(),
          .relu = matmul.relu(),
          .mask = matmul.mask() != nullptr,
          .update = matmul.update() != nullptr,
          .squares = matmul.squares() != nullptr};
}

std::unique_ptr<LibraryKernel> asLibraryKernel(MatmulKernel kernel) {
  return *prepared<MatmulOperands, kMatmulOperands>(Result(std::move(kernel)));
}

/// As many as the product has tiles, if there are any; none: it has none.
static Status checkSquares(const fb::Operand* squares, DataType type, std::optional<int64_t> tiles,
                           const char* what) {
  if (!squares || (tiles && squares->size() == static_cast<uint64_t>(*tiles * sizeOf(type))))
    return okStatus();
  return errorf("%s: the plan's squares are of other tiles; compile the plan again with this version of gpuc",
                what);
}

/// Of a weight's gradient that is handed on.
struct TileCut {
  int64_t rows, columns, stride;
};

/// The tiles for which the update was compiled must be those of the product.
static Result<TileUpdate> updateBy(const fb::Update& update, const std::optional<TileCut>& tiles,
                                   std::span<const KernelFunction> generated, const char* what) {
  if (!tiles || tiles->rows != static_cast<int64_t>(update.tile_rows()) ||
      tiles->columns != static_cast<int64_t>(update.tile_columns()) ||
      tiles->stride != static_cast<int64_t>(update.stride()))
    return errorf("%s: the plan's update is of other tiles; compile the plan again with this version of gpuc",
                  what);
  const double tile_elements = static_cast<double>(tiles->rows * tiles->columns);
  return TileUpdate{.compute = generated[update.kernel()],
                    .operands = 1 + size_t{countOf(update.reads())} + countOf(update.writes()),
                    .tile_ns = 10'000 * tile_elements / static_cast<double>(update.grain())};
}

static Result<Made> makeMatmul(const fb::Matmul& matmul, std::span<const KernelFunction> generated,
                               int64_t parts) {
  MatmulShape shape = shapeOf(matmul);
  std::optional<int64_t> squared;
  if (matmul.squares() && canSumSquares(shape)) squared = planMatmul(shape).tileCount();
  GPUC_RETURN_IF_ERROR(checkSquares(matmul.squares(), shape.type, squared, "matmul"));
  if (matmul.update()) {
    std::optional<TileCut> tiles;
    if (const std::optional<MatmulPlan> plan = planMatmulOfUpdate(shape))
      tiles = {plan->tile_m, plan->tile_n, plan->sumStride()};
    GPUC_ASSIGN_OR_RETURN(const TileUpdate update, updateBy(*matmul.update(), tiles, generated, "matmul"));
    return prepared<MatmulOperands, kMatmulOperands>(MatmulKernel::create(shape, update));
  }
  shape.m /= parts;
  return prepared<MatmulOperands, kMatmulOperands>(MatmulKernel::create(shape, bytesOf(matmul.workspace())));
}

static Result<Made> makeConv(const fb::Conv& conv, std::span<const KernelFunction> generated) {
  const ConvShape shape = shapeOf(conv);
  GPUC_ASSIGN_OR_RETURN(ConvKernel kernel, ConvKernel::create(shape, bytesOf(conv.workspace())));
  const std::optional<GradientTiles>& tiles = kernel.gradientTiles();
  GPUC_RETURN_IF_ERROR(
      checkSquares(conv.squares(), shape.type, tiles ? std::optional(tiles->count()) : std::nullopt, "conv"));
  if (conv.update()) {
    std::optional<TileCut> cut;
    if (tiles) cut = {tiles->tile_rows, tiles->tile_columns, tiles->stride};
    GPUC_ASSIGN_OR_RETURN(const TileUpdate update, updateBy(*conv.update(), cut, generated, "conv"));
    GPUC_RETURN_IF_ERROR(kernel.handTo(update));
  }
  return prepared<ConvOperands, kConvOperands>(Result(std::move(kernel)));
}

Result<std::unique_ptr<LibraryKernel>> makeLibraryKernel(const fb::Command& command,
                                                         std::span<const KernelFunction> generated,
                                                         int64_t parts) {
  if (const fb::Matmul* matmul = command.work_as_Matmul()) return makeMatmul(*matmul, generated, parts);
  if (const fb::Conv* conv = command.work_as_Conv()) return makeConv(*conv, generated);
  if (const fb::Attention* attention = command.work_as_Attention())
    return prepared<AttentionOperands, kAttentionOperands>(
        AttentionKernel::create(shapeOf(*attention), bytesOf(attention->workspace())));
  if (const fb::Sum* sum = command.work_as_Sum()) return Made(std::make_unique<SumLibraryKernel>(*sum));
  return Made();
}

}  // namespace gpuc
