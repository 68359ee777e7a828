//===- Diagnostics.h - The first error, as one line -------------------------===//
#pragma once

#include "mlir/IR/Diagnostics.h"

#include "runtime/base/status.h"

#include <optional>
#include <string>

namespace gpuc {

/// Keeps the first error that a context reports, with its notes, as one line; prints warnings as they come.
/// Errors after the first mostly follow from it.
class FirstError {
public:
  explicit FirstError(mlir::MLIRContext *context);

  /// The error, or `otherwise` if none was reported; forgets it.
  Status take(const std::string &otherwise);

private:
  std::optional<std::string> first;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace gpuc
