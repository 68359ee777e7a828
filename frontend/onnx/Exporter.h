//===- Exporter.h - What the exporter tells of initializers -----------------===//
//
// ONNX knows initializers only. Whether one is a parameter, a buffer or what the exporter made of either
// stands in notes that it leaves, or in its names.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/onnx/reader/Model.h"

#include <set>

namespace gpuc::onnx {

enum class Exporter {
  torchExport, ///< PyTorch's, dynamo=True: nodes and values carry notes.
  torchScript, ///< PyTorch's, dynamo=False: initializers are the state_dict, under its names.
  other,
};
Exporter exporterOf(const Model &model);

enum class Origin {
  unknown,
  parameter,
  buffer,
  state,    ///< A parameter or a buffer: an entry of PyTorch's state_dict.
  reshaped, ///< A parameter, transposed or reordered by the exporter, under a name of its own.
  computed, ///< By the exporter, of what may be parameters.
  constant, ///< By the exporter, of numbers alone.
};

class Origins {
public:
  explicit Origins(const Model &model);
  Exporter exporter() const { return exporter_; }
  Origin of(const std::string &initializer) const;

private:
  Origin torchExport(const std::string &name) const;

  const Graph &graph_;
  Exporter exporter_;
  std::set<std::string> computedLater_; ///< Inputs, and what nodes compute: of these only shapes were known.
};

/// PyTorch's exporter writes the export's names: parameters are p_…, buffers b_…, constants c_….
struct TorchName {
  /// Of an initializer; "" if it has none.
  static std::string of(const Graph &graph, const std::string &initializer);
  /// Which the node was made of, in their order, each once.
  static std::vector<std::string> usedBy(const Node &node);
  /// As in the state_dict: p_body_0_weight of a node of body.0 is body.0.weight.
  static std::string dotted(const std::string &name, const Node &node);
};

/// The note under `key`; "" if there is none.
const std::string &noteOf(const Notes &notes, const std::string &key);
/// The node of the export that a node of the graph was made of; "" if there is no note of it.
std::string exportedNode(const Node &node);
/// The names behind each % of a node of the export.
std::vector<std::string> namesIn(std::string_view arguments);
/// The list that a note holds, written as Python does: ['a', 'b'].
std::vector<std::string> listOf(const Notes &notes, const std::string &key);

inline constexpr const char *kKindNote = "pkg.torch.export.graph_signature.InputSpec.kind";
inline constexpr const char *kTorchNameNote = "pkg.torch.onnx.original_node_name";
inline constexpr const char *kExportedNodeNote = "pkg.torch.onnx.fx_node";
inline constexpr const char *kScopesNote = "pkg.torch.onnx.name_scopes";
inline constexpr const char *kRewriteNote = "pkg.onnxscript.rewriter.rule_name";
inline constexpr const char *kFoldedNote = "pkg.onnxscript.optimizer.folded_from";

} // namespace gpuc::onnx
