// Runs kernels that were made for a GPU on this CPU, the threads of a block as coroutines. What PTX would be
// made of is compiled for the host instead, so that indices, guards, shared memory and reduction trees are
// tested where there is no GPU.
#pragma once

#include "passes/codegen/cuda/CudaCode.h"
#include "test/passes/codegen/kernel_harness.h"

#include <set>

namespace gpuc::test {

/// Compiles one kernel, to PTX alone where `cubin` says no more: ptxas takes longer than all before it, and
/// assemble() asks it. A failure fails the test.
CudaCode compileForCuda(KernelText &text, const CudaTarget &target, bool cubin = false);

/// What `ptxas -v` says of `ptx`, whatever comes of it. Fails the test if ptxas fails.
std::string assemble(const std::string &ptxas, llvm::StringRef ptx, const std::string &architecture);

/// The kernels of one module.
class EmulatedModule {
public:
  explicit EmulatedModule(llvm::ArrayRef<KernelSource> kernels);
  /// A launch: every block of the grid, the last one first. `operands` are the addresses of the buffers.
  void run(const std::string &symbol, uint32_t grid, uint32_t block, void *const *operands) const;
  /// Threads of this kernel's blocks wait for one another.
  bool hasBarriers(const std::string &symbol) const { return withBarriers_.count(symbol) > 0; }

private:
  std::unique_ptr<LoadedObject> loaded_;
  std::set<std::string> withBarriers_;
};

/// One kernel from text.
class EmulatedKernel {
public:
  /// As TestKernel; see there.
  EmulatedKernel(const std::vector<std::string> &argumentTypes, const std::vector<std::string> &resultTypes,
                 const std::string &body);
  std::vector<Buffer> run(const std::vector<Buffer> &arguments);
  const CudaSchedule &schedule() const { return schedule_; }
  bool hasBarriers() const { return module_.hasBarriers("kernel"); }
  KernelText &text() { return text_; }

private:
  KernelText text_;
  CudaSchedule schedule_;
  EmulatedModule module_;
};

} // namespace gpuc::test
