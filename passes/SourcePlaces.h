//===- SourcePlaces.h - Names and lines of a model's ops ---------------------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace gpuc {

/// Parses a module. Where the location of an op of a model is written as no more than a name, loc("fc1"), it
/// becomes loc("fc1"("model.mlir":12:5)), with the place of the op in the text, which MLIR's parser drops.
/// Null after an error, which goes to the context's handler.
mlir::OwningOpRef<mlir::ModuleOp> parseWithPlaces(const std::string &text, const std::string &fileName,
                                                  mlir::MLIRContext *context);

} // namespace gpuc
