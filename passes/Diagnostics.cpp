//===- Diagnostics.cpp - The first error, as one line -----------------------===//

#include "passes/Diagnostics.h"
#include "passes/base/Locations.h"

#include "runtime/base/warn.h"

using namespace mlir;

namespace gpuc {
namespace {

/// "FILE:LINE:COLUMN: ", or the layer if all that is known is a name, or nothing.
std::string prefixOf(Location location) {
  if (std::string place = filePlace(location); !place.empty())
    return place + ": ";
  std::string layer = layerName(location);
  return layer.empty() ? "" : "layer " + layer + ": ";
}

std::string textOf(Diagnostic &diagnostic) {
  std::string text = prefixOf(diagnostic.getLocation()) + diagnostic.str();
  for (Diagnostic &note : diagnostic.getNotes())
    if (std::string noted = note.str(); !StringRef(noted).starts_with("see current operation"))
      text += "; " + prefixOf(note.getLocation()) + noted;
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

} // namespace

FirstError::FirstError(MLIRContext *context)
    : handler(context, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error) {
          if (!first)
            first = textOf(diagnostic);
        } else if (diagnostic.getSeverity() == DiagnosticSeverity::Warning) {
          warn(textOf(diagnostic));
        }
        return success();
      }) {
  context->printOpOnDiagnostic(false);
}

Status FirstError::take(const std::string &otherwise) {
  Status error = Status::error(first.value_or(otherwise));
  first.reset();
  return error;
}

} // namespace gpuc
