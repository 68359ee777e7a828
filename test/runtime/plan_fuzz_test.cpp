// Thousands of seeded mutations of a plan, one field at a time: what the verifier lets pass must run within
// its arena, whose end is guarded, and come to an end. (Mutations of bytes are test/fuzz/plan_fuzz.cpp's.)
#include <gtest/gtest.h>

#include <random>

#include "runtime/workspace/conv_tiles.h"
#include "runtime/workspace/matmul_plan.h"
#include "test/runtime/session_helpers.h"

namespace gpuc::test {
namespace {

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  void mutate(fb::PlanT& plan) {
    switch (below(4)) {
      case 0:
        mutate(*plan.buffers[below(plan.buffers.size())]);
        break;
      case 1:
        if (plan.variables.empty() || below(2))
          mutateHeadline(plan);
        else
          mutateShared(*plan.variables[below(plan.variables.size())]);
        break;
      default: {
        auto& streams = plan.programs[0]->streams;
        auto& commands = streams[below(streams.size())]->commands;
        if (commands.empty()) return;
        mutateList(commands);
      }
    }
  }

 private:
  uint64_t below(uint64_t bound) { return random_() % bound; }

  /// A value near the old one, near a border, or any.
  template <typename T>
  void change(T& value) {
    const uint64_t kBorders[] = {0,
                                 1,
                                 2,
                                 3,
                                 4,
                                 63,
                                 64,
                                 65,
                                 128,
                                 256,
                                 uint64_t{1} << 31,
                                 uint64_t{1} << 32,
                                 uint64_t{1} << 40,
                                 uint64_t{1} << 62,
                                 uint64_t{1} << 63,
                                 UINT64_MAX,
                                 UINT64_MAX - 63};
    uint64_t old = static_cast<uint64_t>(value), any = random_();
    switch (below(4)) {
      case 0:
        old += below(2) ? uint64_t{1} << below(8) : -(uint64_t{1} << below(8));
        break;
      case 1:
        old = kBorders[below(std::size(kBorders))];
        break;
      case 2:
        old *= below(2) ? 2 : 3;
        break;
      default:
        old = any >> below(64);
    }
    value = static_cast<T>(old);
  }

  void mutate(fb::BufferT& buffer) {
    switch (below(5)) {
      case 0:
        change(buffer.offset);
        break;
      case 1:
        change(buffer.size);
        break;
      case 2:
        change(buffer.slot_stride);
        break;
      case 3:  // shape and size together, so that the two agree
        change(buffer.size);
        buffer.size %= 4096;
        buffer.shape = {static_cast<int64_t>(buffer.size)};
        buffer.type = fb::DataType::i8;
        break;
      default:
        for (int64_t& extent : buffer.shape) change(extent);
    }
  }

  void mutateHeadline(fb::PlanT& plan) {
    switch (below(4)) {
      case 0:
        change(plan.arena_bytes);
        break;
      case 1:
        change(plan.input_slots);
        break;
      case 2:
        change(plan.programs[0]->inputs[0]->buffer);
        break;
      default:
        change(plan.programs[0]->outputs[0]->buffer);
    }
  }

  void mutateList(CommandList& commands) {
    size_t i = below(commands.size());
    switch (below(6)) {
      case 0:
        commands.erase(commands.begin() + static_cast<ptrdiff_t>(i));
        break;
      case 1:
        std::swap(commands[i], commands[below(commands.size())]);
        break;
      default:
        mutate(*commands[i]);
    }
  }

  /// To an end of what it was.
  void shorten(fb::OperandT& operand) {
    const uint64_t bytes = operand.size / 4 ? 4 * below(operand.size / 4) : 0;
    operand.offset += bytes;
    operand.size -= bytes;
  }

  template <typename Collective>
  void mutateShares(Collective& collective) {
    auto& list = below(2) ? collective.wholes : collective.shares;
    if (list.empty() || below(6) == 0)
      list.push_back(std::make_unique<fb::OperandT>());
    else if (below(6) == 0)
      list.pop_back();
    else if (below(3) == 0)
      shorten(*list[below(list.size())]);
    else
      mutateOperand(list[below(list.size())]);
    std::erase(list, nullptr);  // a vector of a file has none
    if (below(3) == 0) collective.type = anyType();
    if (below(6) == 0) change(collective.owners);
  }

