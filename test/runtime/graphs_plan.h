// A plan whose steps are CUDA graphs on a GPU, and a use of it that feeds and reads between them. Numbers are
// small integers, and halves of them: exact in any order.
#pragma once

#include "test/runtime/session_helpers.h"

namespace gpuc::test {

/// A copy stream that runs ahead by its slots. The compute stream has two graphs, of which the first reads
/// the batch:
///   copy:    wait(free, slots)  x → x[slot]  record(ready)
///   compute: wait(ready)  t = x[slot], u = 2 t, v = u + x[slot], repeat 2 { sum += v }
///            record(free)  t = 1, h = v · w, u = t + h, sum += u, download sum
/// And a program whose input no command copies: y = 2 (sum + 2 x), twice.
inline PlanBuilder graphsPlan(uint32_t slots, TargetKind target = testDevice()) {
  PlanBuilder builder(slots, target);
  const uint32_t sum = builder.variable("sum", DataType::f32, {4, 16});
  const uint32_t w = builder.variable("w", DataType::f32, {16, 16});
  const uint32_t x = builder.slotBuffer("x", DataType::f32, {4, 16});
  auto buffer = [&](const char* name) { return builder.buffer(name, DataType::f32, {4, 16}); };
  const uint32_t t = buffer("t"), u = buffer("u"), v = buffer("v"), h = buffer("h"), y = buffer("y");
  const uint32_t add = builder.kernel("test_add", 3), twice = builder.kernel("test_double", 2);

  fb::ProgramT& step = builder.program("step", 2);
  step.events = {"ready", "free"};
  CommandList &compute = step.streams[0]->commands, &copies = step.streams[1]->commands;
  PlanBuilder::wait(copies, 1, slots);
  builder.copyIn(copies, PlanBuilder::input(step, "x", x), {x});
  PlanBuilder::record(copies, 0);
  PlanBuilder::wait(compute, 0);
  builder.copy(compute, {x}, {t});
  builder.launch(compute, twice, {{t}}, {{u}}, 4);
  builder.launch(compute, add, {{u}, {x}}, {{v}}, 4);
  builder.launch(PlanBuilder::repeat(compute, 2), add, {{sum}, {v}}, {{sum}}, 4);
  PlanBuilder::record(compute, 1);
  builder.fill(compute, {t}, patternOf(1.0f));
  builder.matmul(compute, v, w, h, 4, 16, 16);
  builder.launch(compute, add, {{t}, {h}}, {{u}}, 4);
  builder.launch(compute, add, {{sum}, {u}}, {{sum}}, 4);
  builder.copyOut(compute, PlanBuilder::output(step, "sum", sum), {sum});

  fb::ProgramT& look = builder.program("look");
  PlanBuilder::input(look, "x", x);
  CommandList& commands = look.streams[0]->commands;
  builder.launch(commands, twice, {{x}}, {{t}}, 4);
  builder.launch(commands, add, {{sum}, {t}}, {{u}}, 4);
  builder.launch(commands, twice, {{u}}, {{v}}, 4);
  builder.launch(commands, twice, {{v}}, {{y}}, 4);
  builder.copyOut(commands, PlanBuilder::output(look, "y", y), {y});
  return builder;
}

/// A session of that plan, and what it is fed with.
struct FedSession {
  explicit FedSession(const PlanBuilder& builder) : session(open(builder)) {
    write("w", std::vector<float>(256, 0.5f));
    write("sum", std::vector<float>(64));
  }

  void write(const char* name, const std::vector<float>& values) {
    EXPECT_TRUE(session.writeVariable(name, std::as_bytes(std::span(values))).ok());
  }

  /// Another batch each time; not waited for.
  void run(const char* program) {
    const std::vector<float> batch = counting(64, static_cast<float>(3 * runs++ % 7));
    const int64_t shape[] = {4, 16};
    HostTensorView view = viewOf(batch, DataType::f32, shape);
    const Status status = session.run(programOf(session, program), {&view, 1});
    EXPECT_TRUE(status.ok()) << status.message();
  }

  std::vector<float> output(const char* program) {
    const Status status = session.wait();
    EXPECT_TRUE(status.ok()) << status.message();
    return valuesOf<float>(session.output(programOf(session, program), 0));
  }

  Session session;
  int runs = 0;
};

/// Programs in turns, variables that are read and written between steps.
inline std::vector<std::vector<float>> resultsOf(const PlanBuilder& builder) {
  FedSession use(builder);
  std::vector<std::vector<float>> results;
  for (int i = 0; i < 5; ++i) use.run("step");
  results.push_back(use.output("step"));
  for (const char* program : {"look", "step", "look", "step", "look", "look", "step"}) use.run(program);
  results.push_back(use.output("step"));
  results.push_back(use.output("look"));
  use.write("sum", counting(64));
  for (int i = 0; i < 2; ++i) use.run("step");
  results.push_back(use.output("step"));
  use.write("w", std::vector<float>(256, 2.0f));
  for (int i = 0; i < 3; ++i) use.run("step");
  EXPECT_TRUE(use.session.wait().ok());
  results.push_back(readVariable<float>(use.session, "sum", 64));
  return results;
}

}  // namespace gpuc::test
