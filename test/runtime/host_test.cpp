// The host's parts one by one: arena, threads, CPU features, and the memory and allocations of whole
// sessions.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <set>
#include <utility>

#include "runtime/base/thread_pool.h"
#include "runtime/exec/library_versions.h"
#include "runtime/host/arena.h"
#include "runtime/host/cpu_features.h"
#include "runtime/host/exchange.h"
#include "runtime/host/lower.h"
#include "runtime/tooling/allocation_hook.h"
#include "test/runtime/session_helpers.h"

namespace gpuc::test {
namespace {

TEST(Arena, EndsAtAPageThatCannotBeTouched) {
  Result<Arena> arena = Arena::map(4096 + 64, true);
  ASSERT_TRUE(arena.ok()) << arena.message();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(arena->data()) % 64, 0u);
  EXPECT_EQ(arena->data()[0], std::byte{kPoison});
  volatile std::byte* end = arena->data() + arena->bytes();
  end[-1] = std::byte{1};
  EXPECT_DEATH(end[0] = std::byte{1}, "");
}

TEST(Arena, FindsTheHighestTouchedByte) {
  Result<Arena> arena = Arena::map(8192, true);
  ASSERT_TRUE(arena.ok()) << arena.message();
  EXPECT_EQ(arena->touchedBytes(), 0u);
  arena->data()[5000] = std::byte{0};
  EXPECT_EQ(arena->touchedBytes(), 5001u);
}

TEST(Arena, MayBeEmpty) {
  Result<Arena> arena = Arena::map(0, false);
  ASSERT_TRUE(arena.ok());
  EXPECT_EQ(arena->bytes(), 0u);
}

uint64_t observed_arenas = 0, observed_bytes = 0;

TEST(Arena, IsTheOneAllocationOfASessionAndExactlyAsLongAsThePlanSays) {
  observeArenas([](uint64_t bytes) {
    ++observed_arenas;
    observed_bytes += bytes;
  });
  PlanBuilder builder = everythingPlan();
  Session session = open(builder, {.check_memory = true});
  std::vector<float> ones(64, 1.0f);
  const int64_t shape[] = {4, 16};
  HostTensorView x = viewOf(ones, DataType::f32, shape);
  ASSERT_TRUE(session.initialize().ok());
  for (int i = 0; i < 3; ++i) runOnce(session, programOf(session, "train_step"), {&x, 1});
  observeArenas(nullptr);
  EXPECT_EQ(observed_arenas, 1u);
  EXPECT_EQ(observed_bytes, builder.plan.arena_bytes);
  EXPECT_EQ(session.memory().arena_bytes, builder.plan.arena_bytes);
  EXPECT_EQ(session.memory().by_category.sum(), builder.plan.arena_bytes);
  EXPECT_EQ(session.memory().touched_bytes, builder.plan.arena_bytes)
      << "y lies last and fills its cache lines";
}

/// Whether the page at an address is there.
bool isMapped(const void* address) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  return msync(reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(address) / page * page), page, MS_ASYNC) ==
         0;
}

TEST(Arena, OutlivesItsSessionForViews) {
  PlanBuilder builder = everythingPlan();
  {
    Session once = open(builder);
  }  // what stays for the process
  const int64_t held = heldBytes();
  OutputView kept;
  const void* address = nullptr;
  {
    Session session = open(builder);
    std::vector<float> ones(64, 1.0f);
    const int64_t shape[] = {4, 16};
    HostTensorView x = viewOf(ones, DataType::f32, shape);
    ASSERT_TRUE(session.initialize().ok());
    const ProgramId step = programOf(session, "train_step");
    runOnce(session, step, {&x, 1});
    kept = session.output(step, 0);
    const HostTensorView only_seen = session.output(programOf(session, "predict"), 0);
    address = only_seen.data;
    EXPECT_TRUE(isMapped(address));
  }
  EXPECT_TRUE(isMapped(address));
  EXPECT_EQ(valuesOf<float>(kept).front(), 16.0f);
  EXPECT_EQ(kept.shape.size(), 2u) << "of the plan, which is there too";
  const OutputView copy = std::exchange(kept, {});
  EXPECT_TRUE(isMapped(address));
  const_cast<OutputView&>(copy) = {};
  EXPECT_FALSE(isMapped(address));
  EXPECT_LE(heldBytes(), held);
}