  /// What it is a share of, or which ones it is on other ranks.
  void mutateShared(fb::VariableT& variable) {
    if (below(3) == 0) variable.is_share = !variable.is_share;
    if (below(3) == 0) variable.owned_names.push_back("v" + std::to_string(below(3)));
    if (!variable.whole_shape.empty()) change(variable.whole_shape[below(variable.whole_shape.size())]);
  }

  void mutate(fb::CommandT& command) {
    if (fb::CopyT* copy = command.work.AsCopy()) {
      mutateOperand(below(2) ? copy->from : copy->to);
      if (below(4) == 0) change(copy->port);
    } else if (fb::SumT* sum = command.work.AsSum()) {
      mutateOperand(below(2) ? sum->parts : sum->result);
      if (below(3) == 0) sum->type = anyType();
    } else if (fb::AllReduceT* reduce = command.work.AsAllReduce()) {
      mutateOperand(below(2) ? reduce->part : reduce->result);
      if (below(3) == 0) reduce->type = anyType();
    } else if (fb::ReduceScatterT* scatter = command.work.AsReduceScatter()) {
      mutateShares(*scatter);
    } else if (fb::AllGatherT* gather = command.work.AsAllGather()) {
      mutateShares(*gather);
    } else if (fb::FillT* fill = command.work.AsFill()) {
      mutateOperand(fill->to);
    } else if (fb::RecordT* record = command.work.AsRecord()) {
      change(record->event);
    } else if (fb::WaitT* wait = command.work.AsWait()) {
      below(2) ? change(wait->distance) : change(wait->event);
    } else if (fb::AttentionT* attention = command.work.AsAttention()) {
      mutate(*attention);
    } else if (fb::ConvT* conv = command.work.AsConv()) {
      mutate(*conv);
    } else if (fb::MatmulT* matmul = command.work.AsMatmul()) {
      mutate(*matmul);
    } else if (fb::RepeatT* repeat = command.work.AsRepeat()) {
      if (below(3) == 0 || repeat->commands.empty())
        change(repeat->count);
      else
        mutateList(repeat->commands);
    } else if (fb::ParallelT* parallel = command.work.AsParallel()) {
      if (below(3) == 0)
        change(parallel->parts);
      else if (below(8) == 0)
        parallel->by_rows = !parallel->by_rows;
      else
        mutateList(parallel->commands);
    }
  }

  fb::DataType anyType() { return static_cast<fb::DataType>(below(kDataTypeCount + 1)); }

  void mutate(fb::ConvT& c) {
    std::unique_ptr<fb::OperandT>* operands[] = {&c.a,    &c.b,         &c.c,      &c.bias,
                                                 &c.mask, &c.workspace, &c.squares};
    uint64_t* numbers[] = {&c.batch, &c.groups, &c.in_channels, &c.out_channels};
    if (c.update && below(3) == 0) return mutate(*c.update);
    switch (below(6)) {
      case 0:
        return mutateOperand(*operands[below(7)]);
      case 1:
        return change(*numbers[below(4)]);
      case 2:
        return std::swap(*numbers[below(4)], *numbers[below(4)]);
      case 3:
        c.kind = static_cast<fb::ConvKind>(below(4));
        break;
      case 4:
        c.relu ^= true;
        break;
      default:
        c.type = anyType();
    }
  }

  void mutate(fb::UpdateT& update) {
    uint64_t* numbers[] = {&update.tile_rows, &update.tile_columns, &update.stride, &update.grain};
    auto& list = below(2) ? update.reads : update.writes;
    switch (below(4)) {
      case 0:
        return change(update.kernel);
      case 1:
        if (!list.empty()) mutateOperand(list[below(list.size())]);
        return static_cast<void>(std::erase(list, nullptr));
      default:
        change(*numbers[below(4)]);
    }
  }

  void mutate(fb::MatmulT& m) {
    std::unique_ptr<fb::OperandT>* operands[] = {&m.a,    &m.b,         &m.c,      &m.bias,
                                                 &m.mask, &m.workspace, &m.squares};
    uint64_t* numbers[] = {&m.m, &m.n, &m.k, &m.batch, &m.batch_stride_a, &m.batch_stride_b};
    if (m.update && below(3) == 0) return mutate(*m.update);
    switch (below(6)) {
      case 0:
        return mutateOperand(*operands[below(7)]);
      case 1:
        return change(*numbers[below(6)]);
      case 2:
        return std::swap(*numbers[below(4)], *numbers[below(4)]);
      case 3:
        (below(2) ? m.transpose_a : m.transpose_b) ^= true;
        break;
      case 4:
        (below(2) ? m.relu : m.accumulate) ^= true;
        break;
      default:
        m.type = anyType();
    }
  }

