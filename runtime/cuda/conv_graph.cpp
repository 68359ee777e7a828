#include <array>

#include "runtime/base/data_type.h"
#include "runtime/cuda/conv_engine.h"

namespace gpuc::cuda {
namespace {

Result<cudnnDataType_t> typeOf(fb::DataType type) {
  constexpr cudnnDataType_t kFloats[] = {CUDNN_DATA_DOUBLE, CUDNN_DATA_FLOAT, CUDNN_DATA_HALF,
                                         CUDNN_DATA_BFLOAT16};  // as DataType has them
  if (!isFloat(static_cast<DataType>(type)))
    return errorf("cuDNN has no convolution of %s", fb::EnumNameDataType(type));
  return kFloats[static_cast<size_t>(type)];
}

using Extents = std::array<int64_t, 4>;

/// Dense, in this order from the outermost dimension to the innermost.
Extents stridesOf(const Extents& extents, bool channels_last) {
  const std::array<size_t, 4> order =
      channels_last ? std::array<size_t, 4>{0, 2, 3, 1} : std::array<size_t, 4>{0, 1, 2, 3};
  Extents strides = {};
  int64_t stride = 1;
  for (auto dim = order.rbegin(); dim != order.rend(); ++dim) {
    strides[*dim] = stride;
    stride *= extents[*dim];
  }
  return strides;
}

struct Tensor {
  int64_t id;
  Extents extents;
  bool is_virtual = false;  // handed from operation to operation in f32, never stored
};

/// What all tensors of a convolution have in common.
struct Memory {
  cudnnDataType_t type;
  bool channels_last;
  int64_t alignment;
};

DnnDescriptor describeTensor(const Dnn& dnn, const Memory& memory, const Tensor& tensor) {
  DnnDescriptor result(dnn, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const Extents strides = stridesOf(tensor.extents, memory.channels_last);
  result.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, tensor.id);
  result.set(CUDNN_ATTR_TENSOR_DATA_TYPE, tensor.is_virtual ? CUDNN_DATA_FLOAT : memory.type);
  result.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, memory.alignment);
  result.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, tensor.extents.data());
  result.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides.data());
  result.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &tensor.is_virtual);
  result.finalize();
  return result;
}

/// result[i] = f(from[i]), or f(from[i], other[i]); `other` may be null.
struct Elementwise {
  cudnnPointwiseMode_t mode;
  const DnnDescriptor *from, *other, *result;
};

DnnDescriptor describeFunction(const Dnn& dnn, cudnnPointwiseMode_t mode) {
  DnnDescriptor function(dnn, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  function.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  function.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  function.finalize();
  return function;
}

DnnDescriptor describeOperation(const Dnn& dnn, const DnnDescriptor& function, const Elementwise& work) {
  DnnDescriptor operation(dnn, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, *work.from);
  if (work.other) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *work.other);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, *work.result);
  operation.finalize();
  return operation;
}

constexpr int64_t kSum = 5, kBiased = 6;  // names of what is never stored

/// What the three operations call their parts.
struct OperationNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t input, filter, output, windows, alpha, beta;
};

