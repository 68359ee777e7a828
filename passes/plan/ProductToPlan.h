//===- ProductToPlan.h - Products as libraries' commands ----------------------===//
#pragma once

#include "passes/kernels/Epilogues.h"
#include "passes/plan/ProgramWriter.h"

namespace gpuc {

/// A product that becomes a command, with what follows it.
struct Product {
  mlir::Operation *op; ///< A ProductOpInterface.
  mlir::Value result;  ///< What the last op of it gives.
  std::string name;    ///< Of the result's buffer; empty if that is called by layer and command.
  mlir::Location location;
  mlir::Value bias = {}, mask = {}; ///< Buffers; null where there are none.
  bool relu = false;
};

/// Writes a product with nothing behind it, or that of the region, whose arguments are names of what they
/// stand for. An error where the target's library does not do what follows.
mlir::LogicalResult convertProduct(ProgramWriter &writer, mlir::Operation *op, plan::TargetAttr target);
mlir::LogicalResult convertProduct(ProgramWriter &writer, ir::FusedOp fused, const Epilogue &epilogue,
                                   plan::TargetAttr target);

/// "layer.command", or the command's name alone.
std::string commandName(mlir::Operation *op, llvm::StringRef command);

} // namespace gpuc
