//===- OpTable.cpp - Which ONNX ops there are -------------------------------===//

#include "frontend/onnx/ops/OpTable.h"

namespace gpuc::onnx {

const OpTable &allOps() {
  static const OpTable table = [] {
    OpTable made;
    addActivations(made);
    addAttention(made);
    addElementwise(made);
    addIndexing(made);
    addLosses(made);
    addMatrixOps(made);
    addNormalizations(made);
    addPadding(made);
    addRandom(made);
    addRecurrent(made);
    addReductions(made);
    addResize(made);
    addScan(made);
    addSequences(made);
    addShapeOps(made);
    addSignals(made);
    addWindows(made);
    return made;
  }();
  return table;
}

const OpRecord *findOp(const std::string &op) {
  auto found = allOps().find(op);
  return found == allOps().end() ? nullptr : &found->second;
}

} // namespace gpuc::onnx
