// Repeats that the threads take by bands of rows: into how many they fall, or why not, and that every number
// of threads leaves the same bytes.
#include "runtime/host/bands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "runtime/host/executor.h"
#include "runtime/host/lower.h"
#include "runtime/host/spread.h"
#include "runtime/tooling/allocation_hook.h"
#include "test/runtime/session_helpers.h"

namespace gpuc::test {
namespace {

/// Iterations of a repeat, and the floats in a row.
constexpr int64_t kSteps = 5, kColumns = 32;
constexpr uint64_t kGrain = 100;  // tiles of 100 ns: few threads would share such launches one by one
constexpr uint64_t kRowBytes = kColumns * 4;  // two tiles of 16 floats

/// A program whose first command is a repeat of kSteps iterations over matrices of `rows` rows.
class Recurrence {
 public:
  explicit Recurrence(int64_t rows = 16, uint32_t input_slots = 1)
      : builder(input_slots, TargetKind::host), rows_(rows), program_(&builder.program("recur", 2)) {
    body = &PlanBuilder::repeat(commands(), kSteps);
  }

  PlanBuilder builder;
  CommandList* body;  // to which commands are appended

  fb::ProgramT& program() { return *program_; }
  CommandList& commands() { return program_->streams[0]->commands; }
  uint64_t rows() const { return static_cast<uint64_t>(rows_); }
  /// Bytes of a matrix.
  uint64_t bytes() const { return rows() * kRowBytes; }

  uint32_t matrix(const std::string& name) { return stack(name, 1); }
  uint32_t stack(const std::string& name, int64_t matrices = kSteps) {
    return builder.buffer(name, DataType::f32, {matrices, rows_, kColumns});
  }
  uint32_t weight(const std::string& name) {
    return builder.buffer(name, DataType::f32, {kColumns, kColumns});
  }
  /// A matrix of a stack, which moves by `strides` matrices.
  OperandOf at(uint32_t stack, int64_t matrix, std::vector<int64_t> strides) const {
    for (int64_t& stride : strides) stride *= static_cast<int64_t>(bytes());
    return {stack, static_cast<uint64_t>(matrix) * bytes(), bytes(), std::move(strides)};
  }

  /// c = a + b, b = 2 a: two tiles of each row.
  void add(const OperandOf& a, const OperandOf& b, const OperandOf& c, const std::string& cut = "ccc") {
    launch("test_add", {a, b}, c, cut);
  }
  void doubled(const OperandOf& a, const OperandOf& b, const std::string& cut = "cc") {
    launch("test_double", {a}, b, cut);
  }
  /// c = a · w
  fb::MatmulT& multiply(const OperandOf& a, uint32_t w, const OperandOf& c) {
    fb::MatmulT& matmul =
        builder.matmul(*body, a.buffer, w, c.buffer, rows(), kColumns, static_cast<uint64_t>(kColumns));
    matmul.a = builder.operand(a);
    matmul.c = builder.operand(c);
    return matmul;
  }

  /// Of the repeat that is `commands`' first, for so many threads.
  int bands(int threads) {
    const Plan plan = builder.parse();
    const fb::Program& program = *plan.root().programs()->Get(0);
    return bandsOf(plan.root(), *program.streams()->Get(0)->commands()->Get(0)->work_as_Repeat(), {},
                   threads);
  }

 private:
  void launch(const std::string& symbol, const std::vector<OperandOf>& reads, const OperandOf& write,
              const std::string& cut) {
    const auto [found, is_new] = kernels_.try_emplace(symbol);
    if (is_new) found->second = builder.kernel(symbol, static_cast<uint32_t>(reads.size()) + 1);
    builder.launch(*body, found->second, reads, {write}, 2 * rows(), kGrain);
    PlanBuilder::bands(*body, rows(), cut);
  }

