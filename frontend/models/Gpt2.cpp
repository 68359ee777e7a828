//===- Gpt2.cpp - A decoder-only language model -----------------------------===//
//
// GPT-2 [Radford et al. 2019]: token and place embeddings, pre-norm blocks of causal attention and a gelu
// feedforward of four times the width, a last norm, and an output layer that is the token embedding again.
// Names and layouts are nanoGPT's (`transformer.h.0.attn.c_attn.weight`), initial values too: normal with
// deviation 0.02, divided by √(2 · layers) where a block ends.
//
//===----------------------------------------------------------------------===//

#include "frontend/builder/nn.h"
#include "frontend/models/Zoo.h"

#include <array>
#include <cmath>

namespace gpuc::models {

namespace {

struct Options {
  int64_t layers, heads, width, length, vocabulary;
  double dropout = 0;
  bool bias = true;
};

/// The sizes that have a name. nano is nanoGPT's setting for a CPU, over bytes.
struct Size {
  const char *name;
  Options options;
};
constexpr std::array<Size, 5> kSizes = {{{"nano", {4, 4, 128, 64, 256}},
                                         {"124M", {12, 12, 768, 1024, 50257}},
                                         {"350M", {24, 16, 1024, 1024, 50257}},
                                         {"774M", {36, 20, 1280, 1024, 50257}},
                                         {"1558M", {48, 25, 1600, 1024, 50257}}}};

nn::Linear linear(int64_t in, int64_t out, const Options &options, bool endsBlock = false) {
  double deviation = 0.02;
  if (endsBlock)
    deviation /= std::sqrt(2.0 * static_cast<double>(options.layers));
  return nn::Linear(in, out, options.bias).initialized(nn::Initializer::normal(0, deviation));
}

nn::LayerNorm norm(const Options &options) {
  return nn::LayerNorm({options.width}, 1e-5, /*affine=*/true, options.bias);
}

nn::Tensor dropped(const nn::Tensor &x, const Options &options) {
  return options.dropout > 0 ? dropout(x, options.dropout) : x;
}

struct Attention : nn::Layer {
  explicit Attention(const Options &options)
      : options(options), c_attn(add("c_attn", linear(options.width, 3 * options.width, options))),
        c_proj(add("c_proj", linear(options.width, options.width, options, /*endsBlock=*/true))) {}

  std::string describe() const override { return "CausalSelfAttention"; }
  nn::Tensor forward(const nn::Tensor &x) override {
    const int64_t batch = x.shape()[0], length = x.shape()[1], each = options.width / options.heads;
    nn::Tensor qkv = c_attn(x); // (batch, length, 3 * width)
    auto heads = [&](int64_t part) {
      nn::Tensor third = slice(qkv, 2, part * options.width, (part + 1) * options.width);
      return transpose(reshape(third, {batch, length, options.heads, each}), 1, 2);
    };
    nn::Tensor y = nn::attention(heads(0), heads(1), heads(2), {.causal = true, .dropout = options.dropout});
    return dropped(c_proj(flatten(transpose(y, 1, 2), 2)), options);
  }

  Options options;
  nn::Linear &c_attn, &c_proj;
};

struct Feedforward : nn::Layer {
  explicit Feedforward(const Options &options)
      : options(options), c_fc(add("c_fc", linear(options.width, 4 * options.width, options))),
        c_proj(add("c_proj", linear(4 * options.width, options.width, options, /*endsBlock=*/true))) {}

  std::string describe() const override { return "MLP"; }
  nn::Tensor forward(const nn::Tensor &x) override { return dropped(c_proj(gelu(c_fc(x))), options); }

  Options options;
  nn::Linear &c_fc, &c_proj;
};

struct Block : nn::Layer {
  explicit Block(const Options &options)
      : ln_1(add("ln_1", norm(options))), attn(add("attn", Attention(options))),
        ln_2(add("ln_2", norm(options))), mlp(add("mlp", Feedforward(options))) {}

  std::string describe() const override { return "Block"; }
  nn::Tensor forward(const nn::Tensor &x) override {
    nn::Tensor h = x + attn(ln_1(x));
    return h + mlp(ln_2(h));
  }

  nn::LayerNorm &ln_1;
  Attention &attn;
  nn::LayerNorm &ln_2;
  Feedforward &mlp;
};

nn::Sequential blocks(const Options &options) {
  nn::Sequential blocks;
  for (int64_t i = 0; i < options.layers; ++i)
    blocks.append(Block(options));
  return blocks;
}

struct Transformer : nn::Layer {
  explicit Transformer(const Options &options)
      : options(options),
        wte(add("wte", nn::Embedding(options.vocabulary, options.width, nn::Initializer::normal(0, 0.02)))),
        wpe(add("wpe", nn::Embedding(options.length, options.width, nn::Initializer::normal(0, 0.02)))),
        h(add("h", blocks(options))), ln_f(add("ln_f", norm(options))) {}