  void mutate(fb::AttentionT& a) {
    std::unique_ptr<fb::OperandT>* operands[] = {
        &a.query, &a.key,  &a.value,     &a.result,          &a.log_sum_exp,    &a.mask,
        &a.seed,  &a.step, &a.cotangent, &a.query_cotangent, &a.mask_cotangent, &a.workspace};
    std::unique_ptr<fb::AttentionLayout>* layouts[] = {&a.query_layout,     &a.key_layout,
                                                       &a.value_layout,     &a.result_layout,
                                                       &a.cotangent_layout, &a.key_cotangent_layout};
    uint64_t* numbers[] = {&a.batch, &a.heads, &a.groups,      &a.queries,
                           &a.keys,  &a.width, &a.value_width, &a.id};
    switch (below(5)) {
      case 0:
        return mutateOperand(*operands[below(12)]);
      case 1:
        return mutate(*layouts[below(6)]);
      case 2:
        return change(*numbers[below(8)]);
      case 3:
        // Two extents change places: sizes may still agree.
        return std::swap(*numbers[below(7)], *numbers[below(7)]);
      default:
        a.causal = !a.causal;
        if (a.mask_strides && below(2)) {
          uint64_t strides[] = {a.mask_strides->batch(), a.mask_strides->head(), a.mask_strides->query(),
                                a.mask_strides->key()};
          change(strides[below(4)]);
          *a.mask_strides = fb::MaskStrides(strides[0], strides[1], strides[2], strides[3]);
        }
    }
  }

  void mutate(std::unique_ptr<fb::AttentionLayout>& layout) {
    if (!layout) return;
    uint64_t strides[] = {layout->batch(), layout->head(), layout->row()};
    change(strides[below(3)]);
    if (below(4) == 0) std::swap(strides[below(3)], strides[below(3)]);
    *layout = fb::AttentionLayout(strides[0], strides[1], strides[2]);
  }

  void mutateOperand(std::unique_ptr<fb::OperandT>& operand) {
    if (!operand) {
      if (below(2)) operand = std::make_unique<fb::OperandT>();
      return;
    }
    switch (below(5)) {
      case 0:
        change(operand->buffer);
        break;
      case 1:
        change(operand->offset);
        break;
      case 2:
        change(operand->size);
        break;
      case 3:
        operand.reset();
        break;
      default:
        for (int64_t& stride : operand->strides) change(stride);
    }
  }