  int64_t rows_;
  fb::ProgramT* program_;
  std::map<std::string, uint32_t> kernels_;
};

TEST(Bands, AreAsManyAsThreadsThatDivideTheRows) {
  auto bands = [](int64_t rows, int threads) {
    Recurrence plan(rows);
    const uint32_t x = plan.stack("x"), y = plan.stack("y"), w = plan.weight("w");
    plan.multiply(plan.at(x, 0, {1}), w, plan.at(y, 0, {1}));
    plan.doubled(plan.at(y, 0, {1}), plan.at(y, 0, {1}));
    return plan.bands(threads);
  };
  auto forThreads = [&](int64_t rows) {
    std::vector<int> counts;
    for (int threads : {1, 2, 3, 4}) counts.push_back(bands(rows, threads));
    return counts;
  };
  EXPECT_EQ(forThreads(16), (std::vector<int>{1, 2, 2, 4}));
  EXPECT_EQ(forThreads(12), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(forThreads(6), (std::vector<int>{1, 2, 3, 3}));
  EXPECT_EQ(forThreads(7), (std::vector<int>{1, 1, 1, 1}));
  EXPECT_EQ(forThreads(1), (std::vector<int>{1, 1, 1, 1}));
}

TEST(Bands, CutTheRowsOfAProduct) {
  Recurrence plan(6);
  const uint32_t x = plan.matrix("x"), y = plan.matrix("y"), w = plan.weight("w");
  plan.multiply({x}, w, {y});
  EXPECT_EQ(plan.bands(4), 3);
}

// Of 12 rows and 16 there are quarters.
TEST(Bands, CutTheRowsOfAllCommands) {
  Recurrence plan(12);
  const uint32_t x = plan.matrix("x"), y = plan.matrix("y");
  plan.doubled({x}, {y});
  EXPECT_EQ(plan.bands(3), 3);
  const uint32_t kernel = plan.builder.kernel("test_double", 2);
  const uint32_t long_x = plan.builder.buffer("long x", DataType::f32, {16, 16}),
                 long_y = plan.builder.buffer("long y", DataType::f32, {16, 16});
  plan.builder.launch(*plan.body, kernel, {{long_x}}, {{long_y}}, 16);
  PlanBuilder::bands(*plan.body, 16, "cc");
  EXPECT_EQ(plan.bands(3), 2);
  EXPECT_EQ(plan.bands(4), 4);
  EXPECT_EQ(plan.bands(6), 4);
}

/// One thing that a repeat does.
struct Case {
  const char* name;
  void (*build)(Recurrence& plan);
};

void PrintTo(const Case& value, std::ostream* out) { *out << value.name; }
std::string nameOfCase(const testing::TestParamInfo<Case>& info) { return info.param.name; }

/// x[t] -> y[t], and whatever `change` makes of the product.
void addProduct(Recurrence& plan, void (*change)(Recurrence&, fb::MatmulT&)) {
  const uint32_t x = plan.stack("x"), y = plan.stack("y"), w = plan.weight("w");
  change(plan, plan.multiply(plan.at(x, 0, {1}), w, plan.at(y, 0, {1})));
}

const Case kCut[] = {
    {"ReadsOfWeights",
     [](Recurrence& p) {
       const uint32_t x = p.stack("x"), bias = p.matrix("bias"), y = p.stack("y");
       p.add(p.at(x, 0, {1}), {bias}, p.at(y, 0, {1}), "c-c");
       p.add(p.at(y, 0, {1}), p.at(x, 2, {}), p.at(y, 0, {1}), "c-c");
     }},
    {"StacksThatAreWalkedDownAndUp",
     [](Recurrence& p) {
       const uint32_t x = p.stack("x"), y = p.stack("y");
       p.doubled(p.at(x, kSteps - 1, {-1}), p.at(y, 0, {1}));
       p.doubled(p.at(y, 0, {1}), p.at(x, kSteps - 1, {-1}));
     }},
    {"WhatAnEarlierStepLeft",
     [](Recurrence& p) {
       const uint32_t x = p.stack("x"), h = p.stack("h", kSteps + 1);
       p.add(p.at(h, 0, {1}), p.at(x, 0, {1}), p.at(h, 1, {1}));
     }},
    {"InPlace",
     [](Recurrence& p) {
       const uint32_t x = p.stack("x"), h = p.matrix("h");
       p.add({h}, p.at(x, 0, {1}), {h});
     }},
    {"ProductsThatAreAdded",
     [](Recurrence& p) {
       addProduct(p, [](Recurrence&, fb::MatmulT& matmul) { matmul.accumulate = true; });
     }},
    {"ProductsWithABiasAndRelu",
     [](Recurrence& p) {
       addProduct(p, [](Recurrence& p, fb::MatmulT& matmul) {
         matmul.bias = p.builder.operand({p.builder.buffer("bias", DataType::f32, {kColumns})});
         matmul.relu = true;
       });
     }},
    {"ProductsWithAMaskOfTheirRows",
     [](Recurrence& p) {
       addProduct(p, [](Recurrence& p, fb::MatmulT& matmul) {
         matmul.mask = p.builder.operand(p.at(p.stack("z"), 0, {1}));
         p.doubled(p.at(matmul.mask->buffer, 0, {1}), p.at(matmul.mask->buffer, 0, {1}));
       });
     }},
    {"RepeatsWithin",
     [](Recurrence& p) {
       const uint32_t x = p.stack("x", 2 * kSteps), y = p.stack("y", 2 * kSteps), h = p.matrix("h");
       CommandList& inner = PlanBuilder::repeat(*p.body, 2);
       CommandList* outer = std::exchange(p.body, &inner);
       p.add(p.at(x, 0, {2, 1}), {h}, p.at(y, 1, {2, -1}));
       p.body = outer;
       p.doubled(p.at(y, 0, {2}), {h});
     }},
    {"Fills",
     [](Recurrence& p) {
       const uint32_t x = p.stack("x"), y = p.stack("y");
       p.builder.fill(*p.body, p.at(x, 0, {1}), patternOf(2.0f));
       p.add(p.at(x, 0, {1}), p.at(y, 0, {1}), p.at(y, 0, {1}));
     }},
    {"Copies",
     [](Recurrence& p) {
       const uint32_t x = p.stack("x"), y = p.stack("y");
       p.builder.copy(*p.body, p.at(x, 0, {1}), p.at(y, 1, {}));
       p.doubled(p.at(y, 1, {}), p.at(x, 0, {1}));
     }},
    {"BuffersInTheSamePlace",
     [](Recurrence& p) {
       const uint32_t x = p.stack("x"), y = p.matrix("y");
       p.builder.plan.buffers[y]->offset = p.builder.plan.buffers[x]->offset + 2 * p.bytes();
       p.doubled(p.at(x, 0, {1}), {y});
     }},
    {"AnotherGridThatIsOnlyRead",
     [](Recurrence& p) {
       const uint32_t x = p.stack("x"), y = p.matrix("y");
       p.add(p.at(x, 0, {1}), {x, p.bytes() / 2, p.bytes()}, {y});
     }},
    {"AStrideThatIsNeverTaken",
     [](Recurrence& p) {
       const uint32_t h = p.matrix("h");
       CommandList* outer = std::exchange(p.body, &PlanBuilder::repeat(*p.body, 1));
       p.doubled({h, 0, p.bytes(), {0, INT64_MIN}}, {h, 0, p.bytes(), {0, 7}});
       p.body = outer;
     }},
    {"InputsInSlots",
     [](Recurrence& p) {
       const uint32_t x = p.builder.slotBuffer("x", DataType::f32, {kSteps, 16, kColumns}), h = p.matrix("h");
       p.add(p.at(x, 0, {1}), {h}, {h});
     }},
};

class CutRepeat : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Bands, CutRepeat, testing::ValuesIn(kCut), nameOfCase);

TEST_P(CutRepeat, FallsIntoBands) {
  Recurrence plan(16, 2);
  GetParam().build(plan);
  EXPECT_EQ(plan.bands(4), 4);
}

/// x[t] = 2 x[t], which may be cut, so that what is added to it is the reason if the repeat may not.
void addHarmless(Recurrence& plan) {
  const uint32_t x = plan.stack("harmless");
  plan.doubled(plan.at(x, 0, {1}), plan.at(x, 0, {1}));
}

const Case kWhole[] = {
    {"NothingInIt", [](Recurrence&) {}},
    {"AResultThatIsNotCut",
     [](Recurrence& p) {
       const uint32_t x = p.matrix("x"), y = p.matrix("y");
       addHarmless(p);
       p.doubled({x}, {y}, "c-");
     }},
    {"ALaunchWithoutBands",
     [](Recurrence& p) {
       const uint32_t x = p.matrix("x"), y = p.matrix("y");
       addHarmless(p);
       p.doubled({x}, {y});
       PlanBuilder::bands(*p.body, 0, "");
     }},
    {"OneBand",
     [](Recurrence& p) {
       const uint32_t x = p.matrix("x"), y = p.matrix("y");
       addHarmless(p);
       p.doubled({x}, {y});
       PlanBuilder::bands(*p.body, 1, "cc");
     }},
    {"RowsThatHaveNoPartsInCommon",
     [](Recurrence& p) {
       addHarmless(p);
       const uint32_t few = p.builder.buffer("few", DataType::f32, {3});
       p.builder.fill(*p.body, {few}, patternOf(1.0f));
     }},
    {"AFillOfOneElement",
     [](Recurrence& p) {
       addHarmless(p);
       p.builder.fill(*p.body, {p.builder.buffer("number", DataType::i64, {})}, patternOf(int64_t{1}));
     }},
    {"AProductThatReadsColumnsOfA",
     [](Recurrence& p) {
       addProduct(p, [](Recurrence&, fb::MatmulT& matmul) { matmul.transpose_a = true; });
     }},
    {"AProductWithAWorkspace",
     [](Recurrence& p) {
       addProduct(p, [](Recurrence& p, fb::MatmulT& matmul) {
         matmul.workspace = p.builder.operand({p.builder.buffer("workspace", DataType::f32, {16})});
       });
     }},
    {"ABatchOfProducts",
     [](Recurrence& p) {
       addProduct(p, [](Recurrence&, fb::MatmulT& matmul) {
         matmul.batch = 2;
         matmul.m = 8;
         matmul.batch_stride_a = 8 * 32;
       });
     }},
    {"AProductOfFewColumns",
     [](Recurrence& p) {
       addProduct(p, [](Recurrence& p, fb::MatmulT& matmul) {
         matmul.n = 16;
         matmul.b->size = 32 * 16 * 4;
         matmul.c = p.builder.operand({p.builder.buffer("c", DataType::f32, {16, 16})});
       });
     }},
    {"AProductWhoseRowsAreSummedUpAside",  // a thread's are rows times rows
     [](Recurrence& p) {
       addProduct(p, [](Recurrence&, fb::MatmulT& matmul) { matmul.transpose_b = true; });
     }},
    {"ARecord",
     [](Recurrence& p) {
       addHarmless(p);
       p.program().events = {"done"};
       PlanBuilder::record(*p.body, 0);
     }},
    {"AWait",
     [](Recurrence& p) {
       addHarmless(p);
       p.program().events = {"ready"};
       PlanBuilder::wait(*p.body, 0);
       PlanBuilder::record(PlanBuilder::repeat(p.program().streams[1]->commands, kSteps), 0);
     }},
    {"ACopyFromTheHost",
     [](Recurrence& p) {
       addHarmless(p);
       const uint32_t x = p.matrix("x");
       p.builder.copyIn(*p.body, PlanBuilder::input(p.program(), "x", x), {x});
     }},
    {"ACopyToTheHost",
     [](Recurrence& p) {
       addHarmless(p);
       const uint32_t x = p.matrix("x");
       p.builder.copyOut(*p.body, PlanBuilder::output(p.program(), "x", x), {x});
     }},
    {"AConvolution",
     [](Recurrence& p) {
       addHarmless(p);
       auto image = [&](const char* name) { return p.builder.buffer(name, DataType::f32, {16, 1, 4, 4}); };
       p.builder.conv(*p.body, fb::ConvKind::forward, image("x"),
                      p.builder.buffer("w", DataType::f32, {1, 1, 1, 1}), image("y"));
     }},
    {"WhatIsWrittenLiesHalfAMatrixOn",
     [](Recurrence& p) {
       const uint32_t h = p.stack("h", kSteps + 1);
       const auto stride = static_cast<int64_t>(p.bytes());
       p.doubled(p.at(h, 0, {1}), {h, p.bytes() / 2, p.bytes(), {stride}});
     }},
    {"AnotherBufferLiesHalfAMatrixOn",
     [](Recurrence& p) {
       const uint32_t x = p.stack("x"), y = p.matrix("y");
       p.builder.plan.buffers[y]->offset = p.builder.plan.buffers[x]->offset + p.bytes() / 2;
       p.doubled(p.at(x, 0, {1}), {y});
     }},
    {"AnotherBufferLiesInASlotOfTheInput",
     [](Recurrence& p) {
       const uint32_t x = p.builder.slotBuffer("x", DataType::f32, {16, kColumns}), y = p.matrix("y");
       fb::BufferT &input = *p.builder.plan.buffers[x], &other = *p.builder.plan.buffers[y];
       input.slot_stride += p.bytes() / 2;
       other.offset = input.offset + p.bytes();
       p.doubled({x}, {y});
     }},
    {"AnOperandWhoseStrideIsNoMultipleOfTheMatrix",
     [](Recurrence& p) {
       const uint32_t h = p.stack("h", 2 * kSteps);
       p.doubled({h, 0, p.bytes(), {static_cast<int64_t>(p.bytes() * 3 / 2)}}, p.at(h, 4, {}));
     }},
    {"ALaterOperandWhoseStrideIsNoMultipleOfTheMatrix",
     [](Recurrence& p) {
       const uint32_t h = p.stack("h", 2 * kSteps), x = p.matrix("x");
       p.doubled({x}, p.at(h, 4, {}));
       p.doubled({h, 0, p.bytes(), {static_cast<int64_t>(p.bytes() * 3 / 2)}}, {x});
     }},
    {"AResultWhoseStrideIsNoMultipleOfTheMatrix",
     [](Recurrence& p) {
       const uint32_t h = p.stack("h", 2 * kSteps), x = p.matrix("x");
       p.doubled({x}, {h, 0, p.bytes(), {static_cast<int64_t>(p.bytes() * 3 / 2)}});
     }},
    {"AStackThatIsWalkedDownToWhatIsWritten",
     [](Recurrence& p) {
       const uint32_t h = p.stack("h");
       p.doubled(p.at(h, kSteps - 1, {-1}), {h, p.bytes() / 2, p.bytes()});
     }},
    {"AStrideOfTheRepeatWithinThatIsNoMultiple",
     [](Recurrence& p) {
       const uint32_t h = p.stack("h", 2 * kSteps);
       CommandList* outer = std::exchange(p.body, &PlanBuilder::repeat(*p.body, 2));
       const auto step = static_cast<int64_t>(p.bytes());
       p.doubled({h, 0, p.bytes(), {step, step / 2}}, {h, 0, p.bytes(), {step, step / 2}});
       p.body = outer;
     }},
    {"WhatIsWrittenIsLongerThanWhatIsRead",
     [](Recurrence& p) {
       const uint32_t h = p.stack("h", 2);
       p.doubled(p.at(h, 0, {}), p.at(h, 0, {}));
       p.builder.fill(*p.body, {h}, patternOf(1.0f));
     }},
    {"ACopyThatOverlapsItself",
     [](Recurrence& p) {
       const uint32_t h = p.stack("h", 2);
       p.builder.copy(*p.body, p.at(h, 0, {}), {h, p.bytes() / 2, p.bytes()});
     }},
    {"AnOperandThatIsReadWholeAndWritten",
     [](Recurrence& p) {
       const uint32_t x = p.stack("x"), h = p.matrix("h");
       p.add(p.at(x, 0, {1}), {h}, {h}, "c-c");
     }},
    {"AnOperandThatIsReadWholeAndWrittenByAnother",
     [](Recurrence& p) {
       const uint32_t x = p.stack("x"), y = p.stack("y"), h = p.matrix("h");
       p.add(p.at(x, 0, {1}), {h}, p.at(y, 0, {1}), "c-c");
       p.doubled(p.at(y, 0, {1}), {h});
     }},
    {"AnOperandThatWasWrittenAndIsReadWhole",
     [](Recurrence& p) {
       const uint32_t x = p.stack("x"), y = p.stack("y"), h = p.matrix("h");
       p.doubled(p.at(x, 0, {1}), {h});
       p.add(p.at(x, 0, {1}), {h}, p.at(y, 0, {1}), "c-c");
     }},
    {"AProductThatIsReadWhole",
     [](Recurrence& p) {
       const uint32_t x = p.stack("x"), y = p.stack("y"), h = p.matrix("h"), w = p.weight("w");
       p.multiply(p.at(x, 0, {1}), w, {h});
       p.add(p.at(x, 0, {1}), {h}, p.at(y, 0, {1}), "c-c");
     }},
    {"AMaskThatIsWrittenHalfAMatrixOn",
     [](Recurrence& p) {
       addProduct(p, [](Recurrence& p, fb::MatmulT& matmul) {
         const uint32_t z = p.stack("z");
         matmul.mask = p.builder.operand(p.at(z, 0, {}));
         p.doubled({z, p.bytes() / 2, p.bytes()}, {z, p.bytes() / 2, p.bytes()});
       });
     }},
    {"AnOperandThatIsReadWholeAndWrittenInALaterStep",
     [](Recurrence& p) {
       const uint32_t x = p.stack("x"), y = p.stack("y");
       p.add(p.at(x, 0, {1}), p.at(y, kSteps - 1, {}), p.at(y, 0, {1}), "c-c");
     }},
    {"AWeightThatIsWritten",
     [](Recurrence& p) {
       const uint32_t w = p.stack("w", 2), x = p.matrix("x"), y = p.matrix("y");  // 32 rows of two matrices
       p.multiply({x}, w, {y});
       p.doubled({x}, p.at(w, 1, {}));
     }},
    {"ABiasThatIsWritten",
     [](Recurrence& p) {
       addProduct(p, [](Recurrence& p, fb::MatmulT& matmul) {
         const uint32_t b = p.matrix("b");
         matmul.bias = p.builder.operand({b, 0, kRowBytes});
         p.doubled({b}, {b});
       });
     }},
    {"MoreOperandsThanAreLookedAt",
     [](Recurrence& p) {
       for (int i = 0; i < 300; ++i) addHarmless(p);
     }},
};

class WholeRepeat : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Bands, WholeRepeat, testing::ValuesIn(kWhole), nameOfCase);

TEST_P(WholeRepeat, HasNoBands) {
  Recurrence plan(16, 2);
  GetParam().build(plan);
  EXPECT_EQ(plan.bands(4), 1);
}

// In the outer one's third iteration what the inner one reads reaches what it writes.
TEST(Bands, KnowOfTheRepeatsAroundThem) {
  auto bands = [](uint64_t place) {
    Recurrence plan;
    const uint32_t h = plan.stack("h");
    plan.body = &PlanBuilder::repeat(*plan.body, 2);
    plan.doubled(plan.at(h, 0, {1}), {h, place, plan.bytes()});
    const Plan parsed = plan.builder.parse();
    const auto* outer = parsed.root().programs()->Get(0)->streams()->Get(0)->commands()->Get(0);
    const auto* inner = outer->work_as_Repeat()->commands()->Get(0);
    return bandsOf(parsed.root(), *inner->work_as_Repeat(), {kSteps}, 4);
  };
  EXPECT_EQ(bands(2 * 16 * kRowBytes), 4);
  EXPECT_EQ(bands(5 * 8 * kRowBytes), 1);
}

/// What the plan's words mean, one command after the other; of what these tests use.
class Interpreter {
 public:
  explicit Interpreter(const fb::PlanT& plan) : plan_(plan), arena_(plan.arena_bytes) {}

