//===- FindEntries.cpp - Which functions of the model are entries of the plan -===//
//
// Contract: a public function that has no part in training, and that nobody calls, gets the attribute
// `gpuc.entry`: gpuc-expand-recipe keeps it, in inference form, as it does @predict. A private function that
// no entry leads to is left out, and a warning says so. Comes first: later passes leave functions behind that
// nobody calls any more.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/base/Entries.h"
#include "passes/base/Inline.h"

namespace gpuc {
#define GEN_PASS_DEF_FINDENTRIESPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

using Functions = llvm::SetVector<func::FuncOp>;

class FindEntriesPass : public impl::FindEntriesPassBase<FindEntriesPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (isExpanded(module))
      return; // All functions are entries.
    const SymbolTable symbols(module);
    DenseMap<func::FuncOp, Functions> callees;
    Functions called, reached;
    for (auto function : module.getOps<func::FuncOp>()) {
      callees[function] = functionsIn(function, &symbols);
      for (func::FuncOp callee : callees[function])
        if (callee != function)
          called.insert(callee);
    }
    for (auto recipe : module.getOps<ir::RecipeOp>())
      for (FlatSymbolRefAttr symbol : {recipe.getLossAttr(), recipe.getAccuracyAttr()})
        if (auto function = symbol ? module.lookupSymbol<func::FuncOp>(symbol.getAttr()) : func::FuncOp())
          reached.insert(function);
    if (auto predict = module.lookupSymbol<func::FuncOp>("predict")) {
      predict.setPublic(); // By its name it is one, as the recipe's functions are.
      reached.insert(predict);
    }
    for (auto function : module.getOps<func::FuncOp>())
      if (!called.contains(function) && function.isPublic() && reached.insert(function))
        function->setAttr(kEntryAttr, UnitAttr::get(module.getContext()));
    for (size_t next = 0; next < reached.size(); ++next)
      reached.insert_range(callees[reached[next]]);
    for (auto function : module.getOps<func::FuncOp>())
      if (!reached.contains(function) && !function.isExternal())
        function.emitWarning() << "@" << function.getName() << " is left out: "
                               << (function.isPublic() ? "only functions that it calls call it"
                                                       : "it is private, and no entry of the plan calls it; "
                                                         "a public function is an entry itself");
  }
};

} // namespace
} // namespace gpuc