  std::string describe() const override { return "Transformer"; }
  /// Tokens [batch, length] to (batch, length, width).
  nn::Tensor forward(const nn::Tensor &tokens) override {
    nn::Tensor x = wte(tokens) + wpe.table(tokens);
    return ln_f(h(dropped(x, options)));
  }

  Options options;
  nn::Embedding &wte, &wpe;
  nn::Sequential &h;
  nn::LayerNorm &ln_f;
};

struct Gpt2 : nn::Layer {
  explicit Gpt2(const Options &options) : transformer(add("transformer", Transformer(options))) {}

  std::string describe() const override { return "GPT2"; }
  /// Tokens [batch, length] to logits [batch, length, vocabulary].
  nn::Tensor forward(const nn::Tensor &tokens) override {
    nn::Tensor x = transformer(tokens);
    return matmul(x, transformer.wte.table(x), /*transposeRhs=*/true);
  }

  Transformer &transformer;
};

/// The size's numbers, with those in their place that were asked for.
Options optionsOf(Settings &settings) {
  std::vector<std::string> names;
  for (const Size &size : kSizes)
    names.push_back(size.name);
  Options options = kSizes[settings.choice("size", names)].options;
  auto replace = [&](const char *key, int64_t &number) {
    if (settings.text(key) != "by-size")
      number = settings.integer(key, 1, 1 << 24);
  };
  replace("layers", options.layers);
  replace("heads", options.heads);
  replace("width", options.width);
  replace("length", options.length);
  replace("vocabulary", options.vocabulary);
  options.dropout = settings.number("dropout", 0, 1);
  options.bias = settings.flag("bias");
  return options;
}

nn::LoraOptions loraOf(Settings &settings, const Options &options) {
  nn::LoraOptions lora;
  lora.rank = settings.integer("lora", 0, 1 << 16);
  lora.alpha = settings.text("lora_alpha") == "by-rank" ? 2.0 * static_cast<double>(lora.rank)
                                                        : settings.number("lora_alpha", 0, 1 << 16);
  lora.dropout = options.dropout;
  return lora;
}

Status build(Settings &settings, nn::ModelBuilder &model) {
  const Options options = optionsOf(settings);
  const nn::LoraOptions lora = loraOf(settings, options);
  GPUC_RETURN_IF_ERROR(settings.status());
  if (lora.rank == 0 && settings.text("lora_alpha") != "by-rank")
    return Status::error("lora_alpha scales adapters, and lora=0 makes none: give lora=RANK too");
  if (lora.rank > 0 && lora.alpha == 0)
    return Status::error("lora_alpha=0 would train nothing: give a number above 0, or leave it out");
  if (options.width % options.heads != 0)
    return Status::error("heads=" + std::to_string(options.heads) +
                         " do not divide width=" + std::to_string(options.width));

  Gpt2 net(options);
  if (lora.rank > 0)
    addLora(net, lora);
  const nn::Shape tokens = {nn::kBatch, options.length};
  const nn::Input x = {"x", tokens, DataType::i32, options.vocabulary},
                  labels = {"labels", tokens, DataType::i32, options.vocabulary};
  model.predict({x}, "logits", net);
  // Where the logits are not asked for, they are never stored whole: at 50,257 classes they would take more
  // than all else.
  model.loss({x}, {labels}, [&](nn::Tensor tokens, nn::Tensor labels) {
    nn::Tensor hidden = net.transformer(tokens);
    return nn::linearCrossEntropy(hidden, net.transformer.wte.table(hidden), {}, labels);
  });
  model.accuracy({x}, {labels}, [&](nn::Tensor tokens, nn::Tensor labels) {
    nn::Tensor hidden = net.transformer(tokens);
    return nn::linearAccuracy(hidden, net.transformer.wte.table(hidden), {}, labels);
  });
  return okStatus();
}

} // namespace

ZooModel gpt2() {
  return {"gpt2",
          "Decoder-only language model with tied embeddings, cross-entropy of the next token",
          {{"size", "nano", "nano (4 layers, 128 wide, 64 tokens, bytes), 124M, 350M, 774M or 1558M"},
           {"layers", "by-size", "blocks"},
           {"heads", "by-size", "heads of attention; they divide the width"},
           {"width", "by-size", "numbers for each token"},
           {"length", "by-size", "tokens of a sample"},
           {"vocabulary", "by-size", "different tokens"},
           {"dropout", "0", "probability in [0, 1), of the adapters' inputs too"},
           {"bias", "true", "linear layers and norms have one"},
           {"lora", "0",
            "rank of adapters at each linear layer; all else is frozen then; 0: none, all is trained"},
           {"lora_alpha", "by-rank", "what adapters add is multiplied by lora_alpha / lora; twice the rank"}},
          {.batch = 12, .optimizer = "adamw:lr=1e-3,beta2=0.99,weight_decay=0.1"},
          build};
}

} // namespace gpuc::models