  std::byte* place(uint32_t buffer) { return arena_.data() + plan_.buffers[buffer]->offset; }
  void run() { run(plan_.programs[0]->streams[0]->commands); }

 private:
  void run(const CommandList& commands) {
    for (const auto& command : commands) {
      if (const auto* repeat = command->work.AsRepeat()) {
        iterations_.push_back(0);
        for (; iterations_.back() < static_cast<int64_t>(repeat->count); ++iterations_.back())
          run(repeat->commands);
        iterations_.pop_back();
      } else if (const auto* launch = command->work.AsLaunch()) {
        run(*launch);
      } else if (const auto* matmul = command->work.AsMatmul()) {
        run(*matmul);
      } else if (const auto* fill = command->work.AsFill()) {
        for (uint64_t i = 0; i < fill->to->size; ++i)
          at<uint8_t>(fill->to)[i] = fill->pattern[i % fill->pattern.size()];
      } else if (const auto* copy = command->work.AsCopy(); copy->kind == fb::CopyKind::device_to_device) {
        std::memmove(at<uint8_t>(copy->to), at<uint8_t>(copy->from), copy->to->size);
      }
    }
  }

  void run(const fb::LaunchT& launch) {
    const bool adds = launch.reads.size() == 2;
    const float *a = at<float>(launch.reads[0]), *b = adds ? at<float>(launch.reads[1]) : a;
    float* c = at<float>(launch.writes[0]);
    for (uint64_t i = 0; i < 16 * launch.tiles; ++i) c[i] = a[i] + b[i];
  }

