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

static Expr larger(Expr a, Expr b) { return select(less(a, b), b, a); }

/// What a row's scores are reduced by: its maximum, or 0 where it sees nothing and all of them are -∞.
static Expr shiftOf(Expr maximum) {
  return select(equal(maximum, maximum.real(minusInfinity)), maximum.real(0), maximum);
}

/// `carried`: m and l of each row, and the sums of its values.
State AttentionEmitter::forwardTile(const Head &head, Expr query0, Expr key0, const State &carried) {
  State scores = tiles_.products(queriesOf(kernel_.query, head), query0, keysOf(kernel_.key, head), key0);
  State next(carried);
  int64_t columns = TileEmitter::columnsOf(kernel_.value.width);
  for (int64_t i = 0; i < each; ++i) {
    Expr query = query0 + row(i), *mine = &scores[each * i];
    Expr largest = carried[i];
    for (int64_t j = 0; j < each; ++j) {
      mine[j] = score(mine[j], head, query, key0 + column(j));
      largest = larger(largest, mine[j]);
    }
    largest = tiles_.acrossColumns(largest, larger);
    Expr shift = shiftOf(largest), rescale = emitExp(carried[i] - shift);
    for (int64_t j = 0; j < each; ++j)
      mine[j] = emitExp(mine[j] - shift);
    Expr sum = (mine[0] + mine[1]) + (mine[2] + mine[3]);
    sum = tiles_.acrossColumns(sum, [](Expr a, Expr b) { return a + b; });
    next[i] = largest;
    next[each + i] = fma(carried[each + i], rescale, sum);
    for (int64_t j = 0; j < columns; ++j) {
      Expr &value = next[2 * each + columns * i + j];
      value = value * rescale;
    }
    if (drops())
      for (auto [j, isKept] : llvm::enumerate(keptBy(head, query, key0 + column(0))))
        mine[j] = dropped(mine[j], isKept);
  }
  tiles_.keep(scores);
  State sums(llvm::ArrayRef(next).drop_front(2 * each));
  llvm::copy(tiles_.accumulate(sums, keysOf(kernel_.value, head), key0), next.begin() + 2 * each);
  return next;
}

void AttentionEmitter::emitForward() {
  auto [query0, head] = enterQueries();
  State start(each, tiles_.real(minusInfinity));
  start.append(each, tiles_.real(0));
  start.append(tiles_.zeros(kernel_.value.width));
  State end = tiles_.loop(number(0), endOfKeys(query0), TileEmitter::size, start,
                          [&, query0 = query0, &head = head](Expr key0, const State &carried) {
                            return forwardTile(head, query0, key0, carried);
                          });

  auto isNothing = [&](int64_t i) { return equal(end[each + i], tiles_.real(0)); };
  if (kernel_.yieldedResult)
    storeRows(State(llvm::ArrayRef(end).drop_front(2 * each)), queriesOf(*kernel_.yieldedResult, head),
              query0,
              [&](int64_t i, Expr sum) { return select(isNothing(i), sum.real(0), sum / end[each + i]); });
  if (!kernel_.logSumExp)
    return;
  for (int64_t i = 0; i < each; ++i) {
    Expr query = query0 + row(i);
    Expr isMine = equal(tiles_.column(), number(0)) & less(query, number(kernel_.shape.queries));
    tiles_.ifHolds(isMine, [&, &head = head] {
      Expr log = shiftOf(end[i]) + emitLog(end[each + i]);
      tiles_.store(select(isNothing(i), log.real(minusInfinity), log), pointers_[*kernel_.logSumExp],
                   ElementKind::F32, head.firstRow + wide(query));
    });
  }
}

} // namespace gpuc::codegen
