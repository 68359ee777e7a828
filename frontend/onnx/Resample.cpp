//===- Resample.cpp - A dimension in another number of elements ---------------===//
//
// A matrix [in, out] says it all, but has `in` products for each element where two would do. Of a factor
// such as 2 or 3/2 the taps repeat themselves: those of element o + period are those of element o, `step`
// further on. Elements o, o + period, o + 2 · period … are then one sum of slices, a phase.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/Resample.h"
#include "frontend/onnx/reader/HostTensor.h"

#include <algorithm>
#include <cmath>
#include <optional>

using namespace llvm;

namespace gpuc::onnx {
namespace {

/// A matrix of fewer elements a column takes less than sums, for each phase; along the last dimension, where
/// phases alternate, of twice as many. Sums of shorter rows take longer, too.
constexpr int64_t kLeastColumn = 8, kLeastRow = 16;
/// A matrix of more elements a column takes longer than gathers.
constexpr int64_t kMostOfMatrix = 256;
constexpr int64_t kMostPhases = 8;
constexpr size_t kMostTaps = 32, kMostGathers = 4;

/// What places and weights differ by from rounding alone.
constexpr double kRounding = 1e-9;

struct Period {
  int64_t phases = 1, step = 0;
};

bool areEqual(ArrayRef<double> lhs, ArrayRef<double> rhs) {
  return lhs.size() == rhs.size() && llvm::all_of(llvm::zip(lhs, rhs), [](auto pair) {
           return std::fabs(std::get<0>(pair) - std::get<1>(pair)) < kRounding;
         });
}

bool repeats(ArrayRef<Taps> taps, Period period) {
  for (size_t o = period.phases; o < taps.size(); ++o) {
    const Taps &before = taps[o - period.phases];
    if (taps[o].first != before.first + period.step || !areEqual(taps[o].weights, before.weights))
      return false;
  }
  return true;
}

/// After how few elements the taps begin anew; nothing if that is never so.
std::optional<Period> periodOf(ArrayRef<Taps> taps) {
  const auto count = static_cast<int64_t>(taps.size());
  for (int64_t phases = 1; phases <= std::min(kMostPhases, count / 2); ++phases)
    if (const Period period = {phases, taps[phases].first - taps[0].first};
        period.step > 0 && repeats(taps, period))
      return period;
  return std::nullopt;
}

/// One element, as it is.
bool isPick(const Taps &taps) { return taps.weights.size() == 1 && taps.weights[0] == 1; }

/// x with the border repeated, so often before and behind.
Tensor extended(const Tensor &x, int64_t dim, int64_t before, int64_t behind) {
  if (before <= 0 && behind <= 0)
    return x;
  const int64_t extent = x.extent(dim);
  auto border = [&](int64_t at, int64_t count) {
    Shape shape = x.shape();
    shape[dim] = count;
    return broadcastTo(slice(x, dim, at, at + 1), shape);
  };
  SmallVector<Tensor> parts;
  if (before > 0)
    parts.push_back(border(0, before));
  parts.push_back(x);
  if (behind > 0)
    parts.push_back(border(extent - 1, behind));
  return concat(parts, dim);
}

/// The elements of a phase: weighted, `step` apart, `count` of them.
Tensor sumOf(const Tensor &x, int64_t dim, const Taps &taps, int64_t step, int64_t count) {
  Tensor sum;
  for (size_t k = 0; k < taps.weights.size(); ++k) {
    if (taps.weights[k] == 0)
      continue;
    const int64_t start = taps.first + static_cast<int64_t>(k);
    Tensor part = slice(x, dim, start, start + (count - 1) * step + 1, step);
    if (!part)
      return {};
    part = isPick(taps) ? part : part * taps.weights[k];
    sum = sum ? sum + part : part;
  }
  return sum;
}

/// The phases' elements in turn along `dim`.
Tensor interleave(ArrayRef<Tensor> phases, int64_t dim) {
  if (!llvm::all_of(phases, [](const Tensor &phase) { return bool(phase); }))
    return {};
  Shape wide = phases[0].shape(), shape = wide;
  wide.insert(wide.begin() + dim + 1, 1);
  SmallVector<Tensor> parts;
  for (const Tensor &phase : phases)
    parts.push_back(reshape(phase, wide));
  shape[dim] *= static_cast<int64_t>(phases.size());
  return reshape(concat(parts, dim + 1), shape);
}

/// Each element so often, one after another.
Tensor repeat(const Tensor &x, int64_t dim, int64_t times) {
  if (!x)
    return {};
  Shape wide = x.shape(), shape = wide;
  wide.insert(wide.begin() + dim + 1, 1);
  Tensor split = reshape(x, wide);
  wide[dim + 1] = times;
  shape[dim] *= times;
  return reshape(broadcastTo(split, wide), shape);
}

Tensor byPhases(const Tensor &x, int64_t dim, ArrayRef<Taps> taps, Period period) {
  const auto out = static_cast<int64_t>(taps.size());
  const int64_t count = (out + period.phases - 1) / period.phases;
  std::vector<Taps> phases(taps.begin(), taps.begin() + period.phases);
  int64_t before = 0, last = 0;
  for (const Taps &phase : phases) {
    before = std::max(before, -phase.first);
    last = std::max(last,
                    phase.first + (count - 1) * period.step + static_cast<int64_t>(phase.weights.size()) - 1);
  }
  Tensor wide = extended(x, dim, before, last - (x.extent(dim) - 1));
  if (!wide)
    return {};
  SmallVector<Tensor> sums;
  for (Taps &phase : phases) {
    phase.first += before;
    sums.push_back(sumOf(wide, dim, phase, period.step, count));
  }
  const bool areOne = llvm::all_of(
      phases, [&](const Taps &phase) { return isPick(phase) && phase.first == phases[0].first; });
  Tensor result = areOne ? repeat(sums[0], dim, period.phases) : interleave(sums, dim);
  return slice(result, dim, 0, out);
}

int64_t sourceOf(const Taps &taps, size_t k, int64_t in) {
  return std::clamp<int64_t>(taps.first + static_cast<int64_t>(k), 0, in - 1);
}

Tensor byGathers(const Tensor &x, int64_t dim, ArrayRef<Taps> taps) {
  Emitter &e = *x.emitter();
  const auto out = static_cast<int64_t>(taps.size());
  Tensor sum;
  for (size_t k = 0; k < taps[0].weights.size(); ++k) {
    Shape sources;
    std::vector<double> weights;
    for (const Taps &each : taps) {
      sources.push_back(sourceOf(each, k, x.extent(dim)));
      weights.push_back(each.weights[k]);
    }
    Tensor part = e.op("gather", {x, e.constant(*fromIntegers(DataType::i64, {out}, sources))},
                       e.attribute("dim", dim));
    if (llvm::any_of(weights, [](double weight) { return weight != 1; }))
      part = part * beside(e.constant(*fromNumbers(x.type(), {out}, weights)), dim, x.rank());
    sum = sum ? sum + part : part;
  }
  return sum;
}

Tensor byMatrix(const Tensor &x, int64_t dim, ArrayRef<Taps> taps) {
  const auto in = x.extent(dim), out = static_cast<int64_t>(taps.size());
  std::vector<double> matrix(in * out, 0.0);
  for (int64_t o = 0; o < out; ++o)
    for (size_t k = 0; k < taps[o].weights.size(); ++k)
      matrix[sourceOf(taps[o], k, in) * out + o] += taps[o].weights[k];
  return multiplyAlong(x, dim, out, matrix);
}

size_t tapsIn(ArrayRef<Taps> taps) {
  size_t count = 0;
  for (const Taps &each : taps)
    count += each.weights.size();
  return count;
}

/// Whether sums take less than a matrix.
bool paysByPhases(const Tensor &x, int64_t dim, ArrayRef<Taps> taps, Period period) {
  const bool isLast = dim + 1 == x.rank();
  return x.extent(dim) >= (isLast ? 2 : 1) * kLeastColumn * period.phases &&
         (isLast || countOf(x.shape(), dim + 1, x.rank()) >= kLeastRow) &&
         tapsIn(taps.take_front(period.phases)) <= kMostTaps;
}

} // namespace

double snapped(double at) {
  const double whole = std::round(at);
  return std::fabs(at - whole) < kRounding ? whole : at;
}

bool takesSlices(const Tensor &x, int64_t dim, const std::vector<Taps> &taps) {
  const std::optional<Period> period = periodOf(taps);
  return period && (llvm::all_of(taps, isPick) || paysByPhases(x, dim, taps, *period));
}

Tensor resample(const Tensor &x, int64_t dim, const std::vector<Taps> &taps) {
  if (!x)
    return {};
  const bool arePicks = llvm::all_of(taps, isPick);
  if (arePicks && x.extent(dim) == 1)
    return repeat(x, dim, static_cast<int64_t>(taps.size()));
  if (takesSlices(x, dim, taps))
    return byPhases(x, dim, taps, *periodOf(taps));
  const size_t most = std::max_element(taps.begin(), taps.end(), [](const Taps &lhs, const Taps &rhs) {
                        return lhs.weights.size() < rhs.weights.size();
                      })->weights.size();
  const bool areAlike = tapsIn(taps) == most * taps.size();
  if (arePicks || (areAlike && most <= kMostGathers && x.extent(dim) > kMostOfMatrix))
    return byGathers(x, dim, taps);
  return byMatrix(x, dim, taps);
}

} // namespace gpuc::onnx
