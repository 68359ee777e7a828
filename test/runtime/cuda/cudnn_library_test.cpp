// The real cuDNN, asked what it would do on GPUs that are not there: its heuristics and execution plans need
// no more than a description of the device. So the descriptors, the rules and the workspaces are those that
// the library itself takes; only running needs a GPU. Skipped where cuDNN is not installed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cinttypes>
#include <string>

#include "runtime/cuda/conv_engine.h"
#include "runtime/workspace/conv_cudnn_workspace.h"

namespace gpuc::cuda {
namespace {

// As cudnnGetDeviceProperties… would write them; how fast it is and how much it holds sways the heuristics.
constexpr char kH200[] = R"({"deviceName": "NVIDIA H200", "deviceVer": 900, "multiProcessorCount": 132,
  "maxSharedMemoryPerBlockOptin": 232448, "totalGlobalMem": 150754820096, "smClockRateKHz": 1980000,
  "memClockRateKHz": 3201000, "l2CacheSize": 62914560, "maxCtasPerSM": 32, "maxThreadsPerSM": 2048,)";
constexpr char kA100[] = R"({"deviceName": "NVIDIA A100", "deviceVer": 800, "multiProcessorCount": 108,
  "maxSharedMemoryPerBlockOptin": 166912, "totalGlobalMem": 85024112640, "smClockRateKHz": 1410000,
  "memClockRateKHz": 1593000, "l2CacheSize": 41943040, "maxCtasPerSM": 32, "maxThreadsPerSM": 2048,)";
constexpr char kL4[] = R"({"deviceName": "NVIDIA L4", "deviceVer": 890, "multiProcessorCount": 58,
  "maxSharedMemoryPerBlockOptin": 101376, "totalGlobalMem": 23609475072, "smClockRateKHz": 2040000,
  "memClockRateKHz": 6251000, "l2CacheSize": 50331648, "maxCtasPerSM": 24, "maxThreadsPerSM": 1536,)";
constexpr char kAll[] = R"("maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
  "regsPerBlock": 65536, "warpSize": 32, "maxSharedMemoryPerBlock": 49152,
  "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxThreadsPerBlock": 1024,
  "pciDeviceId": 0, "isTccDriver": 0, "supportCoopLaunch": 1, "cudaDeviceId": 0,
  "driverVer": 13000})";

Result<DnnDescriptor> describe(const Dnn& dnn, const std::string& device) {
  const std::string text = device + kAll;
  DnnDescriptor properties(dnn, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  properties.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                 static_cast<int64_t>(text.size() + 1), text.c_str());
  GPUC_RETURN_IF_ERROR(properties.finalize());
  return properties;
}

ConvAxis axisOf(int64_t input, int64_t kernel, int64_t stride, int64_t low, int64_t high, int64_t dilation) {
  return {.input = input,
          .output = (input + low + high - (kernel - 1) * dilation - 1) / stride + 1,
          .kernel = kernel,
          .stride = stride,
          .low = low,
          .high = high,
          .dilation = dilation};
}

struct Case {
  const char* name;
  int64_t batch, in_channels, size, out_channels, kernel, stride, low, high, dilation, groups;

  ConvShape shape(ConvKind kind, DataType type) const {
    const ConvAxis axis = axisOf(size, kernel, stride, low, high, dilation);
    return {.kind = kind,
            .type = type,
            .batch = batch,
            .groups = groups,
            .in_channels = in_channels,
            .out_channels = out_channels,
            .height = axis,
            .width = axis};
  }
};

// The zoo's, and what no model of it has.
const Case kCases[] = {{"convnet_1", 64, 1, 28, 32, 3, 1, 1, 1, 1, 1},
                       {"convnet_2", 64, 32, 14, 64, 3, 1, 1, 1, 1, 1},
                       {"stem", 32, 3, 224, 64, 7, 2, 3, 3, 1, 1},
                       {"block_64", 32, 64, 56, 64, 3, 1, 1, 1, 1, 1},
                       {"block_128_strided", 32, 128, 56, 128, 3, 2, 1, 1, 1, 1},
                       {"block_512", 32, 512, 7, 512, 3, 1, 1, 1, 1, 1},
                       {"widening", 32, 64, 56, 256, 1, 1, 0, 0, 1, 1},
                       {"shortcut", 32, 256, 56, 512, 1, 2, 0, 0, 1, 1},
                       {"odd_channels", 3, 5, 9, 7, 3, 1, 1, 1, 1, 1},
                       {"asymmetric", 4, 8, 12, 8, 3, 2, 0, 1, 1, 1},
                       {"dilated_groups", 4, 8, 12, 8, 3, 1, 2, 2, 2, 2},
                       {"depthwise", 8, 32, 20, 32, 3, 1, 1, 1, 1, 32}};

