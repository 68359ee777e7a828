//===- ModelBuilder.h - A model in C++, as a module of the gpuc dialect -----===//
//
//   nn::ModelBuilder model("mlp");
//   Net net; // an nn::Layer
//   model.predict({{"x", {nn::kBatch, 784}}}, "logits", net);
//   model.loss({{"labels", {nn::kBatch}, DataType::i32, 10}},
//              [](nn::Tensor logits, nn::Tensor labels) { return nn::crossEntropy(logits, labels); });
//   model.recipe({.batch = 64, .optimizer = "adam:lr=1e-3"});
//   Result<nn::Model> finished = model.finish();
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/builder/Losses.h"
#include "frontend/builder/Module.h"
#include "runtime/base/status.h"

#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace mlir {
class ModuleOp;
}

namespace gpuc::nn {

/// An argument of an entry function, bound by name when the model runs.
struct Input {
  std::string name;
  Shape shape;
  std::optional<DataType> dtype = {}; ///< None: the model's floating-point type.
  std::optional<int64_t> range = {}; ///< Integers lie in [0, range): the number of classes or the vocabulary.
};

/// How the model is trained; gpuc-compile's flags override it.
struct Recipe {
  int64_t batch = 64;                     ///< Rows a step.
  std::string optimizer = "adam:lr=1e-3"; ///< NAME[:key=value,…], keys and defaults as in PyTorch.
  /// What else it says (docs/recipe.md), each with its text: {"clip_norm", "1"},
  /// {"schedule", "cosine:T_max=900"}, of lists as "groups" each spec by itself.
  std::vector<std::pair<std::string, std::string>> entries = {};
};

/// The names that Recipe::entries may have.
std::vector<std::string> recipeEntryNames();

/// A finished model: a verified module of the gpuc dialect.
class Model {
public:
  Model(Model &&) noexcept;
  ~Model();

  /// The module as text, each op with the name of its layer.
  std::string text() const;

  /// The tree of layers with output shapes, parameters and FLOPs (of `predict`, for one sample).
  std::string summary() const;

  /// Frozen weights to which addLora gave no adapter beside them, in the order of their first use.
  const std::vector<std::string> &leftOut() const;

  /// Writes text() to a file in full or not at all; "-" is stdout.
  Status write(const std::string &path) const;

  /// For who knows MLIR; lives as long as the model.
  mlir::ModuleOp module() const;

private:
  friend class ModelBuilder;
  explicit Model(std::unique_ptr<detail::Graph> graph);
  std::unique_ptr<detail::Graph> graph_;
};

/// Builds a model's entry functions. `predict` comes first; loss and accuracy see its output.
class ModelBuilder {
public:
  /// `floats`: the element type of parameters, and of inputs that name none; f32 or f64.
  explicit ModelBuilder(std::string name, DataType floats = DataType::f32);
  ModelBuilder(ModelBuilder &&) noexcept;
  ~ModelBuilder();

  DataType floats() const;

  /// The forward pass: `body` takes one Tensor for each input and returns the output.
  template <typename Function>
    requires(!std::is_base_of_v<Layer, Function>)
  void predict(const std::vector<Input> &inputs, const std::string &output, Function body) {
    Body<Tensor> one = spread<Tensor>("predict", inputs.size(), std::move(body));
    buildPredict(inputs, {output},
                 [one](const std::vector<Tensor> &x) { return std::vector<Tensor>{one(x)}; });
  }

  /// A forward pass of several outputs: `body` takes the tensors of all inputs and returns one for each name.
  /// Loss and accuracy see the first.
  void predictSeveral(const std::vector<Input> &inputs, const std::vector<std::string> &outputs,
                      const std::function<std::vector<Tensor>(const std::vector<Tensor> &)> &body) {
    buildPredict(inputs, outputs, body);
  }

  /// The forward pass is one call of `net`.
  void predict(const std::vector<Input> &inputs, const std::string &output, Layer &net) {
    predict(inputs, output, [&net](Tensor x) { return net(x); });
  }

  /// What is minimised: `body` takes the output of `predict` and one Tensor for each target, and returns a
  /// Loss.
  template <typename Function> void loss(const std::vector<Input> &targets, Function body) {
    buildMetric("loss", targets, spread<Loss>("loss", targets.size() + 1, std::move(body)));
  }

  /// A loss that goes its own way from the inputs, where what predict returns is not what is minimised:
  /// `body` takes one Tensor for each input, then one for each target.
  template <typename Function>
  void loss(const std::vector<Input> &inputs, const std::vector<Input> &targets, Function body) {
    buildMetricFrom("loss", inputs, targets,
                    spread<Loss>("loss", inputs.size() + targets.size(), std::move(body)));
  }

  /// What is counted in evaluation; `body` as for loss.
  template <typename Function> void accuracy(const std::vector<Input> &targets, Function body) {
    buildMetric("accuracy", targets, spread<Loss>("accuracy", targets.size() + 1, std::move(body)));
  }

  /// The same from the inputs, as the other loss.
  template <typename Function>
  void accuracy(const std::vector<Input> &inputs, const std::vector<Input> &targets, Function body) {
    buildMetricFrom("accuracy", inputs, targets,
                    spread<Loss>("accuracy", inputs.size() + targets.size(), std::move(body)));
  }

  void recipe(const Recipe &recipe);

  /// The model, verified, or the first error: one line that names the layer. The builder is spent afterwards.
  Result<Model> finish();

private:
  template <typename Value> using Body = std::function<Value(const std::vector<Tensor> &)>;

  void buildPredict(const std::vector<Input> &inputs, const std::vector<std::string> &outputs,
                    const Body<std::vector<Tensor>> &body);
  void buildMetric(const std::string &entry, const std::vector<Input> &targets, const Body<Loss> &body);
  void buildMetricFrom(const std::string &entry, const std::vector<Input> &inputs,
                       const std::vector<Input> &targets, const Body<Loss> &body);
  bool mayBegin(const std::string &entry);
  void endMetric(const std::string &entry, const Loss &result);
  void failArity(const char *entry, size_t expected, size_t taken);

  /// Turns a function of one to four tensors into one of a list; an error if it does not take `count` of
  /// them.
  template <typename Value, typename Function>
  Body<Value> spread(const char *entry, size_t count, Function function) {
    constexpr size_t arity = std::is_invocable_v<Function, Tensor>                           ? 1
                             : std::is_invocable_v<Function, Tensor, Tensor>                 ? 2
                             : std::is_invocable_v<Function, Tensor, Tensor, Tensor>         ? 3
                             : std::is_invocable_v<Function, Tensor, Tensor, Tensor, Tensor> ? 4
                                                                                             : 0;
    static_assert(arity != 0, "the function takes one to four nn::Tensor");
    if (count != arity)
      failArity(entry, count, arity);
    return [function](const std::vector<Tensor> &t) mutable -> Value {
      if (t.size() != arity)
        return {};
      return [&]<size_t... index>(std::index_sequence<index...>) {
        return function(t[index]...);
      }(std::make_index_sequence<arity>());
    };
  }

  std::unique_ptr<detail::Graph> graph_;
};

} // namespace gpuc::nn
