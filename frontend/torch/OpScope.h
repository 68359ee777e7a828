//===- OpScope.h - What the lowering of one op sees ---------------------------===//
#pragma once

#include "frontend/onnx/Tensor.h"
#include "frontend/torch/Graph.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace gpuc::torch {

using onnx::Emitter;
using onnx::Tensor;

/// One node: its arguments by name, and its results. What is wrong is reported by fail(); after that
/// everything is empty.
class OpScope {
public:
  using Resolve = llvm::function_ref<Tensor(const Reference &)>;

  OpScope(Emitter &emitter, const Node &node, Resolve resolve, int64_t &nextRandomId)
      : emitter(emitter), node(node), outputs(node.results.size()), resolve_(resolve),
        nextRandomId_(nextRandomId) {}

  Failure fail(const std::string &text) { return emitter.fail(text); }
  bool failed() const { return emitter.failed(); }

  /// Whether the argument is there and not None.
  bool has(const char *name) const;
  Tensor tensor(const char *name);
  std::vector<Tensor> tensors(const char *name);
  /// A list in which some are None, and empty here.
  std::vector<Tensor> optionalTensors(const char *name);
  bool isTensor(const char *name) const;
  /// A tensor, or a number of the result's type.
  Tensor operand(const char *name, DataType type);

  int64_t integer(const char *name, int64_t otherwise);
  double number(const char *name, double otherwise);
  bool flag(const char *name, bool otherwise);
  std::string text(const char *name, const std::string &otherwise);
  /// A list; one number stands for `count` of them.
  Shape integers(const char *name, const Shape &otherwise, size_t count = 0);
  std::vector<double> numbers(const char *name);

  /// The type that PyTorch's first result has.
  DataType type() const { return spec().type; }
  const Shape &shape() const { return spec().shape; }
  const TensorSpec &spec(size_t index = 0) const;
  bool wants(size_t index) const { return index < node.used.size() && node.used[index]; }
  void output(const Tensor &value, size_t index = 0);

  /// For an op that draws: another one at each call.
  int64_t nextRandomId() { return nextRandomId_++; }

  Emitter &emitter;
  const Node &node;
  std::vector<Tensor> outputs;
  /// How many rows a batch has, where the op is of a loss.
  int64_t batch = 1;

private:
  template <typename Value> const Value *get(const char *name, const char *kind);

  Resolve resolve_;
  int64_t &nextRandomId_;
};

} // namespace gpuc::torch
