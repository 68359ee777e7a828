//===- Diagnostics.h - The first error, as one line, and as data ------------===//
#pragma once

#include "passes/base/Diagnosis.h"

#include "mlir/IR/Diagnostics.h"

#include "runtime/base/status.h"

#include <functional>
#include <optional>
#include <string>

namespace gpuc {

/// "FILE:LINE:COLUMN: …"
std::string lineOf(const Diagnosis &diagnosis);

/// Keeps the first error that a context reports, with its notes; hands warnings on as they come. Errors after
/// the first mostly follow from it.
class FirstError {
public:
  /// `warned`: null, and warnings are printed.
  FirstError(mlir::MLIRContext *context, std::function<void(Diagnosis)> warned);

  /// The error as one line that begins with its place, or `otherwise` if none was reported; forgets it.
  Status take(const std::string &otherwise);

  /// The parts of what take() gave last.
  const Diagnosis &taken() const { return last; }

private:
  std::optional<Diagnosis> first;
  Diagnosis last;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace gpuc