/// The command as the plan file holds it.
class Command {
 public:
  explicit Command(const ConvShape& shape, bool bias = false, bool relu = false) {
    fb::ConvT conv;
    if (bias) conv.bias = std::make_unique<fb::OperandT>();
    conv.relu = relu;
    conv.kind = static_cast<fb::ConvKind>(shape.kind);
    conv.type = static_cast<fb::DataType>(shape.type);
    conv.batch = static_cast<uint64_t>(shape.batch);
    conv.groups = static_cast<uint64_t>(shape.groups);
    conv.in_channels = static_cast<uint64_t>(shape.in_channels);
    conv.out_channels = static_cast<uint64_t>(shape.out_channels);
    conv.channels_last = shape.channels_last;
    for (auto [axis, entry] : {std::pair(&shape.height, &conv.height), {&shape.width, &conv.width}})
      *entry = std::make_unique<fb::ConvAxis>(axis->input, axis->output, axis->kernel, axis->stride,
                                              axis->low, axis->high, axis->dilation);
    builder_.Finish(fb::Conv::Pack(builder_, &conv));
  }
  const fb::Conv& get() const { return *flatbuffers::GetRoot<fb::Conv>(builder_.GetBufferPointer()); }

 private:
  flatbuffers::FlatBufferBuilder builder_;
};

Result<bool> usesTensorCores(const Dnn& dnn, const ConvEngine& chosen) {
  DnnDescriptor engine(dnn, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.get();
  GPUC_RETURN_IF_ERROR(
      chosen.config.read(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw).status());
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT] = {};
  GPUC_ASSIGN_OR_RETURN(int64_t count,
                        engine.read(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                    CUDNN_NUMERICAL_NOTE_TYPE_COUNT, notes));
  return std::find(notes, notes + count, CUDNN_NUMERICAL_NOTE_TENSOR_CORE) != notes + count;
}

/// A GPU, and whether the workspaces were measured for it: each first choice has room then, and tensor cores
/// are used where there is enough to multiply. Of others it is asked no more than that some engine fits.
struct Gpu {
  const char* properties;
  bool is_measured;
};
constexpr Gpu kGpus[] = {{kH200, true}, {kA100, true}, {kL4, false}};

/// Whether the engine that is chosen runs on tensor cores. Error: there is none, or cuDNN's first choice has
/// no room in the workspace although it has to.
Result<bool> chosenUsesTensorCores(const Dnn& dnn, const DnnTarget& target, const Command& command,
                                   const EngineRules& rules, bool is_measured) {
  GPUC_ASSIGN_OR_RETURN(ConvGraph graph, ConvGraph::create(dnn, target, command.get(), 64));
  GPUC_ASSIGN_OR_RETURN(std::optional<ConvEngine> engine, chooseEngine(dnn, target, graph, rules));
  if (!engine) return errorf("none fits in %" PRIu64 " bytes", rules.workspace_bytes);
  EngineRules unbounded = rules;
  unbounded.workspace_bytes = ~uint64_t{0};
  GPUC_ASSIGN_OR_RETURN(std::optional<ConvEngine> wanted, chooseEngine(dnn, target, graph, unbounded));
  if (is_measured && wanted->workspace_bytes > rules.workspace_bytes)
    return errorf("the first choice takes %" PRIu64 " bytes of %" PRIu64, wanted->workspace_bytes,
                  rules.workspace_bytes);
  return usesTensorCores(dnn, *engine);
}

