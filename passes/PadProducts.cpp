//===- PadProducts.cpp - Extents that tensor cores take at full speed -------===//
//
// cuBLASLt loads 16 bytes at once if rows of each of the three matrices begin at multiples of that: 8
// elements of 16 bits, 4 of f32. Rows are as long as the innermost extent: k or m of the left operand, n or k
// of the right one, n of the result. One that is not gets zeros up to the next multiple, which changes no
// sum.
//
// The cost, by the figures of an H200: a product takes the longer of its arithmetic, which is twice as slow
// where rows are not aligned, and of its bytes. Zeros cost nothing where a kernel makes the operand, nor the
// slice where kernels alone read the result; else each is a copy and a launch. A product that is added to
// what is there already is not padded: it writes where the sum lies.
//
//===----------------------------------------------------------------------===//

#include "passes/PadProducts.h"

#include "passes/LayoutGroups.h"
#include "passes/TargetDescription.h"
#include "passes/codegen/Codegen.h"

using namespace mlir;

namespace gpuc {
namespace {

/// Dense products of 16-bit floats; half of it for TF32.
constexpr double kTensorFlopsPerNanosecond = 800'000, kUnalignedSlowdown = 2;

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// The last two extents, as the product sees them, of all matrices of the batch.
struct Extents {
  int64_t batch = 1, m, n, k;
  bool operator==(const Extents &) const = default;

  int64_t flops() const { return 2 * batch * m * n * k; }
  int64_t elements() const { return batch * (m * k + k * n + m * n); }
  std::string text() const {
    std::string text = batch > 1 ? std::to_string(batch) + " of " : "";
    return text + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  }
};

Extents extentsOf(ir::MatmulOp matmul) {
  ArrayRef<int64_t> result = typeOf(matmul.getResult()).getShape(), lhs = typeOf(matmul.getLhs()).getShape();
  Extents extents;
  extents.m = result.end()[-2];
  extents.n = result.end()[-1];
  extents.k = lhs.end()[matmul.getTransposeLhs() ? -2 : -1];
  for (int64_t extent : result.drop_back(2))
    extents.batch *= extent;
  return extents;
}

Extents paddedOf(ir::MatmulOp matmul, Extents extents) {
  const int64_t multiple = 16 / ir::elementBytes(typeOf(matmul.getResult()).getElementType());
  auto round = [&](int64_t &extent) { extent = llvm::alignTo(extent, multiple); };
  round(matmul.getTransposeLhs() ? extents.m : extents.k);
  round(matmul.getTransposeRhs() ? extents.k : extents.n);
  round(extents.n);
  return extents;
}

bool isOfKernel(Operation *op) { return op && (isInlinable(op) || isRoot(op)); }

/// Whether the result is added to a value that a loop carries: then the product may write where that lies.
bool isAddedUp(ir::MatmulOp matmul) {
  return llvm::any_of(matmul->getUsers(), [&](Operation *user) {
    auto add = dyn_cast<ir::AddOp>(user);
    return add && (isa<BlockArgument>(add.getLhs()) || isa<BlockArgument>(add.getRhs()));
  });
}

class Padding {
public:
  explicit Padding(ir::MatmulOp matmul)
      : matmul_(matmul), before_(extentsOf(matmul)), after_(paddedOf(matmul, before_)) {}

  LayoutEntry run() {
    LayoutEntry entry = LayoutEntry::of(matmul_);
    entry.from = entry.to = before_.text();
    entry.why = decide();
    if (pays_) {
      entry.to = after_.text();
      pad();
    }
    return entry;
  }

private:
  std::string decide() {
    if (before_ == after_)
      return "rows are multiples of 16 bytes";
    if (before_.k == 1)
      return "a product of two vectors";
    if (isAddedUp(matmul_))
      return "added up where it lies";
    const double saved = nanoseconds(before_, kUnalignedSlowdown) - nanoseconds(after_, 1), spent = copies();
    pays_ = saved > spent;
    return llvm::formatv("{0:f1} us less for {1:f1} us of copies", std::max(saved, 0.0) / 1000, spent / 1000);
  }

