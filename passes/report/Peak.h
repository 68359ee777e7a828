//===- Peak.h - What lies in the arena when it is fullest --------------------===//
#pragma once

#include "passes/placement/LiveBytes.h"
#include "passes/plan/Lifetimes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/JSON.h"

#include <string>
#include <vector>

namespace gpuc {

/// Where a program of a placed plan has the most bytes live, of all programs the fullest.
struct Peak {
  struct Tensor {
    std::string name, layer, place; ///< `place`: FILE:LINE:COLUMN of the model; empty where there is none.
    mlir::RankedTensorType type;
    llvm::StringRef category;
    int64_t bytes; ///< With all slots of an input.
  };

  std::string program;         ///< Empty: variables alone take as much.
  std::vector<Tensor> tensors; ///< The largest first; of those that lie over one another the first.
  int64_t arenaBytes = 0;
};

mlir::FailureOr<Peak> findPeak(mlir::ModuleOp module);

/// How many bytes of buffers that have their places are live at each position. Those that lie over one
/// another count once: what lives in one place, one after the other and at times together, is one span.
placement::LiveBytes liveBytes(const Lifetimes &lifetimes, int64_t positions);

/// The report's `by_category`, with all categories and what lies between: they sum up to the arena.
llvm::json::Object byCategory(const Peak &peak);

/// The report's `peak`: the program, bytes by layer, and the tensors.
llvm::json::Object describe(const Peak &peak);

/// "64x128xf32".
std::string shapeText(mlir::RankedTensorType type);

} // namespace gpuc
