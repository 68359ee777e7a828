//===- ConvCases.cpp - Convolution and pooling -------------------------------===//

#include "test/gradients/Registry.h"

#include "llvm/ADT/StringExtras.h"

namespace gpuc::gradients {

/// "2x3x5x4", a shape of (N, C, H, W), as one of (N, H, W, C).
static std::string channelsLast(const std::string &shape) {
  llvm::SmallVector<llvm::StringRef> extents;
  llvm::StringRef(shape).split(extents, 'x');
  return llvm::join(llvm::ArrayRef<llvm::StringRef>{extents[0], extents[2], extents[3], extents[1]}, "x");
}

//===----------------------------------------------------------------------===//
// Convolution
//===----------------------------------------------------------------------===//

namespace {
/// Shapes of conv2d without their element type, "2x3x7x5".
struct Shapes {
  std::string name, input, filter, output, numbers;
};
} // namespace

static Case binary(const std::string &op, const std::string &name, const std::string &lhs,
                   const std::string &rhs, const std::string &result, const std::string &numbers,
                   Derivatives derivatives) {
  std::string body = "%y = gpuc." + op + " %x0, %x1 " + numbers + " : (" + tensor(real(lhs)) + ", " +
                     tensor(real(rhs)) + ") -> " + tensor(real(result));
  return {"gpuc." + op, name, {{real(lhs)}, {real(rhs)}}, body, {{"%y", real(result)}}, derivatives};
}

/// All three convolutions over the same shapes.
static void addConvolutions(Cases &cases, const Shapes &s, Derivatives derivatives = Derivatives::second) {
  cases.push_back(binary("conv2d", s.name, s.input, s.filter, s.output, s.numbers, derivatives));
  cases.push_back(
      binary("conv2d_input_gradient", s.name, s.output, s.filter, s.input, s.numbers, derivatives));
  cases.push_back(
      binary("conv2d_filter_gradient", s.name, s.output, s.input, s.filter, s.numbers, derivatives));
}

static Shapes channelsLast(const Shapes &s) {
  return {s.name + "_channels_last", channelsLast(s.input), channelsLast(s.filter), channelsLast(s.output),
          s.numbers + " channels_last"};
}

static void addConvolutions(Cases &cases) {
  addConvolutions(cases, {"plain", "2x3x5x4", "2x3x3x2", "2x2x3x3", ""});
  addConvolutions(cases, {"same", "1x2x4x5", "3x2x3x3", "1x3x4x5", "padding [1, 1, 1, 1]"});
  addConvolutions(cases, {"extent_1", "1x1x1x1", "1x1x1x1", "1x1x1x1", ""});
  addConvolutions(cases, {"whole_image", "2x2x3x4", "3x2x3x4", "2x3x1x1", ""});
  addConvolutions(cases, {"one_pixel", "5x3x1x1", "4x3x1x1", "5x4x1x1", "strides [2, 3]"});
  addConvolutions(cases, {"one_dimension", "2x3x1x7", "2x3x1x3", "2x2x1x7", "padding [0, 0, 1, 1]"});
  // (7 + 1 + 0 - 2) / 2 + 1 = 4, (6 + 0 + 2 - 3) / 3 + 1 = 2, both rounded down.
  addConvolutions(cases, {"strides", "1x2x7x6", "2x2x2x3", "1x2x4x2", "strides [2, 3] padding [1, 0, 0, 2]"});
  // The filter spans 5 rows; 3 rows of padding are more than half of them.
  addConvolutions(cases,
                  {"dilation", "1x2x4x5", "2x2x3x2", "1x2x4x4", "padding [3, 1, 0, 1] dilation [2, 2]"});
  // 3 + 4 + 5 - 1 = 11 windows down, most of which miss the image.
  addConvolutions(cases, {"wide_padding", "1x1x3x2", "2x1x2x2", "1x2x11x3", "padding [4, 5, 2, 0]"});
  addConvolutions(cases, {"groups", "1x4x3x3", "6x2x2x2", "1x6x2x2", "groups 2"});
  addConvolutions(cases, {"depthwise", "2x3x4x4", "3x1x3x3", "2x3x4x4", "padding [1, 1, 1, 1] groups 3"});
  addConvolutions(cases, {"depthwise_multiplied", "1x2x3x4", "4x1x2x2", "1x4x2x3", "groups 2"});
  const Shapes allNumbers = {"all_numbers", "2x4x7x8", "4x2x3x2", "2x4x3x4",
                             "strides [3, 2] padding [2, 1, 0, 1] dilation [1, 2] groups 2"};
  addConvolutions(cases, allNumbers);
  addConvolutions(cases, channelsLast(allNumbers));
  // More than one tile and block of everything.
  addConvolutions(cases, {"large", "3x37x13x11", "70x37x3x3", "3x70x13x11", "padding [1, 1, 1, 1]"},
                  Derivatives::none);
  addConvolutions(cases, {"pointwise", "2x70x9x9", "90x70x1x1", "2x90x9x9", ""}, Derivatives::none);
  addConvolutions(cases, {"pointwise_strided", "2x70x9x9", "20x70x1x1", "2x20x5x5", "strides [2, 2]"},
                  Derivatives::none);
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

namespace {
struct Pooled {
  std::string name, image, pooled, numbers;
  std::string index = "i64"; ///< The type of max pooling's indices.
  std::string indices() const { return pooled + "x" + index; }
};
} // namespace

static Case maxPool(const Pooled &p, std::vector<double> values = {},
                    Derivatives derivatives = Derivatives::second) {
  std::string types =
      "(" + tensor(real(p.image)) + ") -> (" + tensor(real(p.pooled)) + ", " + tensor(p.indices()) + ")";
  std::string body = "%m, %i = gpuc.max_pool2d %x0 " + p.numbers + " : " + types + "\n";
  // Squared, so that the second derivative is not nothing.
  body += "%y = gpuc.mul %m, %m : " + tensor(real(p.pooled));
  return {"gpuc.max_pool2d",
          p.name,
          {{real(p.image), -1, 1, std::move(values)}},
          body,
          {{"%y", real(p.pooled)}, {"%i", p.indices()}},
          derivatives};
}

/// The gradient and the gather by the indices that max_pool2d finds in %x1, which is positive: the magnitudes
/// of the inputs, from which the bound comes, then choose the same.
static void addChosen(Cases &cases, const Pooled &p, Derivatives derivatives = Derivatives::second) {
  std::string pool = "%v, %i = gpuc.max_pool2d %x1 " + p.numbers + " : (" + tensor(real(p.image)) + ") -> (" +
                     tensor(real(p.pooled)) + ", " + tensor(p.indices()) + ")\n";
  auto add = [&](const std::string &op, const std::string &from, const std::string &to) {
    std::string body = pool + "%m = gpuc." + op + " %x0, %i " + p.numbers + " : (" + tensor(real(from)) +
                       ", " + tensor(p.indices()) + ") -> " + tensor(real(to)) + "\n";
    body += "%y = gpuc.mul %m, %m : " + tensor(real(to));
    cases.push_back({"gpuc." + op,
                     p.name,
                     {{real(from)}, {real(p.image), 0.1, 1, {}, /*differentiate=*/false}},
                     body,
                     {{"%y", real(to)}},
                     derivatives});
  };
  add("max_pool2d_gradient", p.pooled, p.image);
  add("max_pool2d_gather", p.image, p.pooled);
}

/// The same with indices that are places in a window.
static Pooled narrow(Pooled p, const std::string &index = "ui8") {
  p.name += "_" + index;
  p.index = index;
  return p;
}

static Case average(const std::string &op, const Pooled &p, const std::string &from, const std::string &to) {
  std::string body = "%m = gpuc." + op + " %x0 " + p.numbers + " : (" + tensor(real(from)) + ") -> " +
                     tensor(real(to)) + "\n%y = gpuc.mul %m, %m : " + tensor(real(to));
  return {"gpuc." + op, p.name, {{real(from)}}, body, {{"%y", real(to)}}};
}

static void addAverages(Cases &cases, const Pooled &p) {
  cases.push_back(average("avg_pool2d", p, p.image, p.pooled));
  cases.push_back(average("avg_pool2d_gradient", p, p.pooled, p.image));
}

static Pooled channelsLast(const Pooled &p) {
  return {p.name + "_channels_last", channelsLast(p.image), channelsLast(p.pooled),
          p.numbers + " channels_last", p.index};
}

static void addMaxima(Cases &cases, const Pooled &p, Derivatives derivatives = Derivatives::second) {
  cases.push_back(maxPool(p, {}, derivatives));
  addChosen(cases, p, derivatives);
}

static void addPoolings(Cases &cases) {
  const Pooled undilated[] = {
      {"halves", "2x3x6x8", "2x3x3x4", "window [2, 2] strides [2, 2]"},
      {"odd", "1x2x7x5", "1x2x3x2", "window [2, 2] strides [2, 2]"}, // the last row and column are left out
      {"overlapping", "1x2x5x6", "1x2x3x4", "window [3, 3]"},
      {"resnet", "1x2x7x9", "1x2x4x5", "window [3, 3] strides [2, 2] padding [1, 1, 1, 1]"},
      {"ceil_mode", "1x1x5x6", "1x1x3x3", "window [2, 3] strides [2, 2] padding [0, 1, 0, 1]"},
      {"gaps", "1x1x7x8", "1x1x3x2", "window [1, 2] strides [3, 5]"},
      {"one_side", "1x1x4x3", "1x1x5x3", "window [3, 2] padding [2, 1, 0, 1]"},
      {"extent_1", "2x1x1x1", "2x1x1x1", "window [1, 1]"},
      {"whole_image", "2x3x7x6", "2x3x1x1", "window [7, 6]"},
      {"long_windows", "1x1x12x14", "1x1x3x3", "window [7, 9] strides [3, 3] padding [1, 1, 1, 1]"},
  };
  for (const Pooled &p : undilated) {
    addMaxima(cases, p);
    addMaxima(cases, narrow(p));
    addAverages(cases, p);
    Pooled excluding = {p.name + "_exclude_padding", p.image, p.pooled, p.numbers + " exclude_padding"};
    addAverages(cases, excluding);
    if (p.name != "resnet" && p.name != "one_side")
      continue;
    addMaxima(cases, channelsLast(p));
    addMaxima(cases, narrow(channelsLast(p)));
    addAverages(cases, channelsLast(p));
    addAverages(cases, channelsLast(excluding));
  }
  const Pooled dilated = {"dilation", "1x2x7x9", "1x2x4x3",
                          "window [3, 2] strides [1, 3] padding [1, 0, 0, 1] dilation [2, 3]"};
  addMaxima(cases, dilated);
  addMaxima(cases, narrow(dilated));
  // 256 places are what a byte has room for, and 257 are not.
  const Pooled square = {"square", "1x2x17x18", "1x2x2x3", "window [16, 16]"},
               tall = {"tall", "1x2x258x3", "1x2x2x3", "window [257, 1]"};
  for (const Pooled &p : {narrow(square), narrow(tall, "i32")})
    cases.push_back(maxPool(p, {}, Derivatives::none));
  addMaxima(cases,
            narrow({"larger", "1x1x18x20", "1x1x2x2", "window [17, 16] strides [3, 5] padding [2, 0, 3, 1]"},
                   "i32"));
  // Lanes of a row share windows, which begin before the row, hold places apart, or have places between them.
  const Pooled rows[] = {
      {"vectors", "2x3x9x67", "2x3x4x33", "window [3, 3] strides [2, 2]"},
      {"padded_vectors", "1x2x9x70", "1x2x5x35", "window [3, 3] strides [2, 2] padding [1, 1, 1, 1]"},
      {"vectors_apart", "1x1x8x45", "1x1x4x11", "window [2, 3] strides [2, 4] padding [0, 0, 1, 0]"},
  };
  for (const Pooled &p : rows) {
    addMaxima(cases, p, Derivatives::none);
    addMaxima(cases, narrow(p), Derivatives::none);
    addAverages(cases, p);
  }
  const Pooled dilatedRow = {"dilated_vectors", "1x1x8x45", "1x1x5x11",
                             "window [2, 3] strides [2, 4] padding [1, 1, 3, 2] dilation [1, 3]"};
  addMaxima(cases, dilatedRow, Derivatives::none);
  addMaxima(cases, narrow(dilatedRow), Derivatives::none);
  const Pooled channels = {"channels", "2x67x5x4", "2x67x2x2", "window [3, 2] strides [2, 2]"};
  addMaxima(cases, channelsLast(channels), Derivatives::none);
  addMaxima(cases, narrow(channelsLast(channels)), Derivatives::none);
  addAverages(cases, channelsLast(channels));

  // Of equal ones the first: 1 of (1, 1, 0, 1), and 2 of (2, 1, 2, 2).
  Pooled tie = {"tie", "1x1x2x4", "1x1x1x2", "window [2, 2] strides [2, 2]"};
  for (const Pooled &p : {tie, narrow(tie)}) {
    Case ties = maxPool(p, {1, 1, 2, 1, 0, 1, 2, 2}, Derivatives::convention);
    ties.expected = {2, 0, 4, 0, 0, 0, 0, 0};
    cases.push_back(ties);
  }
  // NaN is the largest, and -∞ is still an element where all others are padding.
  Pooled special = {"special", "1x1x2x4", "1x1x2x2", "window [2, 2] strides [1, 2] padding [0, 1, 0, 1]"};
  for (const Pooled &p : {special, narrow(special)})
    cases.push_back(maxPool(p, {nan, 5, -inf, -inf, nan, inf, -inf, -inf}, Derivatives::none));
}

/// Indices that are not those of a max_pool2d: outside of their own window, or in the padding, they choose
/// nothing.
static void addStrangeIndices(Cases &cases, const std::string &type, std::vector<double> values,
                              const std::string &padding = "") {
  Input indices = {"1x1x2x2x" + type, 0, 0, std::move(values)};
  const std::string image = padding.empty() ? "1x1x4x4x$T" : "1x1x3x3x$T", pooled = "1x1x2x2x$T",
                    chosen = "tensor<1x1x2x2x" + type + ">";
  auto add = [&](const std::string &op, const std::string &from, const std::string &to) {
    cases.push_back({"gpuc." + op,
                     (padding.empty() ? "strange_indices_" : "strange_padded_indices_") + type,
                     {{from}, indices},
                     "%y = gpuc." + op + " %x0, %x1 window [2, 2] strides [2, 2] " + padding + " : (" +
                         tensor(from) + ", " + chosen + ") -> " + tensor(to),
                     {{"%y", to}}});
  };
  add("max_pool2d_gradient", pooled, image);
  add("max_pool2d_gather", image, pooled);
}

void addConvCases(Cases &cases) {
  addConvolutions(cases);
  addPoolings(cases);
  addStrangeIndices(cases, "i64", {0, 2, 5, -1});
  // Places of the first window and of the last lie in the padding; 4 and 255 are behind a window's end.
  addStrangeIndices(cases, "ui8", {0, 1, 255, 3}, "padding [0, 1, 1, 0]");
  addStrangeIndices(cases, "ui8", {2, 4, 2, 1});
}

} // namespace gpuc::gradients
