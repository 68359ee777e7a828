// What the host makes of a plan's commands.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "test/runtime/lowered_plan.h"

namespace gpuc::test {
namespace {

/// The names of the buffers in which the command at `place` writes.
std::set<std::string> writtenBy(const Lowered& lowered, uint32_t place) {
  std::set<std::string> names;
  for (const CommandAccess& access : lowered.program->accesses)
    for (const fb::Buffer* buffer : each(lowered.plan.root().buffers()))
      if (access.command == place && access.written && buffer->offset() == access.begin)
        names.insert(buffer->name()->str());
  return names;
}

// Who takes what forward wrote for written copies an input that it could read in place.
TEST(Lower, AttentionsGradientReadsWhatForwardWrote) {
  const Lowered lowered(attentionPlan(), 1);
  using Names = std::set<std::string>;
  EXPECT_EQ(writtenBy(lowered, 0), (Names{"y", "logs"}));
  EXPECT_EQ(writtenBy(lowered, 1), (Names{"dq", "dk", "dv", "dmask", "workspace"}));
}

}  // namespace
}  // namespace gpuc::test
