#include "runtime/host/matmul.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

namespace gpuc {
namespace {

/// Where one tile of c lies.
struct TilePlace {
  int64_t batch;
  int64_t row, rows;
  int64_t column, columns;
};

/// Tiles count along columns first, then rows, then the batch: neighbours share rows of a.
TilePlace placeOf(const MatmulPlan& plan, int64_t tile) {
  const int64_t column_tiles = plan.columnTiles();
  const int64_t row_tiles = plan.rowTiles();
  TilePlace place;
  place.column = tile % column_tiles * plan.tile_n;
  place.row = tile / column_tiles % row_tiles * plan.tile_m;
  place.batch = tile / column_tiles / row_tiles;
  place.rows = std::min(plan.tile_m, plan.problem.m - place.row);
  place.columns = std::min(plan.tile_n, plan.problem.n - place.column);
  return place;
}

/// The matrices of one batch item.
template <typename T>
struct Matrices {
  const T* a;
  const T* b;
  T* c;
  const T* bias;

  Matrices(const MatmulPlan& plan, const MatmulOperands& operands, int64_t batch) {
    const MatmulShape& p = plan.problem;
    const void* left = plan.swapped ? operands.b : operands.a;
    const void* right = plan.swapped ? operands.a : operands.b;
    a = static_cast<const T*>(left) + batch * p.batch_stride_a;
    b = static_cast<const T*>(right) + batch * p.batch_stride_b;
    c = static_cast<T*>(operands.c) + batch * p.m * p.n;
    bias = p.bias ? static_cast<const T*>(operands.bias) : nullptr;
  }
};

template <typename T>
void computeDotTile(const MatmulPlan& plan, const TypedVectorKernels<T>& vector_kernels,
                    const Matrices<T>& matrices, const TilePlace& place) {
  vector_kernels.dot({.rows = place.rows,
                      .columns = place.columns,
                      .k = plan.problem.k,
                      .a = matrices.a + place.row * plan.lda,
                      .lda = plan.lda,
                      .b = matrices.b + place.column * plan.ldb,
                      .ldb = plan.ldb,
                      .c = matrices.c + place.row * plan.ldc + place.column,
                      .ldc = plan.ldc,
                      .bias = matrices.bias ? matrices.bias + place.column * plan.bias_step : nullptr,
                      .bias_step = plan.bias_step,
                      .accumulate = plan.problem.accumulate});
}

/// One tile by micro-kernels: for each block of k, for each strip of rows, for each panel of columns.
template <typename T>
class TiledTile {
 public:
  TiledTile(const MatmulPlan& plan, const MicroKernelSet& micro_kernels,
            const TypedVectorKernels<T>& vector_kernels, const Matrices<T>& matrices, const TilePlace& place)
      : plan_(plan),
        micro_kernels_(micro_kernels),
        vector_kernels_(vector_kernels),
        matrices_(matrices),
        place_(place),
        c_(matrices.c + place.row * plan.ldc + place.column) {}

  /// `panel` and `strip` are room for packed b and a; null where the plan does not pack them.
  void compute(T* panel, T* strip) {
    if (matrices_.bias) startFromBias();
    for (int64_t k = 0; k < plan_.problem.k; k += plan_.block_k) {
      const int64_t depth = std::min(plan_.block_k, plan_.problem.k - k);
      if (panel) packPanels(panel, k, depth);
      for (int64_t row = 0; row < place_.rows; row += plan_.strip_m) {
        const int64_t rows = std::min(plan_.strip_m, place_.rows - row);
        if (strip) packStrip(strip, row, rows, k, depth);
        multiplyStrip(strip ? strip : addressOfA(row, k), panel, row, rows, k, depth);
      }
    }
  }

 private:
  void startFromBias() {
    const T* bias = matrices_.bias + place_.column * plan_.bias_step;
    for (int64_t row = 0; row < place_.rows; ++row)
      for (int64_t column = 0; column < place_.columns; ++column)
        c_[row * plan_.ldc + column] = bias[column * plan_.bias_step];
  }

  /// op(b)[k : k + depth, the tile's columns] as panels of panel_n columns, one after another.
  void packPanels(T* panel, int64_t k, int64_t depth) {
    const int64_t stride = plan_.panelStride();
    for (int64_t column = 0; column < place_.columns;
         column += plan_.panel_n, panel += plan_.block_k * stride) {
      const int64_t columns = std::min(plan_.panel_n, place_.columns - column);
      const T* source = addressOfB(column, k);
      if (plan_.problem.transpose_b) {
        vector_kernels_.transpose({columns, depth, source, plan_.ldb, panel, stride});
      } else {
        for (int64_t i = 0; i < depth; ++i)
          std::memcpy(panel + i * stride, source + i * plan_.ldb, static_cast<size_t>(columns) * sizeof(T));
      }
    }
  }

  /// A transposed a, of which the rows k lie far apart in memory, with those rows moved together.
  void packStrip(T* strip, int64_t row, int64_t rows, int64_t k, int64_t depth) {
    const T* source = addressOfA(row, k);
    for (int64_t i = 0; i < depth; ++i)
      std::memcpy(strip + i * plan_.strip_m, source + i * plan_.lda, static_cast<size_t>(rows) * sizeof(T));
  }

