//===- bench-models.cpp - Models of scripts/bench --real that the zoo has not -===//
//
//   bench-models mobilenet|unet|vit -o FILE.mlir
//
// Variables are named and laid out as in bench/peers/torch_real_models.py.
//
//===----------------------------------------------------------------------===//

#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "frontend/builder/nn.h"

using namespace gpuc;

namespace {

//===----------------------------------------------------------------------===//
// MobileNetV2 [Sandler et al. 2018]: blocks of 1×1, depthwise 3×3, 1×1
//===----------------------------------------------------------------------===//

constexpr int64_t kPictureClasses = 1000;

/// Convolution without bias, batch norm, and relu6 unless `linear`.
struct ConvNorm : nn::Layer {
  ConvNorm(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t groups, bool linear = false)
      : linear(linear),
        conv(add("conv",
                 nn::Conv2d(in, out, kernel,
                            {.stride = stride, .padding = kernel / 2, .groups = groups, .bias = false}))),
        norm(add("norm", nn::BatchNorm(out))) {}

  nn::Tensor forward(const nn::Tensor& x) override {
    nn::Tensor y = norm(conv(x));
    return linear ? y : clamp(y, 0, 6);
  }

  bool linear;
  nn::Conv2d& conv;
  nn::BatchNorm& norm;
};

struct InvertedResidual : nn::Layer {
  InvertedResidual(int64_t in, int64_t out, int64_t stride, int64_t expansion)
      : adds(stride == 1 && in == out) {
    const int64_t wide = in * expansion;
    if (expansion != 1) expand = &add("expand", ConvNorm(in, wide, 1, 1, 1));
    depthwise = &add("depthwise", ConvNorm(wide, wide, 3, stride, wide));
    project = &add("project", ConvNorm(wide, out, 1, 1, 1, /*linear=*/true));
  }

  nn::Tensor forward(const nn::Tensor& x) override {
    nn::Tensor y = (*project)((*depthwise)(expand ? (*expand)(x) : x));
    return adds ? x + y : y;
  }

  bool adds;
  ConvNorm *expand = nullptr, *depthwise, *project;
};

struct MobileNet : nn::Layer {
  MobileNet() {
    struct Stage {
      int64_t expansion, channels, count, stride;
    };
    nn::Sequential blocks;
    int64_t in = 32;
    for (const auto& [expansion, channels, count, stride] :
         {Stage{1, 16, 1, 1}, Stage{6, 24, 2, 2}, Stage{6, 32, 3, 2}, Stage{6, 64, 4, 2}, Stage{6, 96, 3, 1},
          Stage{6, 160, 3, 2}, Stage{6, 320, 1, 1}})
      for (int64_t i = 0; i < count; ++i) {
        blocks.append(InvertedResidual(in, channels, i == 0 ? stride : 1, expansion));
        in = channels;
      }
    body = &add("blocks", std::move(blocks));
  }

  nn::Tensor forward(const nn::Tensor& x) override {  // (batch, 3, size, size)
    return head(mean(last((*body)(stem(x))), {2, 3}));
  }

  ConvNorm& stem = add("stem", ConvNorm(3, 32, 3, 2, 1));
  ConvNorm& last = add("last", ConvNorm(320, 1280, 1, 1, 1));
  nn::Linear& head = add("head", nn::Linear(1280, kPictureClasses));
  nn::Sequential* body;
};

//===----------------------------------------------------------------------===//
// U-Net [Ronneberger et al. 2015], with padding and batch norms as it is written today
//===----------------------------------------------------------------------===//

constexpr int64_t kPixelClasses = 8;

struct DoubleConv : nn::Layer {
  DoubleConv(int64_t in, int64_t out)
      : conv1(add("conv1", nn::Conv2d(in, out, 3, {.padding = 1, .bias = false}))),
        norm1(add("norm1", nn::BatchNorm(out))),
        conv2(add("conv2", nn::Conv2d(out, out, 3, {.padding = 1, .bias = false}))),
        norm2(add("norm2", nn::BatchNorm(out))) {}

  nn::Tensor forward(const nn::Tensor& x) override { return relu(norm2(conv2(relu(norm1(conv1(x)))))); }

  nn::Conv2d& conv1;
  nn::BatchNorm& norm1;
  nn::Conv2d& conv2;
  nn::BatchNorm& norm2;
};

struct UNet : nn::Layer {
  static constexpr int64_t kBase = 32, kLevels = 3;

  UNet() {
    for (int64_t level = 0; level <= kLevels; ++level)
      down.push_back(&add("down" + std::to_string(level),
                          DoubleConv(level == 0 ? 3 : kBase << (level - 1), kBase << level)));
    for (int64_t level = kLevels - 1; level >= 0; --level) {
      up.push_back(&add("up" + std::to_string(level),
                        nn::ConvTranspose2d(kBase << (level + 1), kBase << level, 2, {.stride = 2})));
      merge.push_back(
          &add("merge" + std::to_string(level), DoubleConv(kBase << (level + 1), kBase << level)));
    }
  }

  /// (batch, 3, size, size) to (batch, size, size, classes).
  nn::Tensor forward(const nn::Tensor& x) override {
    std::vector<nn::Tensor> skipped = {(*down[0])(x)};
    for (int64_t level = 1; level <= kLevels; ++level)
      skipped.push_back((*down[level])(pool(skipped.back())));
    nn::Tensor h = skipped.back();
    for (int64_t i = 0; i < kLevels; ++i)
      h = (*merge[i])(nn::concat({skipped[kLevels - 1 - i], (*up[i])(h)}, 1));
    return transpose(transpose(head(h), 1, 2), 2, 3);
  }

