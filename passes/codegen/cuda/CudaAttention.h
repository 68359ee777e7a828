//===- CudaAttention.h - Attention as a kernel of a GPU ---------------------===//
//
// A kernel whose body holds gpuc.attention, or gpuc.attention_gradient, among the transposes, slices and
// reshapes through which that reads and writes. Scores are computed tile by tile and never stored [Dao 2023,
// "FlashAttention-2"]. Which of the three kernels it is, what it yields says:
//
//   Forward            result, log_sum_exp    a block for each tile of queries; running maximum and sum
//   QueryGradient      query_cotangent        a block for each tile of queries, over tiles of keys
//   KeyValueGradient   key_, value_cotangent  a block for each tile of keys, over heads and tiles of queries
//
// The gradient is two kernels, each of which computes the probabilities again, so that every sum is made by
// one block, in a fixed order, and bits repeat.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/codegen/cuda/CudaTiles.h"

#include "dialects/gpuc/GpucOps.h"
#include "passes/codegen/cuda/CudaCode.h"
#include "runtime/workspace/attention_shape.h"

namespace gpuc::codegen {

enum class AttentionPart { Forward, QueryGradient, KeyValueGradient };

/// Where an operand or a result [batch, heads, rows, width] lies.
struct AttentionTensor {
  unsigned pointer = 0; ///< The number of the kernel's parameter.
  ElementKind kind = ElementKind::F32;
  int64_t offset = 0; ///< Elements before the first.
  AttentionLayout layout;
  int64_t rows = 0, width = 0;
  bool isAligned = false; ///< The parameter is a multiple of 16 bytes: kAlignedAttr.

  /// As GlobalRows has it: of 16-bit elements, of which all that is added up to a place is a multiple of 8.
  bool isInChunks() const;
};

struct AttentionKernel {
  /// Fails for a body that is none.
  static mlir::FailureOr<AttentionKernel> parse(mlir::Block &body);

  AttentionPart part = AttentionPart::Forward;
  AttentionShape shape; ///< Its layouts are those of the tensors below.
  AttentionTensor query, key, value, result, cotangent;
  /// What is yielded: of Forward the result, and of gradients their cotangents.
  std::optional<AttentionTensor> yieldedResult, queryCotangent, keyCotangent, valueCotangent;
  std::optional<unsigned> logSumExp; ///< Parameters: yielded by Forward, read by gradients.
  unsigned mask = 0, seed = 0, step = 0;
  ElementKind maskKind = ElementKind::F32;

  /// 16-bit operands are multiplied by tensor cores, where threads have registers for it.
  bool usesTensorCores() const;
  TileShape tileShape() const;
  bool isWide() const { return std::max(query.width, value.width) > 64; }
  /// What most models have: on tensor cores, with registers to spare.
  bool isPlain() const {
    return usesTensorCores() && !isWide() && shape.mask == AttentionMask::none && shape.dropout == 0;
  }
  /// Blocks that are to fit a multiprocessor at once, so that one computes while another one waits; 0: as
  /// many as do.
  int64_t leastBlocksAtOnce() const {
    return !isPlain() ? 0 : part == AttentionPart::Forward ? 4 : part == AttentionPart::QueryGradient ? 3 : 2;
  }
  int64_t queryTiles() const { return llvm::divideCeil(shape.queries, TileEmitter::size); }
  int64_t keyTiles() const { return llvm::divideCeil(shape.keys, TileEmitter::size); }
  CudaSchedule schedule() const;
};

/// Emits a kernel's function; what the three kernels share.
class AttentionEmitter {
public:
  AttentionEmitter(mlir::gpu::GPUFuncOp function, const AttentionKernel &kernel);
  void run();

private:
  /// A head of queries; i64.
  struct Head {
    Expr batch, head, group;
    Expr firstRow;        ///< Of its queries among all.
    Expr end;             ///< Of the rows whose tiles are computed.
    bool seesAll = false; ///< The tile that is computed lies before the diagonal.
  };
  using TileBody = llvm::function_ref<State(const Head &, Expr, const State &)>;

  void emitForward();
  State forwardTile(const Head &head, const TileOperand &query, Expr key0, const State &carried);
  void emitQueryGradient();
  void emitKeyValueGradient();
  State keyValueTile(const Head &head, const TileOperand &key, const TileOperand &value, Expr query0,
                     const State &carried);

