//===- HostSegments.h - Several kernels as one function ----------------------===//
#pragma once

#include "passes/codegen/Segments.h"

#include "mlir/IR/BuiltinOps.h"

namespace gpuc::codegen {

/// A segment's own function over its own operands and tiles.
struct HostSegment {
  std::string symbol;
  int64_t tiles;
  llvm::ArrayRef<int64_t> operands; ///< As in Segment.
};

/// Emits `symbol(ptr operands, i64 begin, i64 end)` into `module`: the tiles of all segments are numbered one
/// segment after another, and those from `begin` to `end` are handed to the segments that have them.
void emitHostSegments(mlir::ModuleOp module, llvm::StringRef symbol, llvm::ArrayRef<HostSegment> segments);

} // namespace gpuc::codegen
