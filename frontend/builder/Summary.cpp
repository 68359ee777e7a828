//===- Summary.cpp - A model as a tree of layers ----------------------------===//

#include "frontend/builder/Graph.h"
#include "frontend/builder/ModelBuilder.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace gpuc::nn {

namespace {

/// 100480 as "100,480".
std::string grouped(int64_t number) {
  std::string text = std::to_string(number);
  for (int64_t i = static_cast<int64_t>(text.size()) - 3; i > 0; i -= 3)
    text.insert(i, ",");
  return text;
}

/// Whether the call at `index` is followed by another of its depth under the same parent.
bool hasSibling(const std::vector<detail::LayerCall> &calls, size_t index, int64_t depth) {
  for (size_t i = index + 1; i < calls.size() && calls[i].depth >= depth; ++i)
    if (calls[i].depth == depth)
      return true;
  return false;
}

/// The lines that lead from the call's parents to it, and its own name.
std::string treeText(const std::vector<detail::LayerCall> &calls, size_t index) {
  const detail::LayerCall &call = calls[index];
  if (call.depth == 0)
    return call.description;
  std::string text;
  for (int64_t depth = 1; depth < call.depth; ++depth)
    text += hasSibling(calls, index, depth) ? "│  " : "   ";
  text += hasSibling(calls, index, call.depth) ? "├─ " : "└─ ";
  return text + call.path.substr(call.path.rfind('.') + 1) + "  " + call.description;
}

/// Columns that a UTF-8 text takes: its code points.
size_t width(const std::string &text) {
  return llvm::count_if(text, [](char c) { return (c & 0xC0) != 0x80; });
}

struct Row {
  std::string tree, output, parameters, flops;
};

/// Sums of the call and those inside it.
Row rowOf(const std::vector<detail::LayerCall> &calls, size_t index) {
  int64_t flops = 0, parameters = 0;
  bool shared = false;
  for (size_t i = index; i < calls.size() && (i == index || calls[i].depth > calls[index].depth); ++i) {
    flops += calls[i].flops;
    parameters += calls[i].parameters;
    shared |= calls[i].shared;
  }
  return {treeText(calls, index), toString(calls[index].output),
          shared && !parameters ? "shared" : grouped(parameters), grouped(flops)};
}

} // namespace

std::string Model::summary() const {
  std::vector<Row> rows = {{"layer", "output", "parameters", "FLOPs"}};
  for (size_t i = 0; i < graph_->calls.size(); ++i)
    rows.push_back(rowOf(graph_->calls, i));

  size_t widths[4] = {};
  for (const Row &row : rows) {
    widths[0] = std::max(widths[0], width(row.tree));
    widths[1] = std::max(widths[1], row.output.size());
    widths[2] = std::max(widths[2], row.parameters.size());
    widths[3] = std::max(widths[3], row.flops.size());
  }
  auto pad = [](size_t by) { return std::string(by, ' '); };
  std::string text;
  for (const Row &row : rows)
    text += row.tree + pad(widths[0] - width(row.tree) + 2) + row.output +
            pad(widths[1] - row.output.size() + 2) + pad(widths[2] - row.parameters.size()) + row.parameters +
            "  " + pad(widths[3] - row.flops.size()) + row.flops + "\n";

  int64_t parameters = 0, frozen = 0;
  for (const detail::LayerCall &call : graph_->calls) {
    parameters += call.parameters;
    frozen += call.frozen;
  }
  const std::string trained = frozen ? " (" + grouped(parameters - frozen) + " trained)" : "";
  text += llvm::formatv("{0} parameters{1}, {2} bytes as {3}; FLOPs of predict for one sample\n",
                        grouped(parameters), trained, grouped(parameters * sizeOf(graph_->floats)),
                        nameOf(graph_->floats))
              .str();
  if (!leftOut().empty())
    text += "frozen, with no adapter: " + llvm::join(leftOut(), ", ") + "\n";
  return text;
}

} // namespace gpuc::nn