TEST(Arena, AndWhatLiesBesideItIsAllThatASessionTakes) {
  PlanBuilder builder(1, TargetKind::host);
  constexpr int64_t kRows = 1 << 16;
  const uint32_t y = builder.buffer("y", DataType::f32, {kRows, 16});
  builder.plan.buffers[y]->category = fb::Category::activation;
  builder.kernel("test_double", 2);
  fb::ProgramT& program = builder.program("predict");
  builder.fill(program.streams[0]->commands, {y}, patternOf(1.0f));
  for (const char* name : {"one", "other"})
    builder.copyOut(program.streams[0]->commands, PlanBuilder::output(program, name, y), {y});
  {
    Session once = open(builder, {.threads = 1});
  }
  const int64_t held = heldBytes();
  Session session = open(builder, {.threads = 1});
  const MemoryUse memory = session.memory();
  EXPECT_EQ(memory.by_category.activation, kRows * 64u);
  EXPECT_EQ(memory.by_category.sum(), memory.arena_bytes);
  EXPECT_EQ(memory.staging_bytes, 2 * kRows * 64u);
  EXPECT_EQ(memory.code_bytes, testKernels(TargetKind::host).size());
  const int64_t beside = heldBytes() - held;
  EXPECT_GE(beside, static_cast<int64_t>(memory.staging_bytes));
  EXPECT_LT(beside, static_cast<int64_t>(memory.staging_bytes) + (1 << 18)) << "lists of commands, names";
}

/// A session that is closed, and one that makes room for another, give back what they have.
TEST(Arena, IsGivenBackWithItsSession) {
  PlanBuilder builder = everythingPlan();
  {
    Session once = open(builder), beside = open(builder);
  }  // what stays for the process
  const int64_t held = heldBytes();
  Session session = open(builder);
  const void* first = session.output(programOf(session, "predict"), 0).data;
  session = open(builder);
  EXPECT_FALSE(isMapped(first));
  {
    Session closed = std::move(session);
  }
  EXPECT_LE(heldBytes(), held);
}

TEST(Inputs, AreReadInPlaceWhereTheyAreAligned) {
  PlanBuilder builder(1, TargetKind::host);
  uint32_t x = builder.buffer("x", DataType::f32, {2, 16}), y = builder.buffer("y", DataType::f32, {2, 16});
  uint32_t address = builder.buffer("address", DataType::i64, {});
  fb::ProgramT& program = builder.program("double");
  CommandList& commands = program.streams[0]->commands;
  builder.copyIn(commands, PlanBuilder::input(program, "x", x), {x});
  // Row by row, so that an operand moves.
  CommandList& body = PlanBuilder::repeat(commands, 2);
  builder.launch(body, builder.kernel("test_double", 2), {{x, 0, 64, {64}}}, {{y, 0, 64, {64}}});
  builder.launch(commands, builder.kernel("test_address", 2), {{x}}, {{address}});
  PlanBuilder::output(program, "y", y);
  PlanBuilder::output(program, "address", address);
  Session session = open(builder), checked = open(builder, {.check_memory = true});
  const int64_t shape[] = {2, 16};
  auto isReadInPlace = [&](Session& session, PlacedInput input, float first) {
    HostTensorView view = input.view(shape);
    ProgramId id = programOf(session, "double");
    runOnce(session, id, {&view, 1});
    std::vector<float> doubled = counting(32, first);
    for (float& value : doubled) value *= 2;
    EXPECT_EQ(valuesOf<float>(session.output(id, 0)), doubled);
    return valuesOf<int64_t>(session.output(id, 1))[0] == reinterpret_cast<intptr_t>(input.data());
  };
  EXPECT_TRUE(isReadInPlace(session, PlacedInput(counting(32)), 0));
  EXPECT_TRUE(isReadInPlace(session, PlacedInput(counting(32, 100)), 100)) << "at another place than before";
  EXPECT_FALSE(isReadInPlace(session, PlacedInput(counting(32, 5), 1), 5));
  EXPECT_TRUE(isReadInPlace(session, PlacedInput(counting(32, 7)), 7));
  EXPECT_FALSE(isReadInPlace(checked, PlacedInput(counting(32)), 0)) << "all of the arena is to be used";
}

