//===- Unmerge.h - Initializers that an exporter merged, apart again --------===//
//
// Optimizers of exporters keep initializers that are equal once. For inference that changes nothing; in
// training the ones of a fresh batch norm's weight and of its running variance go different ways. Weights
// that are tied in the model are one initializer too: which of the two it is follows from the notes of the
// export, or from the roles in which an initializer is read.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/onnx/reader/Model.h"

namespace gpuc::onnx {

struct Unmerged {
  std::vector<std::string> apart;  ///< New initializers: one for each role and place of one that was merged.
  std::vector<std::string> unsure; ///< Those of them for which nothing but their value speaks.
  std::vector<std::string> copies; ///< Transposes of a weight that is there as well: "copy' of 'weight".
  std::vector<std::string> lost;   ///< Parameters of the export that no initializer stands for any more.
};

/// Gives each role and place its own initializer, in the main graph.
Unmerged unmerge(Model &model);

} // namespace gpuc::onnx
