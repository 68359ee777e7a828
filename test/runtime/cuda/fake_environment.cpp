// Puts a fake GPU under all tests of the binary.
#include <gtest/gtest.h>

#include "test/runtime/cuda/test_kernels.h"

namespace gpuc::test {
namespace {

class FakeDevice : public testing::Environment {
 public:
  void SetUp() override {
    gpu_ = std::make_unique<FakeGpu>(/*seed=*/1);
    defineTestKernels(*gpu_);
  }
  void TearDown() override { gpu_.reset(); }

 private:
  std::unique_ptr<FakeGpu> gpu_;
};

[[maybe_unused]] testing::Environment* const kEnvironment = testing::AddGlobalTestEnvironment(new FakeDevice);

}  // namespace
}  // namespace gpuc::test
