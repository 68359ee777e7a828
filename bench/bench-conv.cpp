// Times the host's convolutions on the layers of LeNet-5, the tutorials' convnet, ResNet-18 and ResNet-50, a
// U-Net, and the depthwise ones of MobileNet and ConvNeXt, in one thread; in time of the processor, so that
// other processes disturb it less. Each rate, of operations as if there were no padding, stands beside its
// share of a product's rate, which is measured between the layers; of a depthwise layer, which has little to
// multiply, the bytes of its pictures beside their share of what a copy of as many moves, and the share of
// the lower bound of its time: that of the copy, or, with a large filter, of its multiply-adds at a product's
// rate.
//   bench-conv [f32|f64|f16|bf16] [NAME]     NAME: only layers whose name has it
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "bench/operands.h"
#include "runtime/host/conv.h"
#include "runtime/host/matmul.h"

namespace {

using namespace gpuc;

struct Layer {
  const char* name;
  int64_t in, out, extent, kernel, stride, padding, groups;
  int64_t batches[2];  // 0: none
};

constexpr Layer kLayers[] = {
    {"lenet 5x5", 1, 6, 28, 5, 1, 2, 1, {1, 32}},
    {"lenet 5x5", 6, 16, 14, 5, 1, 0, 1, {1, 32}},
    {"convnet 3x3", 1, 32, 28, 3, 1, 1, 1, {1, 32}},
    {"convnet 3x3", 32, 64, 14, 3, 1, 1, 1, {1, 32}},
    {"convnet 3x3", 3, 32, 32, 3, 1, 1, 1, {1, 32}},
    {"convnet 3x3", 16, 32, 16, 3, 1, 1, 1, {1, 32}},
    // ResNet-18 on pictures of 64x64, and on such of 224x224.
    {"resnet18-64 7x7/2", 3, 64, 64, 7, 2, 3, 1, {16}},
    {"resnet18-64 3x3", 64, 64, 16, 3, 1, 1, 1, {16}},
    {"resnet18-64 3x3/2", 64, 128, 16, 3, 2, 1, 1, {16}},
    {"resnet18-64 1x1/2", 64, 128, 16, 1, 2, 0, 1, {16}},
    {"resnet18-64 3x3", 128, 128, 8, 3, 1, 1, 1, {16}},
    {"resnet18-64 3x3/2", 128, 256, 8, 3, 2, 1, 1, {16}},
    {"resnet18-64 1x1/2", 128, 256, 8, 1, 2, 0, 1, {16}},
    {"resnet18-64 3x3", 256, 256, 4, 3, 1, 1, 1, {16}},
    {"resnet18-64 3x3/2", 256, 512, 4, 3, 2, 1, 1, {16}},
    {"resnet18-64 1x1/2", 256, 512, 4, 1, 2, 0, 1, {16}},
    {"resnet18-64 3x3", 512, 512, 2, 3, 1, 1, 1, {16}},
    {"resnet18 7x7/2", 3, 64, 224, 7, 2, 3, 1, {4, 16}},
    {"resnet18 3x3", 64, 64, 56, 3, 1, 1, 1, {4, 16}},
    {"resnet18 3x3/2", 64, 128, 56, 3, 2, 1, 1, {4, 16}},
    {"resnet18 1x1/2", 64, 128, 56, 1, 2, 0, 1, {4, 16}},
    {"resnet18 3x3", 128, 128, 28, 3, 1, 1, 1, {4, 16}},
    {"resnet18 3x3/2", 128, 256, 28, 3, 2, 1, 1, {4, 16}},
    {"resnet18 1x1/2", 128, 256, 28, 1, 2, 0, 1, {4, 16}},
    {"resnet18 3x3", 256, 256, 14, 3, 1, 1, 1, {4, 16}},
    {"resnet18 3x3/2", 256, 512, 14, 3, 2, 1, 1, {4, 16}},
    {"resnet18 1x1/2", 256, 512, 14, 1, 2, 0, 1, {4, 16}},
    {"resnet18 3x3", 512, 512, 7, 3, 1, 1, 1, {4, 16}},
    // What ResNet-50 has beside those.
    {"resnet50 1x1", 64, 256, 56, 1, 1, 0, 1, {4, 16}},
    {"resnet50 1x1", 256, 64, 56, 1, 1, 0, 1, {4, 16}},
    {"resnet50 1x1/2", 256, 512, 56, 1, 2, 0, 1, {4, 16}},
    {"resnet50 1x1", 128, 512, 28, 1, 1, 0, 1, {4, 16}},
    {"resnet50 1x1", 512, 128, 28, 1, 1, 0, 1, {4, 16}},
    {"resnet50 1x1/2", 512, 1024, 28, 1, 2, 0, 1, {4, 16}},
    {"resnet50 1x1", 256, 1024, 14, 1, 1, 0, 1, {4, 16}},
    {"resnet50 1x1", 1024, 256, 14, 1, 1, 0, 1, {4, 16}},
    {"resnet50 1x1/2", 1024, 2048, 14, 1, 2, 0, 1, {4, 16}},
    {"resnet50 1x1", 512, 2048, 7, 1, 1, 0, 1, {4, 16}},
    {"resnet50 1x1", 2048, 512, 7, 1, 1, 0, 1, {4, 16}},
    // A U-Net's at its larger pictures, on the way down and up.
    {"unet 3x3", 64, 64, 128, 3, 1, 1, 1, {16}},
    {"unet 3x3", 128, 64, 128, 3, 1, 1, 1, {16}},
    {"unet 3x3", 128, 128, 64, 3, 1, 1, 1, {16}},
    {"unet 3x3", 256, 128, 64, 3, 1, 1, 1, {16}},
    {"unet 1x1", 64, 16, 128, 1, 1, 0, 1, {16}},
    // MobileNetV2's, on pictures of 128x128.
    {"mobilenet 3x3/2", 3, 32, 128, 3, 2, 1, 1, {16}},
    {"mobilenet 1x1", 16, 96, 64, 1, 1, 0, 1, {16}},
    {"mobilenet 1x1", 24, 144, 32, 1, 1, 0, 1, {16}},
    {"mobilenet 1x1", 144, 24, 32, 1, 1, 0, 1, {16}},
    {"mobilenet 1x1", 32, 192, 16, 1, 1, 0, 1, {16}},
    {"mobilenet 1x1", 64, 384, 8, 1, 1, 0, 1, {16}},
    {"mobilenet 1x1", 96, 576, 8, 1, 1, 0, 1, {16}},
    {"mobilenet 1x1", 576, 96, 8, 1, 1, 0, 1, {16}},
    {"mobilenet 1x1", 160, 960, 4, 1, 1, 0, 1, {16}},
    {"mobilenet 1x1", 960, 160, 4, 1, 1, 0, 1, {16}},
    // Depthwise: MobileNet's, and ConvNeXt's.
    {"mobilenet 3x3", 32, 32, 112, 3, 1, 1, 32, {1, 16}},
    {"mobilenet 3x3/2", 64, 64, 112, 3, 2, 1, 64, {16}},
    {"mobilenet 3x3", 128, 128, 56, 3, 1, 1, 128, {16}},
    {"mobilenet 3x3/2", 128, 128, 56, 3, 2, 1, 128, {16}},
    {"mobilenet 3x3", 256, 256, 28, 3, 1, 1, 256, {16}},
    {"mobilenet 3x3/2", 256, 256, 28, 3, 2, 1, 256, {16}},
    {"mobilenet 3x3", 512, 512, 14, 3, 1, 1, 512, {16}},
    {"mobilenet 3x3/2", 512, 512, 14, 3, 2, 1, 512, {16}},
    {"mobilenet 3x3", 576, 576, 8, 3, 1, 1, 576, {16}},
    {"mobilenet 3x3", 1024, 1024, 7, 3, 1, 1, 1024, {16}},
    {"mobilenet 3x3", 960, 960, 4, 3, 1, 1, 960, {16}},
    {"mobilenet 5x5/2", 72, 72, 56, 5, 2, 2, 72, {16}},
    {"mobilenet 5x5", 120, 120, 28, 5, 1, 2, 120, {16}},
    {"efficientnet 5x5", 480, 480, 14, 5, 1, 2, 480, {16}},
    {"efficientnet 5x5/2", 672, 672, 14, 5, 2, 2, 672, {16}},
    {"efficientnet 5x5", 1152, 1152, 7, 5, 1, 2, 1152, {16}},
    {"convnext 7x7", 96, 96, 56, 7, 1, 3, 96, {16}},
    {"convnext 7x7", 192, 192, 28, 7, 1, 3, 192, {16}},
    {"convnext 7x7", 384, 384, 14, 7, 1, 3, 384, {16}},
    {"convnext 7x7", 768, 768, 7, 7, 1, 3, 768, {16}},
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

/// GFLOP/s of a matrix product of the size of a large layer's: what a convolution could have.
class ProductRate {
 public:
  explicit ProductRate(DataType type)
      : buffers_(type, 3, kSide * kSide * sizeOf(type)),
        kernel_(MatmulKernel::create({.type = type, .batch = 1, .m = kSide, .n = kSide, .k = kSide},
                                     int64_t{1} << 30)) {}

  double measure() const {
    if (!kernel_.ok()) return 0;
    const MatmulOperands operands = {buffers_[0], buffers_[1], buffers_[2]};
    return 2.0 * kSide * kSide * kSide / leastUs(*kernel_, operands) / 1e3;
  }

 private:
  static constexpr int64_t kSide = 512;
  RandomBuffers buffers_;
  Result<MatmulKernel> kernel_;
};

/// Bytes that a copy of so many bytes, read and written together, moves in a nanosecond.
double copyRate(int64_t bytes) {
  const RandomBuffers buffers(DataType::f32, 2, bytes / 2);
  return static_cast<double>(bytes) /
         leastUs([&] { std::memcpy(buffers[0], buffers[1], static_cast<size_t>(bytes / 2)); }) / 1e3;
}

/// One line: the layer's three convolutions. False where there is no kernel for one.
bool printLayer(const Layer& layer, int64_t batch, DataType type, double product_rate) {
  ConvShape shape = shapeOf(layer, batch, type);
  const RandomBuffers buffers(type, 4, mostBytes(shape));
  const ConvOperands operands = {buffers[0], buffers[1], buffers[2], nullptr, buffers[3]};
  const double flops = 2.0 * static_cast<double>(batch * shape.outputPixels() * shape.filterElements());
  const bool depthwise = layer.groups > 1 && layer.groups == layer.in;
  const int64_t outputs = batch * shape.out_channels * shape.outputPixels();
  const int64_t bytes = (shape.inputElements() + outputs) * sizeOf(type);
  const double amount = depthwise ? static_cast<double>(bytes) : flops;
  const double roof = depthwise ? copyRate(bytes) : product_rate;
  const double least_us = std::max(amount / roof, flops / product_rate) / 1e3;
  const std::string what = std::to_string(layer.in) + ">" + std::to_string(layer.out) + " " +
                           std::to_string(layer.extent) + "x" + std::to_string(layer.extent);
  std::printf("%-18s %-19s %5d", layer.name, what.c_str(), static_cast<int>(batch));
  for (ConvKind kind : {ConvKind::forward, ConvKind::input_gradient, ConvKind::filter_gradient}) {
    shape.kind = kind;
    Result<ConvKernel> kernel = ConvKernel::create(shape, convWorkspaceBytes(shape));
    if (!kernel.ok()) {
      std::fprintf(stderr, "error: %s\n", kernel.message().c_str());
      return false;
    }
    const double us = leastUs(*kernel, operands);
    std::printf(" %9.1f us %5.1f %c %3.0f%%", us, amount / us / 1e3, depthwise ? 'B' : 'G',
                amount / us / 10 / roof);
    if (depthwise) std::printf(" %3.0f%%%c", 100 * least_us / us, least_us > amount / roof / 1e3 ? 'm' : 'c');
    std::fflush(stdout);
  }
  std::printf("\n");
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const DataType type = argc > 1 ? parseDataType(argv[1]).value_or(DataType::i8) : DataType::f32;
  if (!isFloat(type)) {
    std::fprintf(stderr, "error: no element type '%s'; bench-conv [f32|f64|f16|bf16] [NAME]\n", argv[1]);
    return 2;
  }
  const ProductRate product(type);
  double best = product.measure();
  std::printf("%-18s %-19s %5s %25s %25s %25s\n", nameOf(type), "channels, image", "batch", "forward",
              "d input", "d filter");
  const char* wanted = argc > 2 ? argv[2] : "";
  for (const Layer& layer : kLayers)
    for (int64_t batch : layer.batches) {
      if (batch == 0 || !std::strstr(layer.name, wanted)) continue;
      best = std::max(best, product.measure());
      if (!printLayer(layer, batch, type, best)) return 1;
    }
  std::printf("G: GFLOP/s; 100%%: a product of 512x512x512, the best of one before each layer: %.1f\n", best);
  std::printf("B: bytes/ns, of what is read and written; 100%%: a copy that moves as many bytes\n");
  std::printf(
      "c, m: of the lower bound, which is that copy's time, or that of the multiply-adds at G's rate\n");
  return 0;
}
