//===- Resample.h - A dimension in another number of elements -----------------===//
#pragma once

#include "frontend/onnx/Tensor.h"

#include <vector>

namespace gpuc::onnx {

/// What an element of the result is made of: weights[k] times element first + k; what lies beyond a border is
/// the border's element.
struct Taps {
  int64_t first = 0;
  std::vector<double> weights;
};

/// `at`, or the whole number next to it that rounding has kept it from, so that the taps of 1/3 repeat.
double snapped(double at);

/// x with `taps.size()` elements along `dim`. Of equal taps again and again, as those of whole factors are,
/// by slices and sums; else by a matrix, or, of long dimensions, by gathers. Integers: of weights of 1 alone.
Tensor resample(const Tensor &x, int64_t dim, const std::vector<Taps> &taps);

/// Whether resample does so by slices, which is quickest behind what it does by a matrix.
bool takesSlices(const Tensor &x, int64_t dim, const std::vector<Taps> &taps);

} // namespace gpuc::onnx
