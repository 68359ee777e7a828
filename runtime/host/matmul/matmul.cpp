#include "runtime/host/matmul.h"

#include <algorithm>
#include <cinttypes>
#include <utility>

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

/// The matrices of one batch item, as they lie in memory.
template <typename S>
struct Matrices {
  const S* a;
  const S* b;
  S* c;
  const S* bias;
  const S* mask;

  Matrices(const MatmulPlan& plan, const MatmulOperands& operands, int64_t batch) {
    const MatmulShape& p = plan.problem;
    const void* left = plan.swapped ? operands.b : operands.a;
    const void* right = plan.swapped ? operands.a : operands.b;
    a = static_cast<const S*>(left) + batch * p.batch_stride_a;
    b = static_cast<const S*>(right) + batch * p.batch_stride_b;
    c = p.update ? nullptr : static_cast<S*>(operands.c) + batch * p.m * p.n;
    bias = p.bias ? static_cast<const S*>(operands.bias) : nullptr;
    mask = p.mask ? static_cast<const S*>(operands.mask) + batch * p.m * p.n : nullptr;
  }
};

/// Where the sums of one tile are made, in the type of the arithmetic: in c itself, or in scratch.
template <typename T>
struct TileSums {
  T* c;
  int64_t ldc;
};

/// One tile of c; of a transposed plan one of c^T.
template <typename S>
class MatmulTile {
 public:
  MatmulTile(const MatmulProblem& problem, const MatmulOperands& operands, int64_t tile)
      : plan_(problem.plan),
        update_(problem.update),
        of_update_(operands.of_update),
        squares_(operands.squares),
        tile_(tile),
        micro_kernels_(problem.micro_kernels),
        kernels_(*problem.vector_kernels),
        own_(kernels_.of<S>()),
        place_(placeOf(plan_, tile)),
        matrices_(plan_, operands, place_.batch) {}

  void compute() {
    if (plan_.transposed) return computeTransposed();
    if (plan_.addsFewTerms()) return addFewTerms();
    if (plan_.sumsAside()) return computeAside();
    if constexpr (!kIsWidened<S>) {
      sumUp({addressOfC(), plan_.ldc});
      squareUp({addressOfC(), plan_.ldc});
    }
  }

 private:
  using T = Computed<S>;

  void sumUp(const TileSums<T>& sums) {
    if (plan_.method == MatmulMethod::dot) return sumUpDot(sums);
    if (plan_.pack_a || plan_.pack_b) return sumUpPacked(sums);
    sumUpTiled(sums, nullptr, nullptr);
  }

  void sumUpDot(const TileSums<T>& sums) {
    own_.dot({.rows = place_.rows,
              .columns = place_.columns,
              .k = plan_.problem.k,
              .a = matrices_.a + place_.row * plan_.lda,
              .lda = plan_.lda,
              .b = matrices_.b + place_.column * plan_.ldb,
              .ldb = plan_.ldb,
              .c = sums.c,
              .ldc = sums.ldc});
    if (!plan_.sumsAside()) finish(place_, 0, place_.rows);
  }

  /// By itself, so that only tiles that pack touch this much stack.
  __attribute__((noinline)) void sumUpPacked(const TileSums<T>& sums) {
    constexpr int64_t kStripBytes = kIsWidened<S> ? kMatmulWidenedStripBytes : kMatmulStripBytes;
    alignas(64) std::byte panel[kMatmulPanelBytes];
    alignas(64) std::byte strip[kStripBytes];
    sumUpTiled(sums, plan_.pack_b ? reinterpret_cast<T*>(panel) : nullptr,
               plan_.pack_a ? reinterpret_cast<T*>(strip) : nullptr);
  }

