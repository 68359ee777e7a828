//===- Target.h - What a plan is made for -----------------------------------===//
#pragma once

#include "dialects/plan/PlanOps.h"
#include "passes/target/TargetDescription.h"

#include <string>

namespace gpuc {

/// host[:CPU] or cuda:ARCHITECTURE, as on the command line and in the text of a step.
struct Target {
  plan::TargetKind kind = plan::TargetKind::host;
  std::string name; ///< Of CPU or architecture; empty: the CPU at hand.

  /// Fails, and says why, if it is neither; whether there is such a CPU or architecture the code generators
  /// know.
  static mlir::FailureOr<Target> parse(llvm::StringRef text, std::string &error);

  /// The same of a pass's option, with the error at `module`.
  static mlir::FailureOr<Target> parse(llvm::StringRef text, mlir::Operation *module);

  bool isCuda() const { return kind == plan::TargetKind::cuda; }
};

inline const TargetDescription &describe(plan::TargetKind kind) {
  return kind == plan::TargetKind::cuda ? kCudaDescription : kHostDescription;
}
inline const TargetDescription &describe(const Target &target) { return describe(target.kind); }
inline const TargetDescription &describe(plan::TargetAttr target) { return describe(target.getKind()); }

} // namespace gpuc
