//===- Target.cpp - What a plan is made for ---------------------------------===//

#include "passes/base/Target.h"

using namespace mlir;

namespace gpuc {

FailureOr<Target> Target::parse(StringRef text, std::string &error) {
  const auto [kind, name] = text.split(':');
  std::optional<plan::TargetKind> known = plan::symbolizeTargetKind(kind);
  if (known)
    return Target{*known, name.str()};
  error = "unknown target '" + text.str() + "': host[:CPU] or cuda:ARCHITECTURE";
  return failure();
}

FailureOr<Target> Target::parse(StringRef text, Operation *module) {
  std::string error;
  FailureOr<Target> target = parse(text, error);
  if (failed(target))
    return module->emitError(error), failure();
  return target;
}

} // namespace gpuc
