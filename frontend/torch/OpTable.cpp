//===- OpTable.cpp - Which of PyTorch's ops there are --------------------------===//

#include "frontend/torch/OpTable.h"

#include "frontend/torch/Torch.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace gpuc::torch {

const OpTable &allOps() {
  static const OpTable table = [] {
    OpTable made;
    addAlignments(made);
    addElementwise(made);
    addGradients(made);
    addIndexing(made);
    addLayers(made);
    addLosses(made);
    addProducts(made);
    addRandom(made);
    addRecurrent(made);
    addReductions(made);
    addResizes(made);
    addShapeOps(made);
    return made;
  }();
  return table;
}

const OpRecord *findOp(const std::string &op) {
  auto found = allOps().find(op);
  return found == allOps().end() ? nullptr : &found->second;
}

std::vector<std::pair<std::string, std::vector<std::string>>> knownOps() {
  std::vector<std::pair<std::string, std::vector<std::string>>> known;
  for (const auto &[name, record] : allOps())
    known.emplace_back(name, record.arguments);
  return known;
}

/// The argument of the function that the value shows, under whatever shape; null if it is computed.
static BlockArgument shownInput(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<ir::ReshapeOp, ir::CastOp>(op))
      return {};
    value = op->getOperand(0);
  }
  return cast<BlockArgument>(value);
}

void limitRange(const Tensor &indices, int64_t extent, std::optional<int64_t> ignored) {
  BlockArgument argument = indices ? shownInput(indices.value()) : BlockArgument();
  auto function = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  if (!function)
    return;
  Builder builder(function.getContext());
  const unsigned number = argument.getArgNumber();
  auto before = function.getArgAttrOfType<IntegerAttr>(number, "gpuc.range");
  const int64_t range = before ? std::min(before.getInt(), extent) : extent;
  function.setArgAttr(number, "gpuc.range", builder.getI64IntegerAttr(range));
  // Used as an index too, where nothing is ignored, it has to be one.
  if (ignored && !before && (*ignored < 0 || *ignored >= extent))
    function.setArgAttr(number, "gpuc.ignored", builder.getI64IntegerAttr(*ignored));
  else if (!ignored)
    function.removeArgAttr(number, "gpuc.ignored");
}

} // namespace gpuc::torch
