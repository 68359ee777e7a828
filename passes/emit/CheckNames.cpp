//===- CheckNames.cpp - Names that a plan file can hold ----------------------===//

#include "passes/emit/EmitParts.h"

#include "runtime/base/quote.h"
#include "runtime/plan/verify.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace gpuc {

/// By which a user finds it; empty of what has a name of the compiler's own.
static std::optional<StringRef> nameOf(Operation *op) {
  return TypeSwitch<Operation *, std::optional<StringRef>>(op)
      .Case([](ModuleOp plan) { return plan.getSymName(); })
      .Case<plan::VariableOp, plan::ProgramOp>([](auto named) { return named.getSymName(); })
      .Case<plan::InputOp, plan::OutputOp>([](auto named) { return named.getName(); })
      .Default(std::nullopt);
}

LogicalResult checkNames(ModuleOp module) {
  auto walked = module.walk<WalkOrder::PreOrder>([](Operation *op) {
    std::optional<StringRef> name = nameOf(op);
    if (!name)
      return WalkResult::advance();
    if (name->empty())
      return WalkResult(op->emitError("the name is empty: a plan's have 1 to ")
                        << kMostNameBytes << " bytes");
    if (name->size() > kMostNameBytes)
      return WalkResult(op->emitError("the name ") << inQuotes(*name) << " has " << name->size()
                                                   << " bytes, and a plan's have at most " << kMostNameBytes);
    if (!isPrintable(*name))
      return WalkResult(op->emitError("the name ") << inQuotes(*name) << " has a control character in it");
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

} // namespace gpuc