  // The call reaches generated code, which carries no type for a sanitizer to look at.
  __attribute__((no_sanitize("undefined"))) void multiplyStrip(const T* a, const T* panel, int64_t row,
                                                               int64_t rows, int64_t k, int64_t depth) {
    const auto& kernels = micro_kernels_.kernels[rows < plan_.strip_m];
    const bool k_cut = depth < plan_.block_k;
    const bool accumulate = k > 0 || matrices_.bias || plan_.problem.accumulate;
    for (int64_t column = 0; column < place_.columns; column += plan_.panel_n) {
      const bool column_cut = place_.columns - column < plan_.panel_n;
      const T* b = panel ? panel + column / plan_.panel_n * plan_.block_k * plan_.panelStride()
                         : addressOfB(column, k);
      kernels[column_cut][k_cut][accumulate](b, a, c_ + row * plan_.ldc + column);
    }
    if (micro_kernels_.after) micro_kernels_.after();
  }

  const T* addressOfA(int64_t row, int64_t k) const {
    row += place_.row;
    return matrices_.a + (plan_.problem.transpose_a ? k * plan_.lda + row : row * plan_.lda + k);
  }
  const T* addressOfB(int64_t column, int64_t k) const {
    column += place_.column;
    return matrices_.b + (plan_.problem.transpose_b ? column * plan_.ldb + k : k * plan_.ldb + column);
  }

  const MatmulPlan& plan_;
  const MicroKernelSet& micro_kernels_;
  const TypedVectorKernels<T>& vector_kernels_;
  const Matrices<T>& matrices_;
  const TilePlace& place_;
  T* const c_;
};

/// Kept out of the callers, so that only tiles that pack touch this much stack.
template <typename T>
__attribute__((noinline)) void computePacked(TiledTile<T>& tile, bool pack_a, bool pack_b) {
  alignas(64) std::byte panel[kMatmulPanelBytes];
  alignas(64) std::byte strip[kMatmulStripBytes];
  tile.compute(pack_b ? reinterpret_cast<T*>(panel) : nullptr,
               pack_a ? reinterpret_cast<T*>(strip) : nullptr);
}

Result<MicroKernelSet> makeMicroKernels(const MatmulPlan& plan) {
  const MatmulShape& p = plan.problem;
  MicroKernelSet set;
  set.after = afterMicroKernels();
  for (int index = 0; index < 16; ++index) {
    const bool rows_cut = index & 8, columns_cut = index & 4, k_cut = index & 2, accumulate = index & 1;
    const int64_t m = rows_cut ? p.m % plan.strip_m : plan.strip_m;
    const int64_t n = columns_cut ? p.n % plan.panel_n : plan.panel_n;
    const int64_t k = k_cut ? p.k % plan.block_k : plan.block_k;
    const bool starts_from_c = p.bias || p.accumulate;
    const bool first_only = !starts_from_c && p.k <= plan.block_k;
    if (m == 0 || n == 0 || k == 0 || (accumulate ? first_only : starts_from_c)) continue;
    GPUC_ASSIGN_OR_RETURN(set.kernels[rows_cut][columns_cut][k_cut][accumulate],
                          makeMicroKernel({.type = p.type,
                                           .m = m,
                                           .n = n,
                                           .k = k,
                                           .lda = plan.pack_a ? plan.strip_m
                                                  : p.m == 1  ? k
                                                              : plan.lda,
                                           .ldb = plan.pack_b ? plan.panelStride() : plan.ldb,
                                           .ldc = plan.ldc,
                                           .transpose_a = p.transpose_a,
                                           .accumulate = accumulate}));
  }
  return set;
}

}  // namespace

Result<MatmulKernel> MatmulKernel::create(const MatmulShape& shape, int64_t workspace_bytes) {
  GPUC_RETURN_IF_ERROR(checkMatmulShape(shape));
  if (const int64_t needed = matmulWorkspaceBytes(shape); workspace_bytes < needed)
    return errorf("matmul: the plan gives %" PRId64 " bytes of workspace, %" PRId64
                  " are needed; compile the plan again with this version of gpuc",
                  workspace_bytes, needed);
  return createFromPlan(planMatmul(shape));
}

Result<MatmulKernel> MatmulKernel::createFromPlan(const MatmulPlan& plan) {
  MatmulKernel kernel;
  kernel.plan_ = plan;
  kernel.vector_kernels_ = vectorKernels(microKernelVectorBytes());
  if (plan.method == MatmulMethod::tiled) {
    GPUC_ASSIGN_OR_RETURN(kernel.micro_kernels_, makeMicroKernels(plan));
  }
  return kernel;
}

template <typename T>
void MatmulKernel::runTiles(const MatmulOperands& operands, int64_t begin, int64_t end) const {
  const TypedVectorKernels<T>& vector_kernels = vector_kernels_->of<T>();
  for (int64_t index = begin; index < end; ++index) {
    const TilePlace place = placeOf(plan_, index);
    const Matrices<T> matrices(plan_, operands, place.batch);
    if (plan_.method == MatmulMethod::dot) {
      computeDotTile(plan_, vector_kernels, matrices, place);
      continue;
    }
    TiledTile<T> tile(plan_, micro_kernels_, vector_kernels, matrices, place);
    if (plan_.pack_a || plan_.pack_b)
      computePacked(tile, plan_.pack_a, plan_.pack_b);
    else
      tile.compute(nullptr, nullptr);
  }
}

void MatmulKernel::run(int /*phase*/, const MatmulOperands& operands, int64_t begin, int64_t end) const {
  if (plan_.problem.type == DataType::f64)
    runTiles<double>(operands, begin, end);
  else
    runTiles<float>(operands, begin, end);
}

}  // namespace gpuc