/// The only output of the only program, whose only input this is.
template <typename T>
std::vector<T> outputFor(const PlanBuilder& builder, PlacedInput& input, std::span<const int64_t> shape) {
  Session session = open(builder);
  HostTensorView view = input.view(shape);
  runOnce(session, ProgramId{0}, {&view, 1});
  return valuesOf<T>(session.output(ProgramId{0}, 0));
}

TEST(Inputs, ThatNoCommandCopiesAreReadInPlaceToo) {
  PlanBuilder builder(1, TargetKind::host);
  uint32_t x = builder.buffer("x", DataType::f32, {16}),
           address = builder.buffer("address", DataType::i64, {});
  fb::ProgramT& program = builder.program("look");
  PlanBuilder::input(program, "x", x);
  PlanBuilder::output(program, "address", address);
  builder.launch(program.streams[0]->commands, builder.kernel("test_address", 2), {{x}}, {{address}});
  PlacedInput input(counting(16));
  const int64_t shape[] = {16};
  EXPECT_EQ(outputFor<int64_t>(builder, input, shape)[0], reinterpret_cast<intptr_t>(input.data()));
}

/// Which spares chooseSpread() what the copy would cost.
TEST(Inputs, ThatAreReadInPlaceMakeTheirCopyNothing) {
  auto copyIsNothing = [](bool is_output) {
    PlanBuilder builder(1, TargetKind::host);
    uint32_t x = builder.buffer("x", DataType::f32, {16}), y = builder.buffer("y", DataType::f32, {16});
    fb::ProgramT& program = builder.program("copy");
    CommandList& commands = program.streams[0]->commands;
    builder.copyIn(commands, PlanBuilder::input(program, "x", x), {x});
    builder.copy(commands, {x}, {y});
    PlanBuilder::output(program, "y", is_output ? x : y);
    Plan plan = builder.parse();
    Result<Arena> arena = Arena::map(plan.root().arena_bytes(), false);
    Ranks ranks(nullptr);
    auto lowered = lowerProgram(plan, 0, *arena, {}, ranks, 1);
    EXPECT_TRUE(lowered.ok()) << lowered.message();
    return (*lowered)->streams[0][0].copy.of_read_input;
  };
  EXPECT_TRUE(copyIsNothing(false));
  EXPECT_FALSE(copyIsNothing(true));
}

