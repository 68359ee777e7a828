// cuDNN's functions on a FakeGpu: descriptors keep what they are given, and refuse what the library's pages
// say that it refuses.
#include "test/runtime/cuda/fake_dnn.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "test/runtime/cuda/fake_gpu.h"

namespace gpuc::test {
namespace {

struct Attribute {
  cudnnBackendAttributeType_t type;
  int64_t count;
  std::vector<std::byte> bytes;
};

struct Descriptor {
  cudnnBackendDescriptorType_t type;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes;
  bool finalized = false;
  size_t engine = 0;                  // of an engine and its config
  const Descriptor* graph = nullptr;  // of a graph and what comes of it
};

struct Context {
  FakeStream* stream = nullptr;
};

FakeGpu& gpu() { return *FakeGpu::current; }

#define GPUC_FAKE_ENTER(call)                                                                \
  if (cudnnStatus_t gpuc_status = gpu().enterDnn(call); gpuc_status != CUDNN_STATUS_SUCCESS) \
  return gpuc_status

cudnnStatus_t misuse(const char* what) {
  gpu().misuse(what);
  return CUDNN_STATUS_BAD_PARAM;
}

/// Null, and the test fails, for what was never made or given back.
template <typename T>
T* find(void* handle) {
  if (gpu().descriptions.count(handle)) return static_cast<T*>(handle);
  gpu().misuse("an object of cuDNN that is not there");
  return nullptr;
}

uint64_t bytesOf(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    default:
      return 4;  // enumerations, float
  }
}

// Attributes of a descriptor that was finalized, so that they are there.

template <typename T>
T valueOf(const Descriptor& descriptor, cudnnBackendAttributeName_t name, size_t index = 0) {
  T value;
  std::memcpy(&value, descriptor.attributes.at(name).bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

const Descriptor& partOf(const Descriptor& descriptor, cudnnBackendAttributeName_t name, size_t index = 0) {
  return *valueOf<const Descriptor*>(descriptor, name, index);
}

int64_t countOf(const Descriptor& descriptor, cudnnBackendAttributeName_t name) {
  auto found = descriptor.attributes.find(name);
  return found == descriptor.attributes.end() ? 0 : found->second.count;
}

using Pair = std::array<int64_t, 2>;
Pair pairOf(const Descriptor& descriptor, cudnnBackendAttributeName_t name) {
  return {valueOf<int64_t>(descriptor, name, 0), valueOf<int64_t>(descriptor, name, 1)};
}

FakeTensor tensorOf(const Descriptor& descriptor) {
  FakeTensor tensor;
  tensor.type = valueOf<cudnnDataType_t>(descriptor, CUDNN_ATTR_TENSOR_DATA_TYPE);
  tensor.alignment = valueOf<int64_t>(descriptor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  for (size_t dim = 0; dim < 4; ++dim) {
    tensor.extents[dim] = valueOf<int64_t>(descriptor, CUDNN_ATTR_TENSOR_DIMENSIONS, dim);
    tensor.strides[dim] = valueOf<int64_t>(descriptor, CUDNN_ATTR_TENSOR_STRIDES, dim);
  }
  return tensor;
}

bool isVirtual(const Descriptor& tensor) { return valueOf<bool>(tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL); }

// What each kind of descriptor must have been given: name, type, how many.

constexpr int64_t kAnyCount = -1;

struct Needed {
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  int64_t count;
};

struct OperationNames {
  FakeConvolution::Kind kind;
  cudnnBackendAttributeName_t input, filter, output, windows, alpha, beta;
};

const std::map<cudnnBackendDescriptorType_t, OperationNames>& operations() {
  static const std::map<cudnnBackendDescriptorType_t, OperationNames> table = {
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
       {FakeConvolution::Kind::forward, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA}},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
       {FakeConvolution::Kind::input_gradient, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA}},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       {FakeConvolution::Kind::filter_gradient, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}}};
  return table;
}

std::vector<Needed> neededBy(cudnnBackendDescriptorType_t type) {
  constexpr auto kPart = CUDNN_TYPE_BACKEND_DESCRIPTOR;
  switch (type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return {{CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1},
              {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1},
              {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1},
              {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4},
              {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4},
              {CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1}};
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return {{CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1},
              {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1},
              {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1},
              {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2},
              {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2},
              {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2},
              {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2}};
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return {{CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1},
              {CUDNN_ATTR_OPERATIONGRAPH_OPS, kPart, kAnyCount}};
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
      return {{CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1},
              {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1}};
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kPart, 1},
              {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, kPart, 1},
              {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, kPart, 1}};
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return {{CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, kPart, 1},
              {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1}};
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return {{CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1},
              {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, kPart, 1}};
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return {{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, kAnyCount},
              {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, kAnyCount},
              {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1}};
    default: {
      auto operation = operations().find(type);
      if (operation == operations().end()) return {};
      const OperationNames& names = operation->second;
      return {{names.input, kPart, 1},
              {names.filter, kPart, 1},
              {names.output, kPart, 1},
              {names.windows, kPart, 1}};
    }
  }
}

