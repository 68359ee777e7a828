//===- OpTable.h - Which of PyTorch's ops there are ----------------------------===//
//
// One record an op: how it is lowered, and which arguments the lowering knows. An argument that it does not
// know, and that has not its default's value, is reported, not ignored.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/torch/OpScope.h"

#include <map>

namespace gpuc::torch {

struct OpRecord {
  void (*lower)(OpScope &op) = nullptr;
  std::vector<std::string> arguments;
};
using OpTable = std::map<std::string, OpRecord>;

/// Of the overload "add.Tensor", or null.
const OpRecord *findOp(const std::string &op);
const OpTable &allOps();

/// Says that `indices` name one of `extent` things, or are `ignored`: of an input, values outside are
/// refused before a step; others count as the op says.
void limitRange(const Tensor &indices, int64_t extent, std::optional<int64_t> ignored = {});

void addAlignments(OpTable &table);
void addElementwise(OpTable &table);
void addGradients(OpTable &table);
void addIndexing(OpTable &table);
void addLayers(OpTable &table);
void addLosses(OpTable &table);
void addProducts(OpTable &table);
void addRandom(OpTable &table);
void addRecurrent(OpTable &table);
void addReductions(OpTable &table);
void addResizes(OpTable &table);
void addShapeOps(OpTable &table);

} // namespace gpuc::torch