TEST(Inputs, ThatAProgramWritesAreCopied) {
  PlanBuilder builder(1, TargetKind::host);
  uint32_t x = builder.buffer("x", DataType::f32, {5, 16}), y = builder.buffer("y", DataType::f32, {5, 16});
  fb::ProgramT& program = builder.program("sums");
  PlanBuilder::input(program, "x", x);
  CommandList& body = PlanBuilder::repeat(program.streams[0]->commands, 4);
  builder.launch(body, builder.kernel("test_add", 3), {{x, 0, 64, {64}}, {x, 64, 64, {64}}},
                 {{x, 64, 64, {64}}});
  builder.copy(program.streams[0]->commands, {x}, {y});
  PlanBuilder::output(program, "y", y);
  PlacedInput ones(std::vector<float>(80, 1.0f));
  std::vector<float> sums(80);
  for (size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<float>(i / 16 + 1);
  const int64_t shape[] = {5, 16};
  EXPECT_EQ(outputFor<float>(builder, ones, shape), sums);
  EXPECT_EQ(ones.values(), std::vector<float>(80, 1.0f));
}

/// Its first half to both halves.
TEST(Inputs, OfWhichACommandCopiesAPartAreCopied) {
  PlanBuilder builder(1, TargetKind::host);
  uint32_t x = builder.buffer("x", DataType::f32, {32}), y = builder.buffer("y", DataType::f32, {32});
  fb::ProgramT& program = builder.program("halves");
  CommandList& commands = program.streams[0]->commands;
  uint32_t port = PlanBuilder::input(program, "x", x);
  for (uint64_t offset : {64, 0}) {
    builder.copyIn(commands, port, {x, offset, 64});
    commands.back()->work.AsCopy()->from = builder.operand({x, 0, 64});
  }
  builder.launch(commands, builder.kernel("test_double", 2), {{x}}, {{y}}, 2);
  PlanBuilder::output(program, "y", y);
  PlacedInput input(counting(32));
  std::vector<float> expected(32);
  for (size_t i = 0; i < 32; ++i) expected[i] = 2.0f * static_cast<float>(i % 16);
  const int64_t shape[] = {32};
  EXPECT_EQ(outputFor<float>(builder, input, shape), expected);
  EXPECT_EQ(input.values(), counting(32));
}

TEST(Inputs, ThatAreOutputsAreCopied) {
  PlanBuilder builder(1, TargetKind::host);
  uint32_t x = builder.buffer("x", DataType::f32, {16});
  fb::ProgramT& program = builder.program("same");
  PlanBuilder::input(program, "x", x);
  PlanBuilder::output(program, "y", x);
  PlacedInput input(counting(16));
  const int64_t shape[] = {16};
  EXPECT_EQ(outputFor<float>(builder, input, shape), counting(16));
}

/// y = 2 x, then z = x + y; both are outputs, y a copy of its own if it is staged.
PlanBuilder roundPlan(bool staged) {
  PlanBuilder builder(1, TargetKind::host);
  uint32_t x = builder.buffer("x", DataType::f32, {16}), y = builder.buffer("y", DataType::f32, {16}),
           z = builder.buffer("z", DataType::f32, {16});
  fb::ProgramT& program = builder.program("round");
  CommandList& commands = program.streams[0]->commands;
  PlanBuilder::input(program, "x", x);
  PlanBuilder::output(program, "y", y);
  PlanBuilder::output(program, "z", z);
  builder.launch(commands, builder.kernel("test_double", 2), {{x}}, {{y}});
  if (staged) builder.copyOut(commands, 0, {y});
  builder.launch(commands, builder.kernel("test_add", 3), {{x}, {y}}, {{z}});
  return builder;
}

/// A state that goes round: what a run left is the next one's input, and is written before it is last read.
TEST(Inputs, ThatAreWhatTheSessionLeftAreCopied) {
  const int64_t shape[] = {16};
  for (bool staged : {false, true}) {
    PlanBuilder builder = roundPlan(staged);
    std::vector<Session> sessions;  // until what is staged happens to be aligned
    bool aligned = false;
    for (int i = 0; i < 200 && !aligned; ++i) {
      Session& session = sessions.emplace_back(open(builder));
      PlacedInput one(std::vector<float>(16, 1.0f));
      HostTensorView view = one.view(shape);
      for (float state : {1.0f, 2.0f, 4.0f}) {
        runOnce(session, ProgramId{0}, {&view, 1});
        view = session.output(ProgramId{0}, 0);
        ASSERT_EQ(valuesOf<float>(session.output(ProgramId{0}, 1)), std::vector<float>(16, 3 * state));
      }
      aligned = reinterpret_cast<uintptr_t>(view.data) % 64 == 0;
    }
    EXPECT_TRUE(aligned);
  }
}

TEST(ThreadPool, ComputesEachTileOnce) {
  for (int threads : {1, 2, 3, 9}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t tiles : {0, 1, 2, 7, 64, 1000}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(tiles));
      auto mark = [](const void* context, int64_t begin, int64_t end) {
        auto* hits = static_cast<std::atomic<int>*>(const_cast<void*>(context));
        for (int64_t i = begin; i < end; ++i) ++hits[i];
      };
      for (int64_t grain : {1, 10, 5000}) pool.parallelFor(tiles, grain, {mark, hits.data()});
      for (const std::atomic<int>& hit : hits)
        ASSERT_EQ(hit, 3) << tiles << " tiles on " << threads << " threads";
    }
  }
}