/// 1 for alpha and 0 for beta, in the type that belongs to the tensors'.
bool scales(const Descriptor& operation, const OperationNames& names, cudnnDataType_t type) {
  const bool wide = type == CUDNN_DATA_DOUBLE;
  for (auto [name, wanted] : {std::pair(names.alpha, 1.0), {names.beta, 0.0}}) {
    auto found = operation.attributes.find(name);
    if (found == operation.attributes.end() || found->second.count != 1 ||
        found->second.type != (wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT))
      return false;
    if ((wide ? valueOf<double>(operation, name) : valueOf<float>(operation, name)) != wanted) return false;
  }
  return true;
}

FakeConvolution convolutionOf(const Descriptor& operation) {
  const OperationNames& names = operations().at(operation.type);
  const Descriptor& windows = partOf(operation, names.windows);
  return {.kind = names.kind,
          .input = tensorOf(partOf(operation, names.input)),
          .filter = tensorOf(partOf(operation, names.filter)),
          .output = tensorOf(partOf(operation, names.output)),
          .strides = pairOf(windows, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
          .dilations = pairOf(windows, CUDNN_ATTR_CONVOLUTION_DILATIONS),
          .low = pairOf(windows, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
          .high = pairOf(windows, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS)};
}

/// What is wrong with a convolution; null if nothing is.
const char* wrongConvolution(const Descriptor& operation) {
  const OperationNames& names = operations().at(operation.type);
  const FakeConvolution conv = convolutionOf(operation);
  const auto &x = conv.input.extents, &w = conv.filter.extents, &y = conv.output.extents;
  const bool is_virtual = isVirtual(partOf(operation, names.output));
  if (conv.input.type != conv.filter.type || (!is_virtual && conv.input.type != conv.output.type) ||
      !scales(operation, names, conv.input.type))
    return "a convolution of unlike types, or one that scales or adds";
  if (x[0] != y[0] || w[0] != y[1] || x[1] % w[1] != 0 || w[0] % (x[1] / w[1]) != 0)
    return "a convolution of shapes that do not fit";
  for (size_t axis = 0; axis < 2; ++axis) {
    int64_t reach = (w[2 + axis] - 1) * conv.dilations[axis] + 1;
    int64_t room = x[2 + axis] + conv.low[axis] + conv.high[axis] - reach;
    if (room < 0 || room / conv.strides[axis] + 1 != y[2 + axis])
      return "a convolution of windows that do not fit";
  }
  const Descriptor& windows = partOf(operation, names.windows);
  const auto computed = valueOf<cudnnDataType_t>(windows, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
  if (computed != (conv.input.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT) ||
      valueOf<cudnnConvolutionMode_t>(windows, CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION)
    return "a convolution that sums in another type, or is none but a cross-correlation";
  return nullptr;
}

/// The n-th operation of a graph: first the convolution, then what follows it.
const Descriptor& operationOf(const Descriptor& graph, size_t n) {
  return partOf(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, n);
}

cudnnPointwiseMode_t modeOf(const Descriptor& operation) {
  return valueOf<cudnnPointwiseMode_t>(partOf(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR),
                                       CUDNN_ATTR_POINTWISE_MODE);
}

/// What the last operation of the graph writes; of a gradient alone, what stands in the place of the output.
const Descriptor& resultOf(const Descriptor& graph) {
  const auto last = static_cast<size_t>(countOf(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS)) - 1;
  const Descriptor& operation = operationOf(graph, last);
  return partOf(operation,
                last == 0 ? operations().at(operation.type).output : CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
}

/// What is wrong with a graph; null if nothing is. The library has engines for a convolution alone, for one
/// with a bias of its channels, though not of f64, and for relu behind that: 1, 2 or 3 operations, each of
/// what the one before it wrote, in f32, of which only the last is stored.
const char* wrongGraph(const Descriptor& graph) {
  const int64_t count = countOf(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  const Descriptor& convolution = operationOf(graph, 0);
  if (!operations().count(convolution.type) || count > 3) return "a graph that is no convolution";
  const OperationNames& names = operations().at(convolution.type);
  const cudnnDataType_t type = tensorOf(partOf(convolution, names.input)).type;
  if (count > 1 && (names.kind != FakeConvolution::Kind::forward || type == CUDNN_DATA_DOUBLE))
    return "a bias behind a gradient, or of f64";
  const Descriptor* written = &partOf(convolution, names.output);
  for (size_t n = 1; n < static_cast<size_t>(count); ++n) {
    const Descriptor& operation = operationOf(graph, n);
    if (operation.type != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR ||
        modeOf(operation) != (n == 1 ? CUDNN_POINTWISE_ADD : CUDNN_POINTWISE_RELU_FWD))
      return "something else behind a convolution than a bias and then relu";
    if (!isVirtual(*written) || tensorOf(*written).type != CUDNN_DATA_FLOAT ||
        &partOf(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC) != written)
      return "an operation that is not of what the one before it wrote, in f32 and not stored";
    if (n == 1) {
      const FakeTensor bias = tensorOf(partOf(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
      const std::array<int64_t, 4> channels = {1, tensorOf(*written).extents[1], 1, 1};
      if (bias.extents != channels || bias.type != type)
        return "a bias that has not one element for each channel, or is of another type";
    }
    const Descriptor& result = partOf(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    if (tensorOf(result).extents != tensorOf(*written).extents) return "an epilogue of another shape";
    written = &result;
  }
  if (isVirtual(*written)) return "a result that is not stored";
  return tensorOf(*written).type == type ? nullptr : "a result of another type than the input";
}

// The functions

size_t version() { return gpu().dnn_version; }

const char* errorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED" : "the fake's words";
}

void lastErrorString(char* message, size_t size) { std::strncpy(message, "the\nreason", size); }

template <typename T>
T* make() {
  auto object = std::make_shared<T>();
  gpu().descriptions[object.get()] = object;
  return object.get();
}

cudnnStatus_t create(cudnnHandle_t* handle) {
  GPUC_FAKE_ENTER("cudnnCreate");
  *handle = reinterpret_cast<cudnnHandle_t>(make<Context>());
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t destroy(cudnnHandle_t handle) {
  GPUC_FAKE_ENTER("cudnnDestroy");
  if (!gpu().descriptions.erase(handle)) return misuse("a context of cuDNN that was given back before");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t setStream(cudnnHandle_t handle, cudaStream_t stream) {
  GPUC_FAKE_ENTER("cudnnSetStream");
  Context* context = find<Context>(handle);
  if (context) context->stream = gpu().find(stream);
  return context && context->stream ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t createDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* handle) {
  GPUC_FAKE_ENTER("cudnnBackendCreateDescriptor");
  auto* descriptor = make<Descriptor>();
  descriptor->type = type;
  *handle = descriptor;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t destroyDescriptor(cudnnBackendDescriptor_t handle) {
  GPUC_FAKE_ENTER("cudnnBackendDestroyDescriptor");
  if (!gpu().descriptions.erase(handle)) return misuse("a descriptor that was given back before");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t setAttribute(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  GPUC_FAKE_ENTER("cudnnBackendSetAttribute");
  auto* descriptor = find<Descriptor>(handle);
  if (!descriptor) return CUDNN_STATUS_BAD_PARAM;
  if (descriptor->finalized) return misuse("an attribute of a descriptor that is finalized");
  auto* bytes = static_cast<const std::byte*>(values);
  descriptor->attributes[name] = {
      type, count, std::vector<std::byte>(bytes, bytes + static_cast<uint64_t>(count) * bytesOf(type))};
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) return CUDNN_STATUS_SUCCESS;
  for (int64_t i = 0; i < count; ++i) {
    auto* part = find<Descriptor>(valueOf<void*>(*descriptor, name, static_cast<size_t>(i)));
    if (!part) return CUDNN_STATUS_BAD_PARAM;
    if (!part->finalized) return misuse("a descriptor is used before it is finalized");
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize(cudnnBackendDescriptor_t handle) {
  GPUC_FAKE_ENTER("cudnnBackendFinalize");
  auto* descriptor = find<Descriptor>(handle);
  if (!descriptor) return CUDNN_STATUS_BAD_PARAM;
  for (const Needed& needed : neededBy(descriptor->type)) {
    auto found = descriptor->attributes.find(needed.name);
    if (found == descriptor->attributes.end() || found->second.type != needed.type ||
        (needed.count != kAnyCount && found->second.count != needed.count))
      return misuse("a descriptor lacks an attribute, or has it of another type or length");
  }
  if (operations().count(descriptor->type)) {
    if (const char* wrong = wrongConvolution(*descriptor)) return misuse(wrong);
  } else if (descriptor->type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
    if (const char* wrong = wrongGraph(*descriptor)) return misuse(wrong);
    descriptor->graph = descriptor;
  } else if (descriptor->type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) {
    descriptor->graph = partOf(*descriptor, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).graph;
  } else if (descriptor->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    const Descriptor& config = partOf(*descriptor, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    descriptor->engine = config.engine;
    descriptor->graph = config.graph;
    if (!gpu().dnn_engines[config.engine].supported) return CUDNN_STATUS_NOT_SUPPORTED;
  }
  descriptor->finalized = true;
  return CUDNN_STATUS_SUCCESS;
}

/// The engines that the fake suggests in this mode. One more is counted than there is, as cuDNN does.
cudnnStatus_t readSuggestions(const Descriptor& heuristics, int64_t most, int64_t* count, void* values) {
  const auto mode = valueOf<cudnnBackendHeurMode_t>(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE);
  std::vector<size_t> engines;
  for (size_t i = 0; i < gpu().dnn_engines.size(); ++i)
    if (gpu().dnn_engines[i].fallback == (mode == CUDNN_HEUR_MODE_FALLBACK)) engines.push_back(i);
  *count = static_cast<int64_t>(engines.size()) + (values ? 0 : 1);
  for (size_t i = 0; values && i < engines.size() && i < static_cast<size_t>(most); ++i) {
    auto* config = find<Descriptor>(static_cast<void**>(values)[i]);
    if (!config || config->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR) return CUDNN_STATUS_BAD_PARAM;
    config->engine = engines[i];
    config->graph = heuristics.graph;
    config->finalized = true;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t getAttribute(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t, int64_t most, int64_t* count, void* values) {
  GPUC_FAKE_ENTER("cudnnBackendGetAttribute");
  auto* descriptor = find<Descriptor>(handle);
  if (!descriptor) return CUDNN_STATUS_BAD_PARAM;
  if (!descriptor->finalized) return misuse("an attribute is read before its descriptor is finalized");
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      return readSuggestions(*descriptor, most, count, values);
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
      auto* engine = find<Descriptor>(*static_cast<void**>(values));
      if (!engine) return CUDNN_STATUS_BAD_PARAM;
      engine->engine = descriptor->engine;
      engine->finalized = true;
      *count = 1;
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: {
      const auto& notes = gpu().dnn_engines[descriptor->engine].notes;
      *count = static_cast<int64_t>(notes.size());
      std::copy_n(notes.begin(), std::min<size_t>(notes.size(), static_cast<size_t>(most)),
                  static_cast<cudnnBackendNumericalNote_t*>(values));
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      *static_cast<int64_t*>(values) =
          static_cast<int64_t>(gpu().dnn_engines[descriptor->engine].workspace_bytes);
      *count = 1;
      return CUDNN_STATUS_SUCCESS;
    default:
      return misuse("an attribute that the fake does not have");
  }
}

/// Sets the address of the tensor that the pack knows by its name. False if there is none.
bool findAddress(const Descriptor& pack, const Descriptor& tensor, void*& address) {
  const auto id = valueOf<int64_t>(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID);
  for (size_t i = 0; i < static_cast<size_t>(countOf(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)); ++i)
    if (valueOf<int64_t>(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i) == id)
      return address = valueOf<void*>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, i), true;
  return false;
}

const char* wrongAddress(const FakeTensor& tensor, const void* address) {
  if (!gpu().holds(address, tensor.spanBytes(), false)) return "a convolution where no memory is";
  if (reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(tensor.alignment) != 0)
    return "a convolution of addresses that are aligned to less than was said";
  return nullptr;
}

/// The same. Null, or what is wrong with it.
const char* placeTensor(const Descriptor& pack, const Descriptor& tensor, void*& address) {
  if (!findAddress(pack, tensor, address)) return "a pack of addresses that lacks a tensor";
  return wrongAddress(tensorOf(tensor), address);
}

cudnnStatus_t execute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan_handle,
                      cudnnBackendDescriptor_t pack_handle) {
  GPUC_FAKE_ENTER("cudnnBackendExecute");
  auto* context = find<Context>(handle);
  auto *plan = find<Descriptor>(plan_handle), *pack = find<Descriptor>(pack_handle);
  if (!context || !plan || !pack) return CUDNN_STATUS_BAD_PARAM;
  if (!plan->finalized || !pack->finalized || !context->stream)
    return misuse("a convolution without a stream, or before its plan or pack is finalized");
  const Descriptor &graph = *plan->graph, &convolution = operationOf(graph, 0);
  const OperationNames& names = operations().at(convolution.type);
  FakeConvolution work = convolutionOf(convolution);
  work.output = tensorOf(resultOf(graph));
  const char* wrong = nullptr;
  auto place = [&](const Descriptor& tensor, void*& address) {
    if (!wrong) wrong = placeTensor(*pack, tensor, address);
  };
  place(partOf(convolution, names.input), work.x);
  place(partOf(convolution, names.filter), work.w);
  const int64_t count = countOf(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  place(resultOf(graph), work.y);
  if (count > 1) {
    const Descriptor& bias = partOf(operationOf(graph, 1), CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    work.bias_tensor = tensorOf(bias);
    place(bias, work.bias);
  }
  work.relu = count > 2;
  if (wrong) return misuse(wrong);
  const uint64_t workspace = gpu().dnn_engines[plan->engine].workspace_bytes;
  if (workspace > 0 &&
      !gpu().holds(valueOf<void*>(*pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE), workspace, false))
    return misuse("a convolution without the workspace that its engine needs");
  gpu().dnn_engine = plan->engine;
  const auto& notes = gpu().dnn_engines[plan->engine].notes;
  work.tf32 = work.input.type == CUDNN_DATA_FLOAT &&
              std::find(notes.begin(), notes.end(), CUDNN_NUMERICAL_NOTE_TENSOR_CORE) != notes.end();
  gpu().enqueue(*context->stream, FakeWork::Kind::conv, "cudnnBackendExecute").conv = work;
  gpu().enqueued();
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

std::vector<FakeEngine> fakeEngines() {
  return {{.notes = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}},
          {.notes = {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}},
          {.notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION}},
          {.notes = {CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6}},
          {.notes = {}, .workspace_bytes = uint64_t{1} << 50},
          {.notes = {}, .supported = false},
          {.notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}},
          {.notes = {CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP}, .fallback = true}};
}

cuda::Dnn fakeDnn() {
  cuda::Dnn dnn;
  dnn.cudnnGetVersion = version;
  dnn.cudnnGetErrorString = errorString;
  dnn.cudnnGetLastErrorString = lastErrorString;
  dnn.cudnnCreate = create;
  dnn.cudnnDestroy = destroy;
  dnn.cudnnSetStream = setStream;
  dnn.cudnnBackendCreateDescriptor = createDescriptor;
  dnn.cudnnBackendDestroyDescriptor = destroyDescriptor;
  dnn.cudnnBackendSetAttribute = setAttribute;
  dnn.cudnnBackendGetAttribute = getAttribute;
  dnn.cudnnBackendFinalize = finalize;
  dnn.cudnnBackendExecute = execute;
  return dnn;
}

}  // namespace gpuc::test