  /// This block's tile of `tiles` in a row, and what is left of its number: batch times heads.
  std::pair<Expr, Expr> splitBlock(int64_t tiles, bool lastFirst);
  Head headOf(Expr batch, Expr head);
  /// The tile of queries that this block computes, and their head.
  std::pair<Expr, Head> enterQueries();
  /// The rows of one head.
  GlobalRows rowsOf(const AttentionTensor &tensor, Expr batch, Expr head);
  GlobalRows queriesOf(const AttentionTensor &tensor, const Head &head) {
    return rowsOf(tensor, head.batch, head.head);
  }
  GlobalRows keysOf(const AttentionTensor &tensor, const Head &head) {
    return rowsOf(tensor, head.batch, head.group);
  }
  /// A loop over the tiles of keys that queries from query0 on see, and over those of queries that see keys
  /// from key0 on. Where there are registers for two loops, behind the diagonal nobody asks what is seen.
  State overKeys(Head head, Expr query0, const State &start, TileBody body);
  State overQueries(Head head, Expr key0, const State &start, TileBody body);
  State overTiles(Head head, Expr low, Expr high, bool seesAll, const State &start, TileBody body);

  /// (scale · product + mask) · logOfE, -∞ where nothing is seen; all of it is powers of the tiles' base.
  Expr score(Expr product, const Head &head, Expr query, Expr key) {
    return maskedScore(product * scale_, head, query, key);
  }
  /// What is left to multiply scores by where a row's largest is taken off them, which costs nothing there.
  double lateScale() const {
    bool isLate = kernel_.usesTensorCores() && kernel_.shape.mask != AttentionMask::addends && scale_ > 0;
    return isLate ? scale_ : 1;
  }
  /// The same of scale · product · logOfE, or of what differs from it.
  Expr maskedScore(Expr score, const Head &head, Expr query, Expr key);
  /// exp(score - logarithm), which is times logOfE too.
  Expr probability(Expr product, Expr logarithm, const Head &head, Expr query, Expr key);
  /// Which of two or four keys that adjoin dropout keeps, as i1. The first one is a multiple of so many.
  llvm::SmallVector<Expr, 4> keptBy(const Head &head, Expr query, Expr firstKey, int64_t count);
  /// A row of a tile as dropout leaves it.
  void dropFromRow(Expr *row, const Head &head, Expr query, Expr key0);
  /// `x` as dropout leaves it.
  Expr dropped(Expr x, Expr isKept);
  bool drops() const { return kernel_.shape.dropout > 0; }

  /// log_sum_exp of a query, times logOfE, 0 where it sees nothing or there is no such query.
  Expr logSumExpOf(const Head &head, Expr query);
  /// The same and deltaOf, of the tile's queries, by the threads of its rows.
  std::pair<State, State> statisticsOf(const Head &head, Expr query0);
  /// Σ cotangent ∘ result of the query, by all threads along a tile's row.
  Expr deltaOf(const Head &head, Expr query) {
    return tiles_->dot(queriesOf(kernel_.cotangent, head), queriesOf(kernel_.result, head), query);
  }

  /// transform(i, sum of row i) to the rows from row0 on.
  void storeRows(const State &sums, const GlobalRows &to, Expr row0,
                 llvm::function_ref<Expr(int64_t, Expr)> transform);

  Expr wide(Expr a) { return zeroExtend(a, builder_.getI64Type()); }
  Expr wideNumber(int64_t a) { return constantInt(builder_, builder_.getI64Type(), a); }
  Expr number(int64_t a) { return tiles_->number(a); }
  Expr row(int64_t i) { return tiles_->row(i); }
  Expr column(int64_t j) { return tiles_->column(j); }

  const AttentionKernel &kernel_;
  mlir::gpu::GPUFuncOp function_;
  mlir::ImplicitLocOpBuilder builder_;
  llvm::SmallVector<mlir::Value> pointers_;
  std::unique_ptr<TileEmitter> tiles_;
  const int64_t rowsEach_, columnsEach_; // of a tile, that a thread holds
  const double scale_;                   // of scores, times logOfE
  Expr seed_, step_;                     // of dropout
  mlir::Value logarithms_, deltas_; // of KeyValueGradient, in shared memory: one for each query of two tiles
};

} // namespace gpuc::codegen
