//===- CompositeOps.cpp - Composite ops by their definitions ----------------===//

#include "passes/base/CompositeOps.h"

#include "dialects/gpuc/Tf32.h"
#include "passes/base/Locations.h"

namespace gpuc {

using namespace mlir;

LogicalResult decomposeWhere(Operation *root, function_ref<bool(ir::CompositeOpInterface)> isDue) {
  SmallVector<ir::CompositeOpInterface> queue;
  auto queueDue = [&](ir::CompositeOpInterface op) {
    if (isDue(op))
      queue.push_back(op);
  };
  root->walk(queueDue);
  while (!queue.empty()) {
    ir::CompositeOpInterface op = queue.pop_back_val();
    Operation *before = op->getPrevNode();
    OpBuilder builder(op);
    SmallVector<Value> results = op.decompose(builder);
    if (results.size() != op->getNumResults())
      return failure(); // It said why: a batch that is not bound yet.
    Operation *first = before ? before->getNextNode() : &op->getBlock()->front();
    for (Operation *part = first; part != op; part = part->getNextNode()) {
      ir::inheritTf32(op, part);
      part->walk([&](Operation *inner) { // the ops of a loop too
        inner->setLoc(partOf(op->getLoc(), op->getName().stripDialect()));
      });
      part->walk(queueDue);
    }
    op->replaceAllUsesWith(results);
    op->erase();
  }
  return success();
}

} // namespace gpuc