  double nanoseconds(const Extents &extents, double slowdown) {
    const int64_t bytes = ir::elementBytes(typeOf(matmul_.getResult()).getElementType());
    const double rate = bytes == 2 ? kTensorFlopsPerNanosecond : kTensorFlopsPerNanosecond / 2;
    return std::max(slowdown * static_cast<double>(extents.flops()) / rate,
                    static_cast<double>(extents.elements() * bytes) / device_.bytesPerNanosecond);
  }

  /// What pads and slices take that no kernel takes in.
  double copies() {
    double total = 0;
    auto add = [&](Value value, bool absorbed) {
      if (!absorbed)
        total += device_.commandNanoseconds +
                 2.0 * static_cast<double>(ir::sizeInBytes(value.getType())) / device_.bytesPerNanosecond;
    };
    if (padsLhs())
      add(matmul_.getLhs(), isOfKernel(matmul_.getLhs().getDefiningOp()));
    if (padsRhs())
      add(matmul_.getRhs(), isOfKernel(matmul_.getRhs().getDefiningOp()));
    if (padsResult())
      add(matmul_.getResult(), llvm::all_of(matmul_->getUsers(), isOfKernel));
    return total;
  }

  bool padsLhs() const { return after_.m != before_.m || after_.k != before_.k; }
  bool padsRhs() const { return after_.n != before_.n || after_.k != before_.k; }
  bool padsResult() const { return after_.m != before_.m || after_.n != before_.n; }

  void pad() {
    OpBuilder builder(matmul_);
    const Extents grown = {
        .batch = 1, .m = after_.m - before_.m, .n = after_.n - before_.n, .k = after_.k - before_.k};
    Value lhs =
        padsLhs() ? padded(matmul_.getLhs(), grown.m, grown.k, matmul_.getTransposeLhs()) : matmul_.getLhs();
    Value rhs =
        padsRhs() ? padded(matmul_.getRhs(), grown.k, grown.n, matmul_.getTransposeRhs()) : matmul_.getRhs();
    auto made = cast<ir::MatmulOp>(builder.clone(*matmul_));
    made->setOperands({lhs, rhs});
    RankedTensorType type = typeOf(matmul_.getResult());
    SmallVector<int64_t> shape(type.getShape());
    shape.end()[-2] = after_.m;
    shape.end()[-1] = after_.n;
    made.getResult().setType(type.clone(shape));
    Value result = made.getResult();
    if (padsResult()) {
      SmallVector<int64_t> zeros(shape.size(), 0), ones(shape.size(), 1);
      result = ir::SliceOp::create(builder, matmul_.getLoc(), type, result, zeros, type.getShape(), ones);
    }
    matmul_.getResult().replaceAllUsesWith(result);
    matmul_.erase();
  }

  /// With so many rows and columns of zeros more, behind the value's own definition, so that products which
  /// read the same read the same zeros.
  Value padded(Value value, int64_t rows, int64_t columns, bool transposed) {
    OpBuilder builder(matmul_);
    builder.setInsertionPointAfterValue(value);
    SmallVector<int64_t> none(typeOf(value).getRank(), 0), high = none;
    high.end()[-2] = transposed ? columns : rows;
    high.end()[-1] = transposed ? rows : columns;
    return ir::PadOp::create(builder, value.getLoc(), value, none, high, none, APFloat(0.0));
  }

  ir::MatmulOp matmul_;
  Extents before_, after_;
  TargetDescription device_ = describe(plan::TargetKind::cuda);
  bool pays_ = false;
};

} // namespace

void padProducts(Block &block, SmallVectorImpl<LayoutEntry> &entries) {
  for (Operation &op : llvm::make_early_inc_range(block))
    if (auto matmul = dyn_cast<ir::MatmulOp>(op);
        matmul && matmul.getType().hasStaticShape() && multipliesOnTensorCores(matmul))
      entries.push_back(Padding(matmul).run());
}

} // namespace gpuc
