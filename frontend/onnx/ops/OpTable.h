//===- OpTable.h - Which ONNX ops there are ---------------------------------===//
//
// One record an op: how it is lowered, and which attributes the lowering knows. An attribute that is not
// there is reported, not ignored. Ops are grouped by file as in ONNX's own documentation; each file fills in
// its part.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/onnx/NodeScope.h"

#include <map>

namespace gpuc::onnx {

struct OpRecord {
  void (*lower)(NodeScope &node) = nullptr;
  std::vector<std::string> attributes;
};
using OpTable = std::map<std::string, OpRecord>;

/// The op of the standard domain, or null.
const OpRecord *findOp(const std::string &op);
const OpTable &allOps();

/// Computes the outputs from inputs that are all known; false if this op is not folded, or these inputs are
/// too large.
bool fold(NodeScope &node);

/// The element type that a Cast, CastLike or EyeLike asks for; none after an error.
std::optional<DataType> castTarget(NodeScope &node);

void addActivations(OpTable &table);
void addAttention(OpTable &table);
void addElementwise(OpTable &table);
void addIndexing(OpTable &table);
void addLosses(OpTable &table);
void addMatrixOps(OpTable &table);
void addNormalizations(OpTable &table);
void addPadding(OpTable &table);
void addRandom(OpTable &table);
void addRecurrent(OpTable &table);
void addReductions(OpTable &table);
void addResize(OpTable &table);
void addScan(OpTable &table);
void addSequences(OpTable &table);
void addShapeOps(OpTable &table);
void addSignals(OpTable &table);
void addWindows(OpTable &table);

} // namespace gpuc::onnx
