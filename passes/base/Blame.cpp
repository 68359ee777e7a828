//===- Blame.cpp - Whose work a stage's verifier finds wanting --------------===//

#include "passes/base/Blame.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;

namespace gpuc {

LogicalResult Blame::report(Location location, const Twine &what, StringRef pass) const {
  InFlightDiagnostic error = emitError(location);
  error << (pass.empty() ? last_ : pass.str()) << " left " << what;
  if (!pass.empty() && pass != last_)
    error << ", seen behind " << last_;
  // At no place, so that the line names the culprit's alone.
  error.attachNote(UnknownLoc::get(location.getContext()))
      << "unless the text was changed by hand this is a bug of gpuc: please report it with the model";
  return error;
}

} // namespace gpuc