  /// By micro-kernels: for each block of k, for each strip of rows, for each panel of columns. `panel` and
  /// `strip` are room for packed b and a; null where the plan does not pack them.
  void sumUpTiled(const TileSums<T>& sums, T* panel, T* strip) {
    MatmulDepth depth;
    for (int64_t k = 0; k < plan_.problem.k; k += depth.length) {
      depth = plan_.depthAt(k);
      if (panel) packPanels(panel, k, depth.length);
      for (int64_t row = 0; row < place_.rows; row += plan_.strip_m) {
        const int64_t rows = std::min(plan_.strip_m, place_.rows - row);
        if (strip) packStrip(strip, row, rows, k, depth.length);
        multiplyStrip(sums, strip ? strip : inPlace(addressOfA(row, k)), panel, row, rows, k, depth.kind);
        const bool is_last = k + depth.length == plan_.problem.k;
        if (is_last && !plan_.sumsAside()) finish(place_, row, rows);
      }
    }
  }

  /// Summed up in scratch, then transposed to where it belongs.
  __attribute__((noinline)) void computeTransposed() {
    alignas(64) T room[kMatmulTransposedSide * kMatmulTransposedSide];
    S* c = matrices_.c + place_.column * plan_.ldc + place_.row;
    const TileSums<T> sums{room, plan_.sumStride()};
    sumUp(sums);
    turnBack(sums, c);
    const TilePlace of_c = {place_.batch, place_.column, place_.columns, place_.row, place_.rows};
    finish(of_c, 0, of_c.rows);
  }

  void turnBack(const TileSums<T>& sums, S* c) {
    if constexpr (!kIsWidened<S>)
      if (!plan_.problem.accumulate)
        return own_.transpose({place_.rows, place_.columns, sums.c, sums.ldc, c, plan_.ldc});
    alignas(64) T transposed[kMatmulTransposedSide * kMatmulTransposedSide];
    kernels_.of<T>().transpose(
        {place_.rows, place_.columns, sums.c, sums.ldc, transposed, kMatmulTransposedSide});
    moveToC({place_.columns, place_.rows, transposed, kMatmulTransposedSide, c, plan_.ldc});
  }

  /// Summed up in scratch and moved to c once, before what follows it.
  __attribute__((noinline)) void computeAside() {
    alignas(64) T sums[kMatmulSumBytes / sizeof(T)];
    const int64_t stride = plan_.sumStride();
    sumUp({sums, stride});
    if (plan_.problem.update) return squareUp({sums, stride}), handOn({sums, stride});
    moveToC({place_.rows, place_.columns, sums, stride, addressOfC(), plan_.ldc});
    finish(place_, 0, place_.rows);
  }

  void squareUp(const TileSums<T>& tile) {
    if (plan_.problem.squares)
      own_.squares({place_.rows, place_.columns, tile.c, tile.ldc, static_cast<T*>(squares_) + tile_});
  }

  void handOn(const TileSums<T>& sums) {
    update_.handOn(tile_, sums.c, place_.row * sums.ldc + place_.column, of_update_);
  }

  /// Panel by panel: from registers, but for those whose micro-kernel adds up in another order.
  __attribute__((noinline)) void addFewTerms() {
    if constexpr (!kIsWidened<S>) {
      alignas(64) T sums[kMatmulSumBytes / sizeof(T)];
      for (int64_t row = 0; row < place_.rows; row += plan_.strip_m)
        for (int64_t column = 0; column < place_.columns; column += plan_.panel_n)
          addPanel(sums, row, column);
      if (micro_kernels_.after) micro_kernels_.after();
    }
  }

  __attribute__((no_sanitize("undefined"))) void addPanel(T* sums, int64_t row, int64_t column) {
    const int64_t rows = std::min(plan_.strip_m, place_.rows - row);
    const int64_t columns = std::min(plan_.panel_n, place_.columns - column);
    const T *a = inPlace(addressOfA(row, 0)), *b = inPlace(addressOfB(column, 0));
    S* c = addressOfC() + row * plan_.ldc + column;
    if (plan_.addsInOrder(columns))
      return own_.addProduct({.rows = rows,
                              .columns = columns,
                              .k = plan_.problem.k,
                              .a = a,
                              .a_row_step = plan_.problem.transpose_a ? 1 : plan_.lda,
                              .a_k_step = plan_.problem.transpose_a ? plan_.lda : 1,
                              .b = b,
                              .ldb = plan_.ldb,
                              .c = c,
                              .ldc = plan_.ldc});
    const auto& kernels = micro_kernels_.kernels[rows < plan_.strip_m][columns < plan_.panel_n];
    kernels[plan_.depthAt(0).kind][false](b, a, sums);
    own_.add({rows, columns, sums, plan_.sumStride(), c, plan_.ldc});
  }

