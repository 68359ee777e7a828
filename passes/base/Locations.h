//===- Locations.h - The layer that an op came from --------------------------===//
//
// A layer is a name in an op's location: loc("fc1"), or loc("fc1"("model.mlir":12:5)). Passes keep it; what
// they add is a tag, as in loc(fused<"backward">["fc1"]). Kernels, commands and profiles are named by it.
//
#pragma once

#include "mlir/IR/Location.h"

#include <set>
#include <string>

namespace gpuc {

/// The location of what stands in the backward pass for an op at `forward`.
mlir::Location backwardOf(mlir::Location forward);

/// The location of a part of the definition of `op` (a mnemonic) at `whole`.
mlir::Location partOf(mlir::Location whole, llvm::StringRef op);

/// Whether the location, or one fused into it, is that of a backward op.
bool isBackward(mlir::Location location);

/// The outermost op of which this is a part, by its mnemonic; empty if there is none.
std::string wholeOf(mlir::Location location);

/// The first layer's name in the location: `fc1`; empty if there is none.
std::string layerName(mlir::Location location);

/// The names of the layers of ops under `root`.
std::set<std::string> layersIn(mlir::Operation *root);

/// The name with its layer before it, "fc1.matmul", or alone where there is no layer.
std::string nameInLayer(mlir::Location location, llvm::StringRef name);

/// FILE:LINE:COLUMN, the first in the location; empty if there is none.
std::string filePlace(mlir::Location location);

} // namespace gpuc
