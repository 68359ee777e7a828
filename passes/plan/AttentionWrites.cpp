//===- AttentionWrites.cpp - Results of attention that lie side by side -----===//

#include "passes/plan/AttentionWrites.h"

#include "passes/plan/AttentionShapes.h"

using namespace mlir;

namespace gpuc {

namespace {

/// Heads [batch, heads, rows, width] of elements.
struct Heads {
  Value value;
  AttentionLayout layout;
  int64_t batch, heads, rows, width;

  int64_t elements() const { return batch * heads * rows * width; }
  int64_t span() const {
    return (batch - 1) * layout.batch + (heads - 1) * layout.head + (rows - 1) * layout.row + width;
  }
};

} // namespace

static RowPieces piecesOf(const Heads &h, int64_t elementBytes) {
  RowPieces pieces{h.value, h.batch * h.rows, (h.rows > 1 ? h.layout.row : h.layout.batch) * elementBytes, 0};
  bool headsAdjoin = h.heads == 1 || h.layout.head == h.width;
  bool batchAdjoins = h.batch == 1 || h.rows == 1 || h.layout.batch == h.rows * h.layout.row;
  if (headsAdjoin && batchAdjoins)
    pieces.pieceBytes = h.heads * h.width * elementBytes;
  return pieces;
}

SmallVector<RowPieces> rowPiecesOf(Operation *command) {
  SmallVector<Heads> written;
  Type element;
  if (auto attention = dyn_cast<plan::AttentionOp>(command)) {
    AttentionShape s = attentionShapeOf(attention);
    written.push_back({attention.getResult(), s.result, s.batch, s.heads, s.queries, s.value_width});
    element = attention.getElement();
  } else if (auto gradient = dyn_cast<plan::AttentionGradientOp>(command)) {
    AttentionShape s = attentionShapeOf(gradient);
    written.push_back(
        {gradient.getQueryCotangent(), s.query_cotangent, s.batch, s.heads, s.queries, s.width});
    written.push_back({gradient.getKeyCotangent(), s.key_cotangent, s.batch, s.groups, s.keys, s.width});
    written.push_back(
        {gradient.getValueCotangent(), s.value_cotangent, s.batch, s.groups, s.keys, s.value_width});
    element = gradient.getElement();
  }
  SmallVector<RowPieces> pieces;
  for (const Heads &heads : written)
    if (heads.span() != heads.elements())
      pieces.push_back(piecesOf(heads, ir::elementBytes(element)));
  return pieces;
}

} // namespace gpuc
