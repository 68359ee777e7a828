//===- Torch.h - PyTorch modules become models of gpuc -----------------------===//
//
// All that a user of the importer includes; no MLIR.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/torch/Graph.h"
#include "runtime/base/status.h"

namespace gpuc::torch {

/// Reads what python/gpuc/capture/ writes.
Result<Graph> parseGraph(const std::string &json);

/// One thing that keeps a module from being lowered, and where in the user's code.
struct Problem {
  std::string text; ///< "aten.fft_fft.default is not supported: …", one line, without the place.
  Place place;
};

struct Lowered {
  std::string text;              ///< The module, if there are no problems.
  std::vector<Problem> problems; ///< All of them, in the order of the nodes.
};

/// Variables, @loss and other functions, and a recipe with the loss alone.
Lowered lower(const Graph &graph);

/// The ops that are lowered, each with the arguments that are known: "linear.default" {bias input weight}.
std::vector<std::pair<std::string, std::vector<std::string>>> knownOps();

} // namespace gpuc::torch