TEST(ThreadPool, RunsOnItsThreadsAndKeepsToTheGrain) {
  ThreadPool pool(3);
  static std::mutex mutex;
  static std::set<std::thread::id> threads;
  static int parts;
  static size_t expected;
  auto note = [](const void*, int64_t, int64_t) {
    std::unique_lock lock(mutex);
    threads.insert(std::this_thread::get_id());
    ++parts;
    // The caller stays until the workers have begun: what they have not, it would take back.
    auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (threads.size() < expected && std::chrono::steady_clock::now() < until) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
  };
  auto partsOf = [&](int64_t tiles, int64_t grain, size_t threads_expected) {
    expected = threads_expected;
    threads.clear();
    parts = 0;
    pool.parallelFor(tiles, grain, {note, nullptr});
    return parts;
  };
  EXPECT_EQ(partsOf(9, 1, 3), 3);
  EXPECT_EQ(threads.size(), 3u);
  EXPECT_TRUE(threads.count(std::this_thread::get_id())) << "the caller is one of them";
  EXPECT_EQ(partsOf(9, 4, 2), 2);
  EXPECT_EQ(partsOf(9, 5, 1), 1);
}

TEST(Worker, GivesBackWhatItHasNotBegun) {
  Worker worker(SpinPolicy{});
  std::atomic<int> runs{0};
  auto count = [](const void* context, int64_t, int64_t) {
    ++*static_cast<std::atomic<int>*>(const_cast<void*>(context));
  };
  int taken = 0;
  for (int i = 1; i <= 100'000; ++i) {
    worker.start({count, &runs}, 0, 1);
    if (worker.takeBack()) {
      count(&runs, 0, 1);
      ++taken;
    } else {
      worker.join();
    }
    ASSERT_EQ(runs, i) << "each task is done once, by one of the two";
  }
  EXPECT_GT(taken, 0) << "the caller is fast enough to be first at times";
}

TEST(Worker, DoesNotDoWhatWasTakenBackWhenItEnds) {
  auto count = [](const void* context, int64_t, int64_t) {
    ++*static_cast<std::atomic<int>*>(const_cast<void*>(context));
  };
  for (int round = 0; round < 2000; ++round) {
    std::atomic<int> runs{0};
    int expected = 1;
    {
      Worker worker(SpinPolicy{});
      worker.start({count, &runs}, 0, 1);
      worker.join();  // it is under way now, and looks at its mailbox again and again
      for (int task = 0; task < 50; ++task) {
        worker.start({count, &runs}, 0, 1);
        if (worker.takeBack()) continue;
        worker.join();
        ++expected;
      }
    }
    ASSERT_EQ(runs, expected) << "round " << round;
  }
}

cpu_set_t coresOf(pthread_t thread) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  EXPECT_EQ(pthread_getaffinity_np(thread, sizeof(cores), &cores), 0);
  return cores;
}

