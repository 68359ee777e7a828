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

/// A variable of 64 elements of which each rank has its share.
inline uint32_t shareOf64(PlanBuilder& builder, const std::string& name) {
  const int64_t each = (63 / builder.plan.world_size) + 1;
  const uint32_t buffer = builder.variable(name, DataType::f32, {each});
  builder.plan.variables.back()->is_share = true;
  builder.plan.variables.back()->whole_shape = {64};
  return buffer;
}

/// The same training of so many ranks that share w and total out:
///   compute:  x → part   record(ready)   wait(shared)   w += sum   total += count   record(updated)
///             wait(gathered)   download
///   exchange: wait(ready)   part, x → sum, count   record(shared)   wait(updated)   w, total → all of them
///             record(gathered)
inline PlanBuilder sharedStepPlan(uint32_t ranks) {
  PlanBuilder builder(1, TargetKind::cuda);
  builder.plan.world_size = ranks;
  const int64_t each = (63 / ranks) + 1;
  const auto tiles = static_cast<uint64_t>((each + 15) / 16);
  const uint32_t w = shareOf64(builder, "w"), total = shareOf64(builder, "total"),
                 x = builder.buffer("x", DataType::f32, {64}),
                 part = builder.buffer("part", DataType::f32, {64}),
                 sum = builder.buffer("sum", DataType::f32, {each}),
                 count = builder.buffer("count", DataType::f32, {each}),
                 all_w = builder.buffer("all_w", DataType::f32, {64}),
                 all_total = builder.buffer("all_total", DataType::f32, {64});
  fb::ProgramT& program = builder.program("step", 2);
  program.events = {"ready", "shared", "updated", "gathered"};
  CommandList &compute = program.streams[0]->commands, &exchange = program.streams[1]->commands;
  builder.copyIn(compute, PlanBuilder::input(program, "x", x), {x});
  builder.launch(compute, builder.kernel("test_double", 2), {{x}}, {{part}}, 4);
  PlanBuilder::record(compute, 0);
  PlanBuilder::wait(exchange, 0);
  fb::ReduceScatterT& scatter = builder.reduceScatter(exchange, DataType::f32, part, sum);
  scatter.wholes.push_back(builder.operand({x}));
  scatter.shares.push_back(builder.operand({count}));
  PlanBuilder::record(exchange, 1);
  PlanBuilder::wait(compute, 1);
  builder.launch(compute, builder.kernel("test_add", 3), {{w}, {sum}}, {{w}}, tiles);
  builder.launch(compute, builder.kernel("test_add", 3), {{total}, {count}}, {{total}}, tiles);
  PlanBuilder::record(compute, 2);
  PlanBuilder::wait(exchange, 2);
  fb::AllGatherT& gather = builder.allGather(exchange, DataType::f32, w, all_w);
  gather.shares.push_back(builder.operand({total}));
  gather.wholes.push_back(builder.operand({all_total}));
  PlanBuilder::record(exchange, 3);
  PlanBuilder::wait(compute, 3);
  builder.copyOut(compute, PlanBuilder::output(program, "w", all_w), {all_w});
  builder.copyOut(compute, PlanBuilder::output(program, "total", all_total), {all_total});
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

/// The first error, or "" if each rank ended with `expected`; "other outputs" is one of them.
inline std::string trainOnRanks(const PlanBuilder& builder, const FakeRanks& ranks,
                                const std::vector<float>& expected) {
  const auto said = runOnFakeRanks(ranks, [&](Communicator& communicator, FakeGpu&) {
    std::vector<float> outputs;
    GPUC_RETURN_IF_ERROR(trainOn(builder, &communicator, outputs));
    return outputs == expected ? okStatus() : Status::error("other outputs");
  });
  for (const std::string& error : said)
    if (!error.empty()) return error;
  return "";
}

/// The same without the waits of a stream goes wrong in some order of streams.
inline bool showsMissingWaits(PlanBuilder builder, size_t stream, int ranks) {
  std::erase_if(builder.plan.programs[0]->streams[stream]->commands,
                [](const auto& command) { return command->work.type == fb::Work::Wait; });
  for (uint64_t seed = 0; seed < 60; ++seed)
    if (!trainOnRanks(builder, ranksOf(ranks, seed), expectedOf(ranks)).empty()) return true;
  return false;
}

}  // namespace gpuc::test