  std::vector<DoubleConv*> down, merge;
  std::vector<nn::ConvTranspose2d*> up;
  nn::MaxPool2d& pool = add("pool", nn::MaxPool2d(2));
  nn::Conv2d& head = add("head", nn::Conv2d(kBase, kPixelClasses, 1));
};

//===----------------------------------------------------------------------===//
// ViT-Ti/16 [Dosovitskiy et al. 2020; Touvron et al. 2020]
//===----------------------------------------------------------------------===//

struct Attention : nn::Layer {
  Attention(int64_t width, int64_t heads)
      : width(width),
        heads(heads),
        qkv(add("qkv", nn::Linear(width, 3 * width))),
        proj(add("proj", nn::Linear(width, width))) {}

  nn::Tensor forward(const nn::Tensor& x) override {
    const int64_t batch = x.shape()[0], length = x.shape()[1];
    nn::Tensor all = qkv(x);
    auto part = [&](int64_t i) {
      nn::Tensor third = slice(all, 2, i * width, (i + 1) * width);
      return transpose(reshape(third, {batch, length, heads, width / heads}), 1, 2);
    };
    return proj(flatten(transpose(nn::attention(part(0), part(1), part(2)), 1, 2), 2));
  }

  int64_t width, heads;
  nn::Linear &qkv, &proj;
};

struct VitBlock : nn::Layer {
  VitBlock(int64_t width, int64_t heads)
      : norm1(add("norm1", nn::LayerNorm({width}))),
        attn(add("attn", Attention(width, heads))),
        norm2(add("norm2", nn::LayerNorm({width}))),
        fc1(add("fc1", nn::Linear(width, 4 * width))),
        fc2(add("fc2", nn::Linear(4 * width, width))) {}

  nn::Tensor forward(const nn::Tensor& x) override {
    nn::Tensor h = x + attn(norm1(x));
    return h + fc2(gelu(fc1(norm2(h))));
  }

  nn::LayerNorm& norm1;
  Attention& attn;
  nn::LayerNorm& norm2;
  nn::Linear &fc1, &fc2;
};

struct Vit : nn::Layer {
  static constexpr int64_t kWidth = 192, kHeads = 3, kLayers = 12, kPatch = 16;

  Vit() {
    nn::Sequential layers;
    for (int64_t i = 0; i < kLayers; ++i) layers.append(VitBlock(kWidth, kHeads));
    blocks = &add("blocks", std::move(layers));
  }

  nn::Tensor forward(const nn::Tensor& x) override {  // (batch, 3, size, size)
    const int64_t batch = x.shape()[0], patches = (x.shape()[2] / kPatch) * (x.shape()[3] / kPatch);
    const nn::Initializer small = nn::Initializer::normal(0, 0.02);
    nn::Tensor h = transpose(flatten(patch(x), 2), 1, 2);  // (batch, patches, width)
    nn::Tensor first = broadcastTo(parameter(x, "cls_token", {1, 1, kWidth}, small), {batch, 1, kWidth});
    h = nn::concat({first, h}, 1) + parameter(x, "pos_embed", {1, patches + 1, kWidth}, small);
    return head(select(norm((*blocks)(h)), 1, 0));
  }

  nn::Conv2d& patch = add("patch", nn::Conv2d(3, kWidth, kPatch, {.stride = kPatch}));
  nn::Sequential* blocks;
  nn::LayerNorm& norm = add("norm", nn::LayerNorm({kWidth}));
  nn::Linear& head = add("head", nn::Linear(kWidth, kPictureClasses));
};

//===----------------------------------------------------------------------===//
// By name
//===----------------------------------------------------------------------===//

/// A model of pictures [batch, 3, size, size] of floats, whose labels are [batch, …].
template <typename Net>
Result<nn::Model> build(const std::string& name, int64_t size, nn::Shape labels, int64_t classes) {
  Net net;
  nn::ModelBuilder model(name);
  model.predict({{"x", {nn::kBatch, 3, size, size}}}, "logits", net);
  model.loss({{"labels", labels, DataType::i32, classes}},
             [](nn::Tensor logits, nn::Tensor labels) { return nn::crossEntropy(logits, labels); });
  model.recipe({.batch = 8, .optimizer = "sgd:lr=0.01"});
  return model.finish();
}

const std::map<std::string, std::function<Result<nn::Model>()>> kModels = {
    {"mobilenet", [] { return build<MobileNet>("mobilenet", 128, {nn::kBatch}, kPictureClasses); }},
    {"unet", [] { return build<UNet>("unet", 128, {nn::kBatch, 128, 128}, kPixelClasses); }},
    {"vit", [] { return build<Vit>("vit", 224, {nn::kBatch}, kPictureClasses); }},
};

}  // namespace

int main(int argc, char** argv) {
  const auto found = argc == 4 && std::string(argv[2]) == "-o" ? kModels.find(argv[1]) : kModels.end();
  if (found == kModels.end()) {
    std::fprintf(stderr, "error: usage: bench-models mobilenet|unet|vit -o FILE.mlir\n");
    return 2;
  }
  Result<nn::Model> model = found->second();
  Status status = model.ok() ? model->write(argv[3]) : model.status();
  if (!status.ok()) std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