/// Starts tasks for a worker that was put on the caller's core, each `pause` after the one before, and gives
/// the cores on which it is at the end.
cpu_set_t coresAfterTasks(SpinPolicy policy, int core, int tasks, std::chrono::microseconds pause) {
  Worker worker(policy);
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(core, &here);
  EXPECT_EQ(pthread_setaffinity_np(worker.handle(), sizeof(here), &here), 0);
  EXPECT_EQ(pthread_setaffinity_np(pthread_self(), sizeof(here), &here), 0);
  for (int i = 0; i < tasks; ++i) {
    worker.start({[](const void*, int64_t, int64_t) {}, nullptr}, 0, 1);
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
    if (!worker.takeBack()) worker.join();
  }
  return coresOf(worker.handle());
}

// Otherwise the kernel may leave it there for good.
TEST(Worker, LeavesTheCallersCoreWhenItIsLate) {
  const cpu_set_t before = coresOf(pthread_self());
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "one core";
  const int core = sched_getcpu();
  const cpu_set_t left = coresAfterTasks(SpinPolicy{}, core, 1000, {});
  ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof(before), &before), 0);
  EXPECT_EQ(CPU_COUNT(&left), CPU_COUNT(&before) - 1);
  EXPECT_FALSE(CPU_ISSET(core, &left));
  const cpu_set_t crowded = coresAfterTasks(SpinPolicy{.crowded = true}, core, 1000, {});
  ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof(before), &before), 0);
  EXPECT_TRUE(CPU_ISSET(core, &crowded)) << "with more threads than cores there is nowhere to go";
}

// There it takes the caller's turn, or waits until the caller waits.
TEST(Worker, LeavesTheCallersCoreWhereItIsInTime) {
  const cpu_set_t before = coresOf(pthread_self());
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "one core";
  const int core = sched_getcpu();
  const cpu_set_t left = coresAfterTasks(SpinPolicy{}, core, 20, std::chrono::microseconds(2000));
  ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof(before), &before), 0);
  EXPECT_FALSE(CPU_ISSET(core, &left));
}

TEST(ThreadPool, ServesTwoCallersAtOnce) {
  ThreadPool pool(2);
  std::atomic<int64_t> sum{0};
  auto add = [](const void* context, int64_t begin, int64_t end) {
    *static_cast<std::atomic<int64_t>*>(const_cast<void*>(context)) += end - begin;
  };
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) pool.parallelFor(8, 1, {add, &sum});
  });
  for (int i = 0; i < 1000; ++i) pool.parallelFor(8, 1, {add, &sum});
  other.join();
  EXPECT_EQ(sum, 16000);
}

/// In nanoseconds; 0: as long as everybody's, or as the kernel, from before Linux 6.12, does not say.
uint64_t turnOf(Worker::Work work) {
  static uint64_t turn_ns;  // of the worker
  Worker worker(SpinPolicy{}, work);
  worker.start({[](const void*, int64_t, int64_t) {
                 std::array<uint64_t, 7> attributes = {};
                 ::syscall(SYS_sched_getattr, 0, attributes.data(), sizeof(attributes), 0);
                 turn_ns = attributes[3];
               }},
               0, 0);
  worker.join();
  return turn_ns;
}

