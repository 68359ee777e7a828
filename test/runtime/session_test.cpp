// A session from outside: plans built by hand, run through gpuc.h.
#include "runtime/gpuc.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "test/runtime/plan_builder.h"

namespace gpuc::test {
namespace {

Session open(const PlanBuilder &builder, SessionOptions options = {}) {
  Result<Session> session = Session::create(builder.parse(), options);
  EXPECT_TRUE(session.ok()) << session.message();
  return *std::move(session);
}

ProgramId programOf(const Session &session, const std::string &name) {
  Result<ProgramId> id = session.program(name);
  EXPECT_TRUE(id.ok()) << id.message();
  return *id;
}

void runOnce(Session &session, ProgramId id, std::span<const HostTensorView> inputs = {}, int32_t rows = -1) {
  Status status = session.run(id, inputs, rows);
  ASSERT_TRUE(status.ok()) << status.message();
  status = session.wait();
  ASSERT_TRUE(status.ok()) << status.message();
}

template <typename T> std::vector<T> valuesOf(HostTensorView view) {
  std::vector<T> values(static_cast<size_t>(view.sizeBytes()) / sizeof(T));
  std::memcpy(values.data(), view.data, values.size() * sizeof(T));
  return values;
}

std::vector<float> counting(size_t count, float first = 0) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST(Session, RunsAKernelOnFillAndCopy) {
  PlanBuilder builder;
  uint32_t x = builder.buffer("x", DataType::f32, {64});
  uint32_t ones = builder.buffer("ones", DataType::f32, {64});
  uint32_t y = builder.buffer("y", DataType::f32, {64});
  uint32_t add = builder.kernel("test_add", 3);
  fb::ProgramT &predict = builder.program("predict");
  CommandList &commands = predict.streams[0]->commands;
  builder.copyIn(commands, PlanBuilder::input(predict, "x", x), {x});
  builder.fill(commands, {ones}, patternOf(1.0f));
  builder.launch(commands, add, {{x}, {ones}}, {{y}}, 4);
  PlanBuilder::output(predict, "y", y);

  Session session = open(builder);
  std::vector<float> input = counting(64);
  const int64_t shape[] = {64};
  HostTensorView view(input.data(), DataType::f32, shape);
  ProgramId id = programOf(session, "predict");
  runOnce(session, id, {&view, 1});
  EXPECT_EQ(valuesOf<float>(session.output(id, 0)), counting(64, 1));
}

} // namespace
} // namespace gpuc::test
