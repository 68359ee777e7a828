//===- CudaAttentionGradient.cpp - Attention's cotangents on a GPU ----------===//
//
// With P = exp(score - log_sum_exp), M what dropout multiplies it by, dP = M ∘ (cotangent · valueᵀ) and
// δ = Σ cotangent ∘ result: dS = P ∘ (dP - δ), dquery = scale · dS · key, dkey = scale · dSᵀ · query,
// dvalue = (M ∘ P)ᵀ · cotangent [Dao et al. 2022, algorithm 4].
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/cuda/CudaAttention.h"
#include "passes/codegen/math/Math.h"

using namespace mlir;

namespace gpuc::codegen {

void AttentionEmitter::emitQueryGradient() {
  auto [query0, head] = enterQueries();
  State logarithms, deltas;
  for (int64_t i = 0; i < each; ++i) {
    logarithms.push_back(logSumExpOf(head, query0 + row(i)));
    deltas.push_back(deltaOf(head, query0 + row(i)));
  }
  GlobalRows query = queriesOf(kernel_.query, head), cotangent = queriesOf(kernel_.cotangent, head);
  GlobalRows key = keysOf(kernel_.key, head), value = keysOf(kernel_.value, head);
  auto addTile = [&, query0 = query0, &head = head](Expr key0, const State &sums) {
    State p = tiles_.products(query, query0, key, key0);
    for (int64_t i = 0; i < each; ++i)
      for (int64_t j = 0; j < each; ++j) {
        Expr &mine = p[each * i + j];
        mine = emitExp(score(mine, head, query0 + row(i), key0 + column(j)) - logarithms[i]);
      }
    State slopes = tiles_.products(cotangent, query0, value, key0);
    for (int64_t i = 0; i < each; ++i) {
      Expr *mine = &slopes[each * i];
      if (drops())
        for (auto [j, isKept] : llvm::enumerate(keptBy(head, query0 + row(i), key0 + column(0))))
          mine[j] = dropped(mine[j], isKept);
      for (int64_t j = 0; j < each; ++j)
        mine[j] = p[each * i + j] * (mine[j] - deltas[i]);
    }
    tiles_.keep(slopes);
    return tiles_.accumulate(sums, key, key0);
  };
  State sums =
      tiles_.loop(number(0), endOfKeys(query0), TileEmitter::size, tiles_.zeros(kernel_.key.width), addTile);
  storeRows(sums, queriesOf(*kernel_.queryCotangent, head), query0,
            [&](int64_t, Expr sum) { return sum * kernel_.shape.scale; });
}

/// Rows of the tile are keys, its columns are queries. `carried`: sums of the key's cotangent, then of the
/// value's.
State AttentionEmitter::keyValueTile(const Head &head, Expr key0, Expr query0, const State &carried) {
  for (int64_t i = 0; i < each; ++i) { // here rows are queries
    Expr log = logSumExpOf(head, query0 + row(i)), delta = deltaOf(head, query0 + row(i));
    tiles_.ifHolds(equal(tiles_.column(), number(0)), [&] {
      tiles_.storeShared(logarithms_, row(i), log);
      tiles_.storeShared(deltas_, row(i), delta);
    });
  }
  GlobalRows query = queriesOf(kernel_.query, head), cotangent = queriesOf(kernel_.cotangent, head);
  State p = tiles_.products(keysOf(kernel_.key, head), key0, query, query0);
  SmallVector<SmallVector<Expr, 4>> kept; // of each query
  for (int64_t j = 0; j < each; ++j) {
    Expr log = tiles_.loadShared(logarithms_, column(j), 1);
    for (int64_t i = 0; i < each; ++i) {
      Expr &mine = p[each * i + j];
      mine = emitExp(score(mine, head, query0 + column(j), key0 + row(i)) - log);
    }
    if (drops())
      kept.push_back(keptBy(head, query0 + column(j), key0 + row(0)));
  }
  auto afterDropout = [&](const State &tile) {
    State result(tile);
    for (int64_t i = 0; i < each; ++i)
      for (int64_t j = 0; j < each; ++j)
        result[each * i + j] = drops() ? dropped(tile[each * i + j], kept[j][i]) : tile[each * i + j];
    return result;
  };
  State keySums(llvm::ArrayRef(carried).take_front(each * TileEmitter::columnsOf(kernel_.key.width)));
  State valueSums(llvm::ArrayRef(carried).drop_front(keySums.size()));
  tiles_.keep(afterDropout(p));
  valueSums = tiles_.accumulate(valueSums, cotangent, query0);

  State slopes = afterDropout(tiles_.products(keysOf(kernel_.value, head), key0, cotangent, query0));
  for (int64_t j = 0; j < each; ++j) {
    Expr delta = tiles_.loadShared(deltas_, column(j), 1);
    for (int64_t i = 0; i < each; ++i)
      slopes[each * i + j] = p[each * i + j] * (slopes[each * i + j] - delta);
  }
  tiles_.keep(slopes);
  keySums = tiles_.accumulate(keySums, query, query0);
  keySums.append(valueSums);
  return keySums;
}

void AttentionEmitter::emitKeyValueGradient() {
  const AttentionShape &shape = kernel_.shape;
  auto [key0, rest] = splitBlock(kernel_.keyTiles(), /*lastFirst=*/false);
  Expr batch = wide(divideUnsigned(rest, shape.groups)), group = wide(remainderUnsigned(rest, shape.groups));
  State start = tiles_.zeros(kernel_.key.width);
  start.append(tiles_.zeros(kernel_.value.width));
  auto addHead = [&, key0 = key0](Expr inGroup, const State &before) {
    Head head = headOf(batch, group * wideNumber(shape.headsPerGroup()) + wide(inGroup));
    // Queries before the first key see none of them.
    return tiles_.loop(
        shape.causal ? key0 : number(0), number(shape.queries), TileEmitter::size, before,
        [&](Expr query0, const State &carried) { return keyValueTile(head, key0, query0, carried); });
  };
  State sums = tiles_.loop(number(0), number(shape.headsPerGroup()), 1, start, addHead);

  size_t ofKey = each * TileEmitter::columnsOf(kernel_.key.width);
  if (kernel_.keyCotangent)
    storeRows(State(llvm::ArrayRef(sums).take_front(ofKey)), rowsOf(*kernel_.keyCotangent, batch, group),
              key0, [&](int64_t, Expr sum) { return sum * shape.scale; });
  if (kernel_.valueCotangent)
    storeRows(State(llvm::ArrayRef(sums).drop_front(ofKey)), rowsOf(*kernel_.valueCotangent, batch, group),
              key0, [](int64_t, Expr sum) { return sum; });
}

} // namespace gpuc::codegen