OperationNames namesOf(fb::ConvKind kind) {
  switch (kind) {
    case fb::ConvKind::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case fb::ConvKind::input_gradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case fb::ConvKind::filter_gradient:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

/// One number for the height, one for the width.
void setPair(DnnDescriptor& descriptor, cudnnBackendAttributeName_t name, uint64_t height, uint64_t width) {
  const int64_t values[] = {static_cast<int64_t>(height), static_cast<int64_t>(width)};
  descriptor.set(name, CUDNN_TYPE_INT64, 2, values);
}

int64_t extent(uint64_t number) { return static_cast<int64_t>(number); }

Extents outputExtents(const fb::Conv& conv) {
  return {extent(conv.batch()), extent(conv.out_channels()), extent(conv.height()->output()),
          extent(conv.width()->output())};
}

}  // namespace

Result<ConvGraph> ConvGraph::create(const Dnn& dnn, const DnnTarget& target, const fb::Conv& conv,
                                    uint32_t alignment) {
  ConvGraph result(dnn);
  GPUC_ASSIGN_OR_RETURN(result.type_, typeOf(conv.type()));
  result.describeTensors(conv, alignment);
  result.describeWindows(conv);
  if (conv.bias()) result.describeBias(conv, alignment);
  result.describeConvolution(conv);
  if (conv.bias()) result.describeEpilogue(conv);
  GPUC_RETURN_IF_ERROR(result.describeGraph(target));
  return result;
}

/// Groups follow from the filter, which has the input channels of one. cuDNN's extents are in the order (N,
/// C, H, W) however the elements lie.
void ConvGraph::describeTensors(const fb::Conv& conv, int64_t alignment) {
  const fb::ConvAxis &height = *conv.height(), &width = *conv.width();
  const Extents input = {extent(conv.batch()), extent(conv.in_channels()), extent(height.input()),
                         extent(width.input())};
  const Extents filter = {extent(conv.out_channels()), extent(conv.in_channels() / conv.groups()),
                          extent(height.kernel()), extent(width.kernel())};
  const Memory memory = {type_, conv.channels_last(), alignment};
  input_ = describeTensor(*dnn_, memory, {kInput, input});
  filter_ = describeTensor(*dnn_, memory, {kFilter, filter});
  output_ = describeTensor(*dnn_, memory, {kOutput, outputExtents(conv)});
}

/// The bias, one element for each channel, and what stands between the convolution and its result.
void ConvGraph::describeBias(const fb::Conv& conv, int64_t alignment) {
  const Memory memory = {type_, conv.channels_last(), alignment};
  const Extents channels = {1, extent(conv.out_channels()), 1, 1};
  bias_ = describeTensor(*dnn_, memory, {kBias, channels});
  sum_ = describeTensor(*dnn_, memory, {kSum, outputExtents(conv), true});
  if (conv.relu()) biased_ = describeTensor(*dnn_, memory, {kBiased, outputExtents(conv), true});
}

/// f16 and bf16 are summed in f32.
void ConvGraph::describeWindows(const fb::Conv& conv) {
  const fb::ConvAxis &height = *conv.height(), &width = *conv.width();
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  windows_ = DnnDescriptor(*dnn_, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  windows_.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
               type_ == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
  windows_.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  windows_.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2});
  setPair(windows_, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, height.stride(), width.stride());
  setPair(windows_, CUDNN_ATTR_CONVOLUTION_DILATIONS, height.dilation(), width.dilation());
  setPair(windows_, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, height.low(), width.low());
  setPair(windows_, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, height.high(), width.high());
  windows_.finalize();
}

void ConvGraph::describeConvolution(const fb::Conv& conv) {
  const OperationNames names = namesOf(conv.kind());
  DnnDescriptor operation(*dnn_, names.operation);
  operation.set(names.input, input_);
  operation.set(names.filter, filter_);
  operation.set(names.output, conv.bias() ? sum_ : output_);
  operation.set(names.windows, windows_);
  // result = 1 · convolution + 0 · result
  const double wide[] = {1, 0};
  const float narrow[] = {1, 0};
  const bool is_wide = type_ == CUDNN_DATA_DOUBLE;
  const auto type = is_wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
  auto scalar = [&](int i) { return is_wide ? static_cast<const void*>(&wide[i]) : &narrow[i]; };
  operation.set(names.alpha, type, 1, scalar(0));
  operation.set(names.beta, type, 1, scalar(1));
  operation.finalize();
  operations_.push_back(std::move(operation));
}

/// The bias is added to each f32 sum, and relu taken of that, before it is rounded to the result's type.
void ConvGraph::describeEpilogue(const fb::Conv& conv) {
  std::vector<Elementwise> steps = {{CUDNN_POINTWISE_ADD, &sum_, &bias_, conv.relu() ? &biased_ : &output_}};
  if (conv.relu()) steps.push_back({CUDNN_POINTWISE_RELU_FWD, &biased_, nullptr, &output_});
  for (const Elementwise& step : steps) {
    functions_.push_back(describeFunction(*dnn_, step.mode));
    operations_.push_back(describeOperation(*dnn_, functions_.back(), step));
  }
}

Status ConvGraph::describeGraph(const DnnTarget& target) {
  graph_ = DnnDescriptor(*dnn_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (target.handle) graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_);
  return graph_.finalize();
}

}  // namespace gpuc::cuda
