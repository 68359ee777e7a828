// Which parallels by rows the reader takes, and into how many parts threads take them.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "runtime/host/row_parts.h"
#include "test/runtime/recurrence.h"

namespace gpuc::test {
namespace {

TEST(ParallelRows, AreAsManyAsThreadsThatDivideTheRows) {
  auto parts = [](int64_t rows, uint64_t threads) {
    Recurrence plan(rows);
    const uint32_t x = plan.stack("x"), y = plan.stack("y"), w = plan.weight("w");
    plan.multiply(plan.at(x, 0, {1}), w, plan.at(y, 0, {1}));
    plan.doubled(plan.at(y, 0, {1}), plan.at(y, 0, {1}));
    return plan.parts(threads);
  };
  auto forThreads = [&](int64_t rows) {
    std::vector<uint64_t> counts;
    for (uint64_t threads : {1, 2, 3, 4}) counts.push_back(parts(rows, threads));
    return counts;
  };
  EXPECT_EQ(forThreads(16), (std::vector<uint64_t>{1, 2, 2, 4}));
  EXPECT_EQ(forThreads(12), (std::vector<uint64_t>{1, 2, 3, 4}));
  EXPECT_EQ(forThreads(6), (std::vector<uint64_t>{1, 2, 3, 3}));
  EXPECT_EQ(forThreads(7), (std::vector<uint64_t>{1, 1, 1, 1}));
}

TEST(ParallelRows, CutTheRowsOfAProduct) {
  Recurrence plan(6);
  const uint32_t x = plan.matrix("x"), y = plan.matrix("y"), w = plan.weight("w");
  plan.multiply({x}, w, {y});
  EXPECT_EQ(plan.parts(4), 3);
}

// Of 12 rows and 16 there are quarters.
TEST(ParallelRows, CutTheRowsOfAllCommands) {
  Recurrence plan(12);
  const uint32_t x = plan.matrix("x"), y = plan.matrix("y");
  plan.doubled({x}, {y});
  EXPECT_EQ(plan.parts(3), 3);
  const uint32_t kernel = plan.builder.kernel("test_double", 2);
  const uint32_t long_x = plan.builder.buffer("long x", DataType::f32, {16, 16}),
                 long_y = plan.builder.buffer("long y", DataType::f32, {16, 16});
  plan.builder.launch(*plan.body, kernel, {{long_x}}, {{long_y}}, 16);
  PlanBuilder::rows(*plan.body, 16, "rr");
  EXPECT_NE(plan.error().find("parallel of 12 rows: a launch of 16 rows does not fall into its parts"),
            std::string::npos)
      << plan.error();
  plan.setParts(4);
  EXPECT_EQ(plan.parts(3), 2);
  EXPECT_EQ(plan.parts(4), 4);
  EXPECT_EQ(plan.parts(6), 4);
}

/// Of a repeated product of `rows` rows and 592 columns, by two threads.
uint64_t partsOfWideProduct(int64_t rows) {
  PlanBuilder builder(1, TargetKind::host);
  const uint32_t a = builder.buffer("a", DataType::f32, {rows, 24}),
                 w = builder.buffer("w", DataType::f32, {24, 592}),
                 c = builder.buffer("c", DataType::f32, {rows, 592});
  CommandList& body = PlanBuilder::parallel(builder.program("f").streams[0]->commands,
                                            static_cast<uint64_t>(rows), /*by_rows=*/true);
  builder.matmul(body, a, w, c, static_cast<uint64_t>(rows), 592, 24);
  const Plan plan = builder.parse();
  const fb::Program& program = *plan.root().programs()->Get(0);
  return rowPartsOf(*program.streams()->Get(0)->commands()->Get(0)->work_as_Parallel(), 2);
}

// 32 rows are multiplied by 64 columns at a time, which leaves 16; 16 and 8 rows by 304, which leave none.
TEST(ParallelRows, HaveTheBitsOfTheWholeProduct) {
  EXPECT_EQ(partsOfWideProduct(16), 2);
  EXPECT_EQ(partsOfWideProduct(32), 1);
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
       p.add(p.at(x, 0, {1}), {bias}, p.at(y, 0, {1}), "r-r");
       p.add(p.at(y, 0, {1}), p.at(x, 2, {}), p.at(y, 0, {1}), "r-r");
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
       p.doubled({h, 0, p.bytes(), p.throughParallel({0, INT64_MIN})},
                 {h, 0, p.bytes(), p.throughParallel({0, 7})});
       p.body = outer;
     }},
    {"InputsInSlots",
     [](Recurrence& p) {
       const uint32_t x = p.builder.slotBuffer("x", DataType::f32, {kSteps, 16, kColumns}), h = p.matrix("h");
       p.add(p.at(x, 0, {1}), {h}, {h});
     }},
};

