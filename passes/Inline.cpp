//===- Inline.cpp - Function bodies where they are called --------------------===//

#include "passes/Inline.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

namespace gpuc {

using namespace mlir;

SmallVector<Value> cloneBody(OpBuilder &builder, func::FuncOp callee, ValueRange arguments) {
  Block &body = callee.getBody().front();
  IRMapping mapping;
  mapping.map(body.getArguments(), arguments);
  for (Operation &op : body.without_terminator())
    builder.clone(op, mapping);
  return llvm::map_to_vector(body.getTerminator()->getOperands(),
                             [&](Value value) { return mapping.lookup(value); });
}

/// Inlines the calls in `function`, which is being inlined into those that `callers` names, outermost first.
static LogicalResult inlineCalls(func::FuncOp function, SmallVectorImpl<func::FuncOp> &callers) {
  callers.push_back(function);
  for (auto call : llvm::make_early_inc_range(function.getOps<func::CallOp>())) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
    if (!callee || callee.isExternal())
      return call.emitOpError("calls @") << call.getCallee() << ", which has no body in this module";
    if (llvm::is_contained(callers, callee))
      return call.emitOpError("calls @")
             << call.getCallee() << ", which leads back here: recursion has no end known "
             << "when compiling";
    if (failed(inlineCalls(callee, callers)))
      return failure();
    OpBuilder builder(call);
    call.replaceAllUsesWith(cloneBody(builder, callee, call.getOperands()));
    call.erase();
  }
  callers.pop_back();
  return success();
}

LogicalResult inlineCalls(func::FuncOp function) {
  SmallVector<func::FuncOp> callers;
  return inlineCalls(function, callers);
}

} // namespace gpuc
