// What follows each element of a product; included by vector_kernels.cpp alone (see vector.h).
#pragma once

#include "runtime/host/matmul/load.h"
#include "runtime/host/matmul/vector_kernels.h"

namespace gpuc {
namespace {

/// max(v, 0); NaN of NaN, and +0 of -0.
template <typename T>
inline Vector<T> relu(Vector<T> v) {
  return v <= Vector<T>{} ? Vector<T>{} : v;
}

enum class FinishBias { none, of_rows, of_columns };

template <FinishBias kBias, bool kRelu, typename S>
void finishRows(const FinishTile<S>& t) {
  using T = Computed<S>;
  constexpr int64_t kStep = kLanes<T>;
  const int64_t whole = t.columns / kStep * kStep, rest = t.columns - whole;
  for (int64_t row = 0; row < t.rows; ++row) {
    S* c = t.c + row * t.ldc;
    Vector<T> of_row = {};
    if constexpr (kBias == FinishBias::of_rows) of_row += widenOne(t.bias[row]);
    // What is added is rounded when it is stored, and relu of it is exact: so the order of the two is free.
    auto finish = [&](auto loadAt, int64_t i) __attribute__((always_inline)) {
      Vector<T> v = loadAt(c + i);
      if constexpr (kBias == FinishBias::of_rows) v += of_row;
      if constexpr (kBias == FinishBias::of_columns) v += loadAt(t.bias + i);
      if constexpr (kRelu) v = relu<T>(v);
      return v;
    };
    for (int64_t i = 0; i < whole; i += kStep)
      store(c + i, finish([](const S* from) __attribute__((always_inline)) { return load(from); }, i));
    if (rest > 0)
      storeFirst(
          c + whole,
          finish([rest](const S* from) __attribute__((always_inline)) { return loadFirst(from, rest); },
                 whole),
          rest);
  }
}

template <FinishBias kBias, typename S>
void finishBiased(const FinishTile<S>& t) {
  return t.relu ? finishRows<kBias, true>(t) : finishRows<kBias, false>(t);
}

template <typename S>
void maskRows(const FinishTile<S>& t) {
  using T = Computed<S>;
  constexpr int64_t kStep = kLanes<T>;
  const int64_t whole = t.columns / kStep * kStep, rest = t.columns - whole;
  auto masked = [](Vector<T> v, Vector<T> mask) __attribute__((always_inline)) {
    return mask <= Vector<T>{} ? Vector<T>{} : v;  // NaN is not less
  };
  for (int64_t row = 0; row < t.rows; ++row) {
    S* c = t.c + row * t.ldc;
    const S* mask = t.mask + row * t.ldc;
    for (int64_t i = 0; i < whole; i += kStep) store(c + i, masked(load(c + i), load(mask + i)));
    if (rest > 0)
      storeFirst(c + whole, masked(loadFirst(c + whole, rest), loadFirst(mask + whole, rest)), rest);
  }
}

template <typename S>
void finishTile(const FinishTile<S>& t) {
  if (t.mask) return maskRows(t);
  if (!t.bias) return t.relu ? finishRows<FinishBias::none, true>(t) : void();
  return t.bias_of_rows ? finishBiased<FinishBias::of_rows>(t) : finishBiased<FinishBias::of_columns>(t);
}

}  // namespace
}  // namespace gpuc
