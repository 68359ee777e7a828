// Runs a kernel that was made for a GPU on this CPU, the threads of a block as coroutines. What PTX would be
// made of is compiled for the host instead, so that indices, guards, shared memory and reduction trees are
// tested where there is no GPU.
#pragma once

#include "test/passes/codegen/kernel_harness.h"

namespace gpuc::test {

class EmulatedKernel {
public:
  /// As TestKernel; see there.
  EmulatedKernel(const std::vector<std::string> &argumentTypes, const std::vector<std::string> &resultTypes,
                 const std::string &body);
  /// Every block of the grid, the last one first.
  std::vector<Buffer> run(const std::vector<Buffer> &arguments);
  const CudaSchedule &schedule() const { return schedule_; }
  bool hasBarriers() const { return hasBarriers_; }
  KernelText &text() { return text_; }

private:
  void compile();
  void runBlock(uint32_t block, const std::vector<void *> &operands);

  KernelText text_;
  CudaSchedule schedule_;
  bool hasBarriers_ = false;
  std::unique_ptr<LoadedObject> loaded_;
};

} // namespace gpuc::test
