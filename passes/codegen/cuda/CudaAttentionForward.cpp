//===- CudaAttentionForward.cpp - Attention's result on a GPU ---------------===//
//
// For each row a running maximum m, a running sum l of exp(score - m), and sums of exp(score - m) · value:
// when a tile of keys raises m, what was summed before is rescaled by exp(old m - m) [Milakov and Gimelshein
// 2018, "Online normalizer calculation for softmax"]. At the end the sums are divided by l.
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/cuda/CudaAttention.h"
#include "passes/codegen/math/Math.h"

#include <limits>

using namespace mlir;

namespace gpuc::codegen {

constexpr double minusInfinity = -std::numeric_limits<double>::infinity();

/// In pairs of pairs.
static Expr sumOf(ArrayRef<Expr> terms) {
  size_t half = terms.size() / 2;
  return half == 0 ? terms.front() : sumOf(terms.take_front(half)) + sumOf(terms.drop_front(half));
}

/// What a row's scores are reduced by: its maximum, or 0 where it sees nothing and all of them are -∞.
static Expr shiftOf(Expr maximum) {
  return select(equal(maximum, maximum.real(minusInfinity)), maximum.real(0), maximum);
}

/// `carried`: m and l of each row, and the sums of its values. m is less what scores are scaled by late.
State AttentionEmitter::forwardTile(const Head &head, const TileOperand &queries, Expr key0,
                                    const State &carried) {
  auto [keys, values] = tiles_->stage(keysOf(kernel_.key, head), keysOf(kernel_.value, head), key0, head.end);
  State scores = tiles_->products(queries, keys);
  State next(carried);
  int64_t columns = tiles_->columnsOf(kernel_.value.width);
  const double scale = lateScale();
  for (int64_t i = 0; i < rowsEach_; ++i) {
    Expr query = queries.row0 + row(i), *mine = &scores[columnsEach_ * i];
    Expr largest = carried[i];
    for (int64_t j = 0; j < columnsEach_; ++j) {
      Expr key = key0 + column(j);
      mine[j] = scale == 1 ? score(mine[j], head, query, key) : maskedScore(mine[j], head, query, key);
      largest = tiles_->larger(largest, mine[j]);
    }
    largest = tiles_->acrossColumns(largest, [&](Expr a, Expr b) { return tiles_->larger(a, b); });
    Expr shift = shiftOf(largest) * scale;
    auto shifted = [&](Expr score) { return tiles_->power(fma(score, score.real(scale), -shift)); };
    Expr rescale = shifted(carried[i]);
    for (int64_t j = 0; j < columnsEach_; ++j)
      mine[j] = shifted(mine[j]);
    Expr sum = sumOf(ArrayRef<Expr>(mine, columnsEach_));
    sum = tiles_->acrossColumns(sum, [](Expr a, Expr b) { return a + b; });
    next[i] = largest;
    next[rowsEach_ + i] = fma(carried[rowsEach_ + i], rescale, sum);
    for (int64_t j = 0; j < columns; ++j) {
      Expr &value = next[2 * rowsEach_ + columns * i + j];
      value = value * rescale;
    }
    if (drops())
      dropFromRow(mine, head, query, key0);
  }
  State sums(llvm::ArrayRef(next).drop_front(2 * rowsEach_));
  llvm::copy(tiles_->accumulate(sums, scores, values), next.begin() + 2 * rowsEach_);
  return next;
}

void AttentionEmitter::emitForward() {
  auto [query0, head] = enterQueries();
  TileOperand queries = tiles_->hold(queriesOf(kernel_.query, head), query0, /*inRegisters=*/true);
  State start(rowsEach_, tiles_->real(minusInfinity));
  start.append(rowsEach_, tiles_->real(0));
  start.append(tiles_->zeros(kernel_.value.width));
  State end = overKeys(head, query0, start, [&](const Head &here, Expr key0, const State &carried) {
    return forwardTile(here, queries, key0, carried);
  });

  auto isNothing = [&](int64_t i) { return equal(end[rowsEach_ + i], tiles_->real(0)); };
  State inverses; // one division for a row, where there are many columns
  if (kernel_.usesTensorCores())
    for (int64_t i = 0; i < rowsEach_; ++i)
      inverses.push_back(1 / end[rowsEach_ + i]);
  auto mean = [&](int64_t i, Expr sum) {
    Expr quotient = inverses.empty() ? sum / end[rowsEach_ + i] : sum * inverses[i];
    return select(isNothing(i), sum.real(0), quotient);
  };
  if (kernel_.yieldedResult)
    storeRows(State(llvm::ArrayRef(end).drop_front(2 * rowsEach_)), queriesOf(*kernel_.yieldedResult, head),
              query0, mean);
  if (!kernel_.logSumExp)
    return;
  for (int64_t i = 0; i < rowsEach_; ++i) {
    Expr query = query0 + row(i);
    Expr isMine = equal(tiles_->column(), number(0)) & less(query, number(kernel_.shape.queries));
    tiles_->ifHolds(isMine, [&, &head = head] {
      Expr log = shiftOf(end[i]) * (lateScale() / tiles_->logOfE()) + emitLog(end[rowsEach_ + i]);
      tiles_->store(select(isNothing(i), log.real(minusInfinity), log), pointers_[*kernel_.logSumExp],
                    ElementKind::F32, head.firstRow + wide(query));
    });
  }
}

} // namespace gpuc::codegen
