//===- CudaCode.h - Kernels as machine code of a GPU ------------------------===//
//
// On CUDA a kernel is `.entry symbol(ptr, ptr, …)`: the same buffers, one pointer parameter for each,
// launched as scheduleCudaKernel says and not otherwise. Beside what checkKernel says, a kernel may be
// attention or a part of its gradient (CudaAttention.h).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/codegen/Codegen.h"

namespace gpuc {

/// A GPU architecture to compile for.
struct CudaTarget {
  std::string architecture; ///< "sm_90".
  std::string ptxFeature;   ///< The PTX version that it needs, as LLVM names it: "+ptx81".

  /// Fails, with those that are known in `error`, for any other.
  static mlir::FailureOr<CudaTarget> parse(llvm::StringRef architecture, std::string *error = nullptr);
  static llvm::ArrayRef<CudaTarget> known();
};

/// What a thread reads or writes at once, at most.
inline constexpr int64_t kVectorBytes = 16;

/// On the op that holds a kernel's body: whatever it is launched with begins at a multiple of kVectorBytes.
/// Without it each element is read by itself. Schedule and code follow from it, as from the body.
inline constexpr llvm::StringLiteral kAlignedAttr = "gpuc.aligned";

/// How a kernel is launched: thread blocks, threads in each.
struct CudaSchedule {
  uint32_t grid = 1, block = 1;
};

/// From shapes and kAlignedAttr alone.
CudaSchedule scheduleCudaKernel(mlir::Block &body);

/// What kernels became: text that the driver compiles for this or any later architecture, and machine code
/// for this one.
struct CudaCode {
  std::string ptx;
  std::string cubin;                ///< Empty where there is no ptxas, or none was asked for.
  std::vector<std::string> symbols; ///< Of each kernel. Equal kernels have the same.
};

/// Compiles kernels into one module, each named after what it computes: the same kernels give the same bytes
/// in any order, with the same ptxas, and are found again in the cache whatever else the plan does. Emits a
/// diagnostic at the kernel that cannot be compiled, and a warning, with the cure, where there is no ptxas.
mlir::FailureOr<CudaCode> compileCudaKernels(llvm::ArrayRef<KernelSource> kernels, const CudaTarget &target,
                                             const CodegenOptions &options = {});

/// ptxas, from $CUDA_HOME/bin or the path. Fails if there is none.
mlir::FailureOr<std::string> findPtxas();

} // namespace gpuc
