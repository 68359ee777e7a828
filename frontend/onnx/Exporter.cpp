//===- Exporter.cpp - What the exporter tells of initializers ---------------===//

#include "frontend/onnx/Exporter.h"

#include <algorithm>

namespace gpuc::onnx {
namespace {

bool isDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return isdigit(c); });
}

/// A value that the exporter numbered, as val_16: a node's or a constant's, never a parameter's.
bool isNumbered(std::string_view name) { return name.starts_with("val_") && isDigits(name.substr(4)); }

const std::string &noteOf(const Graph &graph, const std::string &value, const char *key) {
  static const Notes none;
  auto notes = graph.notes.find(value);
  return onnx::noteOf(notes == graph.notes.end() ? none : notes->second, key);
}

/// What was folded is named by the op that reads it: onnx::MatMul_12, of old exporters 12.
Origin torchScriptOrigin(const std::string &name) {
  if (name.starts_with("/"))
    return Origin::constant;
  for (const char *op : {"MatMul", "LSTM", "GRU", "RNN"})
    if (name.starts_with(std::string("onnx::") + op + "_"))
      return Origin::reshaped;
  return name.starts_with("onnx::") || isDigits(name) ? Origin::computed : Origin::state;
}

/// The name that begins at `at`, without its %.
std::string nameAt(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && (isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
    ++end;
  return std::string(text.substr(at, end - at));
}

} // namespace

const std::string &noteOf(const Notes &notes, const std::string &key) {
  static const std::string none;
  auto note = notes.find(key);
  return note == notes.end() ? none : note->second;
}

Exporter exporterOf(const Model &model) {
  if (model.producer != "pytorch")
    return Exporter::other;
  for (const Node &node : model.graph.nodes)
    if (node.notes.count(kExportedNodeNote))
      return Exporter::torchExport;
  for (const auto &[value, notes] : model.graph.notes)
    if (notes.count(kKindNote))
      return Exporter::torchExport;
  return Exporter::torchScript;
}

Origins::Origins(const Model &model) : graph_(model.graph), exporter_(exporterOf(model)) {
  for (const ValueInfo &input : graph_.inputs)
    computedLater_.insert(input.name);
  for (const Node &node : graph_.nodes)
    computedLater_.insert(node.outputs.begin(), node.outputs.end());
}

Origin Origins::torchExport(const std::string &name) const {
  if (const std::string &kind = noteOf(graph_, name, kKindNote); !kind.empty())
    return kind == "PARAMETER" ? Origin::parameter : Origin::buffer;
  if (noteOf(graph_, name, kFoldedNote).empty())
    return isNumbered(name) ? Origin::constant : Origin::unknown;
  for (const std::string &source : listOf(graph_.notes.at(name), kFoldedNote))
    if (!isNumbered(source) && !computedLater_.count(source))
      return Origin::computed;
  return Origin::constant;
}

Origin Origins::of(const std::string &initializer) const {
  switch (exporter_) {
  case Exporter::torchExport:
    return torchExport(initializer);
  case Exporter::torchScript:
    return torchScriptOrigin(initializer);
  case Exporter::other:
    return Origin::unknown;
  }
  return Origin::unknown;
}

std::vector<std::string> listOf(const Notes &notes, const std::string &key) {
  std::vector<std::string> list;
  const std::string &text = noteOf(notes, key);
  for (size_t at = text.find('\''); at != std::string::npos; at = text.find('\'', at)) {
    size_t end = text.find('\'', at + 1);
    if (end == std::string::npos)
      break;
    list.push_back(text.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return list;
}

std::vector<std::string> namesIn(std::string_view arguments) {
  std::vector<std::string> names;
  for (size_t at = arguments.find('%'); at != std::string::npos; at = arguments.find('%', at + 1))
    names.push_back(nameAt(arguments, at + 1));
  return names;
}

std::string exportedNode(const Node &node) {
  const std::string &note = noteOf(node.notes, kExportedNodeNote);
  return note.starts_with("%") ? nameAt(note, 1) : "";
}

std::string TorchName::of(const Graph &graph, const std::string &initializer) {
  return noteOf(graph, initializer, kTorchNameNote);
}

std::vector<std::string> TorchName::usedBy(const Node &node) {
  std::vector<std::string> names;
  const std::string_view note = noteOf(node.notes, kExportedNodeNote);
  for (const std::string &name : namesIn(note.substr(std::min(note.find("](args"), note.size())))) {
    bool isTensor = name.starts_with("p_") || name.starts_with("b_") || name.starts_with("c_");
    if (isTensor && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  }
  return names;
}

std::string TorchName::dotted(const std::string &name, const Node &node) {
  std::vector<std::string> scopes = listOf(node.notes, kScopesNote);
  const std::string rest = name.substr(std::min<size_t>(2, name.size()));
  for (size_t i = scopes.size(); i-- > 0;) {
    std::string flat = scopes[i];
    std::replace(flat.begin(), flat.end(), '.', '_');
    if (!flat.empty() && rest.starts_with(flat + "_"))
      return scopes[i] + "." + rest.substr(flat.size() + 1);
  }
  return rest;
}

} // namespace gpuc::onnx
