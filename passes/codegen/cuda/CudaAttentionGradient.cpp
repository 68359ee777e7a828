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

std::pair<State, State> AttentionEmitter::statisticsOf(const Head &head, Expr query0) {
  std::pair<State, State> statistics;
  for (int64_t i = 0; i < rowsEach_; ++i) {
    Expr query = query0 + row(i);
    statistics.first.push_back(logSumExpOf(head, query));
    statistics.second.push_back(deltaOf(head, query));
  }
  return statistics;
}

void AttentionEmitter::emitQueryGradient() {
  auto [query0, head] = enterQueries();
  auto [logarithms, deltas] = statisticsOf(head, query0);
  TileOperand query = tiles_->hold(queriesOf(kernel_.query, head), query0, /*inRegisters=*/true);
  TileOperand cotangent = tiles_->hold(queriesOf(kernel_.cotangent, head), query0, /*inRegisters=*/true);
  auto addTile = [&, query0 = query0, &logarithms = logarithms, &deltas = deltas](const Head &head, Expr key0,
                                                                                  const State &sums) {
    auto [key, value] = tiles_->stage(keysOf(kernel_.key, head), keysOf(kernel_.value, head), key0, head.end);
    State p = tiles_->products(query, key);
    for (int64_t i = 0; i < rowsEach_; ++i)
      for (int64_t j = 0; j < columnsEach_; ++j) {
        Expr &mine = p[columnsEach_ * i + j];
        mine = probability(mine, logarithms[i], head, query0 + row(i), key0 + column(j));
      }
    State slopes = tiles_->products(cotangent, value);
    for (int64_t i = 0; i < rowsEach_; ++i) {
      Expr *mine = &slopes[columnsEach_ * i];
      if (drops())
        dropFromRow(mine, head, query0 + row(i), key0);
      for (int64_t j = 0; j < columnsEach_; ++j)
        mine[j] = p[columnsEach_ * i + j] * (mine[j] - deltas[i]);
    }
    return tiles_->accumulate(sums, slopes, key);
  };
  State sums = overKeys(head, query0, tiles_->zeros(kernel_.key.width), addTile);
  storeRows(sums, queriesOf(*kernel_.queryCotangent, head), query0,
            [&](int64_t, Expr sum) { return sum * kernel_.shape.scale; });
}

/// Rows of the tile are keys, its columns are queries. `carried`: sums of the key's cotangent, then of the
/// value's.
State AttentionEmitter::keyValueTile(const Head &head, const TileOperand &key, const TileOperand &value,
                                     Expr query0, const State &carried) {
  Expr key0 = key.row0, turn = tiles_->turn(query0) * number(TileEmitter::size);
  auto [logarithms, deltas] = statisticsOf(head, query0); // here rows are queries
  auto share = [&, &logarithms = logarithms, &deltas = deltas] {
    tiles_->ifHolds(equal(tiles_->column(), number(0)), [&] {
      for (int64_t i = 0; i < rowsEach_; ++i) {
        tiles_->storeShared(logarithms_, turn + row(i), logarithms[i]);
        tiles_->storeShared(deltas_, turn + row(i), deltas[i]);
      }
    });
  };
  auto [query, cotangent] = tiles_->stage(queriesOf(kernel_.query, head), queriesOf(kernel_.cotangent, head),
                                          query0, head.end, share);
  State p = tiles_->products(key, query);
  SmallVector<SmallVector<Expr, 4>> kept; // of each query
  for (int64_t j = 0; j < columnsEach_; ++j) {
    Expr log = tiles_->loadShared(logarithms_, turn + column(j), 1);
    for (int64_t i = 0; i < rowsEach_; ++i) {
      Expr &mine = p[columnsEach_ * i + j];
      mine = probability(mine, log, head, query0 + column(j), key0 + row(i));
    }
    if (drops())
      kept.push_back(keptBy(head, query0 + column(j), key0 + row(0), rowsEach_));
  }
  auto afterDropout = [&](const State &tile) {
    State result(tile);
    for (int64_t i = 0; i < rowsEach_; ++i)
      for (int64_t j = 0; j < columnsEach_; ++j)
        result[columnsEach_ * i + j] =
            drops() ? dropped(tile[columnsEach_ * i + j], kept[j][i]) : tile[columnsEach_ * i + j];
    return result;
  };
  State keySums(llvm::ArrayRef(carried).take_front(rowsEach_ * tiles_->columnsOf(kernel_.key.width)));
  State valueSums(llvm::ArrayRef(carried).drop_front(keySums.size()));
  valueSums = tiles_->accumulate(valueSums, afterDropout(p), cotangent);

  State slopes = afterDropout(tiles_->products(value, cotangent));
  for (int64_t j = 0; j < columnsEach_; ++j) {
    Expr delta = tiles_->loadShared(deltas_, turn + column(j), 1);
    for (int64_t i = 0; i < rowsEach_; ++i)
      slopes[columnsEach_ * i + j] = p[columnsEach_ * i + j] * (slopes[columnsEach_ * i + j] - delta);
  }
  keySums = tiles_->accumulate(keySums, slopes, query);
  keySums.append(valueSums);
  return keySums;
}

void AttentionEmitter::emitKeyValueGradient() {
  const AttentionShape &shape = kernel_.shape;
  auto [key0, rest] = splitBlock(kernel_.keyTiles(), /*lastFirst=*/false);
  Expr batch = wide(divideUnsigned(rest, shape.groups)), group = wide(remainderUnsigned(rest, shape.groups));
  State start = tiles_->zeros(kernel_.key.width);
  start.append(tiles_->zeros(kernel_.value.width));
  TileOperand key = tiles_->hold(rowsOf(kernel_.key, batch, group), key0, !kernel_.isWide());
  TileOperand value = tiles_->hold(rowsOf(kernel_.value, batch, group), key0, !kernel_.isWide());
  auto addHead = [&, key0 = key0](Expr inGroup, const State &before) {
    Head head = headOf(batch, group * wideNumber(shape.headsPerGroup()) + wide(inGroup));
    return overQueries(head, key0, before, [&](const Head &here, Expr query0, const State &carried) {
      return keyValueTile(here, key, value, query0, carried);
    });
  };
  State sums = tiles_->loop(number(0), number(shape.headsPerGroup()), 1, start, addHead);

  size_t ofKey = rowsEach_ * tiles_->columnsOf(kernel_.key.width);
  if (kernel_.keyCotangent)
    storeRows(State(llvm::ArrayRef(sums).take_front(ofKey)), rowsOf(*kernel_.keyCotangent, batch, group),
              key0, [&](int64_t, Expr sum) { return sum * shape.scale; });
  if (kernel_.valueCotangent)
    storeRows(State(llvm::ArrayRef(sums).drop_front(ofKey)), rowsOf(*kernel_.valueCotangent, batch, group),
              key0, [](int64_t, Expr sum) { return sum; });
}

} // namespace gpuc::codegen
