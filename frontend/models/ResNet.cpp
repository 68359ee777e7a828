//===- ResNet.cpp - Residual networks ---------------------------------------===//
//
// ResNet-18 and ResNet-50 [He et al. 2015, arXiv:1512.03385], with torchvision's names, layouts and
// initializers (v1.5: the stride of a bottleneck is that of its 3x3 convolution), so that its weights fit.
//
//===----------------------------------------------------------------------===//

#include "frontend/models/Classification.h"
#include "frontend/models/Zoo.h"

#include <array>
#include <cmath>

namespace gpuc::models {

namespace {

/// Without bias, for batch normalisation follows; normal with deviation √(2 / (out · kernel²)).
nn::Conv2d convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1) {
  const double deviation = std::sqrt(2.0 / static_cast<double>(out * kernel * kernel));
  return nn::Conv2d(in, out, kernel,
                    {.stride = stride,
                     .padding = kernel / 2,
                     .bias = false,
                     .weight = nn::Initializer::normal(0, deviation)});
}

/// What both kinds of block share: x itself, or x in the shape that the block gives.
struct Block : nn::Layer {
  Block(int64_t in, int64_t out, int64_t stride) {
    if (in != out || stride != 1)
      downsample = &add("downsample", nn::Sequential(convolution(in, out, 1, stride), nn::BatchNorm(out)));
  }
  nn::Tensor shortcut(const nn::Tensor &x) { return downsample ? (*downsample)(x) : x; }

  nn::Sequential *downsample = nullptr;
};

struct BasicBlock : Block {
  static constexpr int64_t kExpansion = 1;

  BasicBlock(int64_t in, int64_t width, int64_t stride)
      : Block(in, width, stride), conv1(add("conv1", convolution(in, width, 3, stride))),
        bn1(add("bn1", nn::BatchNorm(width))), conv2(add("conv2", convolution(width, width, 3))),
        bn2(add("bn2", nn::BatchNorm(width))) {}

  std::string describe() const override { return "BasicBlock"; }
  nn::Tensor forward(const nn::Tensor &x) override {
    nn::Tensor h = relu(bn1(conv1(x)));
    return relu(bn2(conv2(h)) + shortcut(x));
  }

  nn::Conv2d &conv1;
  nn::BatchNorm &bn1;
  nn::Conv2d &conv2;
  nn::BatchNorm &bn2;
};

struct Bottleneck : Block {
  static constexpr int64_t kExpansion = 4;

  Bottleneck(int64_t in, int64_t width, int64_t stride)
      : Block(in, 4 * width, stride), conv1(add("conv1", convolution(in, width, 1))),
        bn1(add("bn1", nn::BatchNorm(width))), conv2(add("conv2", convolution(width, width, 3, stride))),
        bn2(add("bn2", nn::BatchNorm(width))), conv3(add("conv3", convolution(width, 4 * width, 1))),
        bn3(add("bn3", nn::BatchNorm(4 * width))) {}

  std::string describe() const override { return "Bottleneck"; }
  nn::Tensor forward(const nn::Tensor &x) override {
    nn::Tensor h = relu(bn1(conv1(x)));
    h = relu(bn2(conv2(h)));
    return relu(bn3(conv3(h)) + shortcut(x));
  }

  nn::Conv2d &conv1;
  nn::BatchNorm &bn1;
  nn::Conv2d &conv2;
  nn::BatchNorm &bn2;
  nn::Conv2d &conv3;
  nn::BatchNorm &bn3;
};

/// `depths` blocks in each of four stages, the first of them with `base` channels in its 3x3 convolutions.
template <typename BlockType> struct ResNet : nn::Layer {
  ResNet(int64_t channels, int64_t base, int64_t classes, std::array<int64_t, 4> depths)
      : conv1(add("conv1", convolution(channels, base, 7, 2))), bn1(add("bn1", nn::BatchNorm(base))),
        maxpool(add("maxpool", nn::MaxPool2d(3, {.stride = 2, .padding = 1}))) {
    int64_t in = base;
    for (size_t stage = 0; stage < depths.size(); ++stage) {
      const int64_t width = base << stage;
      nn::Sequential blocks;
      for (int64_t i = 0; i < depths[stage]; ++i) {
        blocks.append(BlockType(in, width, i == 0 && stage > 0 ? 2 : 1));
        in = width * BlockType::kExpansion;
      }
      stages.push_back(&add("layer" + std::to_string(stage + 1), std::move(blocks)));
    }
    pool = &add("avgpool", nn::AdaptiveAvgPool2d(1));
    fc = &add("fc", nn::Linear(in, classes));
  }

  std::string describe() const override { return "ResNet"; }
  nn::Tensor forward(const nn::Tensor &x) override {
    nn::Tensor h = relu(bn1(conv1(x))); // (batch, base, size/2, size/2)
    h = maxpool(h);                     // (batch, base, size/4, size/4)
    for (nn::Sequential *stage : stages)
      h = (*stage)(h);
    return (*fc)(flatten((*pool)(h)));
  }

  nn::Conv2d &conv1;
  nn::BatchNorm &bn1;
  nn::MaxPool2d &maxpool;
  std::vector<nn::Sequential *> stages;
  nn::AdaptiveAvgPool2d *pool;
  nn::Linear *fc;
};

template <typename BlockType>
Status build(std::array<int64_t, 4> depths, Settings &settings, nn::ModelBuilder &model) {
  const int64_t channels = settings.integer("in_channels", 1, 1 << 16);
  const int64_t size = settings.integer("size", 32, 1 << 12);
  const int64_t width = settings.integer("width", 1, 1 << 12);
  const int64_t classes = settings.integer("classes", 1, 1 << 24);
  const double smoothing = settings.number("smoothing", 0, 1);
  GPUC_RETURN_IF_ERROR(settings.status());

  PixelsToUnit scale(model.floats());
  ResNet<BlockType> net(channels, width, classes, depths);
  model.predict({{"x", {nn::kBatch, channels, size, size}, DataType::ui8}}, "logits",
                [&](nn::Tensor x) { return net(scale(x)); });
  classify(model, classes, smoothing);
  return okStatus();
}

ZooModel describe(const std::string &name, const std::string &blocks,
                  Status (*build)(Settings &settings, nn::ModelBuilder &model)) {
  return {name,
          "Residual network of " + blocks + " that classifies images, cross-entropy",
          {{"in_channels", "3", "channels of a picture"},
           {"size", "224", "rows and columns of a picture"},
           {"width", "64", "channels of the first convolution; each stage has twice those before it"},
           {"classes", "1000", "classes to tell apart"},
           {"smoothing", "0", "label smoothing in [0, 1)"}},
          {.batch = 32, .optimizer = "sgd:lr=0.1,momentum=0.9,weight_decay=1e-4"},
          build};
}

} // namespace

ZooModel resnet18() {
  return describe("resnet18", "two basic blocks a stage", [](Settings &settings, nn::ModelBuilder &model) {
    return build<BasicBlock>({2, 2, 2, 2}, settings, model);
  });
}

ZooModel resnet50() {
  return describe("resnet50", "3, 4, 6 and 3 bottleneck blocks",
                  [](Settings &settings, nn::ModelBuilder &model) {
                    return build<Bottleneck>({3, 4, 6, 3}, settings, model);
                  });
}

} // namespace gpuc::models
