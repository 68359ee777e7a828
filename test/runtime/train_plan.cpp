#include "test/runtime/train_plan.h"

#include "runtime/base/file.h"

namespace gpuc::test {
namespace {

constexpr int64_t kPixels = 16;

struct Buffers {
  uint32_t seed, step, weight, momentum, x, labels, rows;
};

Buffers addBuffers(PlanBuilder& builder, int64_t batch) {
  Buffers b;
  b.seed = builder.variable("seed", DataType::i64, {}, fb::VariableKind::counter);
  b.step = builder.variable("step", DataType::i64, {}, fb::VariableKind::counter);
  b.weight = builder.variable("weight", DataType::f32, {kPixels});
  b.momentum = builder.variable("weight/momentum", DataType::f32, {kPixels}, fb::VariableKind::optimizer);
  b.x = builder.slotBuffer("x", DataType::ui8, {batch, 1, 4, 4});
  b.labels = builder.slotBuffer("labels", DataType::i32, {batch});
  b.rows = builder.slotBuffer("rows", DataType::i32, {});
  return b;
}

/// A program with the inputs. One that does not count rows takes every row for a sample.
CommandList& addProgram(PlanBuilder& builder, const Buffers& b, const char* name, bool counts_rows) {
  fb::ProgramT& program = builder.program(name);
  CommandList& commands = program.streams[0]->commands;
  PlanBuilder::input(program, "x", b.x);
  program.inputs[PlanBuilder::input(program, "labels", b.labels)]->range = 10;
  if (counts_rows)
    PlanBuilder::input(program, "rows", b.rows, fb::InputRole::rows);
  else
    builder.fill(commands, {b.rows}, patternOf(static_cast<int32_t>(builder.plan.batch)));
  return commands;
}

/// Scalars that the last program gives under these names.
std::vector<OperandOf> addScalars(PlanBuilder& builder, const std::vector<std::string>& names) {
  std::vector<OperandOf> operands;
  for (const std::string& name : names) {
    operands.push_back({builder.buffer(name, DataType::f32, {})});
    PlanBuilder::output(*builder.plan.programs.back(), name, operands.back().buffer);
  }
  return operands;
}

void bigEndian(std::string& bytes, int64_t value) {
  for (int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift & 0xff);
}

}  // namespace

PlanBuilder trainPlan(const TrainPlanOptions& options) {
  PlanBuilder builder;
  builder.plan.batch = builder.plan.global_batch = static_cast<uint64_t>(options.batch);
  Result<std::string> code = readFile(GPUC_TRAIN_KERNELS);
  EXPECT_TRUE(code.ok()) << code.message();
  builder.plan.code.emplace_back(std::make_unique<fb::CodeT>())->architecture = "test";
  builder.plan.code[0]->data.assign(code->begin(), code->end());
  Buffers b = addBuffers(builder, options.batch);
  uint32_t train = builder.kernel("train_step", 14), eval = builder.kernel("eval_step", 8);

  CommandList& init = builder.program("init").streams[0]->commands;
  builder.fill(init, {b.weight}, patternOf(0.5f));
  builder.fill(init, {b.momentum});
  if (options.has_second) {
    builder.fill(init, {builder.variable("second", DataType::f32, {kPixels})});
    builder.fill(
        init, {builder.variable("second/momentum", DataType::f32, {kPixels}, fb::VariableKind::optimizer)});
  }
  if (options.has_frozen) {
    builder.fill(init, {builder.variable("base", DataType::f32, {kPixels})}, patternOf(1.0f));
    builder.plan.variables.back()->trainable = false;
  }

  CommandList& step = addProgram(builder, b, "train_step", options.train_counts_rows);
  std::vector<OperandOf> written = {{b.weight}, {b.momentum}, {b.step}};
  for (OperandOf& scalar : addScalars(builder, {"loss_sum", "count", "lr", "grad_norm"}))
    written.push_back(scalar);
  builder.launch(step, train, {{b.x}, {b.labels}, {b.rows}, {b.seed}, {b.step}, {b.weight}, {b.momentum}},
                 written);
  if (!options.has_eval) return builder;
  CommandList& evaluation = addProgram(builder, b, "eval_step", options.eval_counts_rows);
  builder.launch(evaluation, eval, {{b.x}, {b.labels}, {b.rows}, {b.weight}},
                 addScalars(builder, {"loss_sum", "count", "correct", "correct_count"}));
  return builder;
}

std::string writeIdx(const TemporaryFolder& folder, const std::string& prefix, int64_t samples) {
  std::string images, labels;
  for (int64_t word : {int64_t{0x803}, samples, int64_t{4}, int64_t{4}}) bigEndian(images, word);
  for (int64_t word : {int64_t{0x801}, samples}) bigEndian(labels, word);
  for (int64_t i = 0; i < samples; ++i) {
    for (int64_t pixel = 0; pixel < kPixels; ++pixel)
      images += static_cast<char>((i * 37 + pixel * 101 + i * pixel * 13) % 256);
    labels += static_cast<char>(i * 7 % 10);
  }
  folder.write(prefix + "-images-idx3-ubyte", images);
  folder.write(prefix + "-labels-idx1-ubyte", labels);
  return "idx:" + folder / prefix;
}

}  // namespace gpuc::test
