//===- BlockOrder.cpp - The order of a block's ops ----------------------------===//
//
// As if one went over the block again and again, each time taking what has all of its operands: an op is
// taken in the turn of the operand that comes last, or in the next turn if that stands behind it.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/BlockOrder.h"

#include "passes/base/StableSort.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace gpuc {

using namespace mlir;

namespace {

struct Node {
  Operation *op;
  unsigned turn = 0, waiting = 0;
  SmallVector<unsigned, 2> readers = {};
};

std::vector<Node> nodesOf(Block &block) {
  std::vector<Node> nodes;
  DenseMap<Operation *, unsigned> positions;
  for (Operation &op : block.without_terminator()) {
    positions[&op] = nodes.size();
    nodes.push_back({&op});
  }
  for (unsigned reader = 0; reader < nodes.size(); ++reader)
    nodes[reader].op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        auto found = positions.find(operand.getDefiningOp());
        if (found == positions.end() || found->second == reader)
          continue;
        nodes[found->second].readers.push_back(reader);
        ++nodes[reader].waiting;
      }
    });
  return nodes;
}

} // namespace

LogicalResult sortBehindOperands(Block &block) {
  if (block.empty())
    return success();
  std::vector<Node> nodes = nodesOf(block);
  std::vector<unsigned> ready;
  for (unsigned node = 0; node < nodes.size(); ++node)
    if (nodes[node].waiting == 0)
      ready.push_back(node);
  for (size_t next = 0; next < ready.size(); ++next) {
    const unsigned node = ready[next];
    for (unsigned reader : nodes[node].readers) {
      nodes[reader].turn = std::max(nodes[reader].turn, nodes[node].turn + (node > reader));
      if (--nodes[reader].waiting == 0)
        ready.push_back(reader);
    }
  }
  if (ready.size() < nodes.size())
    return failure();
  stableSort(nodes, [](const Node &a, const Node &b) { return a.turn < b.turn; });
  Block::iterator end = block.without_terminator().end();
  for (const Node &node : nodes)
    node.op->moveBefore(&block, end);
  return success();
}

} // namespace gpuc
