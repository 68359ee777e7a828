#include "test/runtime/plan_builder.h"

namespace gpuc::test {
namespace {

struct Tensors {
  uint32_t x, rows, h, stack, y, weight, step, table;
};

void addInit(PlanBuilder& builder, const Tensors& t) {
  CommandList& commands = builder.program("init").streams[0]->commands;
  builder.fill(commands, {t.weight}, patternOf(0.5f));
}

/// Copy stream: wait(slot_free, 2), x, rows, record(batch_ready). Compute stream: the rest.
void addTrainStep(PlanBuilder& builder, const Tensors& t, uint32_t double_kernel, uint32_t increment) {
  fb::ProgramT& program = builder.program("train_step", 2);
  program.events = {"batch_ready", "slot_free"};
  uint32_t x = PlanBuilder::input(program, "x", t.x);
  uint32_t rows = PlanBuilder::input(program, "rows", t.rows, fb::InputRole::rows);
  CommandList& copies = program.streams[1]->commands;
  PlanBuilder::wait(copies, 1, 2);
  builder.copyIn(copies, x, {t.x});
  builder.copyIn(copies, rows, {t.rows});
  PlanBuilder::record(copies, 0);

  CommandList& compute = program.streams[0]->commands;
  PlanBuilder::wait(compute, 0);
  builder.matmul(compute, t.x, t.weight, t.h, 4, 16, 16);
  PlanBuilder::record(compute, 1);
  CommandList& outer = PlanBuilder::repeat(compute, 2);
  CommandList& inner = PlanBuilder::repeat(outer, 4);
  // stack[o][i] = 2 h, where h is (4, 16) and stack (2, 4, 4, 16) f32
  builder.launch(inner, double_kernel, {{t.h}}, {{t.stack, 0, 256, {1024, 256}}}, 4);
  builder.launch(compute, increment, {{t.step}}, {{t.step}});
  builder.copy(compute, {t.stack, 1792, 256}, {t.y});
  PlanBuilder::output(program, "y", t.y);
  PlanBuilder::output(program, "staged", t.y);
  builder.copyOut(compute, 1, {t.y});
}

void addPredict(PlanBuilder& builder, const Tensors& t, uint32_t add) {
  fb::ProgramT& program = builder.program("predict");
  PlanBuilder::input(program, "x", t.x);
  PlanBuilder::output(program, "y", t.y);
  builder.launch(program.streams[0]->commands, add, {{t.x}, {t.table}}, {{t.y}}, 4, 2);
}

}  // namespace

PlanBuilder everythingPlan(TargetKind target) {
  PlanBuilder builder(2, target);
  Tensors t;
  builder.variable("seed", DataType::i64, {}, fb::VariableKind::counter);
  t.step = builder.variable("step", DataType::i64, {}, fb::VariableKind::counter);
  t.weight = builder.variable("fc1.weight", DataType::f32, {16, 16});
  t.table = builder.buffer("table", DataType::f32, {4, 16});
  t.x = builder.slotBuffer("x", DataType::f32, {4, 16});
  t.rows = builder.slotBuffer("rows", DataType::i32, {});
  t.h = builder.buffer("h", DataType::f32, {4, 16});
  t.stack = builder.buffer("stack", DataType::f32, {2, 4, 4, 16});
  t.y = builder.buffer("y", DataType::f32, {4, 16});
  auto& constant = *builder.plan.constants.emplace_back(std::make_unique<fb::ConstantT>());
  constant.buffer = t.table;
  constant.data.assign(256, 0);
  uint32_t double_kernel = builder.kernel("test_double", 2);
  uint32_t increment = builder.kernel("test_increment", 2);
  uint32_t add = builder.kernel("test_add", 3);
  addInit(builder, t);
  addTrainStep(builder, t, double_kernel, increment);
  addPredict(builder, t, add);
  return builder;
}

PlanBuilder convolutionsPlan(DataType type, TargetKind target) {
  PlanBuilder builder(1, target);
  uint32_t x = builder.buffer("x", type, {4, 3, 9, 8}), dx = builder.buffer("dx", type, {4, 3, 9, 8});
  uint32_t w = builder.buffer("w", type, {5, 3, 3, 3}), dw = builder.buffer("dw", type, {5, 3, 3, 3});
  uint32_t y = builder.buffer("y", type, {4, 5, 9, 8}), dy = builder.buffer("dy", type, {4, 5, 9, 8});
  const int64_t elements = 4 * 135;  // 4 parts of dw; of 16-bit floats also 144 elements for w as f32
  uint32_t workspace = builder.buffer("workspace", DataType::i8, {4 * elements});
  fb::ProgramT& predict = builder.program("predict");
  for (auto [name, buffer] : {std::pair("x", x), {"w", w}, {"dy", dy}})
    PlanBuilder::input(predict, name, buffer);
  for (auto [name, buffer] : {std::pair("y", y), {"dx", dx}, {"dw", dw}})
    PlanBuilder::output(predict, name, buffer);
  CommandList& commands = predict.streams[0]->commands;
  fb::ConvT* convolutions[] = {&builder.conv(commands, fb::ConvKind::forward, x, w, y, 1),
                               &builder.conv(commands, fb::ConvKind::input_gradient, dx, w, dy, 1),
                               &builder.conv(commands, fb::ConvKind::filter_gradient, x, dw, dy, 1)};
  for (fb::ConvT* conv : convolutions)
    if (sizeOf(type) == 2 || conv->kind == fb::ConvKind::filter_gradient)
      conv->workspace = builder.operand({workspace});
  return builder;
}

PlanBuilder attentionPlan() {
  PlanBuilder builder(1, TargetKind::host);
  auto real = [&](const char* name, std::vector<int64_t> shape) {
    return builder.buffer(name, DataType::f32, std::move(shape));
  };
  // Four tiles are too few: 80 keys are two blocks, and so two parts.
  uint32_t q = real("q", {2, 4, 5, 4}), k = real("k", {2, 2, 80, 4}), v = real("v", {2, 2, 80, 3});
  uint32_t y = real("y", {2, 4, 5, 3}), logs = real("logs", {2, 4, 5}), dy = real("dy", {2, 4, 5, 3});
  uint32_t dq = real("dq", {2, 4, 5, 4}), dk = real("dk", {2, 2, 80, 4}), dv = real("dv", {2, 2, 80, 3});
  uint32_t mask = real("mask", {5, 80}), dmask = real("dmask", {5, 80});
  uint32_t workspace = builder.buffer("workspace", DataType::i8, {2 * 160 * 4});  // 2 parts of dq
  uint32_t seed = builder.variable("seed", DataType::i64, {}, fb::VariableKind::counter);
  uint32_t step = builder.variable("step", DataType::i64, {}, fb::VariableKind::counter);
  fb::ProgramT& predict = builder.program("predict");
  for (auto [name, buffer] : {std::pair("q", q), {"k", k}, {"v", v}, {"dy", dy}, {"mask", mask}})
    PlanBuilder::input(predict, name, buffer);
  for (auto [name, buffer] :
       {std::pair("y", y), {"logs", logs}, {"dq", dq}, {"dk", dk}, {"dv", dv}, {"dmask", dmask}})
    PlanBuilder::output(predict, name, buffer);
  CommandList& commands = predict.streams[0]->commands;
  for (fb::AttentionKind kind : {fb::AttentionKind::forward, fb::AttentionKind::gradient}) {
    fb::AttentionT& attention = builder.attention(commands, kind, q, k, v, y, logs);
    attention.mask = builder.operand({mask});
    attention.mask_kind = fb::AttentionMask::addends;
    attention.mask_strides = std::make_unique<fb::MaskStrides>(0, 0, 80, 1);
    attention.dropout = 0.25;
    attention.id = 7;
    attention.seed = builder.operand({seed});
    attention.step = builder.operand({step});
    if (kind == fb::AttentionKind::forward) continue;
    attention.cotangent = builder.operand({dy});
    attention.query_cotangent = builder.operand({dq});
    attention.key_cotangent = builder.operand({dk});
    attention.value_cotangent = builder.operand({dv});
    attention.mask_cotangent = builder.operand({dmask});
    attention.workspace = builder.operand({workspace});
    attention.cotangent_layout = std::make_unique<fb::AttentionLayout>(*attention.result_layout);
    attention.query_cotangent_layout = std::make_unique<fb::AttentionLayout>(*attention.query_layout);
    attention.key_cotangent_layout = std::make_unique<fb::AttentionLayout>(*attention.key_layout);
    attention.value_cotangent_layout = std::make_unique<fb::AttentionLayout>(*attention.value_layout);
  }
  return builder;
}

PlanBuilder sharesPlan() {
  PlanBuilder builder(1, TargetKind::host);
  builder.plan.world_size = 1;
  const uint32_t x = builder.buffer("x", DataType::f32, {13}), y = builder.buffer("y", DataType::f32, {8192});
  const uint32_t own_x = builder.variable("own x", DataType::f32, {13}),
                 own_y = builder.variable("own y", DataType::f32, {8192});
  const uint32_t z = builder.buffer("z", DataType::f32, {70}),
                 own_z = builder.variable("own z", DataType::f32, {70});
  builder.plan.variables[0]->is_share = builder.plan.variables[1]->is_share = true;
  builder.plan.variables[0]->whole_shape = {13};
  builder.plan.variables[1]->whole_shape = {64, 128};
  builder.plan.variables[2]->owned_names = {"own z"};
  fb::ProgramT& program = builder.program("f");
  CommandList& commands = program.streams[0]->commands;
  builder.copyIn(commands, PlanBuilder::input(program, "x", x), {x});
  builder.fill(commands, {y}, patternOf(2.0f));
  builder.fill(commands, {z}, patternOf(3.0f));
  fb::ReduceScatterT& scatter = builder.reduceScatter(commands, DataType::f32, x, own_x);
  scatter.wholes.push_back(builder.operand({y}));
  scatter.shares.push_back(builder.operand({own_y}));
  builder.reduceScatter(commands, DataType::f32, z, own_z).owners = 1;
  fb::AllGatherT& gather = builder.allGather(commands, DataType::f32, own_x, x);
  gather.shares.push_back(builder.operand({own_y}));
  gather.wholes.push_back(builder.operand({y}));
  builder.allGather(commands, DataType::f32, own_z, z).owners = 1;
  PlanBuilder::output(program, "y", y);
  PlanBuilder::output(program, "z", z);
  return builder;
}

PlanBuilder codelessPlan() {
  PlanBuilder builder(2);
  uint32_t w = builder.variable("w", DataType::f32, {4, 16});
  uint32_t x = builder.slotBuffer("x", DataType::f32, {4, 16});
  uint32_t rows = builder.slotBuffer("rows", DataType::i32, {});
  uint32_t stack = builder.buffer("stack", DataType::f32, {2, 3, 4, 16});
  uint32_t y = builder.buffer("y", DataType::f32, {4, 16});
  fb::ProgramT& program = builder.program("step", 2);
  program.events = {"ready", "free"};
  uint32_t port = PlanBuilder::input(program, "x", x);
  PlanBuilder::input(program, "rows", rows, fb::InputRole::rows);
  PlanBuilder::output(program, "y", y);
  PlanBuilder::output(program, "w", w);
  CommandList& copies = program.streams[1]->commands;
  PlanBuilder::wait(copies, 1, 2);
  builder.copyIn(copies, port, {x});
  PlanBuilder::record(copies, 0);
  CommandList& compute = program.streams[0]->commands;
  PlanBuilder::wait(compute, 0);
  builder.fill(compute, {w}, patternOf(1.0f));
  CommandList& inner = PlanBuilder::repeat(PlanBuilder::repeat(compute, 2), 3);
  builder.copy(inner, {x, 0, 64, {0, 64}}, {stack, 0, 64, {768, 256}});
  builder.fill(inner, {stack, 64, 64, {768, 256}});
  CommandList& parts = PlanBuilder::parallel(compute, 3);
  builder.fill(parts, {stack, 128, 64, {256}}, patternOf(2.0f));
  builder.copy(parts, {stack, 128, 64, {256}}, {stack, 192, 64, {256}});
  CommandList& by_rows = PlanBuilder::repeat(PlanBuilder::parallel(compute, 16, /*by_rows=*/true), 2);
  builder.copy(by_rows, {stack, 512, 256, {0, 256}}, {y});
  if (builder.plan.target->kind == fb::TargetKind::host) builder.sum(compute, DataType::f32, stack, y);
  builder.allReduce(compute, DataType::f32, y, y);
  builder.copy(compute, {stack, 512, 256}, {y});
  builder.copyOut(compute, 1, {w});
  PlanBuilder::record(compute, 1);
  return builder;
}

}  // namespace gpuc::test
