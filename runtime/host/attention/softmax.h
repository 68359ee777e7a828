// Blocks of scores to probabilities, and to their derivatives; included by score_kernels.cpp alone (see
// runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/attention/exponential.h"
#include "runtime/host/attention/score_kernels.h"
#include "runtime/host/matmul/dot.h"

namespace gpuc {
namespace {

/// One vector of columns of a block.
template <typename T, bool kHides, bool kMasks, bool kDrops>
struct Columns {
  const ScoreBlock<T>& block;
  int64_t column;
  Integers<T> query;  // of each lane

  Columns(const ScoreBlock<T>& block, int64_t column) : block(block), column(column) {
    for (int lane = 0; lane < kLanes<T>; ++lane) query[lane] = static_cast<Integer<T>>(column + lane);
  }

  T* at(T* data, int64_t key) const { return data + key * block.stride + column; }
  const T* at(const T* data, int64_t key) const { return data + key * block.stride + column; }

  /// The score, -∞ where it is hidden.
  Vector<T> score(int64_t key) const {
    Vector<T> s = load<T>(at(block.scores, key));
    const Vector<T> hidden = splat<T>(-kInfinity<T>);
    if constexpr (kMasks) {
      const Vector<T> mask = load<T>(at(block.mask, key));
      s = block.mask_is_flags ? (mask == Vector<T>{} ? hidden : s) : s + mask;
    }
    if constexpr (kHides) {
      const Integers<T> first = Integers<T>{} + static_cast<Integer<T>>(key - block.diagonal);
      s = query < first ? hidden : s;
    }
    return s;
  }

