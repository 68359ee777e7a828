// A training of several ranks, for tests of how their GPUs add up.
#pragma once

#include <functional>

#include "test/runtime/cuda/fake_ranks.h"
#include "test/runtime/cuda/test_kernels.h"
#include "test/runtime/session_helpers.h"

namespace gpuc::test {

inline constexpr int kSteps = 6;
inline constexpr int64_t kShape[] = {64};

/// A step with a bucket and a count, which travel on a stream of their own, and a sum that is in place:
///   compute:  x → part   count = rows   record(ready)   wait(summed)   w += sum   total += count   download
///   w exchange: wait(ready)   part → sum   count → counts   record(summed)
inline PlanBuilder stepPlan(TargetKind target = TargetKind::cuda) {
  PlanBuilder builder(1, target);
  const uint32_t w = builder.variable("w", DataType::f32, {64}), x = builder.buffer("x", DataType::f32, {64}),
                 part = builder.buffer("part", DataType::f32, {64}),
                 sum = builder.buffer("sum", DataType::f32, {64}),
                 total = builder.variable("total", DataType::f32, {64});
  fb::ProgramT& program = builder.program("step", 2);
  program.events = {"ready", "summed"};
  CommandList &compute = program.streams[0]->commands, &exchange = program.streams[1]->commands;
  builder.copyIn(compute, PlanBuilder::input(program, "x", x), {x});
  builder.launch(compute, builder.kernel("test_double", 2), {{x}}, {{part}}, 4);
  PlanBuilder::record(compute, 0);
  PlanBuilder::wait(exchange, 0);
  builder.allReduce(exchange, DataType::f32, part, sum);
  builder.allReduce(exchange, DataType::f32, x, x);
  PlanBuilder::record(exchange, 1);
  PlanBuilder::wait(compute, 1);
  builder.launch(compute, builder.kernel("test_add", 3), {{w}, {sum}}, {{w}}, 4);
  builder.launch(compute, builder.kernel("test_add", 3), {{total}, {x}}, {{total}}, 4);
  builder.copyOut(compute, PlanBuilder::output(program, "w", w), {w});
  builder.copyOut(compute, PlanBuilder::output(program, "total", total), {total});
  return builder;
}

using BeforeStep = std::function<Status(int step)>;

/// kSteps steps of which none is waited for; the outputs. `before` is called before each, and may end them.
inline Status trainOn(const PlanBuilder& builder, Communicator* ranks, std::vector<float>& outputs,
                      const BeforeStep& before = {}) {
  GPUC_ASSIGN_OR_RETURN(Session session, Session::create(builder.parse(), {.communicator = ranks}));
  GPUC_ASSIGN_OR_RETURN(const ProgramId step, session.program("step"));
  const std::vector<float> zeros(64);
  for (const char* name : {"w", "total"})
    GPUC_RETURN_IF_ERROR(session.writeVariable(name, std::as_bytes(std::span(zeros))));
  const float rank = ranks ? static_cast<float>(ranks->rank()) : 0;
  for (int run = 0; run < kSteps; ++run) {
    if (before) GPUC_RETURN_IF_ERROR(before(run));
    const std::vector<float> input = counting(64, static_cast<float>(run * run) + 100 * rank);
    const HostTensorView x = viewOf(input, DataType::f32, kShape);
    GPUC_RETURN_IF_ERROR(session.run(step, {&x, 1}));
  }
  GPUC_RETURN_IF_ERROR(session.wait());
  outputs = valuesOf<float>(session.output(step, 0));
  const std::vector<float> total = valuesOf<float>(session.output(step, 1));
  outputs.insert(outputs.end(), total.begin(), total.end());
  return okStatus();
}

/// Of small integers, so that they are exact in any order.
inline std::vector<float> expectedOf(int ranks) {
  std::vector<float> expected(128);
  for (int rank = 0; rank < ranks; ++rank)
    for (int run = 0; run < kSteps; ++run)
      for (size_t i = 0; i < 64; ++i) {
        const float x = static_cast<float>(run * run + 100 * rank) + static_cast<float>(i);
        expected[i] += 2 * x;
        expected[64 + i] += x;
      }
  return expected;
}

inline FakeRanks ranksOf(int count, uint64_t seed = 0) {
  return {.count = count, .seed = seed, .prepare = [](int, FakeGpu& gpu) { defineTestKernels(gpu); }};
}

}  // namespace gpuc::test
