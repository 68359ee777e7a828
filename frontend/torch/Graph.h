//===- Graph.h - A PyTorch module's training as plain data -------------------===//
//
// What torch.export made of a module, without torch: python/gpuc/capture/ writes it, Reader.cpp reads it.
// The ops are PyTorch's own (aten), and gpuc's two of python/gpuc/capture/inner_gradients.py, with arguments
// under the names of their schemas; those that have their default's value are left out.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/onnx/reader/Model.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace gpuc::torch {

/// What stands for a tensor.
struct Reference {
  enum class Kind { node, input, variable, constant };
  Kind kind = Kind::node;
  std::string name;
  int64_t result = 0; ///< Of a node.
};

struct Argument {
  std::variant<std::monostate, bool, int64_t, double, std::string, Reference, std::vector<Argument>> value;

  template <typename Value> const Value *as() const { return std::get_if<Value>(&value); }
};

/// Where a node comes from, in the user's words: a module's path ("layers.0.fc") and a line.
struct Place {
  std::string layer, file;
  int64_t line = 0;
};

struct Node {
  std::string name, op; ///< "linear", "linear.default"
  std::vector<std::pair<std::string, Argument>> arguments;
  std::vector<TensorSpec> results; ///< Their types as PyTorch has them.
  std::vector<bool> used;          ///< Whether anything reads them.
  std::optional<bool> forRows;     ///< Whether what it draws is for rows of the batch, where that is known.
  Place place;

  const Argument *find(const std::string &argument) const {
    for (const auto &[name, value] : arguments)
      if (name == argument)
        return &value;
    return nullptr;
  }
};

/// Loss: its first output, a number, becomes the pair (sum, count).
struct Function {
  std::string name;
  bool isLoss = false;
  std::vector<TensorSpec> inputs;
  std::vector<bool>
      alike; ///< Whether an input is the same for all parts of a batch, whatever its extents are.
  std::vector<Node> nodes; ///< In topological order.
  std::vector<Reference> outputs;
  std::vector<std::pair<std::string, Reference>> assigned; ///< To variables, when a training step ends.
};

struct Variable {
  enum class Role { trained, frozen, buffer };
  TensorSpec spec;
  Role role = Role::trained;
};

struct Graph {
  std::string name;
  std::vector<Variable> variables;
  std::vector<onnx::HostTensorPtr> constants; ///< Named by spec.name.
  std::vector<Function> functions;            ///< One is "loss", that of the recipe.
};

} // namespace gpuc::torch