  void run(const fb::MatmulT& matmul) {
    const float *a = at<float>(matmul.a), *b = at<float>(matmul.b);
    float* c = at<float>(matmul.c);
    for (uint64_t i = 0; i < matmul.m; ++i)
      for (uint64_t j = 0; j < matmul.n; ++j) {
        float sum = matmul.accumulate ? c[i * matmul.n + j] : 0;
        for (uint64_t k = 0; k < matmul.k; ++k) sum = std::fma(a[i * matmul.k + k], b[k * matmul.n + j], sum);
        if (matmul.bias) sum += at<float>(matmul.bias)[j];
        if (matmul.mask && at<float>(matmul.mask)[i * matmul.n + j] <= 0) sum = 0;
        c[i * matmul.n + j] = matmul.relu && sum <= 0 ? 0 : sum;
      }
  }

  template <typename T>
  T* at(const std::unique_ptr<fb::OperandT>& operand) {
    auto offset = static_cast<int64_t>(operand->offset);
    for (size_t d = 0; d < operand->strides.size(); ++d) offset += operand->strides[d] * iterations_[d];
    return reinterpret_cast<T*>(place(operand->buffer) + offset);
  }

  const fb::PlanT& plan_;
  std::vector<std::byte> arena_;
  std::vector<int64_t> iterations_;  // of the repeats around the command, outermost first
};

/// A repeat over a stack x and a weight w.
struct Network {
  const char* name;
  void (*build)(Recurrence& plan, uint32_t x, uint32_t w);
};
void PrintTo(const Network& value, std::ostream* out) { *out << value.name; }

const Network kNetworks[] = {
    {"OneLayer",
     [](Recurrence& p, uint32_t x, uint32_t w) {
       const uint32_t h = p.stack("h", kSteps + 1), z = p.matrix("z");
       p.multiply(p.at(h, 0, {1}), w, {z}).relu = true;
       p.add({z}, p.at(x, 0, {1}), p.at(h, 1, {1}));
     }},
    {"AResultInSlots",
     [](Recurrence& p, uint32_t x, uint32_t) {
       const auto rows = static_cast<int64_t>(p.rows());
       const uint32_t y = p.builder.slotBuffer("y", DataType::f32, {kSteps, rows, kColumns});
       p.doubled(p.at(x, 0, {1}), p.at(y, kSteps - 1, {-1}));
     }},
    {"BackwardsAndByCopiesAndFills",
     [](Recurrence& p, uint32_t x, uint32_t w) {
       const uint32_t h = p.matrix("h"), z = p.matrix("z"), y = p.stack("y"), one = p.matrix("one");
       p.builder.fill(*p.body, {z}, patternOf(0.5f));
       p.multiply(p.at(x, kSteps - 1, {-1}), w, {z}).accumulate = true;
       p.builder.fill(*p.body, {one}, patternOf(1.0f));
       p.add({h}, {z}, {h});
       p.add({h}, {one}, {h});
       p.builder.copy(*p.body, {h}, p.at(y, 0, {1}));
     }},
    {"ABiasAndAMask",
     [](Recurrence& p, uint32_t x, uint32_t w) {
       const uint32_t h = p.matrix("h"), z = p.matrix("z"), y = p.stack("y");
       p.multiply(p.at(x, 0, {1}), w, {z}).bias = p.builder.operand({w, kRowBytes, kRowBytes});
       p.multiply({z}, w, {h}).mask = p.builder.operand(p.at(x, kSteps - 1, {-1}));
       p.add({z}, {h}, p.at(y, 0, {1}));
     }},
    {"ARepeatWithin",
     [](Recurrence& p, uint32_t x, uint32_t w) {
       const uint32_t h = p.matrix("h"), z = p.matrix("z"), y = p.stack("y", 3 * kSteps);
       p.multiply({h}, w, {z});
       CommandList* outer = std::exchange(p.body, &PlanBuilder::repeat(*p.body, 3));
       p.add({z}, p.at(x, 0, {1, 0}), p.at(y, 2, {3, -1}));
       p.add(p.at(y, 2, {3, -1}), {h}, {h});
       p.body = outer;
       p.doubled({z}, {z});
       p.add({h}, {z}, {h});
     }},
    {"ARepeatAround",
     [](Recurrence& p, uint32_t x, uint32_t w) {
       const uint32_t h = p.matrix("h"), z = p.matrix("z"), y = p.stack("y", 2 * kSteps),
                      all = p.stack("all", 4);
       p.doubled(p.at(x, 0, {1}), {z});
       p.builder.fill(*p.body, p.at(all, 0, {}), patternOf(3.0f));
       p.builder.fill(*p.body, {all}, patternOf(2.0f));  // for which the outer one has no bands
       p.body = &PlanBuilder::repeat(*p.body, 2);
       p.multiply(p.at(x, 0, {1}), w, {z});
       p.add({z}, {h}, {h});
       p.add({h}, p.at(all, 2, {0, 1}), p.at(y, 0, {2, 1}));
     }},
};

/// A network of `rows` rows: x and w are inputs, x in slots if there are several, and outputs all other
/// buffers, which begin as zeros. Behind the repeat its first buffer is doubled.
PlanBuilder planOf(const Network& network, int64_t rows, uint32_t input_slots = 1) {
  Recurrence plan(rows, input_slots);
  PlanBuilder& builder = plan.builder;
  const uint32_t x = builder.slotBuffer("x", DataType::f32, {kSteps, rows, kColumns}), w = plan.weight("w");
  for (auto [name, buffer] : {std::pair("x", x), {"w", w}})
    builder.copyIn(plan.commands(), PlanBuilder::input(plan.program(), name, buffer), {buffer});
  network.build(plan, x, w);
  const uint32_t twice = plan.matrix("twice");
  for (uint32_t buffer = w + 1; buffer < builder.plan.buffers.size(); ++buffer) {
    builder.fill(plan.commands(), {buffer}, patternOf(0.0f));
    PlanBuilder::output(plan.program(), builder.plan.buffers[buffer]->name, buffer);
  }
  std::rotate(plan.commands().begin(), plan.commands().begin() + 1, plan.commands().end());  // the repeat
  plan.body = &plan.commands();
  plan.doubled(plan.at(w + 1, 0, {}), {twice});
  return std::move(builder);
}

/// The inputs of such a plan, in its order.
struct Inputs {
  std::vector<float> x, w;
};

/// Small integers, whose sums are exact; each column of w has about three others than 0.
Inputs exactInputs(int64_t rows, int run) {
  Inputs inputs = {counting(static_cast<size_t>(kSteps * rows * kColumns)), counting(kColumns * kColumns)};
  for (float& value : inputs.x) value = std::fmod(value * static_cast<float>(run + 3), 7) - 3;
  for (float& value : inputs.w) value = std::fmod(value * 5, 11) == 0 ? 1 - std::fmod(value, 3.0f) : 0;
  return inputs;
}

/// Numbers that round as they are multiplied and added.
Inputs wildInputs(int64_t rows, int run) {
  Inputs inputs = exactInputs(rows, run);
  for (std::vector<float>* values : {&inputs.x, &inputs.w})
    for (size_t i = 0; i < values->size(); ++i)
      (*values)[i] = std::sin(static_cast<float>(i * (i + static_cast<size_t>(run)) % 1013));
  return inputs;
}

/// A run's outputs, one behind the other. Inputs lie `off` elements behind where they are read in place.
std::vector<float> runOn(Session& session, const Inputs& inputs, int64_t rows, size_t off) {
  PlacedInput x(inputs.x, off), w(inputs.w, off);
  const int64_t x_shape[] = {kSteps, rows, kColumns}, w_shape[] = {kColumns, kColumns};
  HostTensorView views[] = {x.view(x_shape), w.view(w_shape)};
  runOnce(session, ProgramId{0}, views);
  std::vector<float> all;
  for (size_t output = 0; output < session.plan().info().programs[0].outputs.size(); ++output)
    for (float value : valuesOf<float>(session.output(ProgramId{0}, output))) all.push_back(value);
  return all;
}

/// The same by the plan's words.
std::vector<float> runOn(Interpreter& interpreter, const fb::PlanT& plan, const Inputs& inputs) {
  std::memcpy(interpreter.place(0), inputs.x.data(), inputs.x.size() * sizeof(float));
  std::memcpy(interpreter.place(1), inputs.w.data(), inputs.w.size() * sizeof(float));
  interpreter.run();
  std::vector<float> all;
  for (const auto& output : plan.programs[0]->outputs) {
    const auto* values = reinterpret_cast<const float*>(interpreter.place(output->buffer));
    all.insert(all.end(), values, values + plan.buffers[output->buffer]->size / sizeof(float));
  }
  return all;
}

struct Lowered {
  explicit Lowered(const PlanBuilder& builder, int threads,
                   const std::vector<KernelFunction>& kernels = std::vector<KernelFunction>(2))
      : plan(builder.parse()) {
    Result<Arena> mapped = Arena::map(plan.root().arena_bytes(), false);
    EXPECT_TRUE(mapped.ok()) << mapped.message();
    arena = *std::move(mapped);
    auto lowered = lowerProgram(plan, 0, arena, kernels, threads);
    EXPECT_TRUE(lowered.ok()) << lowered.message();
    program = *std::move(lowered);
    chooseSpread(program->streams[0], program->accesses, threads, coreCacheBytes());
  }
  std::vector<HostCommand>& commands() { return program->streams[0]; }

