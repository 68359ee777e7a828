//===- Diagnostics.cpp - The first error, as one line, and as data ----------===//

#include "passes/base/Diagnostics.h"
#include "passes/base/Locations.h"

#include "runtime/base/warn.h"

using namespace mlir;

namespace gpuc {
namespace {

Diagnosis placeOf(Location location) {
  Diagnosis place;
  place.layer = layerName(location);
  if (auto file = location->findInstanceOf<FileLineColRange>()) {
    place.file = file.getFilename().str();
    place.line = file.getStartLine();
    place.column = file.getStartColumn();
  }
  return place;
}

/// "FILE:LINE:COLUMN: ", or the layer if all that is known is a name, or nothing.
std::string prefixOf(const Diagnosis &place) {
  if (!place.file.empty())
    return place.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ": ";
  return place.layer.empty() ? "" : "layer " + place.layer + ": ";
}

Diagnosis diagnosisOf(Diagnostic &diagnostic) {
  Diagnosis whole = placeOf(diagnostic.getLocation());
  whole.text = diagnostic.str();
  for (Diagnostic &note : diagnostic.getNotes())
    if (std::string noted = note.str(); !StringRef(noted).starts_with("see current operation"))
      whole.text += "; " + prefixOf(placeOf(note.getLocation())) + noted;
  std::replace(whole.text.begin(), whole.text.end(), '\n', ' ');
  return whole;
}

} // namespace

std::string lineOf(const Diagnosis &diagnosis) { return prefixOf(diagnosis) + diagnosis.text; }

FirstError::FirstError(MLIRContext *context, std::function<void(Diagnosis)> warned)
    : handler(context, [this, warned](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error) {
          if (!first)
            first = diagnosisOf(diagnostic);
        } else if (diagnostic.getSeverity() == DiagnosticSeverity::Warning) {
          warned ? warned(diagnosisOf(diagnostic)) : warn(lineOf(diagnosisOf(diagnostic)));
        }
        return success();
      }) {
  context->printOpOnDiagnostic(false);
}

Status FirstError::take(const std::string &otherwise) {
  last = first.value_or(Diagnosis{.text = otherwise});
  first.reset();
  return Status::error(lineOf(last));
}

} // namespace gpuc
