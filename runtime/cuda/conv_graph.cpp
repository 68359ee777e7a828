#include "runtime/cuda/conv_graph.h"

#include <array>

namespace gpuc::cuda {
namespace {

Result<cudnnDataType_t> typeOf(fb::DataType type) {
  switch (type) {
    case fb::DataType::f64:
      return CUDNN_DATA_DOUBLE;
    case fb::DataType::f32:
      return CUDNN_DATA_FLOAT;
    case fb::DataType::f16:
      return CUDNN_DATA_HALF;
    case fb::DataType::bf16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return errorf("cuDNN has no convolution of %s", fb::EnumNameDataType(type));
  }
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

Result<DnnDescriptor> describeTensor(const Dnn& dnn, int64_t id, cudnnDataType_t type, const Extents& extents,
                                     bool channels_last, int64_t alignment) {
  GPUC_ASSIGN_OR_RETURN(DnnDescriptor tensor, DnnDescriptor::create(dnn, CUDNN_BACKEND_TENSOR_DESCRIPTOR));
  const Extents strides = stridesOf(extents, channels_last);
  GPUC_RETURN_IF_ERROR(tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id));
  GPUC_RETURN_IF_ERROR(tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type));
  GPUC_RETURN_IF_ERROR(tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment));
  GPUC_RETURN_IF_ERROR(tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, extents.data()));
  GPUC_RETURN_IF_ERROR(tensor.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides.data()));
  GPUC_RETURN_IF_ERROR(tensor.finalize());
  return tensor;
}

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
Status setPair(DnnDescriptor& descriptor, cudnnBackendAttributeName_t name, uint64_t height, uint64_t width) {
  const int64_t values[] = {static_cast<int64_t>(height), static_cast<int64_t>(width)};
  return descriptor.set(name, CUDNN_TYPE_INT64, 2, values);
}

int64_t extent(uint64_t number) { return static_cast<int64_t>(number); }

}  // namespace

Result<ConvGraph> ConvGraph::create(const Dnn& dnn, const DnnTarget& target, const fb::Conv& conv,
                                    uint32_t alignment) {
  ConvGraph result(dnn);
  GPUC_ASSIGN_OR_RETURN(result.type_, typeOf(conv.type()));
  GPUC_RETURN_IF_ERROR(result.describeTensors(conv, alignment));
  GPUC_RETURN_IF_ERROR(result.describeWindows(conv));
  GPUC_RETURN_IF_ERROR(result.describeOperation(conv));
  GPUC_RETURN_IF_ERROR(result.describeGraph(target));
  return result;
}

/// Groups follow from the filter, which has the input channels of one. cuDNN's extents are in the order (N,
/// C, H, W) however the elements lie.
Status ConvGraph::describeTensors(const fb::Conv& conv, int64_t alignment) {
  const fb::ConvAxis &height = *conv.height(), &width = *conv.width();
  const Extents input = {extent(conv.batch()), extent(conv.in_channels()), extent(height.input()),
                         extent(width.input())};
  const Extents filter = {extent(conv.out_channels()), extent(conv.in_channels() / conv.groups()),
                          extent(height.kernel()), extent(width.kernel())};
  const Extents output = {extent(conv.batch()), extent(conv.out_channels()), extent(height.output()),
                          extent(width.output())};
  const bool last = conv.channels_last();
  GPUC_ASSIGN_OR_RETURN(input_, describeTensor(*dnn_, kInput, type_, input, last, alignment));
  GPUC_ASSIGN_OR_RETURN(filter_, describeTensor(*dnn_, kFilter, type_, filter, last, alignment));
  GPUC_ASSIGN_OR_RETURN(output_, describeTensor(*dnn_, kOutput, type_, output, last, alignment));
  return okStatus();
}

/// f16 and bf16 are summed in f32.
Status ConvGraph::describeWindows(const fb::Conv& conv) {
  const fb::ConvAxis &height = *conv.height(), &width = *conv.width();
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  GPUC_ASSIGN_OR_RETURN(windows_, DnnDescriptor::create(*dnn_, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR));
  GPUC_RETURN_IF_ERROR(windows_.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
                                    type_ == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT));
  GPUC_RETURN_IF_ERROR(windows_.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode));
  GPUC_RETURN_IF_ERROR(windows_.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2}));
  GPUC_RETURN_IF_ERROR(
      setPair(windows_, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, height.stride(), width.stride()));
  GPUC_RETURN_IF_ERROR(
      setPair(windows_, CUDNN_ATTR_CONVOLUTION_DILATIONS, height.dilation(), width.dilation()));
  GPUC_RETURN_IF_ERROR(setPair(windows_, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, height.low(), width.low()));
  GPUC_RETURN_IF_ERROR(setPair(windows_, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, height.high(), width.high()));
  return windows_.finalize();
}

Status ConvGraph::describeOperation(const fb::Conv& conv) {
  const OperationNames names = namesOf(conv.kind());
  GPUC_ASSIGN_OR_RETURN(operation_, DnnDescriptor::create(*dnn_, names.operation));
  GPUC_RETURN_IF_ERROR(operation_.set(names.input, input_));
  GPUC_RETURN_IF_ERROR(operation_.set(names.filter, filter_));
  GPUC_RETURN_IF_ERROR(operation_.set(names.output, output_));
  GPUC_RETURN_IF_ERROR(operation_.set(names.windows, windows_));
  // result = 1 · convolution + 0 · result
  const double wide[] = {1, 0};
  const float narrow[] = {1, 0};
  const bool is_wide = type_ == CUDNN_DATA_DOUBLE;
  const auto type = is_wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
  auto scalar = [&](int i) { return is_wide ? static_cast<const void*>(&wide[i]) : &narrow[i]; };
  GPUC_RETURN_IF_ERROR(operation_.set(names.alpha, type, 1, scalar(0)));
  GPUC_RETURN_IF_ERROR(operation_.set(names.beta, type, 1, scalar(1)));
  return operation_.finalize();
}

Status ConvGraph::describeGraph(const DnnTarget& target) {
  GPUC_ASSIGN_OR_RETURN(graph_, DnnDescriptor::create(*dnn_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
  if (target.handle)
    GPUC_RETURN_IF_ERROR(graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle));
  GPUC_RETURN_IF_ERROR(graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation_));
  return graph_.finalize();
}

}  // namespace gpuc::cuda
