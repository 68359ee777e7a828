// Which commands of small steps are shared by two threads.
#include "runtime/host/spread.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gpuc {
namespace {

constexpr uint64_t kCache = 2 << 20;

/// Steps made of launches.
class Step {
 public:
  /// Of so many µs in tiles of 100 ns; it writes [begin, end) of the arena.
  Step& launch(int64_t us, uint64_t begin, uint64_t end) { return add(us * 10, 100, begin, end); }
  /// 1 µs in one tile, which no two threads can share.
  Step& single(uint64_t begin, uint64_t end) { return add(1, 10, begin, end); }
  /// Of an input to `begin`; who reads it reads it in place, or does not.
  Step& copyInput(uint64_t begin, uint64_t bytes, bool in_place) {
    HostCommand command{};
    command.kind = HostCommand::Kind::copy;
    command.copy = {.bytes = bytes, .of_read_input = in_place};
    accesses_.push_back(
        {static_cast<uint32_t>(commands_.size()), 1, begin, begin + bytes, bytes, /*written=*/true});
    commands_.push_back(command);
    return *this;
  }
  /// [m, 16] · [16, n] in f32, from elsewhere, to `begin`.
  Step& matmul(int64_t m, int64_t n, uint64_t begin) { return matmul(m, n, false, 2, begin, 4 * m * n); }
  /// The same, of which `operand` (a, b, c) has a place, of so many bytes.
  Step& matmul(int64_t m, int64_t n, bool transpose_b, uint32_t operand, uint64_t begin, uint64_t bytes) {
    MatmulShape shape;
    shape.m = m, shape.n = n, shape.k = k_;
    shape.transpose_b = transpose_b;
    HostCommand command = matmulOf(shape);
    accesses_.push_back({static_cast<uint32_t>(commands_.size()), operand, begin, begin + bytes, bytes,
                         operand == 2,
                         /*by_rows=*/operand != 1});
    commands_.push_back(command);
    return *this;
  }
  /// [m, k] · [k, n] in f32, of which b lies at `begin`.
  Step& weight(int64_t m, int64_t n, int64_t k, uint64_t begin) {
    k_ = k;
    return matmul(m, n, false, 1, begin, static_cast<uint64_t>(4 * n * k));
  }
  /// What follows, up to end(), is repeated.
  Step& repeat() {
    first_ = static_cast<uint32_t>(commands_.size());
    return *this;
  }
  /// The same by rows, which threads may take in so many parts.
  Step& parallelRows(size_t count) { return parallel(count, /*by_rows=*/true); }
  /// The same by iterations, of which there are so many.
  Step& parallelParts(size_t count) { return parallel(count, /*by_rows=*/false); }
  Step& parallel(size_t count, bool by_rows) {
    HostCommand command{};
    command.kind = HostCommand::Kind::fork;
    command.fork = {.lists = &lists_.emplace_back(count), .last = 0, .by_rows = by_rows};
    fork_ = commands_.size();
    commands_.push_back(command);
    return repeat();
  }
  /// The last command moves in a repeat: it touches `bytes` of [begin, end) at a time.
  Step& moving(uint64_t bytes) {
    accesses_.back().bytes = bytes;
    return *this;
  }
  Step& end(uint64_t count) {
    HostCommand command{};
    command.kind = HostCommand::Kind::repeat;
    command.repeat = {.count = count, .iteration = 0, .first = first_, .moving = nullptr};
    commands_.push_back(command);
    if (fork_ != kNone) fillParts(commands_[fork_].fork);
    fork_ = kNone;
    return *this;
  }

  /// All commands so far are repeated.
  Step& endAround(uint64_t count) {
    first_ = 0;
    return end(count);
  }

  /// A letter for each command: s where it is spread.
  std::string spread(int threads = 2, uint64_t cache = kCache) {
    chooseSpread(commands_, accesses_, threads, cache);
    std::string letters;
    for (const HostCommand& command : commands_) letters += command.spread ? 's' : '-';
    return letters;
  }