  /// x times dropout's factor.
  Vector<T> drop(Vector<T> x, int64_t key) const {
    if constexpr (!kDrops) return x;
    const Vector<T> factor = load<T>(at(block.factors, key));
    return factor == Vector<T>{} ? Vector<T>{} : x * factor;
  }
};

/// Calls step(key, k) with k = key mod 4, in order.
template <typename Step>
inline void forKeys(int64_t keys, Step step) {
  int64_t key = 0;
  for (; key + 4 <= keys; key += 4)
    for (int k = 0; k < 4; ++k) step(key + k, k);
  for (int k = 0; key < keys; ++key, ++k) step(key, k);
}

template <typename T, bool kHides, bool kMasks, bool kDrops>
bool softmaxOf(const ScoreBlock<T>& block, bool first, T* largest, T* sum, T* rescale) {
  Integers<T> differs = {};
  for (int64_t column = 0; column < block.queries; column += kLanes<T>) {
    const Columns<T, kHides, kMasks, kDrops> columns(block, column);
    const Vector<T> before = first ? splat<T>(-kInfinity<T>) : load<T>(largest + column);
    Vector<T> most[4] = {before, before, before, before};
    forKeys(block.keys, [&](int64_t key, int k) __attribute__((always_inline)) {
      const Vector<T> s = columns.score(key);
      if constexpr (kHides || kMasks) store<T>(columns.at(block.scores, key), s);
      most[k] = larger<T>(s, most[k]);
    });
    const Vector<T> now = larger<T>(larger<T>(most[0], most[1]), larger<T>(most[2], most[3]));
    // A query that has seen nothing yet: -∞ - (-∞) would be NaN.
    const Vector<T> shift = now == splat<T>(-kInfinity<T>) ? Vector<T>{} : now;
    Vector<T> sums[4] = {};
    forKeys(block.keys, [&](int64_t key, int k) __attribute__((always_inline)) {
      T* place = columns.at(block.scores, key);
      const Vector<T> p = exponential<T>(load<T>(place) - shift);
      sums[k] += p;
      store<T>(place, columns.drop(p, key));
    });
    Vector<T> total = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    if (!first) {
      const Vector<T> factor = exponential<T>(before - shift);
      total = multiplyAdd<T>(load<T>(sum + column), factor, total);
      store<T>(rescale + column, factor);
      differs |= factor != splat<T>(1);
    }
    store<T>(largest + column, now);
    store<T>(sum + column, total);
  }
  bool any = false;
  for (int lane = 0; lane < kLanes<T>; ++lane) any |= differs[lane] != 0;
  return any;
}

template <typename T, bool kHides, bool kMasks, bool kDrops>
void differentiateOf(const ScoreBlock<T>& block, const T* shift, const T* delta, T* slopes) {
  for (int64_t column = 0; column < block.queries; column += kLanes<T>) {
    const Columns<T, kHides, kMasks, kDrops> columns(block, column);
    const Vector<T> shift_of = load<T>(shift + column), delta_of = load<T>(delta + column);
    for (int64_t key = 0; key < block.keys; ++key) {
      const Vector<T> p = exponential<T>(columns.score(key) - shift_of);
      T* slope = columns.at(slopes, key);
      store<T>(slope, p * (columns.drop(load<T>(slope), key) - delta_of));
      store<T>(columns.at(block.scores, key), columns.drop(p, key));
    }
  }
}

/// Calls visit<kHides, kMasks, kDrops>() for what the block has.
template <typename T, typename Visit>
inline auto forForm(const ScoreBlock<T>& block, Visit visit) {
  using Yes = std::true_type;
  using No = std::false_type;
  auto withDrops = [&](auto hides, auto masks) {
    return block.factors ? visit(hides, masks, Yes()) : visit(hides, masks, No());
  };
  auto withMasks = [&](auto hides) { return block.mask ? withDrops(hides, Yes()) : withDrops(hides, No()); };
  return block.causal ? withMasks(Yes()) : withMasks(No());
}

template <typename T>
bool softmax(const ScoreBlock<T>& block, bool first, T* largest, T* sum, T* rescale) {
  return forForm(block, [&](auto hides, auto masks, auto drops) {
    return softmaxOf<T, hides.value, masks.value, drops.value>(block, first, largest, sum, rescale);
  });
}

template <typename T>
void differentiate(const ScoreBlock<T>& block, const T* shift, const T* delta, T* slopes) {
  forForm(block, [&](auto hides, auto masks, auto drops) {
    differentiateOf<T, hides.value, masks.value, drops.value>(block, shift, delta, slopes);
  });
}

template <typename T>
void finish(int64_t queries, const T* largest, const T* sum, T* inverse, T* log_sum_exp) {
  for (int64_t column = 0; column < queries; column += kLanes<T>) {
    const Vector<T> total = load<T>(sum + column), most = load<T>(largest + column);
    const Integers<T> sees_none = total == Vector<T>{};
    const Vector<T> infinity = splat<T>(-kInfinity<T>);
    const Vector<T> divisor = sees_none ? splat<T>(1) : total, shift = most == infinity ? Vector<T>{} : most;
    store<T>(inverse + column, 1 / divisor);
    store<T>(log_sum_exp + column, sees_none ? infinity : shift + logarithm<T>(divisor));
  }
}

template <typename T>
void scaleRows(const RowScale<T>& rows) {
  for (int64_t row = 0; row < rows.rows; ++row) {
    T* data = rows.data + row * rows.stride;
    const T factor = rows.factors[row];
    int64_t i = 0;
    for (; i + kLanes<T> <= rows.columns; i += kLanes<T>) store<T>(data + i, load<T>(data + i) * factor);
    for (; i < rows.columns; ++i) data[i] *= factor;
  }
}

template <typename T>
void rowProducts(int64_t rows, int64_t columns, const T* a, int64_t stride_a, const T* b, int64_t stride_b,
                 T factor, T* delta) {
  const int64_t whole = columns / kLanes<T> * kLanes<T>;
  for (int64_t row = 0; row < rows; ++row, a += stride_a, b += stride_b) {
    Vector<T> partial = {};
    for (int64_t i = 0; i < whole; i += kLanes<T>)
      partial = multiplyAdd<T>(load<T>(a + i), load<T>(b + i), partial);
    if (const int64_t rest = columns - whole; rest > 0)
      partial = multiplyAdd<T>(loadFirst<T>(a + whole, rest), loadFirst<T>(b + whole, rest), partial);
    delta[row] = factor * gpuc::sum<T>(partial);
  }
}

template <typename T>
void scale(T* x, int64_t count, T factor) {
  for (int64_t i = 0; i < count; i += kLanes<T>) store<T>(x + i, load<T>(x + i) * factor);
}

}  // namespace
}  // namespace gpuc
