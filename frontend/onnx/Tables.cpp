//===- Tables.cpp - Tensors that give away that nobody trains them ----------===//
//
// Positional tables and frequencies are found by one property: along the positions, each element is the same
// multiple of the mean of its neighbours. That holds of sines (a multiple below 1), of geometric progressions
// (above 1) and of arithmetic ones (1 itself), whatever their parameters; of drawn numbers it does not.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/Tables.h"

#include "frontend/onnx/reader/HostTensor.h"

#include <algorithm>
#include <cmath>

namespace gpuc::onnx {
namespace {

using Numbers = std::vector<double>;

/// 0 (or 1) and one number that ends all weight in a softmax, or anything beyond what training reaches.
bool isAdditiveMask(const Numbers &numbers) {
  constexpr double kBeyondTraining = 1e30, kNoWeight = -10;
  auto isBeyond = [](double x) { return std::isinf(x) || std::fabs(x) >= kBeyondTraining; };
  if (std::any_of(numbers.begin(), numbers.end(), isBeyond))
    return true;
  const double low = *std::min_element(numbers.begin(), numbers.end());
  auto isLevel = [low](double x) { return x == low || x == 0; };
  return low <= kNoWeight && numbers.size() > 1 && std::all_of(numbers.begin(), numbers.end(), isLevel) &&
         std::count(numbers.begin(), numbers.end(), 0) > 0;
}

/// Square matrices with one number in a whole triangle and 0 in the other.
bool isTriangle(const Numbers &numbers, const std::vector<int64_t> &shape) {
  if (shape.size() < 2)
    return false;
  const int64_t n = shape.back();
  if (n < 3 || shape[shape.size() - 2] != n)
    return false;
  auto holds = [&](bool lower, bool diagonal) {
    const double inside = numbers[lower ? n : 1]; // Next to the diagonal.
    for (size_t i = 0; i < numbers.size(); ++i) {
      const int64_t row = static_cast<int64_t>(i) / n % n, column = static_cast<int64_t>(i) % n;
      const bool in = row == column ? diagonal : (column < row) == lower;
      if (numbers[i] != (in ? inside : 0))
        return false;
    }
    return inside != 0;
  };
  return holds(true, true) || holds(true, false) || holds(false, true) || holds(false, false);
}

/// Lines along one dimension: `count` of them begin every so many elements.
struct Lines {
  int64_t outer, length, inner;
};

/// The rule of the lines; none if one of them follows none.
Table ruleOf(const Numbers &numbers, const Lines &lines) {
  constexpr double kTolerance = 2e-3; // Of tables that were computed in f32.
  constexpr int64_t kLeastEquations = 6;
  int64_t equations = 0;
  bool oscillates = false;
  for (int64_t line = 0; line < lines.outer * lines.inner; ++line) {
    const size_t first = line / lines.inner * lines.length * lines.inner + line % lines.inner;
    auto at = [&](int64_t i) { return numbers[first + i * lines.inner]; };
    double product = 0, square = 0, largest = 0, least = at(0), most = at(0);
    for (int64_t i = 0; i < lines.length; ++i) {
      largest = std::max(largest, std::fabs(at(i)));
      least = std::min(least, at(i)), most = std::max(most, at(i));
      if (i > 0 && i + 1 < lines.length) {
        product += (at(i - 1) + at(i + 1)) * at(i);
        square += at(i) * at(i);
      }
    }
    if (most == least)
      continue; // Says nothing.
    const double twice = square > 0 ? product / square : 0;
    for (int64_t i = 1; i + 1 < lines.length; ++i)
      if (!(std::fabs(at(i - 1) + at(i + 1) - twice * at(i)) <= kTolerance * largest))
        return Table::none;
    equations += lines.length - 3;
    oscillates |= std::fabs(twice) < 1.9;
  }
  if (equations < kLeastEquations)
    return Table::none;
  return oscillates ? Table::sines : Table::progression;
}

} // namespace

Table tableOf(const HostTensor &tensor) {
  if (!tensor.supported || !gpuc::isFloat(tensor.spec.type) || tensor.spec.elementCount() < 2)
    return Table::none;
  const Numbers numbers = numbersOf(tensor);
  const std::vector<int64_t> &shape = tensor.spec.shape;
  if (isAdditiveMask(numbers) || isTriangle(numbers, shape))
    return Table::mask;
  // Positions are the last dimension but one, or the only one; of a table that lies the other way the last.
  for (size_t back = 1; back <= std::min<size_t>(shape.size(), 2); ++back) {
    const size_t dim = shape.size() - (shape.size() > 1 ? 3 - back : back);
    Lines lines = {1, shape[dim], 1};
    for (size_t d = 0; d < shape.size(); ++d)
      if (d != dim)
        (d < dim ? lines.outer : lines.inner) *= shape[d];
    if (lines.length >= 5)
      if (Table table = ruleOf(numbers, lines); table != Table::none)
        return table;
  }
  return Table::none;
}

const char *describe(Table table) {
  switch (table) {
  case Table::none:
    return "no table";
  case Table::mask:
    return "a mask";
  case Table::sines:
    return "a table of sines";
  case Table::progression:
    return "a progression";
  }
  return "";
}

} // namespace gpuc::onnx