class Library : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Shapes, Library, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST_P(Library, HasAnEngineForEveryConvolution) {
  Result<const Dnn*> dnn = Dnn::get();
  if (!dnn.ok()) GTEST_SKIP() << dnn.message();
  if ((*dnn)->cudnnGetVersion() < 90800) GTEST_SKIP() << "cuDNN before 9.8 asks a GPU";
  for (const auto& [device, is_measured] : kGpus) {
    Result<DnnDescriptor> properties = describe(**dnn, device);
    ASSERT_TRUE(properties.ok()) << properties.message();
    const DnnTarget target = {.properties = &*properties};
    for (ConvKind kind : {ConvKind::forward, ConvKind::input_gradient, ConvKind::filter_gradient})
      for (auto [type, tf32, channels_last] : {std::tuple{DataType::f32, false, false},
                                               {DataType::f32, true, false},
                                               {DataType::f32, true, true},
                                               {DataType::f64, false, false},
                                               {DataType::f16, false, false},
                                               {DataType::f16, false, true},
                                               {DataType::bf16, false, false},
                                               {DataType::bf16, false, true}}) {
        ConvShape shape = GetParam().shape(kind, type);
        shape.channels_last = channels_last;
        const bool narrow = sizeOf(type) == 2, exact = type == DataType::f32 && !tf32;
        SCOPED_TRACE(std::string(device).substr(16, 11) + ", kind " + std::to_string(int(kind)) + ", " +
                     nameOf(type) + (tf32 ? " as tf32" : "") + (channels_last ? ", channels last" : ""));
        const EngineRules rules = {.workspace_bytes = static_cast<uint64_t>(cudnnWorkspaceBytes(shape, tf32)),
                                   .tensor_cores = !exact};
        const Command command(shape);
        Result<bool> tensor_cores = chosenUsesTensorCores(**dnn, target, command, rules, is_measured);
        ASSERT_TRUE(tensor_cores.ok()) << tensor_cores.message();
        if (exact) EXPECT_FALSE(*tensor_cores);
        // Where there is enough to multiply.
        if (is_measured && (narrow || tf32) && GetParam().in_channels >= 32 && GetParam().groups == 1)
          EXPECT_TRUE(*tensor_cores);
      }
  }
}

/// With a bias, and with relu behind it: an engine, in the workspace of the convolution alone.
TEST_P(Library, HasAnEngineForABiasAndRelu) {
  Result<const Dnn*> dnn = Dnn::get();
  if (!dnn.ok()) GTEST_SKIP() << dnn.message();
  if ((*dnn)->cudnnGetVersion() < 90800) GTEST_SKIP() << "cuDNN before 9.8 asks a GPU";
  for (const auto& [device, is_measured] : kGpus) {
    Result<DnnDescriptor> properties = describe(**dnn, device);
    ASSERT_TRUE(properties.ok()) << properties.message();
    const DnnTarget target = {.properties = &*properties};
    for (auto [type, tf32, channels_last] : {std::tuple{DataType::f32, false, false},
                                             {DataType::f32, true, false},
                                             {DataType::f32, true, true},
                                             {DataType::f16, false, false},
                                             {DataType::f16, false, true},
                                             {DataType::bf16, false, false},
                                             {DataType::bf16, false, true}})
      for (bool relu : {false, true}) {
        const bool exact = type == DataType::f32 && !tf32;
        SCOPED_TRACE(std::string(device).substr(16, 11) + ", " + nameOf(type) + (tf32 ? " as tf32" : "") +
                     (relu ? ", relu" : "") + (channels_last ? ", channels last" : ""));
        ConvShape shape = GetParam().shape(ConvKind::forward, type);
        shape.channels_last = channels_last;
        const EngineRules rules = {.workspace_bytes = static_cast<uint64_t>(cudnnWorkspaceBytes(shape, tf32)),
                                   .tensor_cores = !exact};
        const Command command(shape, /*bias=*/true, relu);
        Result<bool> tensor_cores = chosenUsesTensorCores(**dnn, target, command, rules, is_measured);
        ASSERT_TRUE(tensor_cores.ok()) << tensor_cores.message();
        if (exact) EXPECT_FALSE(*tensor_cores);
        if (is_measured && !exact && GetParam().in_channels >= 32 && GetParam().groups == 1)
          EXPECT_TRUE(*tensor_cores);
      }
  }
}

}  // namespace
}  // namespace gpuc::cuda
