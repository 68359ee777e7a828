//===- VerifyStep.cpp - What holds of the step that was just made -----------===//

#include "passes/Passes.h"
#include "passes/base/AttentionViews.h"
#include "passes/base/Blame.h"
#include "passes/base/Entries.h"
#include "passes/train/BackwardPass.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace gpuc {
namespace {

/// Whether the op does something in training that it does not do elsewhere.
bool isOfTraining(Operation *op) {
  return isa<ir::TrainingOpInterface>(op) && (!isAttention(op) || dropsByCounters(op));
}

/// Whether a result, or what is assigned, depends on the value.
bool matters(Value value) {
  SetVector<Operation *> users(llvm::from_range, value.getUsers());
  for (size_t next = 0; next < users.size(); ++next) {
    if (isa<func::ReturnOp, ir::AssignOp>(users[next]))
      return true;
    users.insert_range(users[next]->getUsers());
  }
  return false;
}

/// Adds what the value is made of, one op back; in a scan, of the same place in its region.
void addSources(Value value, SetVector<Value> &sources) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto scan = dyn_cast<ir::ScanOp>(argument.getOwner()->getParentOp());
    if (!scan)
      return;
    // Operands and arguments have one order: inputs, what is carried, captures.
    unsigned index = argument.getArgNumber(), inputs = scan.getInputs().size();
    sources.insert(scan->getOperand(index));
    if (index >= inputs && index - inputs < scan.getInits().size())
      sources.insert(scan.getNextCarries()[index - inputs]);
    return;
  }
  if (auto scan = value.getDefiningOp<ir::ScanOp>()) {
    unsigned number = cast<OpResult>(value).getResultNumber();
    sources.insert(scan.getBlock().getTerminator()->getOperand(number));
    if (number < scan.getInits().size())
      sources.insert(scan.getInits()[number]);
    return;
  }
  Operation *op = value.getDefiningOp();
  if (!isa<ir::StopGradientOp>(op))
    for (Value operand : op->getOperands())
      if (isFloat(operand))
        sources.insert(operand);
}

class StepVerifier {
public:
  StepVerifier(ModuleOp module, const Blame &blame) : module_(module), blame_(blame) {}

  LogicalResult run() {
    for (auto function : module_.getOps<func::FuncOp>()) {
      const StringRef name = function.getName();
      const bool isStep = name == "train_step";
      if ((!isStep && failed(verifyInference(function))) || failed(verifyMasks(function)) ||
          (isStep && failed(verifyTrained(function))) || (name == "init" && failed(verifyDraws(function))))
        return failure();
    }
    return success();
  }

private:
  LogicalResult verifyInference(func::FuncOp function) {
    Operation *found = nullptr;
    function.walk([&](ir::TrainingOpInterface op) {
      found = isOfTraining(op) ? op.getOperation() : nullptr;
      return found ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (!found)
      return success();
    return blame_.report(found->getLoc(), "'" + found->getName().getStringRef() + "' as in training in @" +
                                              function.getName());
  }

  /// Whether losses count those rows alone that hold a sample.
  LogicalResult verifyMasks(func::FuncOp function) {
    Value rows = argumentOfRole(function, kRowsRole);
    if (!rows || matters(rows))
      return success();
    return blame_.report(rows.getLoc(),
                         "@" + function.getName() + ", which takes `rows`, without a mask of them",
                         "gpuc-mask-padding");
  }

  /// Whether what the loss depends on is trained, by the rule by which gpuc-differentiate-loss finds it.
  LogicalResult verifyTrained(func::FuncOp step) {
    Operation *end = step.getBody().front().getTerminator();
    SetVector<Value> sources;
    for (auto [index, value] : llvm::enumerate(end->getOperands()))
      if (auto name = step.getResultAttrOfType<StringAttr>(index, kNameAttr); name == "loss_sum")
        sources.insert(value);
    if (sources.empty())
      return blame_.report(step.getLoc(), "@train_step without its result loss_sum");
    const SymbolTable symbols(module_);
    llvm::StringSet<> assigned;
    for (auto assign : step.getBody().getOps<ir::AssignOp>())
      assigned.insert(assign.getVariable());
    for (size_t next = 0; next < sources.size(); ++next) {
      auto read = sources[next].getDefiningOp<ir::ReadOp>();
      if (!read) {
        addSources(sources[next], sources);
        continue;
      }
      auto variable = symbols.lookup<ir::VariableOp>(read.getVariable());
      if (!variable.getFrozen() && variable.getKind() == "parameter" &&
          !assigned.contains(read.getVariable()))
        return blame_.report(variable.getLoc(),
                             "@" + read.getVariable() + ", on which the loss depends, untrained");
    }
    return success();
  }

  /// Two variables that are drawn under one id begin as the same numbers.
  LogicalResult verifyDraws(func::FuncOp init) {
    DenseMap<int64_t, Operation *> drawn;
    for (Operation &op : init.getBody().front())
      if (auto random = dyn_cast<ir::RandomOpInterface>(&op);
          random && !drawn.try_emplace(random.getRandomId(), &op).second)
        return blame_.report(op.getLoc(),
                             "two draws under the id " + Twine(random.getRandomId()) + " in @init");
    return success();
  }

  ModuleOp module_;
  const Blame &blame_;
};

} // namespace

LogicalResult verifyStep(ModuleOp module, const Blame &blame) {
  return success(succeeded(verifyEntries(module, blame)) && succeeded(StepVerifier(module, blame).run()));
}

} // namespace gpuc
