//===- Blame.h - Whose work a stage's verifier finds wanting ----------------===//
#pragma once

#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"

#include <string>

namespace gpuc {

/// Who is to blame for what is found behind a pass: it, or one before it whose work that was.
class Blame {
public:
  explicit Blame(llvm::StringRef last) : last_(last) {}

  /// The error that `pass`, or the last one, left `what` at `location`; fails.
  mlir::LogicalResult report(mlir::Location location, const llvm::Twine &what,
                             llvm::StringRef pass = {}) const;

private:
  std::string last_; // the pass that has run last
};

} // namespace gpuc
