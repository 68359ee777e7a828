//===- Codegen.h - From a fused region to machine code ----------------------===//
//
// A kernel is a block of gpuc ops: its arguments are the operand tensors, its `gpuc.yield` names the results.
// On the host it becomes `void symbol(void *const *operands, int64_t begin, int64_t end)`. `operands` are the
// buffers of the block's arguments, then those of the results, dense, row-major and aligned to an element: a
// slice of a stack may begin anywhere. A call computes the tiles [begin, end); tiles are independent of one
// another, and what one holds depends on shapes and target alone.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Block.h"
#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"

#include <string>
#include <vector>

namespace gpuc {

class KernelCache;

/// A CPU to compile for. Two equal targets give equal bits.
struct HostTarget {
  std::string cpu;                   ///< LLVM's name, such as "x86-64-v3" or "skylake-avx512".
  std::vector<std::string> features; ///< LLVM's features, "+avx2" or "-avx2": all that are known of the CPU.
  int vectorBytes = 0;               ///< Bytes of the widest vector register in use: 16, 32 or 64.

  /// The CPU that this process runs on.
  static mlir::FailureOr<HostTarget> native(std::string *error = nullptr);
  /// A CPU by name. Fails, with the reason in `error`, for an unknown name and for a CPU without fused
  /// multiply-add or half-precision conversion, which kernels rely on.
  static mlir::FailureOr<HostTarget> parse(llvm::StringRef cpu, std::string *error = nullptr);
};

/// How a kernel is cut.
struct KernelSchedule {
  int64_t tiles = 1; ///< Valid tile numbers are [0, tiles).
  int64_t grain = 1; ///< Tiles that take about 10 µs; may be more than there are.
  /// Tiles fall into so many bands of equally many, the i-th of which touches the i-th equal part of each
  /// operand that is `cut` (arguments, then results), and any part of others. 0: there are none.
  int64_t bands = 0;
  std::vector<bool> cut;
};

/// True of ops that a kernel computes element by element at whatever index is asked for: pointwise ops,
/// constants, iota, random bits, and broadcast, transpose, slice and reverse, which only say where to read.
bool isInlinable(mlir::Operation *op);

/// True of ops that shape the loops of the kernel they stand in: reductions, argmax, cumsum, sort, top_k,
/// gather, scatter_add, concat, pad, dynamic_slice, dynamic_update_slice and poolings.
bool isRoot(mlir::Operation *op);

/// True of sum, prod, reduce_max, reduce_min and argmax: the roots of which a kernel may hold several.
bool isReduction(mlir::Operation *op);

/// So many reductions a kernel may hold. A GPU keeps what each thread folded in shared memory, and a CPU in
/// registers.
inline constexpr size_t kMostReductions = 8;

/// The dimensions that a reduction folds, in increasing order.
llvm::SmallVector<int64_t> foldedDims(mlir::Operation *reduction);

/// True of roots whose kernel yields all of their results, be they read or not, and nothing else: sort and
/// top_k, which work in the buffers of both.
bool yieldsAllResults(mlir::Operation *op);

/// What the emitter takes, on any target:
/// - Pointwise kernels: every result is an inlinable expression of one common shape.
/// - Row kernels: up to eight reductions that fold the same dimensions of one shape, all of them elements of
///   up to four bytes or all of eight, among inlinable ops. Rows are what is folded to one element. Whatever
///   reads a reduction reads it of its own row, be it through a broadcast along that row. Every result has
///   the shape that is folded, or the one that is left.
/// - Others: one root, whose operands are inlinable expressions. Every result is the root's or a pointwise
///   expression of it and of inlinable others, in the root's shape. scatter_add, sort and top_k take nothing
///   after them.
/// - Segmented kernels: several of these as one launch (Segments.h).
///
/// Fails without a diagnostic: fusion asks this to learn how far it may go.
mlir::LogicalResult checkKernel(mlir::Block &body);

/// Whether a kernel would compute many elements of one value for one element of a result: each op that reads
/// at two places has all that it stands on computed at both, and a few dozen such ops make more code than
/// there is room for. Takes time in proportion to the kernel's ops.
bool repeatsElements(mlir::Block &body);

/// Number and size of tiles, from shapes and target alone.
KernelSchedule scheduleHostKernel(mlir::Block &body, const HostTarget &target);

/// True if argument number `argument` is read only at the index at which result number `result` is written,
/// in the same tile and not after, so that one buffer may hold both. Element sizes and shapes must agree.
bool canUpdateInPlace(mlir::Block &body, unsigned argument, unsigned result);

struct KernelSource {
  std::string symbol; ///< Its name in errors and on CUDA; on the host it gets another (HostCode).
  mlir::Block *body;
  mlir::Location location;
};

struct CodegenOptions {
  int optLevel = 2;             ///< LLVM's -O level, 0 to 3. Bits do not depend on it.
  unsigned threads = 0;         ///< That compile; 0: one for each core. The code does not depend on it.
  KernelCache *cache = nullptr; ///< Of what was compiled before, if there is one. Nor does the code on this.
};

/// What kernels became on a host.
struct HostCode {
  std::string object;               ///< ELF; empty if there are no kernels.
  std::vector<std::string> symbols; ///< Of each kernel. Equal kernels have the same.
};

/// Compiles kernels into one ELF shared object that exports their symbols and needs nothing: no libc, no
/// libm, no relocation against another object. Equal inputs give equal bytes. Kernels with equal bodies share
/// their code; symbols are hashes of it. Emits a diagnostic at the kernel that cannot be compiled.
mlir::FailureOr<HostCode> compileHostKernels(llvm::ArrayRef<KernelSource> kernels, const HostTarget &target,
                                             const CodegenOptions &options = {});

//===----------------------------------------------------------------------===//
// GPUs
//===----------------------------------------------------------------------===//
//
// On CUDA a kernel is `.entry symbol(ptr, ptr, …)`: the same buffers, one pointer parameter for each,
// launched as scheduleCudaKernel says and not otherwise. Beside what checkKernel says, a kernel may be
// attention or a part of its gradient (CudaAttention.h).

/// A GPU architecture to compile for.
struct CudaTarget {
  std::string architecture; ///< "sm_90".
  std::string ptxFeature;   ///< The PTX version that it needs, as LLVM names it: "+ptx81".

