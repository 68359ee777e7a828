//===- ShapeCases.cpp - Ops that move elements -------------------------------===//

#include "test/gradients/Registry.h"

namespace gpuc::gradients {

/// `text` is the op without "gpuc." and with its types; the case squares what is moved, so that its second
/// derivative is not nothing.
static Case movement(const std::string &op, const std::string &name, std::vector<Input> inputs,
                     const std::string &text, const std::string &result) {
  std::string body = "%m = gpuc." + op + " " + text + "\n%y = gpuc.mul %m, %m : " + tensor(result);
  return {"gpuc." + op, name, inputs, body, {{"%y", result}}};
}

/// One operand: `attributes` stand between it and its types.
static Case inferred(const std::string &op, const std::string &name, const std::string &from,
                     const std::string &attributes, const std::string &to) {
  return movement(op, name, {{from}}, "%x0 " + attributes + " : (" + tensor(from) + ") -> " + tensor(to), to);
}

static Case converted(const std::string &op, const std::string &name, const std::string &from,
                      const std::string &attributes, const std::string &to) {
  return movement(op, name, {{from}}, "%x0 " + attributes + " : " + tensor(from) + " to " + tensor(to), to);
}

static void addViews(Cases &cases) {
  cases.push_back(converted("reshape", "flatten", "3x5x$T", "", "15x$T"));
  cases.push_back({"gpuc.reshape",
                   "returned",
                   {{"6x$T"}},
                   "%y = gpuc.reshape %x0 : tensor<6x$T> to tensor<2x3x$T>",
                   {{"%y", "2x3x$T"}}});
  cases.push_back(converted("reshape", "scalar", "1x1x$T", "", "$T"));
  cases.push_back(converted("reshape", "split", "6x5x$T", "", "2x3x1x5x$T"));

  cases.push_back(inferred("transpose", "matrix", "3x5x$T", "permutation [1, 0]", "5x3x$T"));
  cases.push_back(inferred("transpose", "rotate", "2x3x5x$T", "permutation [2, 0, 1]", "5x2x3x$T"));
  cases.push_back(inferred("transpose", "extent_1", "1x7x$T", "permutation [1, 0]", "7x1x$T"));
  cases.push_back(inferred("transpose", "large", "65x33x$T", "permutation [1, 0]", "33x65x$T"));

  cases.push_back(converted("broadcast", "scalar", "$T", "dims []", "3x5x$T"));
  cases.push_back(converted("broadcast", "rows", "5x$T", "dims [1]", "3x5x$T"));
  cases.push_back(converted("broadcast", "columns", "3x$T", "dims [0]", "3x5x$T"));
  cases.push_back(converted("broadcast", "middle", "2x5x$T", "dims [0, 2]", "2x3x5x$T"));
  cases.push_back(converted("broadcast", "same", "3x1x$T", "dims [0, 1]", "3x1x$T"));

  for (const char *dims : {"[0]", "[1]", "[0, 1]", "[]"})
    cases.push_back(movement("reverse", std::string("dims_") + dims, {{"3x5x$T"}},
                             std::string("%x0 dims ") + dims + " : tensor<3x5x$T>", "3x5x$T"));
}

static void addCutting(Cases &cases) {
  cases.push_back(
      inferred("slice", "middle", "4x7x$T", "starts [1, 2] limits [3, 6] strides [1, 1]", "2x4x$T"));
  cases.push_back(
      inferred("slice", "strided", "4x7x$T", "starts [0, 1] limits [-1, 7] strides [3, 2]", "2x3x$T"));
  cases.push_back(inferred("slice", "one", "4x7x$T", "starts [3, 6] limits [4, 7] strides [1, 5]", "1x1x$T"));

  cases.push_back(inferred("pad", "around", "2x3x$T", "low [1, 0] high [0, 2] interior [0, 0]", "3x5x$T"));
  cases.push_back(inferred("pad", "between", "2x3x$T", "low [0, 1] high [1, 1] interior [2, 1]", "5x7x$T"));
  cases.push_back(
      inferred("pad", "value", "3x$T", "low [2] high [1] interior [0] {value = 1.5 : f64}", "6x$T"));

  cases.push_back(movement(
      "concat", "rows", {{"2x3x$T"}, {"1x3x$T"}, {"4x3x$T"}},
      "%x0, %x1, %x2 dim 0 : (tensor<2x3x$T>, tensor<1x3x$T>, tensor<4x3x$T>) -> tensor<7x3x$T>", "7x3x$T"));
  cases.push_back(movement("concat", "columns", {{"2x3x$T"}, {"2x1x$T"}},
                           "%x0, %x1 dim 1 : (tensor<2x3x$T>, tensor<2x1x$T>) -> tensor<2x4x$T>", "2x4x$T"));
  cases.push_back(
      movement("concat", "one", {{"5x$T"}}, "%x0 dim 0 : (tensor<5x$T>) -> tensor<5x$T>", "5x$T"));
  cases.push_back(movement("concat", "with_itself", {{"5x$T"}},
                           "%x0, %x0 dim 0 : (tensor<5x$T>, tensor<5x$T>) -> tensor<10x$T>", "10x$T"));
}

void addShapeCases(Cases &cases) {
  addViews(cases);
  addCutting(cases);
}

//===----------------------------------------------------------------------===//
// Addresses that are data
//===----------------------------------------------------------------------===//

static Case gather(const std::string &name, const std::string &from, Input indices, const std::string &dim,
                   const std::string &to) {
  return movement(
      "gather", name, {{from}, indices},
      "%x0, %x1 dim " + dim + " : (" + tensor(from) + ", " + tensor(indices.type) + ") -> " + tensor(to), to);
}

static Case scatterAdd(const std::string &name, const std::string &init, Input indices,
                       const std::string &updates, const std::string &dim) {
  return movement("scatter_add", name, {{init}, indices, {updates}},
                  "%x0, %x1, %x2 dim " + dim + " : (" + tensor(init) + ", " + tensor(indices.type) + ", " +
                      tensor(updates) + ") -> " + tensor(init),
                  init);
}

static Case dynamicSlice(const std::string &name, Input start) {
  return movement("dynamic_slice", name, {{"4x5x$T"}, start},
                  "%x0, %x1 sizes [2, -1] : (tensor<4x5x$T>, " + tensor(start.type) + ") -> tensor<2x5x$T>",
                  "2x5x$T");
}

static Case dynamicUpdateSlice(const std::string &name, Input start) {
  return movement("dynamic_update_slice", name, {{"4x5x$T"}, {"2x3x$T"}, start},
                  "%x0, %x1, %x2 : (tensor<4x5x$T>, tensor<2x3x$T>, " + tensor(start.type) +
                      ") -> tensor<4x5x$T>",
                  "4x5x$T");
}

void addIndexedCases(Cases &cases) {
  cases.push_back(gather("rows", "4x3x$T", {"5xi32", 0, 3}, "0", "5x3x$T"));
  cases.push_back(gather("columns", "2x4x$T", {"3xi64", 0, 3}, "1", "2x3x$T"));
  cases.push_back(gather("out_of_range", "4x3x$T", {"4xi32", 0, 0, {-1, 4, 2, -100}}, "0", "4x3x$T"));
  cases.push_back(gather("matrix_of_indices", "4x3x$T", {"2x3xi64", 0, 3}, "0", "2x3x3x$T"));
  cases.push_back(gather("scalar_index", "4x3x$T", {"i32", 2, 2}, "0", "3x$T"));

  cases.push_back(scatterAdd("rows", "4x3x$T", {"5xi32", 0, 3}, "5x3x$T", "0"));
  cases.push_back(scatterAdd("all_equal", "4x3x$T", {"5xi64", 2, 2}, "5x3x$T", "0"));
  cases.push_back(scatterAdd("columns", "2x4x$T", {"3xi32", 0, 3}, "2x3x$T", "1"));
  cases.push_back(scatterAdd("out_of_range", "4x3x$T", {"4xi32", 0, 0, {-1, 4, 2, 2}}, "4x3x$T", "0"));
  cases.push_back(scatterAdd("matrix_of_indices", "4x3x$T", {"2x2xi32", 0, 3}, "2x2x3x$T", "0"));

  cases.push_back(dynamicSlice("inside", {"2xi32", 0, 0, {1, 0}}));
  cases.push_back(dynamicSlice("clamped", {"2xi64", 0, 0, {9, -3}}));
  cases.push_back(dynamicSlice("whole_extent_beyond", {"2xi32", 0, 0, {1, 3}}));
  cases.push_back(dynamicUpdateSlice("inside", {"2xi32", 0, 0, {1, 2}}));
  cases.push_back(dynamicUpdateSlice("clamped", {"2xi64", 0, 0, {-9, 7}}));
}

} // namespace gpuc::gradients
