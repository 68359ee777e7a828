//===- FakeDevice.cpp - A GPU that is not there, under all tests of a binary -===//
//
// The device of DeviceRun.h is a fake GPU then, whose kernels are the plan's own, compiled for this CPU.
//
//===----------------------------------------------------------------------===//

#include "test/end-to-end/plan_kernels.h"
#include "test/gradients/DeviceRun.h"

#include <cstdlib>
#include <gtest/gtest.h>

namespace gpuc::gradients {
namespace {

class FakeDevice : public testing::Environment {
public:
  void SetUp() override {
    setenv("GPUC_TEST_DEVICE", "cuda", 1);
    // Nobody runs machine code here: it is not asked for.
    setenv("PATH", "/nowhere", 1);
    setenv("CUDA_HOME", "/nowhere", 1);
    gpu_ = std::make_unique<test::FakeGpu>(/*seed=*/1);
    beforeLoading() = [this](mlir::ModuleOp module, const Plan &plan) {
      kernels_ = std::make_unique<test::PlanKernels>(module, plan);
      kernels_->define(*gpu_);
    };
  }
  void TearDown() override { gpu_.reset(); }

private:
  std::unique_ptr<test::PlanKernels> kernels_;
  std::unique_ptr<test::FakeGpu> gpu_;
};

[[maybe_unused]] testing::Environment *const environment = testing::AddGlobalTestEnvironment(new FakeDevice);

} // namespace
} // namespace gpuc::gradients