TEST(Worker, ThatWaitsForOthersHasShortTurns) {
  const uint64_t usual = turnOf(Worker::Work::computes);
  if (usual == 0) GTEST_SKIP() << "the kernel has one length of turns for all";
  EXPECT_EQ(turnOf(Worker::Work::waits), 100'000u);
  EXPECT_GT(usual, 100'000u);
}

TEST(Worker, WakesAfterASleep) {
  Worker worker(SpinPolicy{.awake = std::chrono::microseconds(0), .crowded = true});
  std::atomic<int> runs{0};
  auto count = [](const void* context, int64_t, int64_t) {
    ++*static_cast<std::atomic<int>*>(const_cast<void*>(context));
  };
  for (int i = 1; i <= 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    worker.start({count, &runs}, 0, 1);
    worker.join();
    EXPECT_EQ(runs, i);
  }
}

TEST(CpuFeatures, AgreeWithTheCompilersOwnTest) {
#if defined(__x86_64__)
  EXPECT_TRUE(cpuHasFeature("sse2"));
  EXPECT_EQ(cpuHasFeature("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(cpuHasFeature("avx512f"), __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(cpuHasFeature("avx512bf16"), __builtin_cpu_supports("avx512bf16") != 0);
  EXPECT_EQ(cpuHasFeature("sse4a"), __builtin_cpu_supports("sse4a") != 0);
  EXPECT_EQ(cpuHasFeature("fma4"), __builtin_cpu_supports("fma4") != 0);
#endif
  EXPECT_FALSE(cpuHasFeature("warp-drive"));
  EXPECT_EQ(checkCpuFeatures("future", {"warp-drive"}).message(),
            "plan compiled for future needs CPU features that this machine lacks: warp-drive; it is " +
                cpuName() + ": compile with --target=host here");
}

TEST(LibraryVersions, MajorMustAgreeAndMinorIsSaid) {
  std::vector<std::string> warnings;
  std::vector<LibraryInfo> present = {{"blas", "13.1.2"}};
  EXPECT_TRUE(checkLibraries({{"blas", "13.1.9"}}, present, true, warnings).ok());
  EXPECT_TRUE(warnings.empty());
  EXPECT_TRUE(checkLibraries({{"blas", "13.4"}}, present, false, warnings).ok());
  EXPECT_EQ(warnings, std::vector<std::string>{"plan compiled for blas 13.4, found 13.1.2: bits may differ"});
  EXPECT_NE(checkLibraries({{"blas", "13.4"}}, present, true, warnings).message().find("--strict"),
            std::string::npos);
  EXPECT_NE(
      checkLibraries({{"blas", "12.1"}}, present, false, warnings).message().find("another major version"),
      std::string::npos);
  EXPECT_EQ(checkLibraries({{"dnn", "9"}}, present, false, warnings).message(),
            "plan compiled for dnn 9, which this device does not have");
}

TEST(Steps, AllocateNothing) {
  for (int threads : {1, 2, 4}) {
    Session session = open(everythingPlan(), {.threads = threads, .profile_events = 100});
    ASSERT_TRUE(session.initialize().ok());
    ProgramId step = programOf(session, "train_step"), predict = programOf(session, "predict");
    std::vector<float> ones(64, 1.0f), weight(256);
    const std::string name = "fc1.weight";
    const int64_t shape[] = {4, 16};
    HostTensorView x = viewOf(ones, DataType::f32, shape);
    auto work = [&] {
      for (int i = 0; i < 300; ++i) {
        if (!session.run(step, {&x, 1}, 3).ok() || !session.run(predict, {&x, 1}).ok() ||
            !session.wait().ok())
          return false;
        if (session.output(step, 0).data == nullptr) return false;
        if (!session.readVariable(name, std::as_writable_bytes(std::span(weight))).ok()) return false;
      }
      return true;
    };
    ASSERT_TRUE(work());
    AllocationCount before = allocationCount();
    bool worked = work();
    AllocationCount after = allocationCount();
    ASSERT_TRUE(worked);
    EXPECT_EQ(after.total() - before.total(), 0) << threads << " threads";
  }
}

std::vector<float> outputsOfConvolutions(int threads) {
  Session session = open(convolutionsPlan(), {.threads = threads, .check_memory = true});
  ProgramId predict = programOf(session, "predict");
  std::vector<float> x = counting(4 * 3 * 9 * 8), w = counting(5 * 27, -60),
                     dy = counting(4 * 5 * 9 * 8, -300);
  const int64_t x_shape[] = {4, 3, 9, 8}, w_shape[] = {5, 3, 3, 3}, y_shape[] = {4, 5, 9, 8};
  HostTensorView inputs[] = {viewOf(x, DataType::f32, x_shape), viewOf(w, DataType::f32, w_shape),
                             viewOf(dy, DataType::f32, y_shape)};
  runOnce(session, predict, inputs);
  AllocationCount before = allocationCount();
  runOnce(session, predict, inputs);
  EXPECT_EQ(allocationCount().total() - before.total(), 0) << threads << " threads";
  std::vector<float> all;
  for (size_t output = 0; output < 3; ++output)
    for (float value : valuesOf<float>(session.output(predict, output))) all.push_back(value);
  return all;
}

// Integers below 2^24, so that every order of summation gives the same bits; the middle of y is worked out
// here.
TEST(HostSession, ConvolvesWithAnyNumberOfThreads) {
  std::vector<float> one = outputsOfConvolutions(1);
  // y[0, 0, 1, 1] = sum over c, i, j of (72 c + 8 i + j) (9 c + 3 i + j - 60)
  float sum = 0;
  for (int c = 0; c < 3; ++c)
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) sum += static_cast<float>((72 * c + 8 * i + j) * (9 * c + 3 * i + j - 60));
  EXPECT_EQ(one[9], sum);
  for (int threads : {2, 3}) EXPECT_EQ(outputsOfConvolutions(threads), one) << threads << " threads";
}

std::vector<float> outputsOfAttention(int threads) {
  Session session = open(attentionPlan(), {.threads = threads, .check_memory = true});
  ProgramId predict = programOf(session, "predict");
  std::vector<std::vector<float>> values;
  std::vector<HostTensorView> inputs;
  for (const InputInfo& input : session.plan().info().programs[predict.index].inputs) {
    std::vector<float>& data = values.emplace_back(static_cast<size_t>(input.spec.elementCount()));
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
    inputs.emplace_back(data.data(), input.spec);
  }
  // A worker may come too late to take part, and AddressSanitizer allocates when it first does.
  for (int i = 0; i < 5; ++i) runOnce(session, predict, inputs);
  AllocationCount before = allocationCount();
  runOnce(session, predict, inputs);
  EXPECT_EQ(allocationCount().total() - before.total(), 0) << threads << " threads";
  std::vector<float> all;
  for (size_t output = 0; output < 6; ++output)
    for (float value : valuesOf<float>(session.output(predict, output))) all.push_back(value);
  return all;
}

// What the numbers are, attention_test knows; here they must be finite, not all dropped, and the same each
// time.
TEST(HostSession, AttendsWithAnyNumberOfThreads) {
  std::vector<float> one = outputsOfAttention(1);
  EXPECT_EQ(one.size(), size_t{120 + 40 + 160 + 1280 + 960 + 400});
  for (float value : one) EXPECT_TRUE(std::isfinite(value));
  EXPECT_GT(std::count_if(one.begin(), one.end(), [](float value) { return value != 0; }), 2500);
  for (int threads : {2, 3}) EXPECT_EQ(outputsOfAttention(threads), one) << threads << " threads";
}

TEST(HostSession, NamesTheLayerOfAnAttentionThatTheHostCannotDo) {
  PlanBuilder builder = attentionPlan();
  builder.plan.programs[0]->streams[0]->commands[1]->work.AsAttention()->workspace.reset();
  EXPECT_EQ(
      Session::create(builder.parse()).message(),
      "program 'predict': attention: the plan gives 0 bytes of workspace, 1280 are needed; compile the plan "
      "again with this version of gpuc (attention1)");
}

TEST(HostSession, NamesTheLayerOfAConvolutionThatTheHostCannotDo) {
  PlanBuilder builder = convolutionsPlan();
  builder.plan.programs[0]->streams[0]->commands[2]->work.AsConv()->workspace.reset();
  EXPECT_EQ(
      Session::create(builder.parse()).message(),
      "program 'predict': conv: the plan gives 0 bytes of workspace, 2160 are needed; compile the plan again "
      "with this version of gpuc (conv1)");
}

}  // namespace
}  // namespace gpuc::test
