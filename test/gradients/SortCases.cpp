//===- SortCases.cpp - sort and top_k ------------------------------------------===//

#include "test/gradients/Registry.h"

#include <sstream>

namespace gpuc::gradients {

namespace {
/// One op, by the text between its operand and its types.
struct Sorting {
  std::string op, attributes;
};

std::string indexType(const std::string &shape) { return shape + "xi64"; }

/// Returns values and indices. `$T` stands for the element type if `element` is not given.
Case plain(const Sorting &sorting, const std::string &name, Input x, const std::string &shape,
           Derivatives derivatives, const std::string &element = "$T") {
  std::string values = shape + "x" + element;
  return {"gpuc." + sorting.op,
          name,
          {x},
          "%v, %i = gpuc." + sorting.op + " %x0 " + sorting.attributes + " : (" + tensor(x.type) + ") -> (" +
              tensor(values) + ", " + tensor(indexType(shape)) + ")",
          {{"%v", values}, {"%i", indexType(shape)}},
          derivatives};
}

/// Different numbers from -1 to 1 in no order, far enough apart that no difference quotient crosses a kink.
std::vector<double> distinct(const std::string &shape) {
  int64_t count = 1, extent;
  for (std::istringstream extents(shape); extents >> extent; extents.ignore()) // "2x65"
    count *= extent;
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) // 37 divides no count here
    values.push_back((2.0 * static_cast<double>(i * 37 % count) + 1) / static_cast<double>(count) - 1);
  return values;
}

/// Squares the values, so that the second derivative is not nothing.
Case squared(const Sorting &sorting, const std::string &name, const std::string &from,
             const std::string &shape) {
  Case described = plain(sorting, name, {real(from), 0, 0, distinct(from)}, shape, Derivatives::second);
  described.body += "\n%y = gpuc.mul %v, %v : " + tensor(real(shape));
  described.outputs.front() = {"%y", real(shape)};
  return described;
}

/// What derivatives PyTorch gives where equal elements make differences say nothing.
Case conventional(const Sorting &sorting, const std::string &name, std::vector<double> values,
                  const std::string &shape, std::vector<double> expected) {
  std::string from = std::to_string(values.size());
  Case described =
      plain(sorting, name, {real(from), 0, 0, std::move(values)}, shape, Derivatives::convention);
  described.expected = std::move(expected);
  return described;
}

/// NaN of both signs, zeros of both signs, infinities, ties; two rows.
const std::vector<double> special = {nan, 1,   -0.0, 0,   -inf, -nan, 1, inf, 0.0, -0.0,
                                     0,   nan, 0,    nan, -0.0, 3,    3, 3,   -3,  -inf};
} // namespace

static void addSort(Cases &cases) {
  for (std::string order : {"", " descending"}) {
    std::string suffix = order.empty() ? "" : "_descending";
    auto add = [&](const std::string &name, const std::string &shape, const std::string &dim) {
      cases.push_back(squared({"sort", "dim " + dim + order}, name + suffix, shape, shape));
    };
    add("rows", "7x3", "0");
    add("columns", "3x7", "1");
    add("middle", "2x5x3", "1");
    add("vector", "16", "0");
    add("extent_1", "3x1", "1");
    add("extent_2", "2x3", "0");
    add("long", "2x67", "1"); // its derivative goes by the inverse permutation
    add("long_middle", "2x65x2", "1");
    auto value = [&](const std::string &name, Input x, const std::string &shape, const std::string &dim,
                     const std::string &element = "$T") {
      cases.push_back(
          plain({"sort", "dim " + dim + order}, name + suffix, x, shape, Derivatives::none, element));
    };
    value("special", {"2x10x$T", 0, 0, special}, "2x10", "1");
    value("special_rows", {"10x2x$T", 0, 0, special}, "10x2", "0");
    value("i32", {"5x9xi32", -3, 3}, "5x9", "1", "i32");
    value("i64", {"9x5xi64", -3, 3}, "9x5", "0", "i64");
    value("ui8", {"40xui8", 0, 255}, "40", "0", "ui8");
    value("long_ties", {"3x1037xi32", -20, 20}, "3x1037", "1", "i32");
    value("wide", {"129x67x$T"}, "129x67", "0");
  }
}

static void addTopK(Cases &cases) {
  for (std::string order : {"", " smallest"}) {
    std::string suffix = order.empty() ? "" : "_smallest";
    auto attributes = [&](int64_t k, const std::string &dim) {
      return "k " + std::to_string(k) + " dim " + dim + order;
    };
    auto add = [&](const std::string &name, const std::string &from, int64_t k, const std::string &dim,
                   const std::string &shape) {
      cases.push_back(squared({"top_k", attributes(k, dim)}, name + suffix, from, shape));
    };
    add("rows", "7x3", 2, "0", "2x3");
    add("columns", "3x7", 3, "1", "3x3");
    add("middle", "2x5x3", 4, "1", "2x4x3");
    add("one", "9", 1, "0", "1");
    add("all", "3x5", 5, "1", "3x5");
    add("extent_1", "3x1", 1, "1", "3x1");
    add("many", "2x71", 66, "1", "2x66"); // its derivative is a scatter
    add("many_middle", "2x68x2", 65, "1", "2x65x2");
    auto value = [&](const std::string &name, Input x, int64_t k, const std::string &shape,
                     const std::string &dim, const std::string &element = "$T") {
      cases.push_back(
          plain({"top_k", attributes(k, dim)}, name + suffix, x, shape, Derivatives::none, element));
    };
    value("special", {"2x10x$T", 0, 0, special}, 6, "2x6", "1");
    value("special_rows", {"10x2x$T", 0, 0, special}, 5, "5x2", "0");
    value("i32", {"5x9xi32", -3, 3}, 4, "5x4", "1", "i32");
    value("i64", {"9x5xi64", -3, 3}, 7, "7x5", "0", "i64");
    value("ui8", {"40xui8", 0, 255}, 8, "8", "0", "ui8");
    value("long_ties", {"3x1037xi32", -20, 20}, 100, "3x100", "1", "i32");
  }
}

void addSortCases(Cases &cases) {
  addSort(cases);
  addTopK(cases);
  // The product of the values with 1, 10 and 100 tells which element each of them came from: of equal ones
  // the first comes first.
  Case ties = conventional({"sort", "dim 0"}, "ties", {2, 1, 2}, "3", {10, 1, 100});
  ties.body += "\n%w = gpuc.constant dense<[1.0, 10.0, 100.0]> : tensor<3x$T>\n"
               "%y = gpuc.mul %v, %w : tensor<3x$T>";
  ties.outputs.front() = {"%y", "3x$T"};
  cases.push_back(ties);
  cases.push_back(conventional({"top_k", "k 1 dim 0"}, "tie", {2, 3, 3, 3}, "1", {0, 1, 0, 0}));
  cases.push_back(
      conventional({"top_k", "k 2 dim 0 smallest"}, "tie_smallest", {3, 2, 2, 2}, "2", {0, 1, 1, 0}));
}

} // namespace gpuc::gradients