  /// What accumulates adds to what is there once, last.
  void moveToC(const CopyTile<T, S>& sums) {
    return plan_.problem.accumulate ? own_.add(sums) : own_.narrow(sums);
  }

  /// What follows rows [row, row + rows) of a tile of c, while they are in the cache.
  void finish(const TilePlace& place, int64_t row, int64_t rows) {
    if (!matrices_.bias && !matrices_.mask && !plan_.problem.relu) return;
    const int64_t first = (place.row + row) * plan_.ldc + place.column;
    own_.finish({.rows = rows,
                 .columns = place.columns,
                 .c = matrices_.c + first,
                 .ldc = plan_.ldc,
                 .bias = matrices_.bias ? matrices_.bias + place.column * plan_.bias_step : nullptr,
                 .bias_of_rows = plan_.bias_step == 0,  // of the only row that there is then
                 .relu = plan_.problem.relu,
                 .mask = matrices_.mask ? matrices_.mask + first : nullptr});
  }

  /// op(b)[k : k + depth, the tile's columns] as panels of panel_n columns, one after another.
  void packPanels(T* panel, int64_t k, int64_t depth) {
    const int64_t stride = plan_.panelStride();
    for (int64_t column = 0; column < place_.columns; column += plan_.panel_n, panel += panelElements()) {
      const int64_t columns = std::min(plan_.panel_n, place_.columns - column);
      const S* source = addressOfB(column, k);
      if (plan_.problem.transpose_b)
        own_.transpose({columns, depth, source, plan_.ldb, panel, stride});
      else
        own_.widen({depth, columns, source, plan_.ldb, panel, stride});
    }
  }

  /// The rows of a, or of a transposed a the rows k, which lie far apart in memory, moved together.
  void packStrip(T* strip, int64_t row, int64_t rows, int64_t k, int64_t depth) {
    const S* source = addressOfA(row, k);
    if (plan_.problem.transpose_a) std::swap(rows, depth);
    own_.widen({rows, depth, source, plan_.lda, strip, plan_.stripStride()});
  }

  // The call reaches generated code, which carries no type for a sanitizer to look at.
  __attribute__((no_sanitize("undefined"))) void multiplyStrip(const TileSums<T>& sums, const T* a,
                                                               const T* panel, int64_t row, int64_t rows,
                                                               int64_t k, MatmulDepth::Kind depth) {
    const auto& kernels = micro_kernels_.kernels[rows < plan_.strip_m];
    for (int64_t column = 0; column < place_.columns; column += plan_.panel_n) {
      const bool column_cut = place_.columns - column < plan_.panel_n;
      const T* b = panel ? panel + column / plan_.panel_n * panelElements() : inPlace(addressOfB(column, k));
      kernels[column_cut][depth][k > 0](b, a, sums.c + row * sums.ldc + column);
    }
    if (micro_kernels_.after) micro_kernels_.after();
  }

  int64_t panelElements() const { return plan_.packedDepth() * plan_.panelStride(); }

  S* addressOfC() const { return matrices_.c + place_.row * plan_.ldc + place_.column; }
  const S* addressOfA(int64_t row, int64_t k) const {
    row += place_.row;
    return matrices_.a + (plan_.problem.transpose_a ? k * plan_.lda + row : row * plan_.lda + k);
  }
  const S* addressOfB(int64_t column, int64_t k) const {
    column += place_.column;
    return matrices_.b + (plan_.problem.transpose_b ? column * plan_.ldb + k : k * plan_.ldb + column);
  }

  /// An operand that is computed where it lies. What is widened never is: its plan packs both.
  static const T* inPlace(const S* address) {
    if constexpr (kIsWidened<S>)
      return nullptr;
    else
      return address;
  }

  const MatmulPlan& plan_;
  const TileUpdate& update_;
  void* const* of_update_;
  void* const squares_;
  const int64_t tile_;
  const MicroKernelSet& micro_kernels_;
  const VectorKernelTable& kernels_;
  const TypedVectorKernels<S>& own_;  // for the type in memory
  const TilePlace place_;
  const Matrices<S> matrices_;
};

