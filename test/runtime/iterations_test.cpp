// Repeats whose iterations threads take side by side.
#include "runtime/host/iterations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "runtime/host/executor.h"
#include "test/runtime/allocations.h"
#include "test/runtime/lowered_plan.h"
#include "test/runtime/session_helpers.h"

namespace gpuc::test {
namespace {

constexpr uint64_t kBytes = 256;

/// A repeat that touches kBytes of the buffers "one" and "two", which have 12 times as much, at a time.
class Repeated {
 public:
  explicit Repeated(uint64_t count = 4) : builder(1, TargetKind::host) {
    for (const char* name : {"one", "two"}) builder.buffer(name, DataType::f32, {12, kBytes / 4});
    fb::ProgramT& program = builder.program("repeated");
    program.events = {"event"};
    body = &PlanBuilder::repeat(program.streams[0]->commands, count);
  }

  PlanBuilder builder;
  CommandList* body;

  /// kBytes of a buffer from `place` · kBytes on, which move by `strides` times as many.
  static OperandOf at(uint32_t buffer, int64_t place, std::vector<int64_t> strides) {
    const auto bytes = static_cast<int64_t>(kBytes);
    for (int64_t& stride : strides) stride *= bytes;
    return {buffer, static_cast<uint64_t>(place * bytes), kBytes, std::move(strides)};
  }
  void copy(const OperandOf& from, const OperandOf& to) { builder.copy(*body, from, to); }

