#include "test/runtime/plan_builder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/plan/header.h"
#include "runtime/plan/seal.h"

namespace gpuc::test {
namespace {

constexpr char kTestArchitecture[] = "sm_80";
constexpr uint32_t kTestBlock = 16;  // threads, one for each element of a tile

uint64_t aligned(uint64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

template <typename T>
T& append(CommandList& list, T work, const char* location = "test") {
  auto& command = *list.emplace_back(std::make_unique<fb::CommandT>());
  command.location = location;
  command.work.Set(std::move(work));
  return *static_cast<T*>(command.work.value);
}

}  // namespace

TargetKind testDevice() {
  const char* name = std::getenv("GPUC_TEST_DEVICE");
  return name && std::string(name) == "cuda" ? TargetKind::cuda : TargetKind::host;
}

std::vector<uint8_t> testKernels(TargetKind target) {
  const std::filesystem::path built = target == TargetKind::host ? GPUC_TEST_KERNELS : GPUC_TEST_PTX;
  const char* folder = std::getenv("GPUC_TEST_FILES");  // where a GPU is and nothing is built
  Result<std::string> file = readFile(folder ? folder / built.filename() : built);
  if (!file.ok()) {
    ADD_FAILURE() << file.message();
    return {};
  }
  return {file->begin(), file->end()};
}

PlanBuilder::PlanBuilder(uint32_t input_slots, TargetKind target) {
  plan.name = "test";
  plan.compiler_version = "0";
  plan.target = std::make_unique<fb::TargetT>();
  bool host = target == TargetKind::host;
  plan.target->kind = static_cast<fb::TargetKind>(target);
  plan.target->name = host ? "test" : kTestArchitecture;
  plan.target->features = {host ? "sse2" : kTestArchitecture};
  plan.seed = 7;
  plan.batch = 4;
  plan.global_batch = 4;
  plan.alignment = kBufferAlignment;
  plan.input_slots = input_slots;
}

uint32_t PlanBuilder::place(const std::string& name, DataType type, std::vector<int64_t> shape,
                            uint32_t slots) {
  auto& buffer = *plan.buffers.emplace_back(std::make_unique<fb::BufferT>());
  buffer.name = name;
  buffer.type = static_cast<fb::DataType>(type);
  buffer.size = static_cast<uint64_t>(sizeOf(type));
  for (int64_t extent : shape) buffer.size *= static_cast<uint64_t>(extent);
  buffer.shape = std::move(shape);
  buffer.offset = plan.arena_bytes;
  buffer.slot_stride = slots > 1 ? aligned(buffer.size) : 0;
  plan.arena_bytes += slots * aligned(buffer.size);
  return static_cast<uint32_t>(plan.buffers.size() - 1);
}

uint32_t PlanBuilder::buffer(const std::string& name, DataType type, std::vector<int64_t> shape) {
  return place(name, type, std::move(shape), 1);
}

uint32_t PlanBuilder::slotBuffer(const std::string& name, DataType type, std::vector<int64_t> shape) {
  return place(name, type, std::move(shape), plan.input_slots);
}

uint32_t PlanBuilder::variable(const std::string& name, DataType type, std::vector<int64_t> shape,
                               fb::VariableKind kind) {
  auto& variable = *plan.variables.emplace_back(std::make_unique<fb::VariableT>());
  variable.name = name;
  variable.kind = kind;
  variable.trainable = kind == fb::VariableKind::parameter;
  variable.buffer = buffer(name, type, std::move(shape));
  variable.initializer = "zeros";
  return variable.buffer;
}

uint32_t PlanBuilder::kernel(const std::string& symbol, uint32_t operands) {
  auto& kernel = *plan.kernels.emplace_back(std::make_unique<fb::KernelT>());
  kernel.name = symbol;
  kernel.symbol = symbol;
  kernel.operands = operands;
  if (plan.code.empty()) {
    auto& code = *plan.code.emplace_back(std::make_unique<fb::CodeT>());
    code.kind = target() == TargetKind::host ? fb::CodeKind::host_object : fb::CodeKind::ptx;
    code.architecture = plan.target->name;
    code.data = testKernels(target());
  }
  return static_cast<uint32_t>(plan.kernels.size() - 1);
}

fb::ProgramT& PlanBuilder::program(const std::string& name, int streams) {
  auto& program = *plan.programs.emplace_back(std::make_unique<fb::ProgramT>());
  program.name = name;
  for (int s = 0; s < streams; ++s)
    program.streams.emplace_back(std::make_unique<fb::StreamT>())->name =
        s == 0 ? "compute" : "stream" + std::to_string(s);
  return program;
}

uint32_t PlanBuilder::input(fb::ProgramT& program, const std::string& name, uint32_t buffer,
                            fb::InputRole role) {
  auto& input = *program.inputs.emplace_back(std::make_unique<fb::InputT>());
  input.name = name;
  input.buffer = buffer;
  input.role = role;
  return static_cast<uint32_t>(program.inputs.size() - 1);
}

uint32_t PlanBuilder::output(fb::ProgramT& program, const std::string& name, uint32_t buffer) {
  auto& output = *program.outputs.emplace_back(std::make_unique<fb::OutputT>());
  output.name = name;
  output.buffer = buffer;
  return static_cast<uint32_t>(program.outputs.size() - 1);
}

std::unique_ptr<fb::OperandT> PlanBuilder::operand(const OperandOf& from) const {
  auto operand = std::make_unique<fb::OperandT>();
  operand->buffer = from.buffer;
  operand->offset = from.offset;
  operand->size = from.size ? from.size : plan.buffers[from.buffer]->size - from.offset;
  operand->strides = from.strides;
  return operand;
}

void PlanBuilder::launch(CommandList& list, uint32_t kernel, const std::vector<OperandOf>& reads,
                         const std::vector<OperandOf>& writes, uint64_t tiles, uint64_t grain) {
  fb::LaunchT& launch = append(list, fb::LaunchT());
  launch.kernel = kernel;
  for (const OperandOf& read : reads) launch.reads.push_back(operand(read));
  for (const OperandOf& write : writes) launch.writes.push_back(operand(write));
  if (target() == TargetKind::host) {
    launch.tiles = tiles;
    launch.grain = grain;
  } else {
    launch.grid = static_cast<uint32_t>(tiles);
    launch.block = kTestBlock;
  }
}

void PlanBuilder::rows(CommandList& list, uint64_t count, const std::string& by_rows) {
  fb::LaunchT& launch = *list.back()->work.AsLaunch();
  launch.rows = count;
  launch.by_rows.clear();
  for (char letter : by_rows) launch.by_rows.push_back(letter == 'r');
}

void PlanBuilder::copyIn(CommandList& list, uint32_t port, OperandOf to) {
  fb::CopyT& copy = append(list, fb::CopyT());
  copy.kind = fb::CopyKind::host_to_device;
  copy.port = port;
  copy.to = operand(to);
}

void PlanBuilder::copyOut(CommandList& list, uint32_t port, OperandOf from) {
  fb::CopyT& copy = append(list, fb::CopyT());
  copy.kind = fb::CopyKind::device_to_host;
  copy.port = port;
  copy.from = operand(from);
}

void PlanBuilder::copy(CommandList& list, OperandOf from, OperandOf to) {
  fb::CopyT& copy = append(list, fb::CopyT());
  copy.kind = fb::CopyKind::device_to_device;
  copy.from = operand(from);
  copy.to = operand(to);
}

void PlanBuilder::fill(CommandList& list, OperandOf to, std::vector<uint8_t> pattern) {
  fb::FillT& fill = append(list, fb::FillT());
  fill.to = operand(to);
  fill.pattern = std::move(pattern);
}

fb::ConvT& PlanBuilder::conv(CommandList& list, fb::ConvKind kind, uint32_t x, uint32_t w, uint32_t y,
                             uint64_t padding) {
  auto extent = [&](uint32_t buffer, size_t dim) {
    return static_cast<uint64_t>(plan.buffers[buffer]->shape[dim]);
  };
  auto axis = [&](size_t dim) {
    return std::make_unique<fb::ConvAxis>(extent(x, dim), extent(y, dim), extent(w, dim), 1, padding, padding,
                                          1);
  };
  fb::ConvT& conv = append(list, fb::ConvT(), "conv1");
  conv.kind = kind;
  conv.type = plan.buffers[x]->type;
  bool forward = kind == fb::ConvKind::forward, input_gradient = kind == fb::ConvKind::input_gradient;
  conv.a = operand({forward ? x : y});
  conv.b = operand({forward || input_gradient ? w : x});
  conv.c = operand({forward ? y : input_gradient ? x : w});
  conv.batch = extent(x, 0);
  conv.groups = 1;
  conv.in_channels = extent(x, 1);
  conv.out_channels = extent(y, 1);
  conv.height = axis(2);
  conv.width = axis(3);
  return conv;
}

fb::AttentionT& PlanBuilder::attention(CommandList& list, fb::AttentionKind kind, uint32_t q, uint32_t k,
                                       uint32_t v, uint32_t y, uint32_t logs) {
  auto extent = [&](uint32_t buffer, size_t dim) {
    return static_cast<uint64_t>(plan.buffers[buffer]->shape[dim]);
  };
  auto layout = [&](uint32_t buffer) {
    const uint64_t row = extent(buffer, 3), head = row * extent(buffer, 2);
    return std::make_unique<fb::AttentionLayout>(head * extent(buffer, 1), head, row);
  };
  fb::AttentionT& attention = append(list, fb::AttentionT(), "attention1");
  attention.kind = kind;
  attention.type = plan.buffers[q]->type;
  attention.query = operand({q});
  attention.key = operand({k});
  attention.value = operand({v});
  attention.result = operand({y});
  attention.log_sum_exp = operand({logs});
  attention.query_layout = layout(q);
  attention.key_layout = layout(k);
  attention.value_layout = layout(v);
  attention.result_layout = layout(y);
  attention.batch = extent(q, 0);
  attention.heads = extent(q, 1);
  attention.groups = extent(k, 1);
  attention.queries = extent(q, 2);
  attention.keys = extent(k, 2);
  attention.width = extent(q, 3);
  attention.value_width = extent(v, 3);
  attention.scale = 1;
  return attention;
}

fb::MatmulT& PlanBuilder::matmul(CommandList& list, uint32_t a, uint32_t b, uint32_t c, uint64_t m,
                                 uint64_t n, uint64_t k) {
  fb::MatmulT& matmul = append(list, fb::MatmulT(), "fc1");
  matmul.type = plan.buffers[a]->type;
  matmul.a = operand({a});
  matmul.b = operand({b});
  matmul.c = operand({c});
  matmul.batch = 1;
  matmul.m = m;
  matmul.n = n;
  matmul.k = k;
  return matmul;
}

fb::SumT& PlanBuilder::sum(CommandList& list, DataType type, uint32_t x, uint32_t y) {
  fb::SumT& sum = append(list, fb::SumT());
  sum.type = static_cast<fb::DataType>(type);
  sum.parts = operand({x});
  sum.result = operand({y});
  return sum;
}

fb::AllReduceT& PlanBuilder::allReduce(CommandList& list, DataType type, uint32_t x, uint32_t y) {
  fb::AllReduceT& reduce = append(list, fb::AllReduceT());
  reduce.type = static_cast<fb::DataType>(type);
  reduce.part = operand({x});
  reduce.result = operand({y});
  return reduce;
}

fb::ReduceScatterT& PlanBuilder::reduceScatter(CommandList& list, DataType type, uint32_t x, uint32_t y) {
  fb::ReduceScatterT& scatter = append(list, fb::ReduceScatterT());
  scatter.type = static_cast<fb::DataType>(type);
  scatter.wholes.push_back(operand({x}));
  scatter.shares.push_back(operand({y}));
  return scatter;
}

fb::AllGatherT& PlanBuilder::allGather(CommandList& list, DataType type, uint32_t x, uint32_t y) {
  fb::AllGatherT& gather = append(list, fb::AllGatherT());
  gather.type = static_cast<fb::DataType>(type);
  gather.shares.push_back(operand({x}));
  gather.wholes.push_back(operand({y}));
  return gather;
}

void PlanBuilder::record(CommandList& list, uint32_t event) { append(list, fb::RecordT()).event = event; }

void PlanBuilder::wait(CommandList& list, uint32_t event, uint32_t distance) {
  fb::WaitT& wait = append(list, fb::WaitT());
  wait.event = event;
  wait.distance = distance;
}

CommandList& PlanBuilder::repeat(CommandList& list, uint64_t count) {
  fb::RepeatT& repeat = append(list, fb::RepeatT());
  repeat.count = count;
  return repeat.commands;
}

CommandList& PlanBuilder::parallel(CommandList& list, uint64_t parts, bool by_rows) {
  fb::ParallelT& parallel = append(list, fb::ParallelT());
  parallel.parts = parts;
  parallel.by_rows = by_rows;
  return parallel.commands;
}

std::string PlanBuilder::seal() const {
  flatbuffers::FlatBufferBuilder builder;
  fb::FinishPlanBuffer(builder, fb::Plan::Pack(builder, &plan));
  return sealPlan({reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()});
}

Plan PlanBuilder::parse() const {
  Result<Plan> plan = Plan::parse(seal());
  EXPECT_TRUE(plan.ok()) << plan.message();
  return *std::move(plan);
}

}  // namespace gpuc::test
