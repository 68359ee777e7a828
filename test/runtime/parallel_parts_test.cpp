// Parallels whose parts threads take side by side.
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

/// A parallel that touches kBytes of the buffers "one" and "two", which have 12 times as much, at a time.
class Parallel {
 public:
  explicit Parallel(uint64_t count = 4) : builder(1, TargetKind::host) {
    for (const char* name : {"one", "two"}) builder.buffer(name, DataType::f32, {12, kBytes / 4});
    fb::ProgramT& program = builder.program("parallel");
    program.events = {"event"};
    body = &PlanBuilder::parallel(program.streams[0]->commands, count);
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

  std::string error() const {
    Result<Plan> plan = Plan::parse(builder.seal());
    return plan.ok() ? "" : plan.message();
  }
};

struct Case {
  const char* name;
  const char* error;  // of the reader; none where the parts stay apart
  void (*build)(Parallel&);
};
void PrintTo(const Case& value, std::ostream* out) { *out << value.name; }

constexpr char kMeet[] = "of another, which one of the two writes";

const Case kCases[] = {
    {"EachWritesItsOwn", "", [](Parallel& r) { r.copy(r.at(0, 0, {1}), r.at(1, 0, {1})); }},
    {"EachFromItsEnd", "", [](Parallel& r) { r.copy(r.at(0, 0, {1}), r.at(1, 7, {-1})); }},
    {"AllReadOne", "", [](Parallel& r) { r.copy(r.at(0, 0, {}), r.at(1, 0, {1})); }},
    {"AllWriteOne", kMeet, [](Parallel& r) { r.copy(r.at(0, 0, {1}), r.at(1, 0, {})); }},
    {"EachReadsWhatItWrites", "",
     [](Parallel& r) {
       r.copy(r.at(0, 0, {1}), r.at(1, 0, {1}));
       r.copy(r.at(1, 0, {1}), r.at(0, 0, {1}));
     }},
    {"EachReadsWhatTheLastWrote", kMeet, [](Parallel& r) { r.copy(r.at(0, 0, {1}), r.at(0, 1, {1})); }},
    {"TheNextOverwritesWhatEachRead", kMeet, [](Parallel& r) { r.copy(r.at(0, 1, {1}), r.at(0, 0, {1})); }},
    {"OneReadsFarAwayWhatAnotherWrites", kMeet,
     [](Parallel& r) { r.copy(r.at(0, 3, {-1}), r.at(0, 4, {-1})); }},
    {"WritesThatOverlapByALittle", kMeet,
     [](Parallel& r) {
       OperandOf to = r.at(1, 0, {1});
       to.strides[0] -= 64;
       r.copy(r.at(0, 0, {1}), to);
     }},
    {"ARepeatWithinStaysInItsPart", "",
     [](Parallel& r) {
       r.body = &PlanBuilder::repeat(*r.body, 2);
       r.copy(r.at(0, 0, {}), r.at(1, 0, {2, 1}));
     }},
    {"ARepeatWithinLeavesItsPart", kMeet,
     [](Parallel& r) {
       r.body = &PlanBuilder::repeat(*r.body, 3);
       r.copy(r.at(0, 0, {}), r.at(1, 0, {2, 1}));
     }},
    {"ARepeatWithinLeavesItsPartAtTheOtherEnd", kMeet,
     [](Parallel& r) {
       r.body = &PlanBuilder::repeat(*r.body, 3);
       r.copy(r.at(0, 0, {}), r.at(1, 2, {1, -1}));
     }},
    {"AFillOfOnesOwn", "", [](Parallel& r) { r.builder.fill(*r.body, r.at(0, 0, {1})); }},
    {"AnEvent", "a record stands in it",
     [](Parallel& r) {
       r.copy(r.at(0, 0, {1}), r.at(1, 0, {1}));
       PlanBuilder::record(*r.body, 0);
     }},
    {"AnEventInARepeatWithin", "a record stands in it",
     [](Parallel& r) { PlanBuilder::record(PlanBuilder::repeat(*r.body, 2), 0); }},
};

class Parts : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Parallel, Parts, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST_P(Parts, StayApartOrAreRefused) {
  Parallel parallel;
  GetParam().build(parallel);
  if (*GetParam().error == 0)
    EXPECT_EQ(parallel.error(), "");
  else
    EXPECT_NE(parallel.error().find(GetParam().error), std::string::npos) << parallel.error();
}

TEST(Parts, AreTwoOrMore) {
  auto errorOf = [](uint64_t count) {
    Parallel parallel(count);
    parallel.builder.fill(*parallel.body, {0, 0, 16, {16}});
    return parallel.error();
  };
  for (uint64_t count : {0, 1}) EXPECT_NE(errorOf(count), "") << count;
  for (uint64_t count : {2, 65}) EXPECT_EQ(errorOf(count), "") << count;
}

TEST(Parts, NameBothOperandsWhereTheyMeet) {
  Parallel parallel;
  parallel.copy(Parallel::at(0, 0, {1}), Parallel::at(1, 0, {1}));
  parallel.copy(Parallel::at(1, 1, {1}), Parallel::at(0, 0, {1}));
  EXPECT_NE(
      parallel.error().find("parallel of 4 parts: the destination in buffer 'two' of one part may touch "
                            "the source in buffer 'two' of another, which one of the two writes"),
      std::string::npos)
      << parallel.error();
}

TEST(Parts, LeaveTheirBufferByNoStride) {
  for (int64_t stride : {INT64_MAX, INT64_MIN, int64_t{1} << 62, int64_t{-64}}) {
    Parallel parallel;
    parallel.copy({0, 0, 64, {64}}, {1, 0, 64, {stride}});
    EXPECT_NE(
        parallel.error().find("copy: destination at offset 0, 64 bytes, leaves buffer 'two' of 3072 bytes"),
        std::string::npos)
        << parallel.error();
  }
}

// Each writes its part of a buffer of which there are two, in turn for each run, and reads what lies where
// the second one of another part does.
TEST(Parts, KeepToTheirPlacesInAllSlots) {
  auto errorOf = [](bool over_the_second) {
    PlanBuilder builder(2, TargetKind::host);
    const uint32_t y = builder.slotBuffer("y", DataType::f32, {4, kBytes / 4});
    const uint32_t z = builder.buffer("z", DataType::f32, {4, kBytes / 4});
    const uint32_t own = builder.buffer("own", DataType::f32, {4, kBytes / 4});
    if (over_the_second)
      builder.plan.buffers[z]->offset =
          builder.plan.buffers[y]->offset + builder.plan.buffers[y]->slot_stride;
    CommandList& body = PlanBuilder::parallel(builder.program("slots").streams[0]->commands, 4);
    builder.fill(body, Parallel::at(y, 3, {-1}));
    builder.copy(body, Parallel::at(z, 0, {1}), Parallel::at(own, 0, {1}));
    Result<Plan> plan = Plan::parse(builder.seal());
    return plan.ok() ? "" : plan.message();
  };
  EXPECT_EQ(errorOf(false), "");
  EXPECT_NE(errorOf(true).find(kMeet), std::string::npos) << errorOf(true);
}

TEST(Parts, StandInNoRepeatAndNoOther) {
  Parallel parallel;
  parallel.builder.fill(PlanBuilder::parallel(*parallel.body, 4, /*by_rows=*/true), {0, 0, 16, {16}});
  EXPECT_NE(parallel.error().find("a parallel stands in another"), std::string::npos) << parallel.error();
  PlanBuilder builder(1, TargetKind::host);
  const uint32_t buffer = builder.buffer("one", DataType::f32, {16});
  CommandList& repeat = PlanBuilder::repeat(builder.program("f").streams[0]->commands, 2);
  builder.fill(PlanBuilder::parallel(repeat, 2), {buffer, 0, 16, {0, 16}});
  const std::string error = Plan::parse(builder.seal()).message();
  EXPECT_NE(error.find("parallel of 2 parts: it stands in a repeat"), std::string::npos) << error;
}

/// y[i] = 2 x[i] twice over, by way of a place of each part's own, in a repeat within; then z = y, part
/// by part, and the last part of it.
PlanBuilder doubling(uint32_t input_slots) {
  constexpr int64_t kParts = 4, kSteps = 3, kFloats = 64;
  constexpr int64_t kStep = kFloats * 4, kPart = kSteps * kStep;
  PlanBuilder builder(input_slots, TargetKind::host);
  const uint32_t x = builder.slotBuffer("x", DataType::f32, {kParts, kSteps, kFloats});
  const uint32_t y = builder.buffer("y", DataType::f32, {kParts, kSteps, kFloats});
  const uint32_t own = builder.buffer("own", DataType::f32, {kParts, kFloats});
  const uint32_t z = builder.buffer("z", DataType::f32, {kParts, kSteps, kFloats});
  const uint32_t last = builder.buffer("last", DataType::f32, {kSteps, kFloats});
  const uint32_t kernel = builder.kernel("test_double", 2);
  fb::ProgramT& program = builder.program("double");
  PlanBuilder::input(program, "x", x);
  for (uint32_t output : {y, z, last})
    PlanBuilder::output(program, builder.plan.buffers[output]->name, output);
  CommandList& commands = program.streams[0]->commands;
  builder.copyIn(commands, 0, {x});
  CommandList& inner = PlanBuilder::repeat(PlanBuilder::parallel(commands, kParts), kSteps);
  const uint64_t bytes = kStep, tiles = kFloats / 16, grain = 100;  // tiles of 100 ns
  const OperandOf mine = {own, 0, bytes, {kStep, 0}};
  builder.launch(inner, kernel, {{x, 0, bytes, {kPart, kStep}}}, {mine}, tiles, grain);
  builder.launch(inner, kernel, {mine}, {{y, kPart - kStep, bytes, {kPart, -kStep}}}, tiles, grain);
  const uint64_t part = kPart;
  builder.copy(PlanBuilder::parallel(commands, kParts), {y, 0, part, {kPart}}, {z, 0, part, {kPart}});
  builder.copy(PlanBuilder::repeat(commands, kParts), {z, 0, part, {kPart}}, {last, 0, part, {0}});
  return builder;
}

TEST(Parts, HaveAListEachWhereThreadsAreToTakeThem) {
  Lowered lowered(doubling(1), 3), alone(doubling(1), 1);
  ASSERT_EQ(lowered.commands().size(), 11u);
  const HostCommand &fork = lowered.commands()[1], &second = lowered.commands()[6];
  ASSERT_EQ(fork.kind, HostCommand::Kind::fork);
  ASSERT_EQ(second.kind, HostCommand::Kind::fork);
  EXPECT_TRUE(fork.spread);
  EXPECT_FALSE(fork.fork.by_rows);
  EXPECT_EQ(fork.fork.last, 5u);
  EXPECT_EQ(second.fork.last, 8u);
  ASSERT_EQ(fork.fork.lists->size(), 4u);
  for (const std::vector<HostCommand>& list : *fork.fork.lists) EXPECT_EQ(list.size(), 3u);
  for (const HostCommand& command : alone.commands()) EXPECT_NE(command.kind, HostCommand::Kind::fork);
  EXPECT_EQ(lowered.program->accesses.size(), alone.program->accesses.size()) << "of the list that is shared";
}

TEST(Parts, StandInTheProfileOfWhoTakesThem) {
  Lowered lowered(doubling(1), 3, std::vector<KernelFunction>(1, [](void* const*, int64_t, int64_t) {}));
  ThreadPool alone(1);
  ProfileRing profile(100);
  std::vector<HostCommand> fork = {lowered.commands()[1]};
  fork[0].spread = true;
  fork[0].fork.last = 0;
  StreamWalk{&fork, &alone, &alone, &profile, {}, 0, 0}.run();
  std::vector<ProfileEvent> events;
  profile.appendTo(events);
  EXPECT_EQ(events.size(), 4u * 3 * 2);
}

TEST(Parts, LeaveTheSameForAnyNumberOfThreads) {
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
          for (size_t part = 0; part < 4; ++part)
            for (size_t step = 0; step < 3; ++step)
              for (size_t i = 0; i < 64; ++i)
                ASSERT_EQ(y[(part * 3 + 2 - step) * 64 + i], 4 * x[(part * 3 + step) * 64 + i])
                    << threads << " threads, " << slots << " slots";
        }
      }
    }
}

TEST(Parts, AllocateNothingInAStep) {
  Session session = open(doubling(1), {.threads = 3, .profile_events = 100});
  PlacedInput x(counting(4 * 3 * 64));
  const int64_t shape[] = {4, 3, 64};
  HostTensorView views[] = {x.view(shape)};
  runOnce(session, ProgramId{0}, views);
  EXPECT_EQ(allocationsInRuns(session, views), 0);
}

}  // namespace
}  // namespace gpuc::test