 private:
  Step& add(int64_t tiles, int64_t grain, uint64_t begin, uint64_t end) {
    HostCommand command{};
    command.launch = {.function = nullptr,
                      .first_tile = 0,
                      .tiles = tiles,
                      .tile_ns = 10'000. / static_cast<double>(grain)};
    accesses_.push_back(
        {static_cast<uint32_t>(commands_.size()), 0, begin, end, end - begin, /*written=*/true});
    commands_.push_back(command);
    return *this;
  }

  HostCommand matmulOf(const MatmulShape& shape) {
    Result<MatmulKernel> kernel = MatmulKernel::create(shape, matmulWorkspaceBytes(shape));
    EXPECT_TRUE(kernel.ok()) << kernel.message();
    HostCommand command{};
    command.kind = HostCommand::Kind::library;
    command.library = products_.emplace_back(asLibraryKernel(*std::move(kernel))).get();
    shapes_[command.library] = shape;
    return command;
  }

  /// The same commands for each part, but products of its rows.
  void fillParts(HostCommand::Fork& fork) {
    fork.last = static_cast<uint32_t>(commands_.size() - 1);
    for (std::vector<HostCommand>& list : *fork.lists) {
      list.assign(commands_.begin() + static_cast<ptrdiff_t>(fork_) + 1, commands_.end());
      for (HostCommand& command : list) {
        if (command.kind != HostCommand::Kind::library) continue;
        MatmulShape shape = shapes_[command.library];
        shape.m /= static_cast<int64_t>(fork.lists->size());
        command = matmulOf(shape);
      }
    }
  }

  static constexpr size_t kNone = ~size_t{0};

  std::vector<std::unique_ptr<LibraryKernel>> products_;
  std::map<const LibraryKernel*, MatmulShape> shapes_;
  std::deque<std::vector<std::vector<HostCommand>>> lists_;  // of parts
  std::vector<HostCommand> commands_;
  std::vector<CommandAccess> accesses_;
  uint32_t first_ = 0;
  int64_t k_ = 16;
  size_t fork_ = kNone;  // the command in front of the repeat that is open
};

TEST(Spread, WorkThatIsWorthIt) {
  EXPECT_EQ(Step().launch(100, 0, 4096).spread(), "s");
  EXPECT_EQ(Step().launch(1, 0, 4096).spread(), "-") << "less than a fork costs";
  EXPECT_EQ(Step().launch(100, 0, 4096).spread(1), "-");
}

// 400 kB are in half with the other thread: 25 us each time the step changes from one thread to two or back.
TEST(Spread, NotWhereDataWouldMoveToAndFro) {
  EXPECT_EQ(Step().launch(30, 0, 400'000).single(0, 400'000).spread(), "--");
  EXPECT_EQ(Step().launch(300, 0, 400'000).single(0, 400'000).spread(), "s-");
  EXPECT_EQ(Step().launch(30, 0, 400'000).launch(3, 0, 400'000).spread(), "ss") << "they share alike";
  EXPECT_EQ(Step().launch(30, 0, 400'000).single(400'000, 800'000).spread(), "s-") << "other bytes";
  EXPECT_EQ(Step().single(0, 400'000).launch(30, 0, 400'000).spread(), "--") << "whichever is the first";
}

TEST(Spread, WorkToPayForAMove) {
  EXPECT_EQ(Step().launch(90, 0, 400'000).single(0, 400'000).spread(), "--");
  EXPECT_EQ(Step().launch(110, 0, 400'000).single(0, 400'000).spread(), "s-");
}

TEST(Spread, PartsOfWhatAnotherTouched) {
  EXPECT_EQ(Step().launch(30, 0, 400'000).single(200'000, 300'000).spread(), "s-") << "100 kB are cheap";
  EXPECT_EQ(Step().launch(90, 0, 400'000).single(0, 200'000).single(200'000, 400'000).spread(), "---");
}

TEST(Spread, WhatTheCacheForgetsIsFetchedAnyway) {
  Step step;
  step.launch(30, 0, 400'000).single(1'000'000, 4'000'000).single(0, 400'000).single(4'000'000, 8'000'000);
  EXPECT_EQ(step.spread(2, kCache), "s---");
  EXPECT_EQ(step.spread(2, uint64_t{1} << 30), "----");
}

// Threads that share a product of few rows by its columns leave each row in two caches.
TEST(Spread, ColumnsOfAProductAreNotRowsOfAKernel) {
  EXPECT_EQ(Step().matmul(4096, 16, 0).launch(10, 0, 262'144).spread(), "ss");
  EXPECT_EQ(Step().matmul(16, 4096, 0).launch(10, 0, 262'144).spread(), "--");
  EXPECT_EQ(Step().matmul(16, 4096, 0).launch(10, 1'000'000, 1'262'144).spread(), "ss");
}

// b^T is what is cut: its rows stay where they were written, but c comes in columns.
TEST(Spread, RowsOfATransposedProduct) {
  constexpr uint64_t kBytes = 4096 * 16 * 4;
  EXPECT_EQ(Step().matmul(16, 4096, true, 1, 0, kBytes).launch(10, 0, kBytes).spread(), "ss");
  EXPECT_EQ(Step().matmul(16, 4096, true, 2, 0, kBytes).launch(10, 0, kBytes).spread(), "--");
}

// b is multiplied by each thread's rows of a.
TEST(Spread, WhatAllReadMovesToEach) {
  EXPECT_EQ(Step().single(0, 24'000).matmul(4096, 16, false, 1, 0, 24'000).spread(), "-s");
  EXPECT_EQ(Step().single(0, 45'000).matmul(4096, 16, false, 1, 0, 45'000).spread(), "--");
}

// 50 us a tile: an estimate in whole tiles of 10 us would take it for a fifth.
TEST(Spread, LargeTilesCountInFull) {
  EXPECT_EQ(Step().matmul(2048, 4096, 0).single(0, 800'000).spread(), "s-");
}

TEST(Spread, RepeatsCountEachTime) {
  EXPECT_EQ(Step().single(0, 400'000).repeat().launch(30, 0, 400'000).end(2).spread(), "---");
  EXPECT_EQ(Step().single(0, 400'000).repeat().launch(30, 0, 400'000).end(100).spread(), "-s-")
      << "nothing moves between iterations";
  EXPECT_EQ(Step().repeat().launch(30, 0, 400'000).single(0, 400'000).end(100).spread(), "---")
      << "it would move in each";
}

// 20 steps of 1 us are too short to be shared one by one, and all of them are worth one fork.
TEST(Spread, AParallelByRowsIsOneFork) {
  EXPECT_EQ(Step().repeat().launch(1, 0, 4096).end(20).spread(), "--");
  EXPECT_EQ(Step().parallelRows(2).launch(1, 0, 4096).end(20).spread(), "sss");
  EXPECT_EQ(Step().parallelRows(2).single(0, 4096).single(0, 4096).end(20).spread(), "ssss")
      << "what is one tile for all has a part of its own in each band";
}

// A fork and join of two threads costs 0.9 us, of three 1.0.
TEST(Spread, AParallelByRowsMustBeWorthItsFork) {
  EXPECT_EQ(Step().parallelRows(2).single(0, 4096).end(1).spread(), "---");
  EXPECT_EQ(Step().parallelRows(2).single(0, 4096).end(2).spread(), "sss");
  EXPECT_EQ(Step().parallelRows(2).launch(100, 0, 4096).end(20).spread(1), "---");
  EXPECT_EQ(Step().parallelRows(8).single(0, 4096).end(1).spread(8), "---") << "eight threads: 1.5 us";
  EXPECT_EQ(Step().parallelRows(4).single(0, 4096).end(2).spread(4), "sss") << "a quarter of 2 us, and 1.1";
}

// The repeat around it forks in each of its iterations.
TEST(Spread, AParallelByRowsIsAForkEachTime) {
  EXPECT_EQ(Step().parallelRows(2).launch(1, 0, 64).end(1).endAround(100).spread(), "----");
  EXPECT_EQ(Step().parallelRows(2).launch(3, 0, 64).end(1).endAround(100).spread(), "sss-");
}

// 8 rows take as long as there is to multiply, 4 half of it; of 2 rows one takes as long to read b as both.
TEST(Spread, AParallelByRowsMustBeBetterThanOneByOne) {
  EXPECT_EQ(Step().parallelRows(2).weight(8, 1024, 256, 0).end(20).spread(), "sss");
  EXPECT_EQ(Step().parallelRows(2).weight(2, 1024, 256, 0).end(20).spread(), "-s-");
}

// Half of 4 MiB stays in the cache of a thread that has half of the columns, the whole does not.
TEST(Spread, AParallelByRowsReadsWeightsFromTheCache) {
  EXPECT_EQ(Step().parallelRows(2).weight(32, 2048, 512, 0).end(20).spread(2, kCache), "-s-");
  EXPECT_EQ(Step().parallelRows(2).weight(32, 2048, 512, 0).end(20).spread(2, 2 * kCache), "sss");
}

// Two threads take as long for three iterations as for four.
TEST(Spread, ARepeatByIterationsTakesAsLongAsTheBusiestThread) {
  EXPECT_EQ(Step().parallelParts(2).single(0, 4096).end(2).spread(2), "sss");
  EXPECT_EQ(Step().parallelParts(2).single(0, 4096).end(2).spread(8), "sss");
  EXPECT_EQ(Step().parallelParts(4).launch(6, 0, 4096).end(4).spread(2), "sss");
  EXPECT_EQ(Step().parallelParts(3).launch(6, 0, 4096).end(3).spread(2), "-s-");
  EXPECT_EQ(Step().parallelParts(3).launch(6, 0, 4096).end(3).spread(3), "sss");
}

// An iteration reads a weight as often alone as beside others.
TEST(Spread, ARepeatByIterationsMayReadMoreThanTheCacheHolds) {
  EXPECT_EQ(Step().parallelParts(2).weight(32, 2048, 512, 0).end(2).spread(2, kCache), "sss");
}

// What one thread has written, or is to read, moves as with any other command.
TEST(Spread, AParallelByRowsIsSpreadWholeOrNotAtAll) {
  Step apart, together;
  apart.single(0, 800'000).parallelRows(2).launch(2, 0, 800'000).launch(30, 800'000, 804'096).end(2);
  EXPECT_EQ(apart.spread(), "-----") << "the other launch alone would be worth it";
  together.launch(50, 0, 800'000).parallelRows(2).launch(2, 0, 800'000).launch(30, 800'000, 804'096).end(2);
  EXPECT_EQ(together.spread(), "sssss");
}

// Four matrices one behind the other: a band takes its rows of each, a kernel over all of them half of them.
TEST(Spread, RowsOfAStackAreNotPartsOfTheWhole) {
  constexpr uint64_t kMatrix = 100'000;
  Step stack, matrix;
  stack.parallelRows(2).launch(1, 0, 4 * kMatrix).moving(kMatrix).end(4).launch(10, 0, 4 * kMatrix);
  EXPECT_EQ(stack.spread(), "----");
  matrix.parallelRows(2).launch(1, 0, 4 * kMatrix).end(4).launch(10, 0, 4 * kMatrix);
  EXPECT_EQ(matrix.spread(), "ssss");
}

// As in WhatAllReadMovesToEach.
TEST(Spread, WhatAllPartsReadMovesToEach) {
  auto spread = [](uint64_t bytes) {
    Step step;
    step.single(0, bytes).parallelRows(2).matmul(4096, 16, false, 1, 0, bytes).end(1);
    return step.spread();
  };
  EXPECT_EQ(spread(24'000), "-sss");
  EXPECT_EQ(spread(45'000), "----");
}

TEST(Spread, AnInputThatIsReadInPlaceIsNotMoved) {
  EXPECT_EQ(Step().single(0, 64000).launch(6, 0, 64000).spread(), "--") << "made by one";
  EXPECT_EQ(Step().copyInput(0, 64000, false).launch(6, 0, 64000).spread(), "ss") << "by both";
  EXPECT_EQ(Step().copyInput(0, 64000, true).launch(6, 0, 64000).spread(), "-s");
}

}  // namespace
}  // namespace gpuc
