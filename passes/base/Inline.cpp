//===- Inline.cpp - Function bodies where they are called --------------------===//

#include "passes/base/Inline.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/Support/MathExtras.h"

#define DEBUG_TYPE "gpuc-inline"

namespace gpuc {

using namespace mlir;

ALWAYS_ENABLED_STATISTIC(clonedOps, "Ops cloned for calls");

uint64_t inlinedOps() { return clonedOps; }

llvm::SetVector<func::FuncOp> functionsIn(func::FuncOp function, const SymbolTable *symbols) {
  llvm::SetVector<func::FuncOp> found;
  if (function.isExternal())
    return found;
  auto lookUp = [&](SymbolRefAttr symbol) {
    return symbols ? symbols->lookup<func::FuncOp>(symbol.getRootReference())
                   : SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(function, symbol);
  };
  if (auto uses = SymbolTable::getSymbolUses(&function.getBody()))
    for (SymbolTable::SymbolUse use : *uses)
      if (auto callee = lookUp(use.getSymbolRef()))
        found.insert(callee);
  return found;
}

SmallVector<Value> cloneBody(OpBuilder &builder, func::FuncOp callee, ValueRange arguments) {
  Block &body = callee.getBody().front();
  IRMapping mapping;
  mapping.map(body.getArguments(), arguments);
  for (Operation &op : body.without_terminator())
    builder.clone(op, mapping);
  return llvm::map_to_vector(body.getTerminator()->getOperands(),
                             [&](Value value) { return mapping.lookup(value); });
}

namespace {

/// Puts bodies into one function. They are cloned as they were written, with their calls, which come next: so
/// each op that is cloned is one of those that stay.
class Inliner {
public:
  explicit Inliner(func::FuncOp function)
      : function_(function), symbols_(function->getParentOfType<ModuleOp>()) {}

  LogicalResult run() {
    if (failed(countOps()))
      return failure();
    uint64_t total = 0;
    for (auto call : function_.getOps<func::CallOp>()) {
      total = llvm::SaturatingAdd(total, sizes_.lookup(calleeOf(call)));
      if (total > kMostInlinedOps)
        return call.emitOpError("calls @")
               << call.getCallee() << ": with it, @" << function_.getName() << " would hold " << total
               << " ops of functions that it calls, and " << kMostInlinedOps
               << " are the most: repeat layers by gpuc.scan, or call fewer times";
    }
    Block &body = function_.getBody().front();
    for (Block::iterator next = body.begin(); next != body.end();)
      next = isa<func::CallOp>(*next) ? inlineCall(cast<func::CallOp>(*next)) : std::next(next);
    return success();
  }

private:
  func::FuncOp calleeOf(func::CallOp call) const { return symbols_.lookup<func::FuncOp>(call.getCallee()); }

  /// A function whose calls are being counted.
  struct Frame {
    func::FuncOp function;
    SmallVector<func::CallOp> calls;
    size_t next = 0;
    uint64_t size = 0;

    explicit Frame(func::FuncOp function) : function(function), calls(function.getOps<func::CallOp>()) {
      function.walk([&](Operation *) { ++size; });
    }
  };

  /// How many ops each function holds once all calls are inlined: of those that are called first. Calls may
  /// be nested as deeply as there are functions, so this does not recurse.
  LogicalResult countOps() {
    SmallVector<Frame> frames{Frame(function_)};
    llvm::DenseSet<Operation *> underway{function_};
    while (!frames.empty()) {
      Frame &frame = frames.back();
      if (frame.next == frame.calls.size()) {
        sizes_[frame.function] = frame.size;
        underway.erase(frame.function);
        frames.pop_back();
        continue;
      }
      func::CallOp call = frame.calls[frame.next];
      func::FuncOp callee = calleeOf(call);
      if (!callee || callee.isExternal())
        return call.emitOpError("calls @") << call.getCallee() << ", which has no body in this module";
      if (underway.contains(callee))
        return call.emitOpError("calls @")
               << call.getCallee() << ", which leads back here: recursion has no end known "
               << "when compiling";
      if (auto known = sizes_.find(callee); known != sizes_.end()) {
        frame.size = llvm::SaturatingAdd(frame.size, known->second);
        ++frame.next;
        continue;
      }
      underway.insert(callee);
      frames.emplace_back(callee);
    }
    return success();
  }

  /// Returns where what was put in place of the call begins.
  Block::iterator inlineCall(func::CallOp call) {
    func::FuncOp callee = calleeOf(call);
    Block &body = *call->getBlock();
    Operation *before = call->getPrevNode();
    OpBuilder builder(call);
    call.replaceAllUsesWith(cloneBody(builder, callee, call.getOperands()));
    clonedOps += llvm::range_size(callee.getBody().front());
    Operation *behind = call->getNextNode();
    call.erase();
    Operation *first = before ? before->getNextNode() : &body.front();
    return first ? Block::iterator(first) : behind ? Block::iterator(behind) : body.end();
  }

  func::FuncOp function_;
  SymbolTable symbols_;
  llvm::DenseMap<Operation *, uint64_t> sizes_;
};

} // namespace

LogicalResult inlineCalls(func::FuncOp function) {
  if (function.isExternal() || function.getOps<func::CallOp>().empty())
    return success();
  return Inliner(function).run();
}

} // namespace gpuc