  /// Fails, with those that are known in `error`, for any other.
  static mlir::FailureOr<CudaTarget> parse(llvm::StringRef architecture, std::string *error = nullptr);
  static llvm::ArrayRef<CudaTarget> known();
};

/// How many buffers a kernel takes: a pointer each, in the 32,764 bytes that PTX gives parameters.
inline constexpr int64_t kMostCudaOperands = 4095;

/// How a kernel is launched: thread blocks, threads in each.
struct CudaSchedule {
  uint32_t grid = 1, block = 1;
};

/// From shapes alone.
CudaSchedule scheduleCudaKernel(mlir::Block &body);

/// What kernels became: text that the driver compiles for this or any later architecture, and machine code
/// for this one.
struct CudaCode {
  std::string ptx;
  std::string cubin;                ///< Empty where there is no ptxas.
  std::vector<std::string> symbols; ///< Of each kernel. Equal kernels have the same.
};

/// Compiles kernels into one module, each named as the first of those that are equal to it. Equal inputs give
/// equal bytes, with the same ptxas. Emits a diagnostic at the kernel that cannot be compiled, and a warning,
/// with the cure, where there is no ptxas.
mlir::FailureOr<CudaCode> compileCudaKernels(llvm::ArrayRef<KernelSource> kernels, const CudaTarget &target,
                                             const CodegenOptions &options = {});

/// ptxas, from $CUDA_HOME/bin or the path. Fails if there is none.
mlir::FailureOr<std::string> findPtxas();

} // namespace gpuc