  std::mt19937_64 random_;
};

/// What a run would cost, in commands executed.
double costOf(const CommandList& commands) {
  double cost = 0;
  for (const auto& command : commands)
    cost += command->work.AsRepeat() ? 1 + static_cast<double>(command->work.AsRepeat()->count) *
                                               (1 + costOf(command->work.AsRepeat()->commands))
                                     : 1;
  return cost;
}

#if defined(__SANITIZE_THREAD__)
constexpr bool kSeesRaces = true;
#elif defined(__has_feature)
constexpr bool kSeesRaces = __has_feature(thread_sanitizer);
#else
constexpr bool kSeesRaces = false;
#endif

/// Runs what passes of kMutations mutations of a plan, and counts.
struct Outcome {
  int refused = 0, ran = 0, too_long = 0, refused_by_device = 0;
};

Outcome runMutations(int mutations, PlanBuilder (*make)(), bool device_may_refuse) {
  Outcome outcome;
  for (int seed = 0; seed < mutations; ++seed) {
    PlanBuilder builder = make();
    Mutator mutator(static_cast<uint64_t>(seed));
    for (int i = 0; i <= seed % 3; ++i) mutator.mutate(builder.plan);
    Result<Plan> plan = Plan::parse(builder.seal());
    if (!plan.ok()) {
      ++outcome.refused;
      EXPECT_EQ(plan.message().find('\n'), std::string::npos) << "seed " << seed << ": " << plan.message();
      continue;
    }
    double cost = 0;
    for (auto& stream : builder.plan.programs[0]->streams) cost += costOf(stream->commands);
    if (cost > 1e4 || plan->info().arena_bytes > (1 << 20)) {
      ++outcome.too_long;
      continue;
    }
    Result<Session> session = Session::create(*plan, {.threads = 1, .check_memory = true});
    if (!session.ok() && device_may_refuse) {
      ++outcome.refused_by_device;
      continue;
    }
    EXPECT_TRUE(session.ok()) << "seed " << seed << ": " << session.message();
    if (!session.ok()) return outcome;
    // The caller's memory is as long as the input, to the byte: reading on would be seen by the address
    // sanitizer.
    std::vector<std::vector<std::byte>> data;
    std::vector<HostTensorView> inputs;
    for (const InputInfo& input : plan->info().programs[0].inputs)
      inputs.emplace_back(data.emplace_back(static_cast<size_t>(input.spec.sizeBytes())).data(), input.spec);
    for (int run = 0; run < 3; ++run) EXPECT_TRUE(session->run({0}, inputs).ok()) << "seed " << seed;
    ++outcome.ran;
  }
  std::printf("%d refused, %d by the device, %d too long, %d ran\n", outcome.refused,
              outcome.refused_by_device, outcome.too_long, outcome.ran);
  return outcome;
}

TEST(PlanFuzz, WhatPassesTheVerifierRunsWithinItsArena) {
  // The reader proves bounds and an end. That commands are ordered is proven by the compiler, before the plan
  // is written: a mutated plan may race with itself, and ThreadSanitizer would rightly say so.
  if (kSeesRaces) GTEST_SKIP() << "mutated plans may race, which ThreadSanitizer reports";
  constexpr int kMutations = 20000;
  const Outcome outcome = runMutations(kMutations, codelessPlan, /*device_may_refuse=*/false);
  EXPECT_GT(outcome.refused, kMutations / 2);
  EXPECT_GT(outcome.ran, kMutations / 50) << "too few mutations are harmless for this to say much";
}

// The device has its own limits: a workspace that is too small, rows that are too far apart.
TEST(PlanFuzz, WhatPassesTheVerifierAttendsWithinItsArena) {
  if (kSeesRaces) GTEST_SKIP() << "mutated plans may race, which ThreadSanitizer reports";
  constexpr int kMutations = 5000;
  const Outcome outcome = runMutations(kMutations, attentionPlan, /*device_may_refuse=*/true);
  EXPECT_GT(outcome.refused, kMutations / 4);
  EXPECT_GT(outcome.ran, kMutations / 50) << "too few mutations are harmless for this to say much";
}

TEST(PlanFuzz, WhatPassesTheVerifierSharesOutWithinItsArena) {
  if (kSeesRaces) GTEST_SKIP() << "mutated plans may race, which ThreadSanitizer reports";
  constexpr int kMutations = 4000;
  const Outcome outcome = runMutations(kMutations, sharesPlan, /*device_may_refuse=*/false);
  EXPECT_GT(outcome.refused, kMutations / 4);
  EXPECT_GT(outcome.ran, kMutations / 50) << "too few mutations are harmless for this to say much";
}

/// Convolutions of f16 or bf16, and w · wᵀ.
template <DataType kType>
PlanBuilder productsPlan() {
  PlanBuilder builder = convolutionsPlan(kType);
  const uint32_t w = 2, product = builder.buffer("product", kType, {5, 5});
  builder.matmul(builder.plan.programs[0]->streams[0]->commands, w, w, product, 5, 5, 27).transpose_b = true;
  return builder;
}

TEST(PlanFuzz, WhatPassesTheVerifierMultipliesWithinItsArena) {
  if (kSeesRaces) GTEST_SKIP() << "mutated plans may race, which ThreadSanitizer reports";
  constexpr int kMutations = 4000;
  for (auto make : {productsPlan<DataType::f16>, productsPlan<DataType::bf16>}) {
    const Outcome outcome = runMutations(kMutations, make, /*device_may_refuse=*/true);
    EXPECT_GT(outcome.refused, kMutations / 4);
    EXPECT_GT(outcome.ran, kMutations / 50) << "too few mutations are harmless for this to say much";
  }
}

/// w - xᵀ · x where it lies, by a kernel that does nothing: what lies in its operands is its own affair.
PlanBuilder updatePlan() {
  PlanBuilder builder(1, TargetKind::host);
  const uint32_t w = builder.variable("w", DataType::f32, {130, 70});
  const uint32_t x = builder.buffer("x", DataType::f32, {5, 130}),
                 y = builder.buffer("y", DataType::f32, {5, 70});
  fb::ProgramT& program = builder.program("f");
  PlanBuilder::input(program, "x", x);
  PlanBuilder::input(program, "y", y);
  fb::MatmulT& matmul = builder.matmul(program.streams[0]->commands, x, y, w, 130, 70, 5);
  matmul.transpose_a = true;
  const MatmulPlan plan = *planMatmulOfUpdate({.m = 130, .n = 70, .k = 5, .transpose_a = true});
  const uint32_t squares = builder.buffer("squares", DataType::f32, {plan.tileCount()});
  matmul.squares = builder.operand({squares});
  PlanBuilder::output(program, "squares", squares);
  matmul.update = std::make_unique<fb::UpdateT>();
  matmul.update->kernel = builder.kernel("test_nothing", 3);
  matmul.update->reads.push_back(builder.operand({w}));
  matmul.update->writes.push_back(std::move(matmul.c));
  matmul.update->tile_rows = static_cast<uint64_t>(plan.tile_m);
  matmul.update->tile_columns = static_cast<uint64_t>(plan.tile_n);
  matmul.update->stride = static_cast<uint64_t>(plan.sumStride());
  matmul.update->grain = 1000;
  return builder;
}

/// The same of a filter, whose gradient lies in the workspace part by part.
PlanBuilder filterUpdatePlan() {
  PlanBuilder builder(1, TargetKind::host);
  const uint32_t w = builder.variable("w", DataType::f32, {20, 6, 3, 3}),
                 x = builder.buffer("x", DataType::f32, {4, 6, 9, 8}),
                 dy = builder.buffer("dy", DataType::f32, {4, 20, 9, 8});
  fb::ProgramT& program = builder.program("f");
  PlanBuilder::input(program, "x", x);
  PlanBuilder::input(program, "dy", dy);
  fb::ConvT& conv = builder.conv(program.streams[0]->commands, fb::ConvKind::filter_gradient, x, w, dy, 1);
  const ConvAxis height{.input = 9, .output = 9, .kernel = 3, .low = 1, .high = 1},
      width{.input = 8, .output = 8, .kernel = 3, .low = 1, .high = 1};
  const ConvShape shape = {.kind = ConvKind::filter_gradient,
                           .batch = 4,
                           .in_channels = 6,
                           .out_channels = 20,
                           .height = height,
                           .width = width};
  const GradientTiles tiles = *convGradientTiles(shape);
  const uint32_t squares = builder.buffer("squares", DataType::f32, {tiles.count()});
  conv.squares = builder.operand({squares});
  PlanBuilder::output(program, "squares", squares);
  conv.workspace = builder.operand({builder.buffer("workspace", DataType::i8, {convWorkspaceBytes(shape)})});
  conv.update = std::make_unique<fb::UpdateT>();
  conv.update->kernel = builder.kernel("test_nothing", 3);
  conv.update->reads.push_back(builder.operand({w}));
  conv.update->writes.push_back(std::move(conv.c));
  conv.update->tile_rows = static_cast<uint64_t>(tiles.tile_rows);
  conv.update->tile_columns = static_cast<uint64_t>(tiles.tile_columns);
  conv.update->stride = static_cast<uint64_t>(tiles.stride);
  conv.update->grain = 1000;
  return builder;
}

TEST(PlanFuzz, WhatPassesTheVerifierUpdatesWithinItsArena) {
  if (kSeesRaces) GTEST_SKIP() << "mutated plans may race, which ThreadSanitizer reports";
  constexpr int kMutations = 4000;
  for (auto make : {updatePlan, filterUpdatePlan}) {
    const Outcome outcome = runMutations(kMutations, make, /*device_may_refuse=*/true);
    EXPECT_GT(outcome.refused, kMutations / 4);
    EXPECT_GT(outcome.refused_by_device, 0);
    EXPECT_GT(outcome.ran, kMutations / 50) << "too few mutations are harmless for this to say much";
  }
}

}  // namespace
}  // namespace gpuc::test
