// What the reader refuses: each case changes one thing of a valid plan, and the message must name it.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "runtime/plan/header.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/seal.h"
#include "test/runtime/plan_builder.h"

namespace gpuc::test {
namespace {

std::string errorOf(std::string file) {
  Result<Plan> plan = Plan::parse(std::move(file));
  return plan.ok() ? "" : plan.message();
}

TEST(PlanReader, AcceptsAndDescribesAPlan) {
  Plan plan = everythingPlan().parse();
  const PlanInfo& info = plan.info();
  EXPECT_EQ(info.name, "test");
  EXPECT_EQ(info.batch, 4);
  ASSERT_EQ(info.variables.size(), 3u);
  EXPECT_EQ(info.variables[2].spec.str(), "16x16xf32");
  ASSERT_EQ(info.programs.size(), 3u);
  EXPECT_EQ(info.programs[1].name, "train_step");
  ASSERT_EQ(info.programs[1].inputs.size(), 1u) << "rows is hidden";
  EXPECT_EQ(info.programs[1].inputs[0].spec.name, "x");
  EXPECT_EQ(info.programs[1].outputs[1].name, "staged");
}

TEST(PlanReader, NamesTheFile) {
  Result<Plan> plan = Plan::load("/nonexistent/mlp.plan");
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.message().find("/nonexistent/mlp.plan"), std::string::npos) << plan.message();
}

TEST(PlanReader, RefusesEveryTruncation) {
  for (const std::string& file : {everythingPlan().seal(), sharesPlan().seal()}) {
    for (size_t length = 0; length < file.size(); ++length)
      ASSERT_NE(errorOf(file.substr(0, length)), "") << "cut to " << length << " of " << file.size();
    EXPECT_NE(errorOf(file + '\0').find("too long"), std::string::npos);
  }
}

TEST(PlanReader, RefusesEveryTruncationOfThePayloadItself) {
  for (const std::string& file : {everythingPlan().seal(), sharesPlan().seal()}) {
    const std::string payload = file.substr(sizeof(PlanHeader));
    const size_t end = payload.find_last_not_of('\0') + 1;  // padding may follow
    // The rest is machine code, whose length is checked as one vector's.
    for (size_t length = 0; length < end; length += length < 8192 ? 1 : 64)
      ASSERT_NE(errorOf(sealPlan(payload.substr(0, length))), "") << "cut to " << length;
  }
}

TEST(PlanReader, RefusesEveryFlippedByteOfTheHeaderAndSomeOfThePayload) {
  std::string file = everythingPlan().seal();
  for (size_t i = 0; i < file.size(); i += i < 512 ? 1 : 37) {
    std::string flipped = file;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
    ASSERT_NE(errorOf(flipped), "") << "at " << i;
  }
}

TEST(PlanReader, RefusesVectorsOfMisalignedElements) {
  PlanBuilder builder = codelessPlan();
  // Half an element further on, these strides read as a vector of one element.
  fb::RepeatT& outer = *builder.plan.programs[0]->streams[0]->commands[2]->work.AsRepeat();
  outer.commands[0]->work.AsRepeat()->commands[0]->work.AsCopy()->from->strides = {1, 0};
  std::string payload = builder.seal().substr(sizeof(PlanHeader));
  int shapes = 0, strides = 0;
  // Moves everything that an offset may lead to by half an element.
  for (size_t at = 0; at + 4 <= payload.size(); at += 4)
    for (int move : {-4, 4}) {
      std::string moved = payload;
      uint32_t word;
      std::memcpy(&word, moved.data() + at, sizeof(word));
      word += static_cast<uint32_t>(move);
      std::memcpy(moved.data() + at, &word, sizeof(word));
      std::string error = errorOf(sealPlan(moved));
      shapes += error.find("misaligned shape") != std::string::npos;
      strides += error.find("misaligned strides") != std::string::npos;
    }
  EXPECT_GT(shapes, 0);
  EXPECT_GT(strides, 0);
}

TEST(PlanReader, SaysWhichFormatVersionItFoundAndExpected) {
  std::string file = everythingPlan().seal();
  uint32_t version = 99;
  std::memcpy(file.data() + offsetof(PlanHeader, format_version), &version, sizeof(version));
  std::string error = errorOf(file);
  EXPECT_NE(error.find("version 99"), std::string::npos) << error;
  EXPECT_NE(error.find("expects " + std::to_string(kPlanFormatVersion)), std::string::npos) << error;
}

TEST(PlanReader, KnowsOtherFiles) {
  EXPECT_EQ(errorOf("\x89PNG and so on, for more than thirty-two bytes"),
            "not a gpuc plan: it does not begin with 'gpucplan'");
}

TEST(PlanReader, MasksAreTheHosts) {
  PlanBuilder builder(1, TargetKind::cuda);
  uint32_t a = builder.buffer("a", DataType::f32, {4, 4}), c = builder.buffer("c", DataType::f32, {4, 4});
  builder.matmul(builder.program("f").streams[0]->commands, a, a, c, 4, 4, 4).mask = builder.operand({a});
  EXPECT_NE(errorOf(builder.seal()).find("with a mask, which follows products on the host alone"),
            std::string::npos);
}

/// y = the sum of two parts of x, of 16 floats each, with what `change` makes of it.
std::string errorOfSum(TargetKind target, void (*change)(fb::SumT&)) {
  PlanBuilder builder(1, target);
  uint32_t x = builder.buffer("x", DataType::f32, {2, 16}), y = builder.buffer("y", DataType::f32, {16});
  change(builder.sum(builder.program("f").streams[0]->commands, DataType::f32, x, y));
  return errorOf(builder.seal());
}

/// y = the sum of x over ranks, of 16 floats, with what `change` makes of it.
std::string errorOfAllReduce(TargetKind target, void (*change)(fb::AllReduceT&)) {
  PlanBuilder builder(1, target);
  uint32_t x = builder.buffer("x", DataType::f32, {16}), y = builder.buffer("y", DataType::f32, {16});
  change(builder.allReduce(builder.program("f").streams[0]->commands, DataType::f32, x, y));
  return errorOf(builder.seal());
}

TEST(PlanReader, SumsOverRanksAreOfEqualBytes) {
  auto expectError = [](void (*change)(fb::AllReduceT&), const char* expected) {
    const std::string error = errorOfAllReduce(TargetKind::host, change);
    EXPECT_NE(error.find(expected), std::string::npos) << error;
  };
  EXPECT_EQ(errorOfAllReduce(TargetKind::host, [](fb::AllReduceT&) {}), "");
  EXPECT_EQ(errorOfAllReduce(TargetKind::host, [](fb::AllReduceT& r) { *r.result = *r.part; }), "");
  expectError([](fb::AllReduceT& r) { r.part->size = 32; },
              "all_reduce: a part of 32 bytes for a result of 64");
  expectError([](fb::AllReduceT& r) { r.part->size = r.result->size = 62; },
              "all_reduce: a part of 62 bytes for a result of 62");
  expectError([](fb::AllReduceT& r) { r.type = fb::DataType::i1; }, "all_reduce: unknown element type 8");
  expectError(
      [](fb::AllReduceT& r) {
        r.part->size = r.result->size = 32;
        r.part->offset = 2;
      },
      "all_reduce: an operand begins within an element");
  expectError([](fb::AllReduceT& r) { r.part.reset(); }, "all_reduce without part");
  EXPECT_EQ(errorOfAllReduce(TargetKind::cuda, [](fb::AllReduceT&) {}), "");
}

/// y = a rank's share, 5 of 3, of the sum of 13 floats x, with what `change` makes of it.
std::string errorOfShares(void (*change)(PlanBuilder&, fb::ReduceScatterT&)) {
  PlanBuilder builder(1, TargetKind::host);
  uint32_t x = builder.buffer("x", DataType::f32, {13}), y = builder.buffer("y", DataType::f32, {5});
  builder.plan.world_size = 3;
  change(builder, builder.reduceScatter(builder.program("f").streams[0]->commands, DataType::f32, x, y));
  return errorOf(builder.seal());
}

TEST(PlanReader, SharesAreThoseOfTheRanks) {
  auto expectError = [](void (*change)(PlanBuilder&, fb::ReduceScatterT&), const char* expected) {
    const std::string error = errorOfShares(change);
    EXPECT_NE(error.find(expected), std::string::npos) << error;
  };
  EXPECT_EQ(errorOfShares([](PlanBuilder&, fb::ReduceScatterT&) {}), "");
  expectError([](PlanBuilder& b, fb::ReduceScatterT&) { b.plan.world_size = 0; },
              "tensors among 0 ranks without or with too many elements");
  expectError([](PlanBuilder& b, fb::ReduceScatterT&) { b.plan.world_size = 2; },
              "a share of 20 bytes of 52 among 2 ranks");
  expectError([](PlanBuilder&, fb::ReduceScatterT& s) { s.wholes[0]->size = 50; },
              "a share of 20 bytes of 50 among 3 ranks");
  expectError([](PlanBuilder&, fb::ReduceScatterT& s) { s.wholes.clear(); }, "1 shares of 0 tensors");
  expectError([](PlanBuilder&, fb::ReduceScatterT& s) { s.shares.clear(); }, "0 shares of 1 tensors");
  expectError([](PlanBuilder&,
                 fb::ReduceScatterT& s) { s.shares.push_back(std::make_unique<fb::OperandT>(*s.shares[0])); },
              "2 shares of 1 tensors");
  expectError(
      [](PlanBuilder&, fb::ReduceScatterT& s) {
        s.wholes.push_back(std::make_unique<fb::OperandT>(*s.wholes[0]));
        s.shares.push_back(std::make_unique<fb::OperandT>(*s.shares[0]));
        s.shares[1]->size = 16;
      },
      "a share of 16 bytes of 52 among 3 ranks");
  expectError(
      [](PlanBuilder&, fb::ReduceScatterT& s) {
        s.shares[0]->size = 16;
        s.shares[0]->offset = 2;
      },
      "an operand begins within an element");
  expectError([](PlanBuilder&, fb::ReduceScatterT& s) { s.type = fb::DataType::i1; },
              "reduce_scatter: unknown element type 8");
}

/// y = the sum of one of two tensors x of 5 floats, on each of the first two of three ranks.
TEST(PlanReader, OwnersAreRanks) {
  auto errorWhere = [](void (*change)(fb::ReduceScatterT&)) {
    PlanBuilder builder(1, TargetKind::host);
    uint32_t x = builder.buffer("x", DataType::f32, {5}), y = builder.buffer("y", DataType::f32, {5});
    builder.plan.world_size = 3;
    fb::ReduceScatterT& scatter =
        builder.reduceScatter(builder.program("f").streams[0]->commands, DataType::f32, x, y);
    scatter.wholes.push_back(std::make_unique<fb::OperandT>(*scatter.wholes[0]));
    scatter.owners = 2;
    change(scatter);
    return errorOf(builder.seal());
  };
  auto expectError = [&](void (*change)(fb::ReduceScatterT&), const char* expected) {
    EXPECT_NE(errorWhere(change).find(expected), std::string::npos) << errorWhere(change);
  };
  EXPECT_EQ(errorWhere([](fb::ReduceScatterT&) {}), "");
  expectError([](fb::ReduceScatterT& s) { s.owners = 4; }, "reduce_scatter: 4 owners among 3 ranks");
  expectError([](fb::ReduceScatterT& s) { s.owners = 3; }, "1 shares of 2 tensors");
  expectError([](fb::ReduceScatterT& s) { s.wholes[1]->size = 16; }, "or not alike");
  expectError([](fb::ReduceScatterT& s) { s.shares[0]->size = 16; },
              "a share of 16 bytes of 20 among 3 ranks");
}

TEST(PlanReader, VariablesOfOwnersAreOnOneRankEach) {
  auto errorWhere = [](std::vector<std::string> names, uint32_t ranks) {
    PlanBuilder builder(1, TargetKind::host);
    builder.variable("w", DataType::f32, {3});
    builder.variable("v", DataType::f32, {3});
    builder.program("f");
    builder.plan.world_size = ranks;
    builder.plan.variables[0]->owned_names = std::move(names);
    return errorOf(builder.seal());
  };
  EXPECT_EQ(errorWhere({"w", "x"}, 2), "");
  EXPECT_NE(errorWhere({"w", "x", "y"}, 2).find("has 3 owners among 2 ranks"), std::string::npos);
  EXPECT_NE(errorWhere({"x", "w"}, 2).find("the first of its owners has 'x'"), std::string::npos);
  EXPECT_NE(errorWhere({"w", "v"}, 2).find("two variables are called 'v'"), std::string::npos);
}

TEST(PlanReader, VariablesAreSharesOfTheirWholes) {
  auto errorWhere = [](std::vector<int64_t> whole, uint32_t ranks) {
    PlanBuilder builder(1, TargetKind::host);
    uint32_t w = builder.variable("w", DataType::f32, {3});
    builder.program("f");
    (void)w;
    builder.plan.world_size = ranks;
    builder.plan.variables[0]->is_share = true;
    builder.plan.variables[0]->whole_shape = std::move(whole);
    return errorOf(builder.seal());
  };
  EXPECT_EQ(errorWhere({2, 5}, 4), "");
  for (const auto& whole : std::vector<std::vector<int64_t>>{{2, 7}, {}, {-2, -5}, {0}, {INT64_MAX, 3}})
    EXPECT_NE(errorWhere(whole, 4).find("are no share of it among 4 ranks"), std::string::npos);
  EXPECT_NE(errorWhere({2, 5}, 0).find("are no share of it among 0 ranks"), std::string::npos);
}

TEST(PlanReader, RanksExchangeInOneOrder) {
  auto errorWhere = [](auto makeList) {
    PlanBuilder builder(1, TargetKind::host);
    uint32_t x = builder.buffer("x", DataType::f32, {16});
    fb::ProgramT& program = builder.program("f", 2);
    builder.allReduce(makeList(builder, program), DataType::f32, x, x);
    return errorOf(builder.seal());
  };
  EXPECT_EQ(errorWhere([](PlanBuilder&, fb::ProgramT& program) -> CommandList& {
              return PlanBuilder::repeat(program.streams[0]->commands, 2);
            }),
            "");
  EXPECT_NE(errorWhere([](PlanBuilder&, fb::ProgramT& program) -> CommandList& {
              return PlanBuilder::parallel(program.streams[0]->commands, 2);
            }).find("all_reduce stands in it, and its parts wait for nothing"),
            std::string::npos);
  EXPECT_EQ(errorWhere([](PlanBuilder&, fb::ProgramT& program) -> CommandList& {
              return program.streams[1]->commands;
            }),
            "");
  EXPECT_NE(errorWhere([](PlanBuilder& builder, fb::ProgramT& program) -> CommandList& {
              const uint32_t y = builder.buffer("y", DataType::f32, {16});
              builder.allReduce(program.streams[0]->commands, DataType::f32, y, y);
              return program.streams[1]->commands;
            }).find("all_reduce: ranks exchange in one order, and stream 'compute' exchanges already"),
            std::string::npos);
}

TEST(PlanReader, SumsAreOfWholeParts) {
  auto expectError = [](void (*change)(fb::SumT&), const char* expected) {
    const std::string error = errorOfSum(TargetKind::host, change);
    EXPECT_NE(error.find(expected), std::string::npos) << error;
  };
  EXPECT_EQ(errorOfSum(TargetKind::host, [](fb::SumT&) {}), "");
  expectError([](fb::SumT& s) { s.parts->size = 96; }, "sum: parts of 96 bytes for a result of 64");
  expectError([](fb::SumT& s) { s.result->size = 6; }, "sum: parts of 128 bytes for a result of 6");
  expectError([](fb::SumT& s) { s.type = fb::DataType::i32; }, "sum: unknown element type 5");
  expectError(
      [](fb::SumT& s) {
        s.parts->size = 64;
        s.parts->offset = 2;
      },
      "sum: an operand begins within an element");
  expectError([](fb::SumT& s) { s.parts.reset(); }, "sum without parts");
  EXPECT_NE(errorOfSum(TargetKind::cuda, [](fb::SumT&) {}).find("which the host alone has"),
            std::string::npos);
}

// everythingPlan: programs 0 init, 1 train_step, 2 predict.
fb::StreamT& computeOf(fb::PlanT& plan) { return *plan.programs[1]->streams[0]; }
fb::StreamT& copiesOf(fb::PlanT& plan) { return *plan.programs[1]->streams[1]; }
fb::MatmulT& matmulOf(fb::PlanT& plan) { return *computeOf(plan).commands[1]->work.AsMatmul(); }
fb::RepeatT& outerOf(fb::PlanT& plan) { return *computeOf(plan).commands[3]->work.AsRepeat(); }
fb::RepeatT& innerOf(fb::PlanT& plan) { return *outerOf(plan).commands[0]->work.AsRepeat(); }
fb::LaunchT& launchOf(fb::PlanT& plan) { return *innerOf(plan).commands[0]->work.AsLaunch(); }
fb::CopyT& copyOf(fb::PlanT& plan) { return *computeOf(plan).commands[5]->work.AsCopy(); }
fb::FillT& fillOf(fb::PlanT& plan) { return *plan.programs[0]->streams[0]->commands[0]->work.AsFill(); }
fb::BufferT& bufferNamed(fb::PlanT& plan, const std::string& name) {
  for (auto& buffer : plan.buffers)
    if (buffer->name == name) return *buffer;
  ADD_FAILURE() << "no buffer " << name;
  return *plan.buffers[0];
}

struct Case {
  const char* name;
  void (*change)(fb::PlanT&);
  const char* message;
};

class PlanVerifier : public testing::TestWithParam<Case> {};

TEST_P(PlanVerifier, RefusesWithTheReason) {
  PlanBuilder builder = everythingPlan();
  GetParam().change(builder.plan);
  std::string error = errorOf(builder.seal());
  EXPECT_NE(error.find(GetParam().message), std::string::npos) << "got: " << error;
  EXPECT_EQ(error.find('\n'), std::string::npos);
}

constexpr uint64_t kHuge = UINT64_MAX - 63;

/// Four tiles of 64 bytes, of h and of the stack, in two rows.
fb::LaunchT& launchInRows(fb::PlanT& plan) {
  fb::LaunchT& launch = launchOf(plan);
  launch.rows = 2;
  launch.by_rows = {true, true};
  return launch;
}

TEST(PlanVerifier, AcceptsRowsOfWholeTiles) {
  for (uint64_t rows : {1, 2, 4}) {
    PlanBuilder builder = everythingPlan();
    launchInRows(builder.plan).rows = rows;
    EXPECT_EQ(errorOf(builder.seal()), "") << rows;
  }
  PlanBuilder builder = everythingPlan();
  fb::LaunchT& launch = launchInRows(builder.plan);
  launch.by_rows = {false, true};
  launch.reads[0]->size = 255;
  EXPECT_EQ(errorOf(builder.seal()), "") << "what is not cut has any size";
}

const Case kTables[] = {
    {"NoName", [](fb::PlanT& p) { p.name = ""; }, "plan without a name"},
    {"NoTarget", [](fb::PlanT& p) { p.target.reset(); }, "without a target"},
    {"TargetKind", [](fb::PlanT& p) { p.target->kind = static_cast<fb::TargetKind>(7); },
     "unknown target kind 7"},
    {"EmptyFeature", [](fb::PlanT& p) { p.target->features = {""}; }, "target feature without a name"},
    {"Alignment", [](fb::PlanT& p) { p.alignment = 96; }, "alignment of 96 bytes"},
    {"NoAlignment", [](fb::PlanT& p) { p.alignment = 0; }, "alignment of 0 bytes"},
    {"ArenaNotAligned", [](fb::PlanT& p) { p.arena_bytes += 8; }, "arena of"},
    {"ArenaHuge", [](fb::PlanT& p) { p.arena_bytes = kHuge; }, "arena of"},
    {"ArenaTooSmall", [](fb::PlanT& p) { p.arena_bytes -= 64; }, "outside the arena"},
    {"NoSlots", [](fb::PlanT& p) { p.input_slots = 0; }, "0 input slots"},
    {"ManySlots", [](fb::PlanT& p) { p.input_slots = 1u << 31; }, "input slots"},
    {"MoreSlotsThanFit", [](fb::PlanT& p) { p.input_slots = 64; }, "64 slots end outside the arena"},
    {"BufferOffset", [](fb::PlanT& p) { bufferNamed(p, "y").offset = kHuge; }, "buffer 'y': offset"},
    {"BufferNotAligned", [](fb::PlanT& p) { bufferNamed(p, "h").offset += 4; }, "is not aligned to 64"},
    {"ShortBufferNotAligned", [](fb::PlanT& p) { bufferNamed(p, "seed").offset += 4; },
     "is not aligned to 8"},
    {"BufferSize", [](fb::PlanT& p) { bufferNamed(p, "h").size += 4; }, "its shape and type take 256"},
    {"BufferType", [](fb::PlanT& p) { bufferNamed(p, "h").type = static_cast<fb::DataType>(9); },
     "unknown element type 9"},
    {"BufferExtent", [](fb::PlanT& p) { bufferNamed(p, "h").shape = {-4, -16}; },
     "extents that are not positive"},
    {"BufferOverflow", [](fb::PlanT& p) { bufferNamed(p, "h").shape = {int64_t{1} << 62, 1 << 4}; },
     "do not fit"},
    {"BufferRank", [](fb::PlanT& p) { bufferNamed(p, "h").shape.assign(17, 1); }, "a shape of rank 17"},
    {"SlotsOverlap", [](fb::PlanT& p) { bufferNamed(p, "x").slot_stride = 64; }, "overlap"},
    {"SlotStrideHuge", [](fb::PlanT& p) { bufferNamed(p, "x").slot_stride = kHuge; }, "outside the arena"},
    {"SlotStrideNotAligned", [](fb::PlanT& p) { bufferNamed(p, "x").slot_stride = 260; }, "not aligned"},
    {"BufferNoName", [](fb::PlanT& p) { bufferNamed(p, "h").name = ""; }, "buffer without a name"},
    {"NameTooLong", [](fb::PlanT& p) { bufferNamed(p, "h").name.assign(5000, 'n'); }, "a name of 5000 bytes"},
    {"NameOfTwoLines", [](fb::PlanT& p) { bufferNamed(p, "h").name = "a\nb"; }, "a control character"},
    {"VariableBuffer", [](fb::PlanT& p) { p.variables[0]->buffer = 999; },
     "variable refers to buffer 999 of 9"},
    {"VariableTwice", [](fb::PlanT& p) { p.variables[0]->name = "step"; }, "two variables are called 'step'"},
    {"VariablesShare", [](fb::PlanT& p) { p.variables[0]->buffer = p.variables[1]->buffer; },
     "'step' and 'step' overlap"},
    {"VariablesOverlap",
     [](fb::PlanT& p) { bufferNamed(p, "seed").offset = bufferNamed(p, "fc1.weight").offset + 64; },
     "overlap at offset"},
    {"VariableKind", [](fb::PlanT& p) { p.variables[0]->kind = static_cast<fb::VariableKind>(4); },
     "unknown kind 4"},
    {"VariableInSlots", [](fb::PlanT& p) { p.variables[0]->buffer = 4; },
     "variable buffer 'x' has input slots"},
    {"ConstantBuffer", [](fb::PlanT& p) { p.constants[0]->buffer = 9; }, "constant refers to buffer 9 of 9"},
    {"ConstantSize", [](fb::PlanT& p) { p.constants[0]->data.pop_back(); }, "255 bytes of data for 256"},
    {"ConstantOnVariable",
     [](fb::PlanT& p) { bufferNamed(p, "table").offset = bufferNamed(p, "fc1.weight").offset; }, "overlap"},
    {"KernelNoSymbol", [](fb::PlanT& p) { p.kernels[0]->symbol = ""; }, "kernel symbol without a name"},
    {"KernelSymbolTwice", [](fb::PlanT& p) { p.kernels[0]->symbol = "test_add"; },
     "have the symbol 'test_add', one with 2 operands, one with 3"},
    {"NoCode", [](fb::PlanT& p) { p.code.clear(); }, "3 kernels and no code"},
    {"CodeOfAnotherTarget", [](fb::PlanT& p) { p.code[0]->kind = fb::CodeKind::ptx; }, "holds ptx code"},
    {"EmptyCode", [](fb::PlanT& p) { p.code[0]->data.clear(); }, "an empty host_object"},
    {"TwoObjects", [](fb::PlanT& p) { p.code.push_back(std::make_unique<fb::CodeT>(*p.code[0])); },
     "2 host objects"},
    {"BatchHuge", [](fb::PlanT& p) { p.batch = kHuge; }, "too many"},
};

const Case kPrograms[] = {
    {"ProgramTwice", [](fb::PlanT& p) { p.programs[0]->name = "predict"; },
     "two programs are called 'predict'"},
    {"ProgramNoName", [](fb::PlanT& p) { p.programs[0]->name = ""; }, "program without a name"},
    {"InputBuffer", [](fb::PlanT& p) { p.programs[1]->inputs[0]->buffer = 9; }, "input 'x' in buffer 9 of 9"},
    {"InputTwice", [](fb::PlanT& p) { p.programs[1]->inputs[1]->name = "x"; }, "two inputs are called 'x'"},
    {"InputRole", [](fb::PlanT& p) { p.programs[1]->inputs[0]->role = static_cast<fb::InputRole>(2); },
     "unknown role 2"},
    {"InputRange", [](fb::PlanT& p) { p.programs[1]->inputs[0]->range = -5; }, "a range of -5"},
    {"RowsType", [](fb::PlanT& p) { p.programs[1]->inputs[0]->role = fb::InputRole::rows; },
     "rows is one i32 scalar"},
    {"RowsWithoutBatch", [](fb::PlanT& p) { p.batch = 0; }, "counts rows"},
    {"InitInput", [](fb::PlanT& p) { std::swap(p.programs[0]->name, p.programs[2]->name); },
     "init takes none"},
    {"OutputBuffer", [](fb::PlanT& p) { p.programs[1]->outputs[0]->buffer = 99; }, "output 'y' in buffer 99"},
    {"OutputTwice", [](fb::PlanT& p) { p.programs[1]->outputs[1]->name = "y"; },
     "two outputs are called 'y'"},
    {"StreamNoName", [](fb::PlanT& p) { copiesOf(p).name = ""; }, "stream without a name"},
    {"ManyStreams",
     [](fb::PlanT& p) {
       while (p.programs[0]->streams.size() < 65)
         p.programs[0]->streams.emplace_back(std::make_unique<fb::StreamT>())->name = "s";
     },
     "65 streams"},
    {"EmptyCommand", [](fb::PlanT& p) { computeOf(p).commands[1]->work.Reset(); }, "an empty command"},
    {"Kernel", [](fb::PlanT& p) { launchOf(p).kernel = 3; }, "launch of kernel 3 of 3"},
    {"TooFewOperands", [](fb::PlanT& p) { launchOf(p).reads.clear(); }, "1 operands, the kernel takes 2"},
    {"NoTiles", [](fb::PlanT& p) { launchOf(p).tiles = 0; }, "0 tiles"},
    {"ManyTiles", [](fb::PlanT& p) { launchOf(p).tiles = kHuge; }, "tiles with a grain"},
    {"NoGrain", [](fb::PlanT& p) { launchOf(p).grain = 0; }, "a grain of 0"},
    {"RowsOfUnequallyManyTiles", [](fb::PlanT& p) { launchInRows(p).rows = 3; },
     "4 tiles in 3 rows, expected equally many in each"},
    {"MoreRowsThanTiles", [](fb::PlanT& p) { launchInRows(p).rows = 8; }, "4 tiles in 8 rows"},
    {"NoRowsThatCut", [](fb::PlanT& p) { launchInRows(p).rows = 0; }, "4 tiles in 0 rows"},
    {"RowsThatCutTooFewOperands", [](fb::PlanT& p) { launchInRows(p).by_rows.pop_back(); },
     "launch of 'test_double': says of 1 operands whether they go by rows, it has 2"},
    {"RowsThatCutTooManyOperands", [](fb::PlanT& p) { launchInRows(p).by_rows.push_back(false); },
     "says of 3 operands whether they go by rows, it has 2"},
    {"RowsThatSayNothingOfOperands", [](fb::PlanT& p) { launchInRows(p).by_rows.clear(); },
     "says of 0 operands whether they go by rows, it has 2"},
    {"RowsThatCutAnOperandUnequally", [](fb::PlanT& p) { launchInRows(p).reads[0]->size = 255; },
     "an operand of 255 bytes goes by 2 rows"},
    {"RowsThatCutAResultUnequally", [](fb::PlanT& p) { launchInRows(p).writes[0]->size = 255; },
     "an operand of 255 bytes goes by 2 rows"},
    {"OperandBuffer", [](fb::PlanT& p) { launchOf(p).reads[0]->buffer = 9; }, "in buffer 9 of 9"},
    {"OperandEmpty", [](fb::PlanT& p) { launchOf(p).reads[0]->size = 0; }, "empty operand in 'h'"},
    {"OperandSize", [](fb::PlanT& p) { launchOf(p).reads[0]->size = 257; }, "leaves buffer 'h' of 256 bytes"},
    {"OperandOffset", [](fb::PlanT& p) { launchOf(p).reads[0]->offset = kHuge; }, "leaves buffer 'h'"},
    {"OperandSizeHuge", [](fb::PlanT& p) { launchOf(p).reads[0]->size = kHuge; }, "leaves buffer 'h'"},
    {"InnerStride", [](fb::PlanT& p) { launchOf(p).writes[0]->strides[1] = 257; }, "in some iteration"},
    {"OuterStride", [](fb::PlanT& p) { launchOf(p).writes[0]->strides[0] = 1025; }, "in some iteration"},
    {"NegativeStride", [](fb::PlanT& p) { launchOf(p).writes[0]->strides[0] = -1; }, "in some iteration"},
    {"StrideHuge", [](fb::PlanT& p) { launchOf(p).writes[0]->strides[0] = INT64_MIN; }, "in some iteration"},
    {"StridesThatWrap",
     [](fb::PlanT& p) {
       innerOf(p).count = 3;
       launchOf(p).writes[0]->strides = {0, INT64_MIN};  // times 2 is 0 in 64 bits
     },
     "in some iteration"},
    {"TooManyStrides", [](fb::PlanT& p) { launchOf(p).writes[0]->strides.push_back(0); },
     "3 strides within 2 repeats"},
    {"StrideOutsideRepeat", [](fb::PlanT& p) { matmulOf(p).a->strides = {4}; }, "1 strides within 0 repeats"},
    {"RepeatNever", [](fb::PlanT& p) { outerOf(p).count = 0; }, "repeat 0 times"},
    {"RepeatTooOften", [](fb::PlanT& p) { innerOf(p).count = uint64_t{1} << 40; }, "with those around it"},
    {"RepeatOverflow", [](fb::PlanT& p) { innerOf(p).count = uint64_t{1} << 63; }, "with those around it"},
    {"RepeatOnceMore", [](fb::PlanT& p) { outerOf(p).count = 3; }, "in some iteration"},
    {"MatmulType", [](fb::PlanT& p) { matmulOf(p).type = fb::DataType::i32; }, "unknown element type 5"},
    {"MatmulWithinAnElement",
     [](fb::PlanT& p) {
       matmulOf(p).a->buffer = matmulOf(p).b->buffer;
       matmulOf(p).a->offset = 2;
     },
     "a begins within an element"},
    {"MatmulTf32OnHost", [](fb::PlanT& p) { matmulOf(p).tf32 = true; },
     "matmul: in TF32, which the host does not"},
    {"MatmulTf32OfDoubles",
     [](fb::PlanT& p) {
       matmulOf(p).type = fb::DataType::f64;
       matmulOf(p).tf32 = true;
     },
     "matmul: rounds to TF32 what is not f32"},
    {"MatmulNoOperand", [](fb::PlanT& p) { matmulOf(p).a.reset(); }, "matmul without a"},
    {"MatmulExtent", [](fb::PlanT& p) { matmulOf(p).k = 17; }, "which is not 1x4x17 elements"},
    {"MatmulZero", [](fb::PlanT& p) { matmulOf(p).batch = 0; }, "an extent of 0"},
    {"MatmulOverflow", [](fb::PlanT& p) { matmulOf(p).m = matmulOf(p).k = uint64_t{1} << 40; },
     "which is not"},
    {"MatmulResult", [](fb::PlanT& p) { matmulOf(p).c->size -= 4; }, "c is 252 bytes"},
    {"MatmulBatchStride",
     [](fb::PlanT& p) {
       matmulOf(p).batch = 2;
       matmulOf(p).m = 2;
       matmulOf(p).batch_stride_a = 16;
     },
     "batch stride of a is 16 elements, expected 0 or 32"},
    {"MatmulBias",
     [](fb::PlanT& p) {
       matmulOf(p).bias = std::make_unique<fb::OperandT>(*matmulOf(p).c);
       matmulOf(p).bias->size -= 4;
     },
     "bias is 252 bytes"},
    {"MatmulAccumulate", [](fb::PlanT& p) { matmulOf(p).accumulate = matmulOf(p).relu = true; },
     "adds to its result, which neither bias nor relu nor mask follows"},
    {"MatmulMask",
     [](fb::PlanT& p) {
       matmulOf(p).mask = std::make_unique<fb::OperandT>(*matmulOf(p).c);
       matmulOf(p).mask->size -= 4;
     },
     "mask is 252 bytes"},
    {"MatmulMaskAndRelu",
     [](fb::PlanT& p) {
       matmulOf(p).mask = std::make_unique<fb::OperandT>(*matmulOf(p).c);
       matmulOf(p).relu = true;
     },
     "a mask, of a gradient, with a bias or relu"},
    {"MatmulUpdateAndResult", [](fb::PlanT& p) { matmulOf(p).update = std::make_unique<fb::UpdateT>(); },
     "matmul: with an update, which takes one matrix that is not stored"},
    {"MatmulUpdateKernel",
     [](fb::PlanT& p) {
       matmulOf(p).c.reset();
       matmulOf(p).update = std::make_unique<fb::UpdateT>();
       matmulOf(p).update->kernel = 99;
     },
     "matmul: with an update by kernel 99 of 3"},
    {"MatmulUpdateOperands",
     [](fb::PlanT& p) {
       matmulOf(p).update = std::make_unique<fb::UpdateT>();
       matmulOf(p).update->writes.push_back(std::move(matmulOf(p).c));
       matmulOf(p).update->kernel = 2;
     },
     "matmul: with an update of 2 operands, its kernel takes 3"},
    {"MatmulUpdateGrain",
     [](fb::PlanT& p) {
       matmulOf(p).update = std::make_unique<fb::UpdateT>();
       matmulOf(p).update->writes.push_back(std::move(matmulOf(p).c));
     },
     "matmul: with an update whose grain is 0, expected 1 to "},
    {"MatmulSquaresBehindBias",
     [](fb::PlanT& p) {
       matmulOf(p).squares = std::make_unique<fb::OperandT>(*matmulOf(p).c);
       matmulOf(p).relu = true;
     },
     "matmul: with squares of what something follows"},
    {"MatmulSquares",
     [](fb::PlanT& p) {
       matmulOf(p).squares = std::make_unique<fb::OperandT>(*matmulOf(p).c);
       matmulOf(p).squares->size -= 2;
     },
     "matmul: squares begin or end within an element"},
    {"MatmulLocation", [](fb::PlanT& p) { matmulOf(p).n = 15; }, "('fc1')"},
    {"CopyKind", [](fb::PlanT& p) { copyOf(p).kind = static_cast<fb::CopyKind>(3); },
     "copy of unknown kind 3"},
    {"CopySizes", [](fb::PlanT& p) { copyOf(p).from->size = 128; }, "copy of 128 bytes to 256"},
    {"CopyNoSource", [](fb::PlanT& p) { copyOf(p).from.reset(); }, "copy without source"},
    {"CopyInPort", [](fb::PlanT& p) { copiesOf(p).commands[1]->work.AsCopy()->port = 2; },
     "copy of input 2 of 2"},
    {"CopyInSize", [](fb::PlanT& p) { copiesOf(p).commands[1]->work.AsCopy()->to->size = 8; },
     "8 bytes in the arena, 256"},
    {"CopyInHostRange",
     [](fb::PlanT& p) {
       fb::CopyT& copy = *copiesOf(p).commands[1]->work.AsCopy();
       copy.from = std::make_unique<fb::OperandT>(*copy.to);
       copy.from->offset = 4;
     },
     "host range at offset 4"},
    {"CopyOutPort", [](fb::PlanT& p) { computeOf(p).commands[6]->work.AsCopy()->port = 2; },
     "copy of output 2 of 2"},
    {"ChecksWithoutElements",
     [](fb::PlanT& p) { p.programs[1]->outputs[0]->checks.push_back(std::make_unique<fb::CheckT>()); },
     "1 checks, expected one for each element of a list of i32"},
    {"FillPattern", [](fb::PlanT& p) { fillOf(p).pattern = {1, 2, 3}; }, "a pattern of 3 bytes"},
    {"FillRemainder", [](fb::PlanT& p) { fillOf(p).to->size = 6; }, "fill of 6 bytes"},
};

const Case kEvents[] = {
    {"RecordEvent", [](fb::PlanT& p) { copiesOf(p).commands[3]->work.AsRecord()->event = 2; },
     "event 2 of 2"},
    {"WaitEvent", [](fb::PlanT& p) { copiesOf(p).commands[0]->work.AsWait()->event = 2; }, "event 2 of 2"},
    {"WaitDistance", [](fb::PlanT& p) { copiesOf(p).commands[0]->work.AsWait()->distance = 99999; },
     "a distance of 99999"},
    {"EventNoName", [](fb::PlanT& p) { p.programs[1]->events[0] = ""; }, "event without a name"},
    {"RecordedTwice", [](fb::PlanT& p) { copiesOf(p).commands[3]->work.AsRecord()->event = 1; },
     "event 'slot_free' is recorded by 2 commands"},
    {"NeverRecorded", [](fb::PlanT& p) { copiesOf(p).commands.pop_back(); }, "recorded 0 times"},
    {"RecordedMoreOften",
     [](fb::PlanT& p) {
       innerOf(p).commands.push_back(std::move(computeOf(p).commands[2]));
       computeOf(p).commands.erase(computeOf(p).commands.begin() + 2);
     },
     "waited for 1 times in a run and recorded 8 times"},
    {"Deadlock", [](fb::PlanT& p) { copiesOf(p).commands[0]->work.AsWait()->distance = 0; }, "for ever"},
    {"WaitForOneself",
     [](fb::PlanT& p) {
       fb::WaitT& wait = *copiesOf(p).commands[0]->work.AsWait();
       wait.event = wait.distance = 0;
     },
     "stream 'compute' would wait for event 'batch_ready' for ever"},
};

std::string nameOfCase(const testing::TestParamInfo<Case>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Tables, PlanVerifier, testing::ValuesIn(kTables), nameOfCase);
INSTANTIATE_TEST_SUITE_P(Programs, PlanVerifier, testing::ValuesIn(kPrograms), nameOfCase);
INSTANTIATE_TEST_SUITE_P(Events, PlanVerifier, testing::ValuesIn(kEvents), nameOfCase);

TEST(PlanVerifier, RefusesRepeatsThatAreNestedTooDeep) {
  PlanBuilder builder = everythingPlan();
  CommandList* list = &builder.plan.programs[0]->streams[0]->commands;
  for (int depth = 0; depth < 9; ++depth) list = &PlanBuilder::repeat(*list, 1);
  EXPECT_NE(errorOf(builder.seal()).find("nested deeper than 8"), std::string::npos)
      << errorOf(builder.seal());
}

TEST(PlanVerifier, RefusesMoreEventExecutionsThanCanBeChecked) {
  PlanBuilder builder = everythingPlan();
  fb::ProgramT& program = *builder.plan.programs[0];
  program.events = {"often"};
  CommandList& often = PlanBuilder::repeat(program.streams[0]->commands, uint64_t{1} << 39);
  PlanBuilder::record(often, 0);
  EXPECT_NE(errorOf(builder.seal()).find("records and waits in a run"), std::string::npos);
}

TEST(PlanVerifier, CountsEventExecutionsOfAllPrograms) {
  PlanBuilder builder;
  std::string error;
  for (int i = 0; i < 10; ++i) {
    fb::ProgramT& program = builder.program("f" + std::to_string(i));
    program.events = {"often"};
    CommandList& often = PlanBuilder::repeat(program.streams[0]->commands, uint64_t{1} << 16);
    PlanBuilder::record(often, 0);
    PlanBuilder::wait(often, 0);
    error = errorOf(builder.seal());
    EXPECT_EQ(error.empty(), i < 8) << i << error;
  }
  EXPECT_NE(error.find("program 'f8': 1179648 records and waits in a run"), std::string::npos) << error;
}

}  // namespace
}  // namespace gpuc::test