class CutParallel : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(ParallelRows, CutParallel, testing::ValuesIn(kCut), nameOfCase);

TEST_P(CutParallel, FallsIntoParts) {
  Recurrence plan(16, 2);
  GetParam().build(plan);
  EXPECT_EQ(plan.parts(4), 4);
}

/// x[t] = 2 x[t], which may be cut, so that what is added to it is the reason if the parallel may not.
void addHarmless(Recurrence& plan) {
  const uint32_t x = plan.stack("harmless");
  plan.doubled(plan.at(x, 0, {1}), plan.at(x, 0, {1}));
}

/// What the reader refuses, and what of its reason.
struct Refused {
  const char* name;
  const char* error;
  void (*build)(Recurrence& plan);
};
void PrintTo(const Refused& value, std::ostream* out) { *out << value.name; }

const Refused kRefused[] = {
    {"AResultThatIsNotCut", "of another, which one of the two writes",
     [](Recurrence& p) {
       const uint32_t x = p.matrix("x"), y = p.matrix("y");
       addHarmless(p);
       p.doubled({x}, {y}, "r-");
     }},
    {"ALaunchWithoutRows", "does not fall into its parts",
     [](Recurrence& p) {
       const uint32_t x = p.matrix("x"), y = p.matrix("y");
       addHarmless(p);
       p.doubled({x}, {y});
       PlanBuilder::rows(*p.body, 0, "");
     }},
    {"OneRow", "does not fall into its parts",
     [](Recurrence& p) {
       const uint32_t x = p.matrix("x"), y = p.matrix("y");
       addHarmless(p);
       p.doubled({x}, {y});
       PlanBuilder::rows(*p.body, 1, "rr");
     }},
    {"RowsThatHaveNoPartsInCommon", "does not fall into its parts",
     [](Recurrence& p) {
       addHarmless(p);
       const uint32_t few = p.builder.buffer("few", DataType::f32, {3});
       p.builder.fill(*p.body, {few}, patternOf(1.0f));
     }},
    {"AFillOfOneElement", "does not fall into its parts",
     [](Recurrence& p) {
       addHarmless(p);
       p.builder.fill(*p.body, {p.builder.buffer("number", DataType::i64, {})}, patternOf(int64_t{1}));
     }},
    {"AProductThatReadsColumnsOfA", "does not fall into its parts",
     [](Recurrence& p) {
       addProduct(p, [](Recurrence&, fb::MatmulT& matmul) { matmul.transpose_a = true; });
     }},
    {"AProductWithAWorkspace", "does not fall into its parts",
     [](Recurrence& p) {
       addProduct(p, [](Recurrence& p, fb::MatmulT& matmul) {
         matmul.workspace = p.builder.operand({p.builder.buffer("workspace", DataType::f32, {16})});
       });
     }},
    {"ABatchOfProducts", "does not fall into its parts",
     [](Recurrence& p) {
       addProduct(p, [](Recurrence&, fb::MatmulT& matmul) {
         matmul.batch = 2;
         matmul.m = 8;
         matmul.batch_stride_a = 8 * 32;
       });
     }},
    {"ARecord", "a record stands in it",
     [](Recurrence& p) {
       addHarmless(p);
       p.program().events = {"done"};
       PlanBuilder::record(*p.body, 0);
     }},
    {"AWait", "a wait stands in it",
     [](Recurrence& p) {
       addHarmless(p);
       p.program().events = {"ready"};
       PlanBuilder::wait(*p.body, 0);
       PlanBuilder::record(PlanBuilder::repeat(p.program().streams[1]->commands, kSteps), 0);
     }},
    {"ACopyFromTheHost", "a copy from or to the host stands in it",
     [](Recurrence& p) {
       addHarmless(p);
       const uint32_t x = p.matrix("x");
       p.builder.copyIn(*p.body, PlanBuilder::input(p.program(), "x", x), {x});
     }},
    {"ACopyToTheHost", "a copy from or to the host stands in it",
     [](Recurrence& p) {
       addHarmless(p);
       const uint32_t x = p.matrix("x");
       p.builder.copyOut(*p.body, PlanBuilder::output(p.program(), "x", x), {x});
     }},
    {"AConvolution", "does not fall into its parts",
     [](Recurrence& p) {
       addHarmless(p);
       auto image = [&](const char* name) { return p.builder.buffer(name, DataType::f32, {16, 1, 4, 4}); };
       p.builder.conv(*p.body, fb::ConvKind::forward, image("x"),
                      p.builder.buffer("w", DataType::f32, {1, 1, 1, 1}), image("y"));
     }},
    {"WhatIsWrittenLiesHalfAMatrixOn", "of another, which one of the two writes",
     [](Recurrence& p) {
       const uint32_t h = p.stack("h", kSteps + 1);
       const auto stride = static_cast<int64_t>(p.bytes());
       p.doubled(p.at(h, 0, {1}), {h, p.bytes() / 2, p.bytes(), p.throughParallel({stride})});
     }},
    {"AnotherBufferLiesHalfAMatrixOn", "of another, which one of the two writes",
     [](Recurrence& p) {
       const uint32_t x = p.stack("x"), y = p.matrix("y");
       p.builder.plan.buffers[y]->offset = p.builder.plan.buffers[x]->offset + p.bytes() / 2;
       p.doubled(p.at(x, 0, {1}), {y});
     }},
    {"AnotherBufferLiesInASlotOfTheInput", "of another, which one of the two writes",
     [](Recurrence& p) {
       const uint32_t x = p.builder.slotBuffer("x", DataType::f32, {16, kColumns}), y = p.matrix("y");
       fb::BufferT &input = *p.builder.plan.buffers[x], &other = *p.builder.plan.buffers[y];
       input.slot_stride += p.bytes() / 2;
       other.offset = input.offset + p.bytes();
       p.doubled({x}, {y});
     }},
    {"AnOperandWhoseStrideIsNoMultipleOfTheMatrix", "of another, which one of the two writes",
     [](Recurrence& p) {
       const uint32_t h = p.stack("h", 2 * kSteps);
       p.doubled({h, 0, p.bytes(), p.throughParallel({static_cast<int64_t>(p.bytes() * 3 / 2)})},
                 p.at(h, 4, {}));
     }},
    {"ALaterOperandWhoseStrideIsNoMultipleOfTheMatrix", "of another, which one of the two writes",
     [](Recurrence& p) {
       const uint32_t h = p.stack("h", 2 * kSteps), x = p.matrix("x");
       p.doubled({x}, p.at(h, 4, {}));
       p.doubled({h, 0, p.bytes(), p.throughParallel({static_cast<int64_t>(p.bytes() * 3 / 2)})}, {x});
     }},
    {"AResultWhoseStrideIsNoMultipleOfTheMatrix", "of another, which one of the two writes",
     [](Recurrence& p) {
       const uint32_t h = p.stack("h", 2 * kSteps), x = p.matrix("x");
       p.doubled({x}, {h, 0, p.bytes(), p.throughParallel({static_cast<int64_t>(p.bytes() * 3 / 2)})});
     }},
    {"AStackThatIsWalkedDownToWhatIsWritten", "of another, which one of the two writes",
     [](Recurrence& p) {
       const uint32_t h = p.stack("h");
       p.doubled(p.at(h, kSteps - 1, {-1}), {h, p.bytes() / 2, p.bytes()});
     }},
    {"AStrideOfTheRepeatWithinThatIsNoMultiple", "of another, which one of the two writes",
     [](Recurrence& p) {
       const uint32_t h = p.stack("h", 2 * kSteps);
       CommandList* outer = std::exchange(p.body, &PlanBuilder::repeat(*p.body, 2));
       const auto step = static_cast<int64_t>(p.bytes());
       p.doubled({h, 0, p.bytes(), p.throughParallel({step, step / 2})},
                 {h, 0, p.bytes(), p.throughParallel({step, step / 2})});
       p.body = outer;
     }},
    {"WhatIsWrittenIsLongerThanWhatIsRead", "of another, which one of the two writes",
     [](Recurrence& p) {
       const uint32_t h = p.stack("h", 2);
       p.doubled(p.at(h, 0, {}), p.at(h, 0, {}));
       p.builder.fill(*p.body, {h}, patternOf(1.0f));
     }},
    {"ACopyThatOverlapsItself", "of another, which one of the two writes",
     [](Recurrence& p) {
       const uint32_t h = p.stack("h", 2);
       p.builder.copy(*p.body, p.at(h, 0, {}), {h, p.bytes() / 2, p.bytes()});
     }},
    {"AnOperandThatIsReadWholeAndWritten", "of another, which one of the two writes",
     [](Recurrence& p) {
       const uint32_t x = p.stack("x"), h = p.matrix("h");
       p.add(p.at(x, 0, {1}), {h}, {h}, "r-r");
     }},
    {"AnOperandThatIsReadWholeAndWrittenByAnother", "of another, which one of the two writes",
     [](Recurrence& p) {
       const uint32_t x = p.stack("x"), y = p.stack("y"), h = p.matrix("h");
       p.add(p.at(x, 0, {1}), {h}, p.at(y, 0, {1}), "r-r");
       p.doubled(p.at(y, 0, {1}), {h});
     }},
    {"AnOperandThatWasWrittenAndIsReadWhole", "of another, which one of the two writes",
     [](Recurrence& p) {
       const uint32_t x = p.stack("x"), y = p.stack("y"), h = p.matrix("h");
       p.doubled(p.at(x, 0, {1}), {h});
       p.add(p.at(x, 0, {1}), {h}, p.at(y, 0, {1}), "r-r");
     }},
    {"AProductThatIsReadWhole", "of another, which one of the two writes",
     [](Recurrence& p) {
       const uint32_t x = p.stack("x"), y = p.stack("y"), h = p.matrix("h"), w = p.weight("w");
       p.multiply(p.at(x, 0, {1}), w, {h});
       p.add(p.at(x, 0, {1}), {h}, p.at(y, 0, {1}), "r-r");
     }},
    {"AMaskThatIsWrittenHalfAMatrixOn", "of another, which one of the two writes",
     [](Recurrence& p) {
       addProduct(p, [](Recurrence& p, fb::MatmulT& matmul) {
         const uint32_t z = p.stack("z");
         matmul.mask = p.builder.operand(p.at(z, 0, {}));
         p.doubled({z, p.bytes() / 2, p.bytes()}, {z, p.bytes() / 2, p.bytes()});
       });
     }},
    {"AnOperandThatIsReadWholeAndWrittenInALaterStep", "of another, which one of the two writes",
     [](Recurrence& p) {
       const uint32_t x = p.stack("x"), y = p.stack("y");
       p.add(p.at(x, 0, {1}), p.at(y, kSteps - 1, {}), p.at(y, 0, {1}), "r-r");
     }},
    {"AWeightThatIsWritten", "of another, which one of the two writes",
     [](Recurrence& p) {
       const uint32_t w = p.stack("w", 2), x = p.matrix("x"), y = p.matrix("y");  // 32 rows of two matrices
       p.multiply({x}, w, {y});
       p.doubled({x}, p.at(w, 1, {}));
     }},
    {"ABiasThatIsWritten", "of another, which one of the two writes",
     [](Recurrence& p) {
       addProduct(p, [](Recurrence& p, fb::MatmulT& matmul) {
         const uint32_t b = p.matrix("b");
         matmul.bias = p.builder.operand({b, 0, kRowBytes});
         p.doubled({b}, {b});
       });
     }},
};

