// Times the host's convolutions on the layers of LeNet-5, the tutorials' convnet and ResNet, in one thread;
// in time of the processor, so that other processes disturb it less.
//   bench-conv [f32|f64|f16|bf16] [NAME]     NAME: only layers whose name has it
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "bench/operands.h"
#include "runtime/host/conv.h"

namespace {

using namespace gpuc;

struct Layer {
  const char* name;
  int64_t in, out, extent, kernel, stride, padding, groups;
};

constexpr Layer kLayers[] = {
    {"lenet 5x5", 1, 6, 28, 5, 1, 2, 1},        {"lenet 5x5", 6, 16, 14, 5, 1, 0, 1},
    {"convnet 3x3", 1, 32, 28, 3, 1, 1, 1},     {"convnet 3x3", 32, 64, 14, 3, 1, 1, 1},
    {"convnet 3x3", 3, 32, 32, 3, 1, 1, 1},     {"convnet 3x3", 16, 32, 16, 3, 1, 1, 1},
    {"resnet 7x7 s2", 3, 64, 224, 7, 2, 3, 1},  {"resnet 3x3", 64, 64, 56, 3, 1, 1, 1},
    {"resnet 3x3", 128, 128, 28, 3, 1, 1, 1},   {"resnet 3x3", 512, 512, 7, 3, 1, 1, 1},
    {"resnet 3x3 s2", 64, 128, 56, 3, 2, 1, 1}, {"resnet 1x1 s2", 64, 128, 56, 1, 2, 0, 1},
    {"resnet50 1x1", 256, 64, 56, 1, 1, 0, 1},  {"depthwise 3x3", 64, 64, 56, 3, 1, 1, 64},
};

ConvShape shapeOf(const Layer& layer, int64_t batch, DataType type) {
  ConvShape shape;
  shape.type = type;
  shape.batch = batch, shape.groups = layer.groups;
  shape.in_channels = layer.in, shape.out_channels = layer.out;
  const int64_t output = (layer.extent + 2 * layer.padding - layer.kernel) / layer.stride + 1;
  shape.height = shape.width = {.input = layer.extent,
                                .output = output,
                                .kernel = layer.kernel,
                                .stride = layer.stride,
                                .low = layer.padding,
                                .high = layer.padding,
                                .dilation = 1};
  return shape;
}

int64_t mostBytes(const ConvShape& s) {
  int64_t elements = std::max({s.batch * s.in_channels * s.inputPixels(), s.filterElements(),
                               s.batch * s.out_channels * s.outputPixels()});
  int64_t bytes = elements * sizeOf(s.type);
  ConvShape shape = s;
  for (ConvKind kind : {ConvKind::forward, ConvKind::input_gradient, ConvKind::filter_gradient}) {
    shape.kind = kind;
    bytes = std::max(bytes, convWorkspaceBytes(shape));
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  const DataType type = argc > 1 ? parseDataType(argv[1]).value_or(DataType::i8) : DataType::f32;
  if (!isFloat(type)) {
    std::fprintf(stderr, "error: no element type '%s'; bench-conv [f32|f64|f16|bf16] [NAME]\n", argv[1]);
    return 2;
  }
  std::printf("%-16s %-22s %5s %20s %20s %20s\n", nameOf(type), "channels, image", "batch", "forward",
              "d input", "d filter");
  const char* wanted = argc > 2 ? argv[2] : "";
  for (const Layer& layer : kLayers)
    for (int64_t batch : {1, 32}) {
      if (!std::strstr(layer.name, wanted)) continue;
      ConvShape shape = shapeOf(layer, batch, type);
      const RandomBuffers buffers(type, 4, mostBytes(shape));
      const ConvOperands operands = {buffers[0], buffers[1], buffers[2], nullptr, buffers[3]};
      const double flops = 2.0 * static_cast<double>(batch * shape.outputPixels() * shape.filterElements());
      const std::string what = std::to_string(layer.in) + ">" + std::to_string(layer.out) + " " +
                               std::to_string(layer.extent) + "x" + std::to_string(layer.extent);
      std::printf("%-16s %-22s %5d", layer.name, what.c_str(), static_cast<int>(batch));
      for (ConvKind kind : {ConvKind::forward, ConvKind::input_gradient, ConvKind::filter_gradient}) {
        shape.kind = kind;
        Result<ConvKernel> kernel = ConvKernel::create(shape, convWorkspaceBytes(shape));
        if (!kernel.ok()) {
          std::fprintf(stderr, "error: %s\n", kernel.message().c_str());
          return 1;
        }
        const double us = leastUs(*kernel, operands);
        std::printf(" %9.1f us %5.1f G", us, flops / us / 1e3);
      }
      std::printf("\n");
    }
  return 0;
}
