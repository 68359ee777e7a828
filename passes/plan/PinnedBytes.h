//===- PinnedBytes.h - Host memory that a GPU copies from and to ------------===//
#pragma once

#include "dialects/plan/PlanOps.h"

#include "runtime/plan/pinned_bytes.h"

namespace gpuc {

/// What a session on a GPU allocates for the inputs of each slot and for the outputs of every program.
inline int64_t pinnedBytesOf(mlir::ModuleOp module, int64_t slots) {
  int64_t bytes = 0;
  for (auto program : module.getOps<plan::ProgramOp>()) {
    for (auto input : program.getBody().getOps<plan::InputOp>())
      bytes += slots * pinnedTensorBytes(ir::sizeInBytes(input.getType()));
    for (auto output : program.getBody().getOps<plan::OutputOp>())
      bytes += pinnedTensorBytes(ir::sizeInBytes(plan::bufferOf(output.getBuffer()).getTensorType()));
  }
  return bytes;
}

} // namespace gpuc