class RefusedParallel : public testing::TestWithParam<Refused> {};
INSTANTIATE_TEST_SUITE_P(ParallelRows, RefusedParallel, testing::ValuesIn(kRefused),
                         [](const auto& info) { return info.param.name; });

TEST_P(RefusedParallel, IsRefused) {
  Recurrence plan(16, 2);
  GetParam().build(plan);
  EXPECT_NE(plan.error().find("parallel of 16 rows: "), std::string::npos) << plan.error();
  EXPECT_NE(plan.error().find(GetParam().error), std::string::npos) << plan.error();
}

// What threads may take by rows one of them takes whole, if bits could change.
const Case kWhole[] = {
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
};

class WholeParallel : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(ParallelRows, WholeParallel, testing::ValuesIn(kWhole), nameOfCase);

TEST_P(WholeParallel, IsNotCut) {
  Recurrence plan(16, 2);
  GetParam().build(plan);
  EXPECT_EQ(plan.error(), "");
  EXPECT_EQ(plan.parts(4), 1);
}

TEST(ParallelRows, NameBothOperands) {
  Recurrence plan;
  const uint32_t h = plan.matrix("h"), y = plan.stack("y");
  plan.doubled({h}, plan.at(y, 0, {1}), "-r");
  plan.doubled(plan.at(y, 0, {1}), {h});
  EXPECT_NE(
      plan.error().find("parallel of 16 rows: the result in buffer 'h' of one part may touch the operand "
                        "in buffer 'h' of another, which one of the two writes"),
      std::string::npos)
      << plan.error();
}

// In the outer one's third iteration what the inner one reads reaches what it writes.
TEST(ParallelRows, KnowOfTheRepeatsAroundThem) {
  auto error = [](uint64_t place) {
    Recurrence plan;
    const uint32_t h = plan.stack("h");
    plan.setRepeatAround(2);
    plan.doubled(plan.at(h, 0, {1}), {h, place, plan.bytes()});
    return plan.error();
  };
  EXPECT_EQ(error(2 * 16 * kRowBytes), "");
  EXPECT_NE(error(5 * 8 * kRowBytes), "");
}

}  // namespace
}  // namespace gpuc::test
