//===- VerifyEntries.cpp - What holds of entries from the step to the plan --===//

#include "dialects/gpuc/GpucOps.h"
#include "passes/Passes.h"
#include "passes/base/Blame.h"
#include "passes/base/Entries.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace gpuc {
namespace {

/// One function after the other, up to the first breach.
class EntryVerifier {
public:
  EntryVerifier(ModuleOp module, const Blame &blame) : module_(module), blame_(blame) {}

  LogicalResult run() {
    for (auto recipe : module_.getOps<ir::RecipeOp>())
      return blame_.report(recipe.getLoc(), "the recipe", "gpuc-expand-recipe");
    for (auto function : module_.getOps<func::FuncOp>())
      if (failed(verify(function)))
        return failure();
    return success();
  }

private:
  LogicalResult verify(func::FuncOp function) {
    const std::string name = "@" + function.getName().str();
    if (function.isExternal() || !function.getBody().hasOneBlock())
      return blame_.report(function.getLoc(), name + ", which is not one block of ops", "gpuc-expand-recipe");
    if (!function.isPublic() && !function->hasAttr(kChecksOfAttr))
      return blame_.report(function.getLoc(), name + ", which is no entry", "gpuc-expand-recipe");
    const std::string place = " in " + name;
    auto walked =
        function.walk<WalkOrder::PreOrder>([&](Operation *op) { return WalkResult(verify(op, place)); });
    return success(!walked.wasInterrupted() && succeeded(verifyAssigns(function)));
  }

  LogicalResult verify(Operation *op, const std::string &place) {
    if (auto call = dyn_cast<func::CallOp>(op))
      return blame_.report(op->getLoc(), "a call of @" + call.getCallee() + place, "gpuc-expand-recipe");
    if (auto gradient = dyn_cast<ir::GradientOp>(op))
      return blame_.report(op->getLoc(), "a gradient of @" + gradient.getCallee() + place, "gpuc-autodiff");
    if (auto scan = dyn_cast<ir::ScanOp>(op); scan && scan.getBatchFirst())
      return blame_.report(op->getLoc(), "a scan over its second dimension" + place, "gpuc-specialize-batch");
    if (failed(verifyTypes(op->getResults(), place)))
      return failure();
    for (Region &region : op->getRegions())
      if (!region.empty() && failed(verifyTypes(region.getArguments(), place)))
        return failure();
    return success();
  }

  LogicalResult verifyTypes(ValueRange values, const std::string &place) {
    for (Value value : values) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (type && type.hasStaticShape())
        continue;
      std::string text;
      llvm::raw_string_ostream(text) << "a value of type " << value.getType() << place;
      return blame_.report(value.getLoc(), text, type ? "gpuc-specialize-batch" : "");
    }
    return success();
  }

  /// Whether variables get what they must, and only where they may.
  LogicalResult verifyAssigns(func::FuncOp function) {
    const StringRef name = function.getName();
    const bool isInit = name == "init", isStep = name == "train_step";
    llvm::StringSet<> assigned, read;
    for (Operation &op : function.getBody().front())
      if (auto assign = dyn_cast<ir::AssignOp>(op)) {
        assigned.insert(assign.getVariable());
        if (!isInit && !isStep)
          return blame_.report(op.getLoc(), "an assignment of @" + assign.getVariable() + " in @" + name,
                               "gpuc-expand-recipe");
      } else if (auto read_ = dyn_cast<ir::ReadOp>(op)) {
        read.insert(read_.getVariable());
      }
    for (auto variable : module_.getOps<ir::VariableOp>()) {
      const StringRef symbol = variable.getSymName();
      bool isDue =
          isInit ? !isSetBySession(symbol, variable.getKind())
                 : isStep && (variable.getKind() == "optimizer" || symbol == "step") && read.contains(symbol);
      if (isDue && !assigned.contains(symbol))
        return blame_.report(variable.getLoc(), "@" + symbol + " without a value in @" + name);
    }
    return success();
  }

  ModuleOp module_;
  const Blame &blame_;
};

} // namespace

LogicalResult verifyEntries(ModuleOp module, const Blame &blame) {
  return EntryVerifier(module, blame).run();
}

} // namespace gpuc
