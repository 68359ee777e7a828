//===- Model.h - An ONNX file as plain data ---------------------------------===//
//
// What the importer needs of the format (https://onnx.ai/onnx/repo-docs/IR.html), without protobuf: only
// Reader.cpp sees that. Everything here has been checked as far as one field can be: types are known ones or
// named, tensors have just the bytes that their shape asks for.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/base/data_type.h"
#include "runtime/base/tensor_spec.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace gpuc::onnx {

/// A tensor whose elements are known: an initializer, or what is computed from such while importing.
struct HostTensor {
  TensorSpec spec;
  std::string typeName;                     ///< ONNX's name of the element type: FLOAT, STRING, …
  bool supported = true;                    ///< Of an element type that gpuc has; else `bytes` is empty.
  bool symbolic = false;                    ///< Shapes only: the least i64 stands for the batch's extent.
  std::shared_ptr<const std::string> bytes; ///< Little-endian, row-major, spec.sizeBytes() of them.
};
using HostTensorPtr = std::shared_ptr<const HostTensor>;

struct Graph;

/// What an exporter noted of a node or value, by key (`metadata_props`): text that means nothing to ONNX.
using Notes = std::map<std::string, std::string>;

struct NodeAttribute {
  std::string name;
  std::string reference; ///< In a function: the name of the function's attribute that stands here.
  std::variant<std::monostate, double, int64_t, std::string, HostTensorPtr, std::shared_ptr<const Graph>,
               std::vector<double>, std::vector<int64_t>, std::vector<std::string>>
      value; ///< Nothing if it is of another kind.

  /// The value if it is of this kind, else null.
  template <typename Value> const Value *as() const { return std::get_if<Value>(&value); }
  HostTensorPtr tensor() const { return as<HostTensorPtr>() ? *as<HostTensorPtr>() : nullptr; }
  const Graph *graph() const {
    auto *graph = as<std::shared_ptr<const Graph>>();
    return graph ? graph->get() : nullptr;
  }
};

struct Node {
  std::string name, op, domain;
  std::vector<std::string> inputs, outputs; ///< "" where an optional one is left out.
  std::vector<NodeAttribute> attributes;
  Notes notes;

  const NodeAttribute *find(const std::string &attribute) const {
    for (const NodeAttribute &candidate : attributes)
      if (candidate.name == attribute)
        return &candidate;
    return nullptr;
  }
};

/// An extent: a number, or a name ("" if it has none) that stands for one.
struct Extent {
  std::optional<int64_t> number;
  std::string name;
};

/// An input or output of a graph. Outputs may leave type and shape open.
struct ValueInfo {
  std::string name;
  std::optional<DataType> type;
  std::string typeName; ///< For errors: FLOAT, STRING, a sequence, …
  std::optional<std::vector<Extent>> shape;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<ValueInfo> inputs, outputs;
  std::vector<std::pair<std::string, HostTensorPtr>> initializers;
  std::map<std::string, Notes> notes; ///< By value.
};

/// A function of the file's own, which nodes call as if it were an op.
struct Function {
  std::string domain, name;
  std::vector<std::string> inputs, outputs;
  std::vector<NodeAttribute> defaults; ///< Attributes that a call need not give.
  std::vector<Node> nodes;
};

struct Model {
  int64_t opset = 0;    ///< Of the domain "" (ai.onnx).
  std::string producer; ///< The tool that wrote the file, as that calls itself.
  Graph graph;
  std::vector<Function> functions;
  /// Whose bytes its tensors hold; one may stand there several times.
  std::vector<std::string> externalFiles;
  /// File and SHA-1 of it in hexadecimal, as the model says: not looked at by the reader.
  std::set<std::pair<std::string, std::string>> checksums;
};

} // namespace gpuc::onnx
