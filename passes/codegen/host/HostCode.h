//===- HostCode.h - Kernels as machine code of a CPU ------------------------===//
//
// On the host a kernel is `void symbol(void *const *operands, int64_t begin, int64_t end)`. `operands` are
// the buffers of the block's arguments, then those of the results, dense, row-major and aligned to an
// element: a slice of a stack may begin anywhere. A call computes the tiles [begin, end); tiles are
// independent of one another, and what one holds depends on shapes and target alone.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/codegen/Codegen.h"

namespace gpuc {

namespace codegen {
class HostKernels;
} // namespace codegen

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
  /// Tiles fall into so many rows of equally many, the i-th of which touches the i-th equal part of each
  /// operand that goes `byRows` (arguments, then results), and any part of others. 0: there are none.
  int64_t rows = 0;
  std::vector<bool> byRows;
};

/// Number and size of tiles, from shapes and target alone.
KernelSchedule scheduleHostKernel(mlir::Block &body, const HostTarget &target);

/// Whether tiles of a product may be handed to the kernel as that operand, its first in the end: it computes
/// element by element, of tensors that lie as the product does or have one element, to f32 or f64.
bool takesProductTiles(mlir::Block &body, unsigned argument = 0);

/// What kernels became on a host.
struct HostCode {
  std::string object;               ///< ELF; empty if there are no kernels.
  std::vector<std::string> symbols; ///< Of each kernel. Equal kernels have the same.
};

/// Compiles kernels on other threads, beside what its owner does. Kernels with equal bodies share their code;
/// symbols are hashes of it.
class HostCompiler {
public:
  HostCompiler(HostTarget target, const CodegenOptions &options);
  ~HostCompiler();

  /// Begins with a kernel that will probably be among those of finish(), and else was in vain.
  void begin(mlir::Block &body);

  /// As compileHostKernels(). What began before changes when code is there, and nothing of it.
  mlir::FailureOr<HostCode> finish(llvm::ArrayRef<KernelSource> kernels,
                                   llvm::function_ref<void()> meanwhile = {});

private:
  std::unique_ptr<HostTarget> target_;
  std::unique_ptr<codegen::HostKernels> kernels_;
};

/// Compiles kernels into one ELF shared object that exports their symbols and needs nothing: no libc, no
/// libm, no relocation against another object. Equal inputs give equal bytes. Emits a diagnostic at the
/// kernel that cannot be compiled. `meanwhile` is called once, when all that is left is for LLVM's threads to
/// do.
mlir::FailureOr<HostCode> compileHostKernels(llvm::ArrayRef<KernelSource> kernels, const HostTarget &target,
                                             const CodegenOptions &options = {},
                                             llvm::function_ref<void()> meanwhile = {});

} // namespace gpuc
