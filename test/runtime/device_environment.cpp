// Skips every test of the binary where the device under test is not there, with the reason.
#include <gtest/gtest.h>

#include "runtime/hal/device.h"
#include "test/runtime/plan_builder.h"

namespace gpuc::test {
namespace {

class NeedsDevice : public testing::Environment {
 public:
  void SetUp() override {
    if (testDevice() == TargetKind::host) return;
    Result<std::unique_ptr<Device>> device = openCudaDevice(0);
    if (!device.ok()) GTEST_SKIP() << device.message();
  }
};

[[maybe_unused]] testing::Environment* const kEnvironment =
    testing::AddGlobalTestEnvironment(new NeedsDevice);

}  // namespace
}  // namespace gpuc::test
