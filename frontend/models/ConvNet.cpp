//===- ConvNet.cpp - A small convolutional network --------------------------===//

#include "frontend/models/Classification.h"
#include "frontend/models/Zoo.h"

namespace gpuc::models {

namespace {

struct ConvNet : nn::Layer {
  ConvNet(int64_t channels, int64_t size, int64_t classes)
      : conv1(add("conv1", nn::Conv2d(channels, 32, 3, {.padding = 1}))),
        conv2(add("conv2", nn::Conv2d(32, 64, 3, {.padding = 1}))), pool(add("pool", nn::MaxPool2d(2))),
        fc1(add("fc1", nn::Linear(64 * (size / 4) * (size / 4), 128))),
        fc2(add("fc2", nn::Linear(128, classes))) {}

  std::string describe() const override { return "ConvNet"; }
  nn::Tensor forward(const nn::Tensor &x) override {
    nn::Tensor h = pool(relu(conv1(x))); // (batch, 32, size/2, size/2)
    h = pool(relu(conv2(h)));            // (batch, 64, size/4, size/4)
    return fc2(relu(fc1(flatten(h))));   // (batch, classes)
  }

  nn::Conv2d &conv1, &conv2;
  nn::MaxPool2d &pool;
  nn::Linear &fc1, &fc2;
};

Status build(Settings &settings, nn::ModelBuilder &model) {
  const int64_t channels = settings.integer("in_channels", 1, 1 << 16);
  const int64_t size = settings.integer("size", 4, 1 << 12);
  const int64_t classes = settings.integer("classes", 1, 1 << 24);
  GPUC_RETURN_IF_ERROR(settings.status());

  PixelsToUnit scale(model.floats());
  ConvNet net(channels, size, classes);
  model.predict({{"x", {nn::kBatch, channels, size, size}, DataType::ui8}}, "logits",
                [&](nn::Tensor x) { return net(scale(x)); });
  classify(model, classes);
  return okStatus();
}

} // namespace

ZooModel convnet() {
  return {"convnet",
          "Two convolutions with pooling and two linear layers that classify images, cross-entropy",
          {{"in_channels", "3", "channels of a picture: 1 is grey, 3 is colour"},
           {"size", "28", "rows and columns of a picture"},
           {"classes", "10", "classes to tell apart"}},
          {},
          build};
}

} // namespace gpuc::models
