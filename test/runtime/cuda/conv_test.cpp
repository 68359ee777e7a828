// A plan's convolutions to cuDNN's operation graphs: windows, groups, types, engines and addresses, against
// plain loops.
#include <gtest/gtest.h>

#include <random>

#include "runtime/base/half.h"
#include "runtime/tooling/allocation_hook.h"
#include "test/runtime/cuda/test_kernels.h"
#include "test/runtime/session_helpers.h"

namespace gpuc::test {
namespace {

struct Axis {
  uint64_t input, kernel, stride, low, high, dilation;
  uint64_t output() const { return (input + low + high - (kernel - 1) * dilation - 1) / stride + 1; }
  fb::ConvAxis entry() const { return {input, output(), kernel, stride, low, high, dilation}; }
};

struct Case {
  uint64_t batch, groups, in_channels, out_channels;
  Axis height, width;

  std::vector<int64_t> x() const { return shape(batch, in_channels, height.input, width.input); }
  std::vector<int64_t> w() const {
    return shape(out_channels, in_channels / groups, height.kernel, width.kernel);
  }
  std::vector<int64_t> y() const { return shape(batch, out_channels, height.output(), width.output()); }

 private:
  static std::vector<int64_t> shape(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    return {int64_t(a), int64_t(b), int64_t(c), int64_t(d)};
  }
};

std::vector<Case> cases() {
  return {{1, 1, 1, 1, {1, 1, 1, 0, 0, 1}, {1, 1, 1, 0, 0, 1}},
          {2, 1, 3, 4, {7, 3, 1, 1, 1, 1}, {5, 3, 1, 1, 1, 1}},   // keeps the size
          {2, 1, 2, 5, {9, 3, 2, 0, 1, 1}, {8, 2, 3, 1, 0, 1}},   // strides, more padding on one side
          {1, 1, 2, 3, {9, 3, 1, 2, 2, 2}, {10, 2, 1, 0, 3, 3}},  // dilation
          {2, 2, 4, 6, {6, 3, 1, 1, 1, 1}, {6, 1, 1, 0, 0, 1}},   // groups
          {2, 4, 4, 4, {6, 3, 2, 1, 1, 1}, {7, 3, 2, 1, 1, 1}},   // one channel each
          {3, 1, 5, 2, {4, 1, 2, 0, 0, 1}, {6, 1, 2, 0, 0, 1}}};  // pointwise, half of it unread
}

// Elements of any of the four types, as f64.

std::vector<uint8_t> encode(DataType type, const std::vector<double>& values) {
  std::vector<uint8_t> bytes;
  auto append = [&](auto value) {
    const auto* data = reinterpret_cast<const uint8_t*>(&value);
    bytes.insert(bytes.end(), data, data + sizeof(value));
  };
  for (double value : values) {
    if (type == DataType::f64)
      append(value);
    else if (type == DataType::f32)
      append(static_cast<float>(value));
    else
      append(type == DataType::f16 ? floatToHalf(static_cast<float>(value))
                                   : floatToBfloat16(static_cast<float>(value)));
  }
  return bytes;
}

std::vector<double> decode(DataType type, HostTensorView view) {
  std::vector<double> values;
  auto take = [&]<typename T>(T, auto convert) {
    for (T value : valuesOf<T>(view)) values.push_back(convert(value));
  };
  if (type == DataType::f64)
    take(double(), [](double value) { return value; });
  else if (type == DataType::f32)
    take(float(), [](float value) { return value; });
  else if (type == DataType::f16)
    take(uint16_t(), halfToFloat);
  else
    take(uint16_t(), bfloat16ToFloat);
  return values;
}

size_t elements(const std::vector<int64_t>& shape) {
  return static_cast<size_t>(shape[0] * shape[1] * shape[2] * shape[3]);
}

/// Sixteenths in [-2, 2): exact in every type, and so are sums of a few products.
std::vector<double> randomValues(const std::vector<int64_t>& shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> values(elements(shape));
  for (double& value : values) value = double(random() % 64) / 16 - 2;
  return values;
}

/// Elements of a tensor (a, C, H, W) as they lie with channels last: (a, H, W, C).
std::vector<double> channelsLast(const std::vector<double>& values, const std::vector<int64_t>& shape) {
  std::vector<double> moved;
  for (int64_t a = 0; a < shape[0]; ++a)
    for (int64_t pixel = 0; pixel < shape[2] * shape[3]; ++pixel)
      for (int64_t channel = 0; channel < shape[1]; ++channel)
        moved.push_back(values[static_cast<size_t>((a * shape[1] + channel) * shape[2] * shape[3] + pixel)]);
  return moved;
}

/// The results by the plan format's own words: every product x[…] · w[…] · y[…] that belongs together is
/// added to each of the three.
struct Results {
  std::vector<double> y, dx, dw;
};

Results plainLoop(const Case& c, const std::vector<double>& x, const std::vector<double>& w,
                  const std::vector<double>& dy) {
  Results results;
  results.y.resize(dy.size());
  results.dx.resize(x.size());
  results.dw.resize(w.size());
  const uint64_t inputs = c.in_channels / c.groups, outputs = c.out_channels / c.groups;
  for (uint64_t n = 0; n < c.batch; ++n)
    for (uint64_t o = 0; o < c.out_channels; ++o)
      for (uint64_t p = 0; p < c.height.output(); ++p)
        for (uint64_t q = 0; q < c.width.output(); ++q)
          for (uint64_t channel = 0; channel < inputs; ++channel)
            for (uint64_t i = 0; i < c.height.kernel; ++i)
              for (uint64_t j = 0; j < c.width.kernel; ++j) {
                // Beyond the low edge it wraps around, and so lies beyond the high one.
                uint64_t h = p * c.height.stride - c.height.low + i * c.height.dilation,
                         v = q * c.width.stride - c.width.low + j * c.width.dilation;
                if (h >= c.height.input || v >= c.width.input) continue;
                size_t at_x = ((n * c.in_channels + o / outputs * inputs + channel) * c.height.input + h) *
                                  c.width.input +
                              v;
                size_t at_w = ((o * inputs + channel) * c.height.kernel + i) * c.width.kernel + j;
                size_t at_y = ((n * c.out_channels + o) * c.height.output() + p) * c.width.output() + q;
                results.y[at_y] += x[at_x] * w[at_w];
                results.dx[at_x] += dy[at_y] * w[at_w];
                results.dw[at_w] += dy[at_y] * x[at_x];
              }
  return results;
}

void check(const Case& c, DataType type, bool channels_last) {
  PlanBuilder builder(1, TargetKind::cuda);
  uint32_t x = builder.variable("x", type, c.x()), w = builder.variable("w", type, c.w()),
           dy = builder.variable("dy", type, c.y()), y = builder.buffer("y", type, c.y()),
           dx = builder.buffer("dx", type, c.x()), dw = builder.buffer("dw", type, c.w());
  fb::ProgramT& program = builder.program("f");
  CommandList& commands = program.streams[0]->commands;
  for (fb::ConvT* conv : {&builder.conv(commands, fb::ConvKind::forward, x, w, y),
                          &builder.conv(commands, fb::ConvKind::input_gradient, dx, w, dy),
                          &builder.conv(commands, fb::ConvKind::filter_gradient, x, dw, dy)}) {
    conv->groups = c.groups;
    conv->channels_last = channels_last;
    conv->height = std::make_unique<fb::ConvAxis>(c.height.entry());
    conv->width = std::make_unique<fb::ConvAxis>(c.width.entry());
  }
  for (auto [name, buffer] : {std::pair("y", y), {"dx", dx}, {"dw", dw}})
    PlanBuilder::output(program, name, buffer);

  Session session = open(builder);
  std::vector<double> values_x = randomValues(c.x(), 1), values_w = randomValues(c.w(), 2),
                      values_dy = randomValues(c.y(), 3);
  auto in_memory = [&](const std::vector<double>& values, const std::vector<int64_t>& shape) {
    return channels_last ? channelsLast(values, shape) : values;
  };
  for (auto [name, values, shape] :
       {std::tuple("x", &values_x, c.x()), {"w", &values_w, c.w()}, {"dy", &values_dy, c.y()}}) {
    const std::vector<uint8_t> bytes = encode(type, in_memory(*values, shape));
    ASSERT_TRUE(session.writeVariable(name, std::as_bytes(std::span(bytes))).ok());
  }
  ProgramId f = programOf(session, "f");
  runOnce(session, f);
  Results expected = plainLoop(c, values_x, values_w, values_dy);
  const std::vector<double> wanted[] = {in_memory(expected.y, c.y()), in_memory(expected.dx, c.x()),
                                        in_memory(expected.dw, c.w())};
  for (size_t i = 0; i < 3; ++i) {
    std::vector<double> found = decode(type, session.output(f, i));
    ASSERT_EQ(found.size(), wanted[i].size());
    // bf16 keeps 8 bits of a sum, f16 11.
    const double epsilon = type == DataType::bf16 ? 0x1p-8 : type == DataType::f16 ? 0x1p-11 : 0;
    for (size_t at = 0; at < found.size(); ++at)
      ASSERT_NEAR(found[at], wanted[i][at], epsilon * std::abs(wanted[i][at]))
          << nameOf(type) << ", output " << i << ", element " << at;
  }
}

TEST(ConvMapping, IsThatOfThePlan) {
  FakeGpu gpu;
  for (size_t number = 0; const Case& c : cases())
    for (DataType type : {DataType::f32, DataType::f64, DataType::f16, DataType::bf16}) {
      SCOPED_TRACE("case " + std::to_string(number++ / 4));
      check(c, type, /*channels_last=*/false);
      check(c, type, /*channels_last=*/true);
      if (testing::Test::HasFailure()) return;
    }
}

/// What follows the convolution: a bias for each channel, and perhaps relu; rounded once.
void checkBias(DataType type, bool relu, bool channels_last) {
  const Case c = cases()[2];
  PlanBuilder builder(1, TargetKind::cuda);
  uint32_t x = builder.variable("x", type, c.x()), w = builder.variable("w", type, c.w()),
           b = builder.variable("b", type, {int64_t(c.out_channels)}), y = builder.buffer("y", type, c.y());
  fb::ProgramT& program = builder.program("f");
  fb::ConvT& conv = builder.conv(program.streams[0]->commands, fb::ConvKind::forward, x, w, y);
  conv.channels_last = channels_last, conv.relu = relu;
  conv.height = std::make_unique<fb::ConvAxis>(c.height.entry());
  conv.width = std::make_unique<fb::ConvAxis>(c.width.entry());
  conv.bias = builder.operand({b});
  PlanBuilder::output(program, "y", y);

  Session session = open(builder);
  const std::vector<double> values_x = randomValues(c.x(), 1), values_w = randomValues(c.w(), 2),
                            bias = {-3, 0, 0.5, 2, -0.25};
  auto write = [&](const char* name, const std::vector<double>& values) {
    const std::vector<uint8_t> bytes = encode(type, values);
    ASSERT_TRUE(session.writeVariable(name, std::as_bytes(std::span(bytes))).ok());
  };
  write("x", channels_last ? channelsLast(values_x, c.x()) : values_x);
  write("w", channels_last ? channelsLast(values_w, c.w()) : values_w);
  write("b", bias);
  ProgramId f = programOf(session, "f");
  runOnce(session, f);

  std::vector<double> wanted = plainLoop(c, values_x, values_w, std::vector<double>(elements(c.y()))).y;
  const size_t pixels = c.height.output() * c.width.output();
  for (size_t i = 0; i < wanted.size(); ++i) {
    wanted[i] += bias[i / pixels % c.out_channels];
    if (relu) wanted[i] = std::max(wanted[i], 0.0);
  }
  const HostTensorView found = session.output(f, 0);
  const auto* bytes = static_cast<const uint8_t*>(found.data);
  EXPECT_EQ(std::vector<uint8_t>(bytes, bytes + found.sizeBytes()),
            encode(type, channels_last ? channelsLast(wanted, c.y()) : wanted));
}

TEST(ConvMapping, AddsTheBiasBeforeRelu) {
  FakeGpu gpu;
  for (DataType type : {DataType::f32, DataType::f16, DataType::bf16})
    for (bool relu : {false, true})
      for (bool channels_last : {false, true}) {
        SCOPED_TRACE(std::string(nameOf(type)) + (relu ? ", relu" : "") +
                     (channels_last ? ", channels last" : ""));
        checkBias(type, relu, channels_last);
      }
}

/// predict(x, w, dy) of convolutionsPlan, its f32 workspace taken away.
PlanBuilder smallPlan(DataType type = DataType::f32) {
  PlanBuilder builder = convolutionsPlan(type, TargetKind::cuda);
  for (auto& command : builder.plan.programs[0]->streams[0]->commands)
    if (fb::ConvT* conv = command->work.AsConv()) conv->workspace.reset();
  return builder;
}

/// What fakeEngines() begins with is passed over: atomic sums, rounded operands and sums, wide Winograd
/// tiles, too much workspace, what this GPU lacks. f32 takes no tensor cores either; 16 bits may.
TEST(ConvEngines, AreTheFirstThatKeepTheNumbers) {
  for (auto [type, wanted] :
       {std::pair{DataType::f32, 7u}, {DataType::f64, 6u}, {DataType::f16, 6u}, {DataType::bf16, 6u}}) {
    FakeGpu gpu;
    Session session = open(smallPlan(type));
    std::vector<std::vector<std::byte>> inputs;
    std::vector<HostTensorView> views;
    const ProgramInfo& program = session.plan().info().programs[0];
    for (const InputInfo& input : program.inputs) {
      inputs.emplace_back(static_cast<size_t>(input.spec.sizeBytes()));
      views.emplace_back(inputs.back().data(), input.spec.type, input.spec.shape);
    }
    runOnce(session, programOf(session, "predict"), views);
    EXPECT_EQ(gpu.dnn_engine, wanted) << nameOf(type);
  }
}

/// 1 + 2^-11 lies between two numbers of TF32 and is rounded away from zero.
TEST(ConvEngines, RoundToTf32WhereThePlanSaysSo) {
  for (bool tf32 : {false, true}) {
    FakeGpu gpu;
    PlanBuilder builder(1, TargetKind::cuda);
    uint32_t x = builder.variable("x", DataType::f32, {1, 1, 1, 1}),
             w = builder.variable("w", DataType::f32, {1, 1, 1, 1}),
             y = builder.buffer("y", DataType::f32, {1, 1, 1, 1});
    fb::ProgramT& program = builder.program("f");
    builder.conv(program.streams[0]->commands, fb::ConvKind::forward, x, w, y).tf32 = tf32;
    PlanBuilder::output(program, "y", y);
    Session session = open(builder);
    const float value = 1 + 0x1p-11f, one = 1;
    ASSERT_TRUE(session.writeVariable("x", std::as_bytes(std::span(&value, 1))).ok());
    ASSERT_TRUE(session.writeVariable("w", std::as_bytes(std::span(&one, 1))).ok());
    ProgramId f = programOf(session, "f");
    runOnce(session, f);
    EXPECT_EQ(valuesOf<float>(session.output(f, 0))[0], tf32 ? 1 + 0x1p-10f : value);
  }
}

TEST(ConvEngines, FitTheWorkspaceOrAreRefusedByName) {
  FakeGpu gpu;
  gpu.dnn_engines = {{.notes = {}, .workspace_bytes = 1024}};
  PlanBuilder builder(1, TargetKind::cuda);
  uint32_t x = builder.variable("x", DataType::f32, {4, 3, 9, 8}),
           w = builder.variable("w", DataType::f32, {5, 3, 3, 3}),
           y = builder.buffer("y", DataType::f32, {4, 5, 9, 8}),
           workspace = builder.buffer("workspace", DataType::i8, {1024});
  fb::ConvT& conv =
      builder.conv(builder.program("f").streams[0]->commands, fb::ConvKind::forward, x, w, y, 1);
  conv.workspace = builder.operand({workspace});
  Session session = open(builder);
  runOnce(session, programOf(session, "f"));
  conv.workspace = builder.operand({workspace, 0, 1023});
  EXPECT_EQ(Session::create(builder.parse()).message(),
            "program 'f': cuDNN " + std::to_string(CUDNN_MAJOR) + "." + std::to_string(CUDNN_MINOR) + "." +
                std::to_string(CUDNN_PATCHLEVEL) +
                " has no engine for this f32 convolution (forward, batch 4, input 3x9x8, filter 5x3x3x3) "
                "within 1023 bytes of workspace: compile with a newer gpuc, or update cuDNN (conv1)");
}

/// Operands in the middle of buffers, in slots, and moving in repeats: what is said of alignment must hold,
/// and every address must be known before the first step.
TEST(ConvAddresses, AreBoundWhenThePlanIsLoaded) {
  FakeGpu gpu;
  PlanBuilder builder(2, TargetKind::cuda);
  // x: 2 slots of 3 images of 1x2x2; w: 1x1x1x1 at an odd place; y: 3 images.
  uint32_t x = builder.slotBuffer("x", DataType::f32, {3, 1, 2, 2}),
           image = builder.buffer("image", DataType::f32, {1, 1, 2, 2}),
           w = builder.variable("w", DataType::f32, {2, 1, 1, 1}),
           one = builder.buffer("one", DataType::f32, {1, 1, 1, 1}),
           y = builder.buffer("y", DataType::f32, {2, 3, 2, 2});
  fb::ProgramT& program = builder.program("f");
  PlanBuilder::input(program, "x", x);
  PlanBuilder::output(program, "y", y);
  CommandList& outer = PlanBuilder::repeat(program.streams[0]->commands, 2);
  CommandList& inner = PlanBuilder::repeat(outer, 3);
  fb::ConvT& conv = builder.conv(inner, fb::ConvKind::forward, image, one, image);
  conv.a = builder.operand({x, 0, 16, {0, 16}});
  conv.b = builder.operand({w, 0, 4, {4, 0}});
  conv.c = builder.operand({y, 0, 16, {48, 16}});
  Session session = open(builder);
  const std::vector<float> filter = {2, 3};
  ASSERT_TRUE(session.writeVariable("w", std::as_bytes(std::span(filter))).ok());
  std::vector<float> batch = counting(12);
  const int64_t shape[] = {3, 1, 2, 2};
  ProgramId f = programOf(session, "f");
  for (int run = 0; run < 4; ++run) {
    gpu.clearLog();
    batch[0] = static_cast<float>(run);
    HostTensorView view = viewOf(batch, DataType::f32, shape);
    runOnce(session, f, {&view, 1});
    std::vector<float> expected;
    for (float factor : filter)
      for (float value : batch) expected.push_back(factor * value);
    EXPECT_EQ(valuesOf<float>(session.output(f, 0)), expected) << "run " << run;
    // The second run captures a graph for each slot.
    EXPECT_EQ(gpu.count("cudnnBackendExecute"), run == 0 ? 6u : run == 1 ? 2 * 6u : 0u);
    EXPECT_EQ(gpu.count("cudnnBackendCreateDescriptor") + gpu.count("cudnnSetStream"), 0u);
  }
}

TEST(ConvSteps, AllocateNothing) {
  FakeGpu gpu;
  Session session = open(smallPlan());
  std::vector<float> x(864), w(135), dy(1440);
  const int64_t x_shape[] = {4, 3, 9, 8}, w_shape[] = {5, 3, 3, 3}, y_shape[] = {4, 5, 9, 8};
  const HostTensorView inputs[] = {viewOf(x, DataType::f32, x_shape), viewOf(w, DataType::f32, w_shape),
                                   viewOf(dy, DataType::f32, y_shape)};
  ProgramId predict = programOf(session, "predict");
  auto work = [&] {
    for (int i = 0; i < 20; ++i) {
      gpu.clearLog();
      if (!session.run(predict, inputs).ok() || !session.wait().ok()) return false;
    }
    return true;
  };
  ASSERT_TRUE(work());
  AllocationCount before = allocationCount();
  bool worked = work();
  AllocationCount after = allocationCount();
  ASSERT_TRUE(worked);
  EXPECT_EQ(after.total() - before.total(), 0);
}

}  // namespace
}  // namespace gpuc::test