template <typename S>
void computeMatmulTile(const MatmulProblem& problem, const MatmulOperands& operands, int64_t tile) {
  MatmulTile<S>(problem, operands, tile).compute();
}

Result<MicroKernelSet> makeMicroKernels(const MatmulPlan& plan) {
  const MatmulShape& p = plan.problem;
  MicroKernelSet set;
  set.after = afterMicroKernels();
  for (int index = 0; index < 24; ++index) {
    const bool rows_cut = index & 4, columns_cut = index & 2, accumulate = index & 1;
    const auto depth = static_cast<MatmulDepth::Kind>(index / 8);
    const int64_t m = rows_cut ? p.m % plan.strip_m : plan.strip_m;
    const int64_t n = columns_cut ? p.n % plan.panel_n : plan.panel_n;
    const int64_t k = plan.lengthOf(depth);
    const bool first_only = p.k <= plan.packedDepth();
    if (m == 0 || n == 0 || k == 0 || (accumulate && first_only)) continue;
    GPUC_ASSIGN_OR_RETURN(set.kernels[rows_cut][columns_cut][depth][accumulate],
                          makeMicroKernel({.type = p.type,
                                           .m = m,
                                           .n = n,
                                           .k = k,
                                           .lda = plan.pack_a ? plan.stripStride()
                                                  : p.m == 1  ? k
                                                              : plan.lda,
                                           .ldb = plan.pack_b ? plan.panelStride() : plan.ldb,
                                           .ldc = plan.sumsAside() ? plan.sumStride() : plan.ldc,
                                           .transpose_a = p.transpose_a,
                                           .accumulate = accumulate}));
  }
  return set;
}

}  // namespace

Result<MatmulKernel> MatmulKernel::create(const MatmulShape& shape, int64_t workspace_bytes) {
  GPUC_RETURN_IF_ERROR(checkMatmulShape(shape));
  GPUC_RETURN_IF_ERROR(checkWorkspace("matmul", workspace_bytes, matmulWorkspaceBytes(shape)));
  if (shape.squares && !canSumSquares(shape))
    return errorf("matmul: of a shape whose squares cannot be added up");
  return createFromPlan(planMatmul(shape));
}

Result<MatmulKernel> MatmulKernel::create(const MatmulShape& shape, const TileUpdate& update) {
  const std::optional<MatmulPlan> plan = planMatmulOfUpdate(shape);
  if (!plan) return errorf("matmul: of a shape whose tiles cannot be handed to a weight's update");
  if (update.operands == 0 || update.operands > kMostUpdateOperands)
    return errorf("matmul: with a weight's update of %zu operands, at most %zu", update.operands,
                  kMostUpdateOperands);
  GPUC_ASSIGN_OR_RETURN(MatmulKernel kernel, createFromPlan(*plan));
  kernel.problem_.update = update;
  kernel.problem_.phases.front().tile_ns += update.tile_ns;
  return kernel;
}

Result<MatmulKernel> MatmulKernel::createFromPlan(const MatmulPlan& plan) {
  if (plan.sumsAside() && plan.tile_m * plan.sumStride() * sizeOf(plan.problem.type) > kMatmulSumBytes)
    return errorf("matmul: a tile of %" PRId64 "x%" PRId64 " sums is larger than %" PRId64 " bytes",
                  plan.tile_m, plan.tile_n, kMatmulSumBytes);
  MatmulProblem problem;
  problem.plan = plan;
  problem.vector_kernels = kernelsFor<VectorKernelTable>(microKernelVectorBytes());
  if (plan.method == MatmulMethod::tiled) {
    GPUC_ASSIGN_OR_RETURN(problem.micro_kernels, makeMicroKernels(plan));
  }
  const auto compute = withElement(plan.storage, []<typename S>(S) -> decltype(&computeMatmulTile<float>) {
    return computeMatmulTile<S>;
  });
  problem.phases = {{compute, plan.tileCount(), plan.tile_ns}};
  return MatmulKernel(std::move(problem));
}

}  // namespace gpuc
