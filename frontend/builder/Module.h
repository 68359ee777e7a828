//===- Module.h - Layers with names and parameters --------------------------===//
//
// A model is a tree of modules, as in PyTorch; a parameter's name is the path to it: "encoder.fc1.weight".
//
//   struct Net : nn::Layer {
//     nn::Linear &fc1 = add("fc1", nn::Linear(784, 128));
//     nn::Linear &fc2 = add("fc2", nn::Linear(128, 10));
//     nn::Tensor forward(const nn::Tensor &x) override { return fc2(relu(fc1(x))); }
//   };
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/builder/Tensor.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace gpuc::nn {

/// How a parameter begins: a name that gpuc.variable knows, and its numbers.
struct Initializer {
  std::string name;
  std::map<std::string, double> numbers;

  static Initializer zeros() { return {"zeros", {}}; }
  static Initializer ones() { return {"ones", {}}; }
  static Initializer constant(double value) { return {"constant", {{"value", value}}}; }
  /// Uniform in [-bound, bound).
  static Initializer uniform(double bound) { return {"uniform", {{"bound", bound}}}; }
  static Initializer normal(double mean, double deviation) {
    return {"normal", {{"mean", mean}, {"std", deviation}}};
  }
  /// PyTorch's kaiming_uniform_ with a = √5, its default for the weights of layers: uniform in ±1/√fanIn.
  static Initializer kaimingUniform(int64_t fanIn) {
    return {"kaiming_uniform", {{"fan_in", static_cast<double>(fanIn)}}};
  }
};

struct LoraOptions;

/// What has a name, parameters, and modules inside. Modules are built as values and move into their parent.
class Module {
public:
  Module() = default;
  Module(Module &&other);
  virtual ~Module() = default;

  /// The names from the root to here, joined by dots; "" for the root.
  std::string path() const;

  /// The kind of module and its numbers, as a summary prints it: "Linear(784, 128)".
  virtual std::string describe() const { return "Module"; }

  /// What is wrong with the names of this module's children or of those around it; "" if nothing.
  std::string mistake() const;

  /// Whether this module's parameters and those inside are trained; what is said of a module inside counts
  /// more. A frozen parameter has no gradient and no optimizer state. PyTorch's requires_grad_().
  void requiresGrad(bool trained) { trained_ = trained; }
  bool requiresGrad() const { return trained_.value_or(!parent_ || parent_->requiresGrad()); }

  /// Whether this module is a block: when the backward pass comes to it, it is computed again from what it
  /// reads of other layers, instead of being kept. The model says so with gpuc.checkpoint. PyTorch's
  /// torch.utils.checkpoint.
  void checkpoint(bool again) { checkpoint_ = again; }

  /// Calls `visit` for this module and all inside, outer ones first, in the order of add().
  void visit(const std::function<void(Module &)> &visit);

  /// Gives a module that is products with one weight a low-rank adapter (Lora.h); false for all others.
  virtual bool addAdapter(const LoraOptions &) { return false; }

  /// Whether others have adapters, and this module's own weights none.
  void lacksAdapter(bool lacks) { lacksAdapter_ = lacks; }
  bool lacksAdapter() const { return lacksAdapter_; }

protected:
  /// Puts `child` inside under `name`; the reference lives as long as this module, wherever it moves.
  template <typename ModuleType> ModuleType &add(std::string name, ModuleType child) {
    auto owned = std::make_unique<ModuleType>(std::move(child));
    ModuleType &reference = *owned;
    adopt(std::move(name), std::move(owned));
    return reference;
  }
  void adopt(std::string name, std::unique_ptr<Module> child);

  /// Reads the parameter `name` in the model that `user` belongs to, declaring it where it is first read. Its
  /// element type is the model's.
  Tensor parameter(const Tensor &user, const std::string &name, const Shape &shape,
                   const Initializer &initializer);

  /// The same for a statistic, which assign() changes, and no optimizer.
  Tensor statistic(const Tensor &user, const std::string &name, const Shape &shape, DataType type,
                   const Initializer &initializer);
  /// Gives this module's statistic `name` a new value at the end of a train step. Evaluation and prediction
  /// leave it as it is.
  void assign(const std::string &name, const Tensor &value);

  /// Calls `forward` as this module: what it adds to the model that `x` belongs to is this module's, and so
  /// are its errors. For modules of several inputs; a Layer does it by itself.
  Tensor call(const Tensor &x, const std::function<Tensor()> &forward);

private:
  std::string pathTo(const std::string &name) const;

  std::string name_;
  // Of a call of add(); reported when the module is used, for only then is there a model.
  std::string mistake_;
  Module *parent_ = nullptr;
  std::optional<bool> trained_; // none: as the parent's
  bool lacksAdapter_ = false;
  bool checkpoint_ = false;
  std::vector<std::unique_ptr<Module>> children_;
};

/// The module, under the same names, as a block that is computed again for its gradients, not kept:
///
///   Block &block = add("block", nn::Checkpoint(Block(256)));
template <typename ModuleType> class Checkpoint : public ModuleType {
public:
  explicit Checkpoint(ModuleType module) : ModuleType(std::move(module)) { this->checkpoint(true); }
};

/// A module that makes one tensor of one tensor. Call it as a function; override forward.
class Layer : public Module {
public:
  Tensor operator()(const Tensor &x);

protected:
  virtual Tensor forward(const Tensor &x) = 0;
};

/// A layer without parameters: a function, under the name that a summary prints.
class FunctionLayer : public Layer {
public:
  FunctionLayer(std::string description, std::function<Tensor(const Tensor &)> function)
      : description_(std::move(description)), function_(std::move(function)) {}
  std::string describe() const override { return description_; }

protected:
  Tensor forward(const Tensor &x) override { return function_(x); }

private:
  std::string description_;
  std::function<Tensor(const Tensor &)> function_;
};

/// A layer in a Sequential under a name of its own.
struct NamedLayer {
  std::string name;
  std::unique_ptr<Layer> layer;
};

template <typename LayerType> NamedLayer named(std::string name, LayerType layer) {
  return {std::move(name), std::make_unique<LayerType>(std::move(layer))};
}

/// Layers one after another: Sequential(Flatten(), named("fc1", Linear(784, 10))). A layer without a name is
/// called by its position from 0.
class Sequential : public Layer {
public:
  Sequential() = default;
  // With one argument it must not take the place of the move constructor.
  template <typename First, typename... Rest>
    requires(sizeof...(Rest) > 0 || !std::is_same_v<std::remove_cvref_t<First>, Sequential>)
  explicit Sequential(First &&first, Rest &&...rest) {
    append(std::forward<First>(first));
    (append(std::forward<Rest>(rest)), ...);
  }

  /// Adds a layer at the end.
  void append(NamedLayer layer);
  template <typename LayerType>
    requires std::is_base_of_v<Layer, std::remove_cvref_t<LayerType>>
  void append(LayerType &&layer) {
    append(named(std::to_string(layers_.size()), std::forward<LayerType>(layer)));
  }

  std::string describe() const override { return "Sequential"; }

protected:
  Tensor forward(const Tensor &x) override;

private:
  std::vector<Layer *> layers_; // owned as children
};

} // namespace gpuc::nn