  bool areIndependent() const {
    const Plan plan = builder.parse();
    const fb::Program& program = *plan.root().programs()->Get(0);
    return gpuc::areIndependent(plan.root(),
                                *program.streams()->Get(0)->commands()->Get(0)->work_as_Repeat());
  }
};

bool isByIterations(const HostCommand& command) {
  return command.kind == HostCommand::Kind::bands && command.bands.by_iterations;
}

struct Case {
  const char* name;
  bool independent;
  void (*build)(Repeated&);
};
void PrintTo(const Case& value, std::ostream* out) { *out << value.name; }

const Case kCases[] = {
    {"EachWritesItsOwn", true, [](Repeated& r) { r.copy(r.at(0, 0, {1}), r.at(1, 0, {1})); }},
    {"EachFromItsEnd", true, [](Repeated& r) { r.copy(r.at(0, 0, {1}), r.at(1, 7, {-1})); }},
    {"AllReadOne", true, [](Repeated& r) { r.copy(r.at(0, 0, {}), r.at(1, 0, {1})); }},
    {"AllWriteOne", false, [](Repeated& r) { r.copy(r.at(0, 0, {1}), r.at(1, 0, {})); }},
    {"EachReadsWhatItWrites", true,
     [](Repeated& r) {
       r.copy(r.at(0, 0, {1}), r.at(1, 0, {1}));
       r.copy(r.at(1, 0, {1}), r.at(0, 0, {1}));
     }},
    {"EachReadsWhatTheLastWrote", false, [](Repeated& r) { r.copy(r.at(0, 0, {1}), r.at(0, 1, {1})); }},
    {"TheNextOverwritesWhatEachRead", false, [](Repeated& r) { r.copy(r.at(0, 1, {1}), r.at(0, 0, {1})); }},
    {"OneReadsFarAwayWhatAnotherWrites", false,
     [](Repeated& r) { r.copy(r.at(0, 3, {-1}), r.at(0, 4, {-1})); }},
    {"WritesThatOverlapByALittle", false,
     [](Repeated& r) {
       OperandOf to = r.at(1, 0, {1});
       to.strides[0] -= 64;
       r.copy(r.at(0, 0, {1}), to);
     }},
    {"ARepeatWithinStaysInItsPart", true,
     [](Repeated& r) {
       r.body = &PlanBuilder::repeat(*r.body, 2);
       r.copy(r.at(0, 0, {}), r.at(1, 0, {2, 1}));
     }},
    {"ARepeatWithinLeavesItsPart", false,
     [](Repeated& r) {
       r.body = &PlanBuilder::repeat(*r.body, 3);
       r.copy(r.at(0, 0, {}), r.at(1, 0, {2, 1}));
     }},
    {"ARepeatWithinLeavesItsPartAtTheOtherEnd", false,
     [](Repeated& r) {
       r.body = &PlanBuilder::repeat(*r.body, 3);
       r.copy(r.at(0, 0, {}), r.at(1, 2, {1, -1}));
     }},
    {"AFillOfOnesOwn", true, [](Repeated& r) { r.builder.fill(*r.body, r.at(0, 0, {1})); }},
    {"AnEvent", false,
     [](Repeated& r) {
       r.copy(r.at(0, 0, {1}), r.at(1, 0, {1}));
       PlanBuilder::record(*r.body, 0);
     }},
    {"AnEventInARepeatWithin", false,
     [](Repeated& r) { PlanBuilder::record(PlanBuilder::repeat(*r.body, 2), 0); }},
};

class Iterations : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Repeats, Iterations, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST_P(Iterations, AreIndependentOrNot) {
  Repeated repeated;
  GetParam().build(repeated);
  EXPECT_EQ(repeated.areIndependent(), GetParam().independent);
}

TEST(Iterations, AreTwoToSixtyFour) {
  auto areIndependent = [](uint64_t count) {
    Repeated repeated(count);
    OperandOf to = {0, 0, 16, {16}};
    repeated.builder.fill(*repeated.body, to);
    return repeated.areIndependent();
  };
  EXPECT_FALSE(areIndependent(1));
  EXPECT_TRUE(areIndependent(2));
  EXPECT_TRUE(areIndependent(64));
  EXPECT_FALSE(areIndependent(65));
}

// Each writes its part of a buffer of which there are two, in turn for each run, and reads what lies where
// the second one of another iteration does.
TEST(Iterations, KeepToTheirPartsInAllSlots) {
  auto areIndependent = [](bool over_the_second) {
    PlanBuilder builder(2, TargetKind::host);
    const uint32_t y = builder.slotBuffer("y", DataType::f32, {4, kBytes / 4});
    const uint32_t z = builder.buffer("z", DataType::f32, {4, kBytes / 4});
    const uint32_t own = builder.buffer("own", DataType::f32, {4, kBytes / 4});
    if (over_the_second)
      builder.plan.buffers[z]->offset =
          builder.plan.buffers[y]->offset + builder.plan.buffers[y]->slot_stride;
    CommandList& body = PlanBuilder::repeat(builder.program("slots").streams[0]->commands, 4);
    builder.fill(body, Repeated::at(y, 3, {-1}));
    builder.copy(body, Repeated::at(z, 0, {1}), Repeated::at(own, 0, {1}));
    const Plan plan = builder.parse();
    const fb::Program& program = *plan.root().programs()->Get(0);
    return gpuc::areIndependent(plan.root(),
                                *program.streams()->Get(0)->commands()->Get(0)->work_as_Repeat());
  };
  EXPECT_FALSE(areIndependent(true));
}

// The repeat within writes over what the iteration before of the one around has written.
TEST(Iterations, AreThoseOfAnOutermostRepeat) {
  Repeated repeated;
  const uint32_t kernel = repeated.builder.kernel("test_double", 2);
  repeated.builder.launch(PlanBuilder::repeat(*repeated.body, 4), kernel, {Repeated::at(1, 0, {1, 1})},
                          {Repeated::at(0, 0, {1, 1})}, 4);
  Lowered lowered(repeated.builder, 4);
  for (const HostCommand& command : lowered.commands()) EXPECT_FALSE(isByIterations(command));
}

/// y[i] = 2 x[i] twice over, by way of a place of each iteration's own, in a repeat within; then z = y, part
/// by part, and the last part of it.
PlanBuilder doubling(uint32_t input_slots) {
  constexpr int64_t kShards = 4, kSteps = 3, kFloats = 64;
  constexpr int64_t kStep = kFloats * 4, kShard = kSteps * kStep;
  PlanBuilder builder(input_slots, TargetKind::host);
  const uint32_t x = builder.slotBuffer("x", DataType::f32, {kShards, kSteps, kFloats});
  const uint32_t y = builder.buffer("y", DataType::f32, {kShards, kSteps, kFloats});
  const uint32_t own = builder.buffer("own", DataType::f32, {kShards, kFloats});
  const uint32_t z = builder.buffer("z", DataType::f32, {kShards, kSteps, kFloats});
  const uint32_t last = builder.buffer("last", DataType::f32, {kSteps, kFloats});
  const uint32_t kernel = builder.kernel("test_double", 2);
  fb::ProgramT& program = builder.program("double");
  PlanBuilder::input(program, "x", x);
  for (uint32_t output : {y, z, last})
    PlanBuilder::output(program, builder.plan.buffers[output]->name, output);
  CommandList& commands = program.streams[0]->commands;
  builder.copyIn(commands, 0, {x});
  CommandList& inner = PlanBuilder::repeat(PlanBuilder::repeat(commands, kShards), kSteps);
  const uint64_t bytes = kStep, tiles = kFloats / 16, grain = 100;  // tiles of 100 ns
  const OperandOf mine = {own, 0, bytes, {kStep, 0}};
  builder.launch(inner, kernel, {{x, 0, bytes, {kShard, kStep}}}, {mine}, tiles, grain);
  builder.launch(inner, kernel, {mine}, {{y, kShard - kStep, bytes, {kShard, -kStep}}}, tiles, grain);
  const uint64_t shard = kShard;
  builder.copy(PlanBuilder::repeat(commands, kShards), {y, 0, shard, {kShard}}, {z, 0, shard, {kShard}});
  builder.copy(PlanBuilder::repeat(commands, kShards), {z, 0, shard, {kShard}}, {last, 0, shard, {0}});
  return builder;
}

TEST(Iterations, HaveAListEachWhereThreadsAreToTakeThem) {
  Lowered lowered(doubling(1), 3), alone(doubling(1), 1);
  ASSERT_EQ(lowered.commands().size(), 12u);
  const HostCommand &fork = lowered.commands()[1], &second = lowered.commands()[6];
  ASSERT_EQ(fork.kind, HostCommand::Kind::bands);
  ASSERT_EQ(second.kind, HostCommand::Kind::bands);
  EXPECT_TRUE(fork.spread);
  EXPECT_TRUE(isByIterations(fork));
  EXPECT_EQ(fork.bands.last, 5u);
  EXPECT_EQ(second.bands.last, 8u);
  ASSERT_EQ(fork.bands.lists->size(), 4u);
  for (const std::vector<HostCommand>& list : *fork.bands.lists) EXPECT_EQ(list.size(), 3u);
  for (const HostCommand& command : alone.commands()) EXPECT_NE(command.kind, HostCommand::Kind::bands);
  EXPECT_EQ(lowered.program->accesses.size(), alone.program->accesses.size()) << "of the list that is shared";
}

TEST(Iterations, StandInTheProfileOfWhoTakesThem) {
  Lowered lowered(doubling(1), 3, std::vector<KernelFunction>(1, [](void* const*, int64_t, int64_t) {}));
  ThreadPool alone(1);
  ProfileRing profile(100);
  std::vector<HostCommand> fork = {lowered.commands()[1]};
  fork[0].spread = true;
  fork[0].bands.last = 0;
  StreamWalk{&fork, &alone, &alone, &profile, {}, 0, 0}.run();
  std::vector<ProfileEvent> events;
  profile.appendTo(events);
  EXPECT_EQ(events.size(), 4u * 3 * 2);
}

TEST(Iterations, LeaveTheSameForAnyNumberOfThreads) {
  for (uint32_t slots : {1u, 3u})
    for (int threads : {1, 2, 3, 4, 7}) {
      Session session = open(doubling(slots), {.threads = threads});
      for (int run = 0; run < 5; ++run) {
        const std::vector<float> x = counting(4 * 3 * 64, static_cast<float>(run));
        const int64_t shape[] = {4, 3, 64};
        for (size_t off : {0, 1}) {  // in place, in slots
          PlacedInput placed(x, off);
          HostTensorView views[] = {placed.view(shape)};
          runOnce(session, ProgramId{0}, views);
          const std::vector<float> y = valuesOf<float>(session.output(ProgramId{0}, 0));
          ASSERT_EQ(valuesOf<float>(session.output(ProgramId{0}, 1)), y);
          ASSERT_EQ(valuesOf<float>(session.output(ProgramId{0}, 2)),
                    std::vector<float>(y.end() - 3 * 64, y.end()));
          for (size_t shard = 0; shard < 4; ++shard)
            for (size_t step = 0; step < 3; ++step)
              for (size_t i = 0; i < 64; ++i)
                ASSERT_EQ(y[(shard * 3 + 2 - step) * 64 + i], 4 * x[(shard * 3 + step) * 64 + i])
                    << threads << " threads, " << slots << " slots";
        }
      }
    }
}

TEST(Iterations, AllocateNothingInAStep) {
  Session session = open(doubling(1), {.threads = 3, .profile_events = 100});
  PlacedInput x(counting(4 * 3 * 64));
  const int64_t shape[] = {4, 3, 64};
  HostTensorView views[] = {x.view(shape)};
  runOnce(session, ProgramId{0}, views);
  EXPECT_EQ(allocationsInRuns(session, views), 0);
}

}  // namespace
}  // namespace gpuc::test