  Plan plan;
  Arena arena;
  std::unique_ptr<HostProgram> program;
};

/// In how many bands a session executes its repeat.
size_t bandsUsed(const PlanBuilder& builder, int threads) {
  Lowered lowered(builder, threads);
  size_t bands = 1;
  for (const HostCommand& command : lowered.commands())
    if (command.kind == HostCommand::Kind::bands && command.spread) bands *= command.bands.lists->size();
  return bands;
}

class Networks : public testing::TestWithParam<Network> {};
INSTANTIATE_TEST_SUITE_P(Bands, Networks, testing::ValuesIn(kNetworks),
                         [](const auto& info) { return info.param.name; });

TEST_P(Networks, LeaveTheSameBytesForAnyNumberOfThreads) {
  for (int64_t rows : {6, 12, 16})
    for (size_t off : {0, 1})  // in place, in slots
      for (int threads : {1, 2, 3, 4}) {
        SCOPED_TRACE(std::to_string(rows) + " rows in " + std::to_string(threads) + " threads");
        const PlanBuilder builder = planOf(GetParam(), rows, 2);
        const size_t expected = rows % threads == 0 ? static_cast<size_t>(threads) : threads == 4 ? 3 : 2;
        EXPECT_EQ(bandsUsed(builder, threads), expected);
        Interpreter interpreter(builder.plan);
        Session session = open(builder, {.threads = threads}), alone = open(builder, {.threads = 1});
        for (int run = 0; run < 4; ++run) {
          const Inputs exact = exactInputs(rows, run), wild = wildInputs(rows, run);
          ASSERT_EQ(runOn(session, exact, rows, off), runOn(interpreter, builder.plan, exact));
          ASSERT_EQ(runOn(session, wild, rows, off), runOn(alone, wild, rows, off));
        }
      }
}

// Each list as its band's part of the rows; the profile has what the first band did.
TEST_P(Networks, HaveEachCommandOnceForEachIterationInTheirProfile) {
  for (int threads : {1, 4}) {
    Session session = open(planOf(GetParam(), 16), {.threads = threads, .profile_events = 10'000});
    runOn(session, exactInputs(16, 0), 16, 0);
    std::map<const fb::Command*, uint64_t> expected, found;
    std::function<void(const flatbuffers::Vector<flatbuffers::Offset<fb::Command>>&, uint64_t)> count =
        [&](const auto& commands, uint64_t times) {
          for (const fb::Command* command : commands)
            if (const fb::Repeat* repeat = command->work_as_Repeat())
              count(*repeat->commands(), times * repeat->count());
            else
              expected[command] = times;
        };
    count(*session.plan().root().programs()->Get(0)->streams()->Get(0)->commands(), 1);
    for (const ProfileEvent& event : session.profile()) ++found[event.command];
    EXPECT_EQ(found, expected) << threads << " threads";
  }
}

TEST_P(Networks, AllocateNothingInAStep) {
  const Inputs inputs = exactInputs(16, 0);
  PlacedInput x(inputs.x), w(inputs.w);
  const int64_t x_shape[] = {kSteps, 16, kColumns}, w_shape[] = {kColumns, kColumns};
  HostTensorView views[] = {x.view(x_shape), w.view(w_shape)};
  for (int threads : {2, 4}) {
    Session session = open(planOf(GetParam(), 16), {.threads = threads, .profile_events = 100});
    runOnce(session, ProgramId{0}, views);
    const AllocationCount before = allocationCount();
    bool worked = true;
    for (int run = 0; run < 20; ++run) worked &= session.run(ProgramId{0}, views).ok() && session.wait().ok();
    EXPECT_EQ(allocationCount().total() - before.total(), 0) << threads << " threads";
    EXPECT_TRUE(worked);
  }
}

/// A letter for each command: what it is, repeats at their ends.
std::string kindsOf(const std::vector<HostCommand>& commands) {
  std::string letters;
  for (const HostCommand& command : commands)
    letters += command.kind == HostCommand::Kind::bands    ? 'B'
               : command.kind == HostCommand::Kind::repeat ? ')'
               : command.kind == HostCommand::Kind::matmul ? 'm'
               : command.kind == HostCommand::Kind::launch ? 'l'
               : command.kind == HostCommand::Kind::fill   ? 'f'
                                                           : 'c';
  return letters;
}

PlanBuilder planOf(const std::string& network) {
  const auto* found = std::find_if(std::begin(kNetworks), std::end(kNetworks),
                                   [&](const Network& each) { return each.name == network; });
  return planOf(*found, 16);
}

// In front stand two inputs and four or five outputs.
TEST(Bands, StandInFrontOfTheOutermostRepeatThatHasSome) {
  Lowered within(planOf("ARepeatWithin"), 4), around(planOf("ARepeatAround"), 4);
  EXPECT_EQ(kindsOf(within.commands()), "ccffffBmll)ll)l");
  EXPECT_EQ(within.commands()[6].bands.last, 13u);
  EXPECT_EQ(kindsOf(around.commands()), "ccffffflffBmll))l");
  EXPECT_EQ(around.commands()[10].bands.last, 14u);
}

TEST(Bands, EachHaveAllCommandsOfTheirPartOfTheRows) {
  Lowered lowered(planOf("OneLayer"), 4);
  const std::vector<HostCommand>& commands = lowered.commands();
  ASSERT_EQ(kindsOf(commands), "ccfffBml)l");
  const auto& lists = *commands[5].bands.lists;
  ASSERT_EQ(lists.size(), 4u);
  auto placeOf = [](const HostCommand& command, size_t operand) {
    return static_cast<const std::byte*>(command.operands[operand]);
  };
  for (size_t band = 0; band < 4; ++band) {
    ASSERT_EQ(kindsOf(lists[band]), "ml)");
    const HostCommand &product = lists[band][0], &sum = lists[band][1];
    EXPECT_EQ(placeOf(product, 0) - placeOf(commands[6], 0), static_cast<ptrdiff_t>(band * 4 * kRowBytes));
    EXPECT_EQ(placeOf(product, 1), placeOf(commands[6], 1)) << "the weight is all theirs";
    EXPECT_EQ(product.matmul.kernel->plan().problem.m, 4);
    EXPECT_EQ(placeOf(sum, 0), placeOf(commands[7], 0)) << "a launch counts from its first tile";
    EXPECT_EQ(sum.launch.first_tile, static_cast<int64_t>(band) * 8);
    EXPECT_EQ(sum.launch.tiles, 8);
    EXPECT_EQ(lists[band][2].repeat.first, 0u);
  }
}

TEST(Bands, ReadInputsInPlace) {
  Lowered lowered(planOf("OneLayer"), 4);
  EXPECT_TRUE(lowered.commands()[0].copy.of_read_input);
  EXPECT_TRUE(lowered.commands()[1].copy.of_read_input);
}

TEST(Bands, AreWalkedInPlaceOfTheRepeatWhereItIsSpread) {
  Recurrence plan;
  const uint32_t y = plan.stack("y");
  plan.builder.fill(*plan.body, plan.at(y, 0, {1}), patternOf(uint8_t{1}));
  Lowered lowered(plan.builder, 2);
  HostCommand& bands = lowered.commands()[0];
  ASSERT_EQ(kindsOf(lowered.commands()), "Bf)");
  ThreadPool pool(2), alone(1);
  ProfileRing profile(0);
  const StreamWalk walk{&lowered.commands(), &pool, &alone, &profile, {}, 0, 0};
  auto onesOf = [&](bool spread) {
    std::fill_n(lowered.arena.data(), lowered.arena.bytes(), std::byte{0});
    bands.spread = spread;
    walk.run();
    return std::count(lowered.arena.data(), lowered.arena.data() + lowered.arena.bytes(), std::byte{1});
  };
  const auto all = static_cast<ptrdiff_t>(kSteps * plan.bytes());
  EXPECT_EQ(onesOf(true), all);
  EXPECT_EQ(onesOf(false), all);
  (*bands.bands.lists)[1].clear();
  EXPECT_EQ(onesOf(true), all / 2);
  EXPECT_EQ(onesOf(false), all);
}

constexpr uint64_t kPiece = 256;  // bytes of most operands of a random plan: 4 tiles of 16 numbers

/// c = a + 3 b + 1, in whole numbers; and where b is read from its end, which no band cuts.
void mix(void* const* operands, int64_t begin, int64_t end) {
  const auto *a = static_cast<const uint32_t*>(operands[0]), *b = static_cast<const uint32_t*>(operands[1]);
  auto* c = static_cast<uint32_t*>(operands[2]);
  for (int64_t i = begin * 16; i < end * 16; ++i) c[i] = a[i] + 3 * b[i] + 1;
}
void mixBackwards(void* const* operands, int64_t begin, int64_t end) {
  const auto *a = static_cast<const uint32_t*>(operands[0]), *b = static_cast<const uint32_t*>(operands[1]);
  auto* c = static_cast<uint32_t*>(operands[2]);
  for (int64_t i = begin * 16; i < end * 16; ++i) c[i] = a[i] + 3 * b[63 - i] + 1;
}

/// A repeat of a few commands, some of them in a repeat within, all on two buffers that may overlap.
class RandomPlan {
 public:
  explicit RandomPlan(uint32_t seed) : builder(1, TargetKind::host), random_(seed) {
    for (const char* name : {"one", "two"}) builder.buffer(name, DataType::i32, {16, 64});
    if (draw(3) == 0) builder.plan.buffers[1]->offset = 64 * draw(32);
    for (const char* symbol : {"test_add", "test_double"}) builder.kernel(symbol, 3);
    CommandList& body = add(builder.program("random").streams[0]->commands);
    for (uint64_t commands = 1 + draw(3); commands > 0; --commands) addCommand(body);
    if (draw(2) == 0) addCommand(add(body));
  }
  PlanBuilder builder;

 private:
  uint64_t draw(uint64_t below) { return random_() % below; }

  CommandList& add(CommandList& list) {
    counts_.push_back(static_cast<int64_t>(1 + draw(4)));
    return PlanBuilder::repeat(list, static_cast<uint64_t>(counts_.back()));
  }

  void addCommand(CommandList& list) {
    const uint64_t kind = draw(6);
    if (kind == 0) {
      builder.fill(list, operand(kPiece << draw(2)), patternOf(static_cast<uint32_t>(random_())));
    } else if (kind == 1) {
      builder.copy(list, operand(kPiece), operand(kPiece));
    } else {
      const bool backwards = draw(4) == 0;
      builder.launch(list, backwards, {operand(kPiece), operand(kPiece)}, {operand(kPiece)}, 4);
      PlanBuilder::bands(list, 4, backwards ? "c-c" : "ccc");
    }
  }

  /// Most lie at multiples of their size and move by such.
  OperandOf operand(uint64_t bytes) {
    const auto size = static_cast<int64_t>(bytes);
    for (;;) {
      const uint64_t grid = draw(12) ? bytes : 64;
      OperandOf result{static_cast<uint32_t>(draw(2)), grid * draw(4096 / grid), bytes};
      int64_t low = static_cast<int64_t>(result.offset), high = low + size;
      for (int64_t count : counts_) {
        const int64_t stride = draw(24) ? size * (static_cast<int64_t>(draw(4)) - 1) : size / 2;
        result.strides.push_back(stride);
        (stride < 0 ? low : high) += stride * (count - 1);
      }
      if (low >= 0 && high <= 4096) return result;
    }
  }

  std::mt19937 random_;
  std::vector<int64_t> counts_;
};

/// What the arena holds when `walks` have been walked one after the other, from numbers that all differ.
std::vector<uint32_t> leftBy(std::vector<std::vector<HostCommand>*> walks, Lowered& lowered) {
  auto* numbers = reinterpret_cast<uint32_t*>(lowered.arena.data());
  const size_t count = lowered.arena.bytes() / sizeof(uint32_t);
  for (size_t i = 0; i < count; ++i) numbers[i] = static_cast<uint32_t>(i * i);
  ThreadPool alone(1);
  ProfileRing profile(0);
  for (std::vector<HostCommand>* commands : walks)
    StreamWalk{commands, &alone, &alone, &profile, {}, 0, 0}.run();
  return {numbers, numbers + count};
}

// Whatever may be taken by bands may be taken by one band after another, the last one first.
TEST(Bands, NeedNothingOfOneAnother) {
  int in_bands = 0, all = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed, ++all) {
    Lowered lowered(RandomPlan(seed).builder, 4, {mix, mixBackwards});
    std::vector<HostCommand>& commands = lowered.commands();
    if (commands[0].kind != HostCommand::Kind::bands) continue;
    ++in_bands;
    for (HostCommand& command : commands) command.spread = false;
    const std::vector<uint32_t> expected = leftBy({&commands}, lowered);
    std::vector<std::vector<HostCommand>*> lists;
    for (std::vector<HostCommand>& list : *commands[0].bands.lists) lists.insert(lists.begin(), &list);
    ASSERT_EQ(lists.size(), 4u);
    ASSERT_EQ(leftBy(lists, lowered), expected) << "seed " << seed;
  }
  EXPECT_GT(in_bands, all / 10);
  EXPECT_LT(in_bands, all * 9 / 10);
}

TEST(Bands, AreTheMainStreamsAlone) {
  Recurrence plan;
  CommandList& other = plan.program().streams[1]->commands;
  const uint32_t x = plan.matrix("x"), y = plan.matrix("y");
  plan.body = &PlanBuilder::repeat(other, kSteps);
  plan.doubled({x}, {y});
  plan.commands().clear();
  Lowered lowered(plan.builder, 4);
  EXPECT_EQ(kindsOf(lowered.program->streams[1]), "l)");
}

}  // namespace
}  // namespace gpuc::test
