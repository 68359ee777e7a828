// Kernels with several reductions: each row has the bits that one kernel after another gives, of any length,
// in any type, in place, and tile by tile.
#include "passes/codegen/host/HostLoops.h"
#include "test/passes/codegen/kernel_harness.h"

#include "runtime/base/half.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

using namespace gpuc;
using namespace gpuc::test;

namespace {

std::string tensor(const std::vector<int64_t> &shape, const std::string &element) {
  std::string text = "tensor<";
  for (int64_t extent : shape)
    text += std::to_string(extent) + "x";
  return text + element + ">";
}

/// Which dimensions are folded, and which one is kept.
struct Folded {
  std::string dims, kept;
  Folded(int64_t dim) : dims(std::to_string(dim)), kept(std::to_string(1 - dim)) {}
  Folded(std::string dims, std::string kept) : dims(std::move(dims)), kept(std::move(kept)) {}
};

/// $M is the tensor, $R its rows' shape, $D the dimensions that are folded, $K the one that is kept.
std::string expanded(std::string text, const std::string &matrix, const std::string &row,
                     const Folded &folded) {
  auto replace = [&](const std::string &name, const std::string &by) {
    for (size_t at; (at = text.find(name)) != std::string::npos;)
      text.replace(at, name.size(), by);
  };
  replace("$M", matrix);
  replace("$R", row);
  replace("$D", folded.dims);
  replace("$K", folded.kept);
  return text;
}

const std::string
    kMax = "%max = gpuc.reduce_max %a0 dims [$D] : ($M) -> $R\n",
    kExp = "%spread = gpuc.broadcast %max dims [$K] : $R to $M\n"
           "%less = gpuc.sub %a0, %spread : $M\n%exp = gpuc.exp %less : $M\n",
    kSum = "%sum = gpuc.sum %exp dims [$D] : ($M) -> $R\n",
    kDiv = "%below = gpuc.broadcast %sum dims [$K] : $R to $M\n%out = gpuc.div %exp, %below : $M\n";

/// A matrix whose numbers neither repeat nor add up exactly.
template <typename T> std::vector<T> wild(int64_t count);
template <> std::vector<double> wild(int64_t count) {
  std::vector<double> values(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = std::sin(static_cast<double>(i * i % 977)) * 3;
  return values;
}
template <> std::vector<float> wild(int64_t count) {
  std::vector<double> wide = wild<double>(count);
  return {wide.begin(), wide.end()};
}
template <> std::vector<uint16_t> wild(int64_t count) { // as bf16
  std::vector<uint16_t> values;
  for (double value : wild<double>(count))
    values.push_back(floatToBfloat16(static_cast<float>(value)));
  return values;
}

class RowsTest : public testing::TestWithParam<int> {
protected:
  HostTarget target() { return testTargets()[GetParam()]; }

  /// A softmax of a matrix, of whose dimensions `folded` is the one that is.
  template <typename T>
  void expectTheSameBits(int64_t rows, int64_t length, int64_t folded, const char *element) {
    std::vector<int64_t> shape{rows, length};
    if (folded == 0)
      std::swap(shape[0], shape[1]);
    expectTheSameBits<T>(shape, rows, Folded(folded), element);
  }

  /// By one kernel, and by four.
  template <typename T>
  void expectTheSameBits(const std::vector<int64_t> &shape, int64_t rows, const Folded &folded,
                         const char *element) {
    std::string matrix = tensor(shape, element), row = tensor({rows}, element);
    auto text = [&](const std::string &body) { return expanded(body, matrix, row, folded); };
    Buffer x =
        Buffer::of(wild<T>(std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>())));
    TestKernel whole({matrix}, {matrix, row, row},
                     text(kMax + kExp + kSum + kDiv + "gpuc.yield %out, %max, %sum : $M, $R, $R"), target());
    SCOPED_TRACE(matrix);
    std::vector<Buffer> found = whole.run({x});

    Buffer max = TestKernel({matrix}, {row}, text(kMax + "gpuc.yield %max : $R"), target()).run({x})[0];
    auto argument = [&](std::string body, const std::string &name) { // a value that came before
      for (size_t at; (at = body.find("%" + name + " ")) != std::string::npos ||
                      (at = body.find("%" + name + ",")) != std::string::npos;)
        body.replace(at, name.size() + 1, "%a1");
      return body;
    };
    Buffer exp =
        TestKernel({matrix, row}, {matrix}, text(argument(kExp, "max") + "gpuc.yield %exp : $M"), target())
            .run({x, max})[0];
    std::string sums = kSum;
    sums.replace(sums.find("%exp"), 4, "%a0");
    Buffer sum = TestKernel({matrix}, {row}, text(sums + "gpuc.yield %sum : $R"), target()).run({exp})[0];
    std::string quotients = argument(kDiv, "sum");
    quotients.replace(quotients.find("%exp"), 4, "%a0");
    Buffer out = TestKernel({matrix, row}, {matrix}, text(quotients + "gpuc.yield %out : $M"), target())
                     .run({exp, sum})[0];
    std::string what = matrix + " along " + folded.dims;
    EXPECT_EQ(found[0].values<T>(), out.values<T>()) << what;
    EXPECT_EQ(found[1].values<T>(), max.values<T>()) << what;
    EXPECT_EQ(found[2].values<T>(), sum.values<T>()) << what;
  }
};
INSTANTIATE_TEST_SUITE_P(Targets, RowsTest, testing::Range(0, int(testTargets().size())),
                         [](auto info) { return info.param == 0 ? "v3" : "v4"; });

/// 8192 f32 are kept from sweep to sweep; what is longer is computed again.
TEST_P(RowsTest, HaveTheBitsOfOneKernelAfterAnother) {
  for (int64_t length : {1, 2, 7, 8, 9, 16, 17, 33, 64, 65, 1000, 8192, 8200})
    expectTheSameBits<float>(length > 1000 ? 2 : 5, length, 1, "f32");
  for (int64_t length : {1, 7, 8, 9, 17, 1000, 4100})
    expectTheSameBits<double>(3, length, 1, "f64");
  for (int64_t length : {1, 7, 17, 1000})
    expectTheSameBits<uint16_t>(3, length, 1, "bf16");
}

/// As a batch norm's: pieces of rows lie apart. 7 x 1,171 f32 are kept, 8 x 1,171 are too long.
TEST_P(RowsTest, MayHaveSeveralDimensions) {
  const Folded folded("0, 2", "1");
  for (auto [images, length] : {std::pair<int64_t, int64_t>{2, 5}, {3, 49}, {5, 196}, {7, 1171}, {8, 1171}})
    expectTheSameBits<float>({images, 3, length}, 3, folded, "f32");
  expectTheSameBits<double>({5, 2, 49}, 2, folded, "f64");
  expectTheSameBits<uint16_t>({5, 2, 49}, 2, folded, "bf16");
  expectTheSameBits<float>({3, 4, 5, 17}, 4, Folded("0, 2, 3", "1"), "f32");
}

TEST_P(RowsTest, MayLieAcrossTheLanes) {
  for (int64_t rows : {1, 3, 17, 70})
    for (int64_t length : {1, 5, 100})
      expectTheSameBits<float>(rows, length, 0, "f32");
}

/// By sweep, the names of the ops whose results are kept of $M's rows.
std::vector<std::vector<std::string>> keptOf(const std::string &body, std::vector<int64_t> shape,
                                             const Folded &folded) {
  std::string matrix = tensor(shape, "f32"), row = tensor({shape[std::stoi(folded.kept)]}, "f32");
  KernelText text({matrix}, {matrix}, expanded(body + "gpuc.yield %out : $M", matrix, row, folded));
  std::vector<std::vector<std::string>> names;
  for (const auto &sweep : codegen::keptValues(codegen::Kernel(text.block()))) {
    names.emplace_back();
    for (mlir::Value value : sweep)
      names.back().push_back(value.getDefiningOp()->getName().stripDialect().str());
  }
  return names;
}
using Names = std::vector<std::vector<std::string>>;

/// What the second sweep computes is kept for the third one: exp, and nothing that is cheap; nothing that is
/// too long, or lies across the lanes.
TEST(KeptValues, AreCostlyAndFit) {
  auto kept = [](std::vector<int64_t> shape, const Folded &folded) {
    return keptOf(kMax + kExp + kSum + kDiv, std::move(shape), folded);
  };
  const Folded rows(1), columns(0), channels("0, 2", "1");
  EXPECT_EQ(kept({4, 100}, rows), (Names{{}, {"exp"}}));
  EXPECT_EQ(kept({4, 16384}, rows), (Names{{}, {"exp"}})) << "64 KiB";
  EXPECT_EQ(kept({4, 16385}, rows), (Names{{}, {}}));
  EXPECT_EQ(kept({8, 4, 2048}, channels), (Names{{}, {"exp"}}));
  EXPECT_EQ(kept({8, 4, 2049}, channels), (Names{{}, {}}));
  EXPECT_EQ(kept({100, 4}, columns), (Names{{}, {}}));
}

/// As behind gelu: of erf, exp, their sum and its product with the row, of which nothing else is needed
/// again, the product; but exp too where the last sweep needs it once more, and not what only that sweep
/// computes.
TEST(KeptValues, AreTheLastOfWhatNothingElseNeeds) {
  const std::string product = "%e = gpuc.exp %a0 : $M\n%f = gpuc.erf %a0 : $M\n%both = gpuc.add %e, %f : $M\n"
                              "%y = gpuc.mul %both, %a0 : $M\n",
                    sum = "%sum = gpuc.sum %y dims [$D] : ($M) -> $R\n"
                          "%below = gpuc.broadcast %sum dims [$K] : $R to $M\n",
                    quotient = "%out = gpuc.div %y, %below : $M\n",
                    withExp = "%more = gpuc.add %y, %e : $M\n%out = gpuc.div %more, %below : $M\n";
  EXPECT_EQ(keptOf(product + sum + quotient, {4, 100}, Folded(1)), (Names{{"mul"}}));
  EXPECT_EQ(keptOf(product + sum + withExp, {4, 100}, Folded(1)), (Names{{"exp", "mul"}}));
  EXPECT_EQ(keptOf(product + sum + quotient, {4, 16384}, Folded(1)), (Names{{"mul"}})) << "one row of 64 KiB";
}

/// Reductions that share a sweep fold as if they were alone, though an index is as wide as two f32.
TEST_P(RowsTest, ReductionsSideBySideKeepTheirBits) {
  for (int64_t length : {1, 7, 100, 1111}) {
    std::string matrix = tensor({4, length}, "f32"), row = tensor({4}, "f32"), index = tensor({4}, "i64");
    std::string reduce = " %a0 dims [1] : (" + matrix + ") -> " + row + "\n",
                square = "%q = gpuc.mul %a0, %a0 : " + matrix + "\n%b = gpuc.sum %q dims [1] : (" + matrix +
                         ") -> " + row + "\n",
                argmax = "%c = gpuc.argmax %a0 dim 1 : (" + matrix + ") -> " + index + "\n";
    std::vector<Buffer> x{Buffer::of(wild<float>(4 * length))};
    TestKernel both({matrix}, {row, row, index},
                    "%a = gpuc.sum" + reduce + square + argmax + "gpuc.yield %a, %b, %c : " + row + ", " +
                        row + ", " + index,
                    target());
    TestKernel sum({matrix}, {row}, "%a = gpuc.sum" + reduce + "gpuc.yield %a : " + row, target());
    TestKernel squares({matrix}, {row}, square + "gpuc.yield %b : " + row, target());
    TestKernel first({matrix}, {index}, argmax + "gpuc.yield %c : " + index, target());
    std::vector<Buffer> found = both.run(x);
    EXPECT_EQ(found[2].values<int64_t>(), first.run(x)[0].values<int64_t>()) << length;
    EXPECT_EQ(found[0].values<float>(), sum.run(x)[0].values<float>()) << length;
    EXPECT_EQ(found[1].values<float>(), squares.run(x)[0].values<float>()) << length;
  }
}

/// Columns that are folded four vectors at a time have the bits of those that are folded alone.
TEST_P(RowsTest, ColumnsSideBySideKeepTheirBits) {
  const int64_t rows = 100;
  for (int64_t columns : {2, 16, 64, 65, 77, 128, 200}) {
    std::vector<float> values = wild<float>(rows * columns), weights = wild<float>(columns);
    auto sums = [&](const std::vector<float> &x, const std::vector<float> &w, int64_t width) {
      std::string matrix = tensor({rows, width}, "f32"), row = tensor({width}, "f32");
      TestKernel kernel({matrix, row}, {row, row},
                        "%0 = gpuc.exp %a0 : " + matrix + "\n%1 = gpuc.sum %0 dims [0] : (" + matrix +
                            ") -> " + row + "\n%2 = gpuc.reduce_max %a0 dims [0] : (" + matrix + ") -> " +
                            row + "\n%3 = gpuc.mul %1, %a1 : " + row + "\ngpuc.yield %3, %2 : " + row + ", " +
                            row,
                        target());
      std::vector<Buffer> found = kernel.run({Buffer::of(x), Buffer::of(w)});
      return std::make_pair(found[0].values<float>(), found[1].values<float>());
    };
    auto [together, largest] = sums(values, weights, columns);
    for (int64_t column = 0; column < columns; column += 13) {
      std::vector<float> one;
      for (int64_t i = 0; i < rows; ++i)
        one.insert(one.end(), 2, values[i * columns + column]); // twice: a single column would be a row
      auto [alone, own] = sums(one, {weights[column], weights[column]}, 2);
      EXPECT_EQ(together[column], alone[0]) << "column " << column << " of " << columns;
      EXPECT_EQ(largest[column], own[0]) << "column " << column << " of " << columns;
    }
  }
}

/// What a sweep computes and sums up it also writes, at each of its positions: along the lanes, in columns
/// side by side and where both dimensions around the one that is kept are folded; in the place of what it
/// reads, too.
TEST_P(RowsTest, ASweepWritesWhatItSumsUp) {
  const auto check = [&](std::vector<int64_t> shape, const std::string &dims, int64_t sums) {
    const std::string whole = tensor(shape, "f32"), left = tensor({sums}, "f32");
    const std::string body = "%0 = gpuc.exp %a0 : " + whole + "\n%1 = gpuc.sum %0 dims " + dims + " : (" +
                             whole + ") -> " + left + "\n";
    TestKernel both({whole}, {whole, left}, body + "gpuc.yield %0, %1 : " + whole + ", " + left, target());
    TestKernel written({whole}, {whole}, "%0 = gpuc.exp %a0 : " + whole + "\ngpuc.yield %0 : " + whole,
                       target());
    TestKernel summed({whole}, {left}, body + "gpuc.yield %1 : " + left, target());
    int64_t elements = 1;
    for (int64_t extent : shape)
      elements *= extent;
    std::vector<Buffer> x{Buffer::of(wild<float>(elements))};
    SCOPED_TRACE(whole + " over " + dims);
    const auto expected = written.run(x)[0].values<float>(), sum = summed.run(x)[0].values<float>();
    std::vector<Buffer> found = both.run(x);
    EXPECT_EQ(found[0].values<float>(), expected);
    EXPECT_EQ(found[1].values<float>(), sum);
    std::vector<Buffer> over = both.runInPlace(x, 0, 0);
    EXPECT_EQ(over[0].values<float>(), expected);
    EXPECT_EQ(over[1].values<float>(), sum);
  };
  for (int64_t extent : {2, 15, 16, 64, 77, 200}) {
    check({5, extent}, "[1]", 5);
    check({70, extent}, "[0]", extent);
    check({3, 5, extent}, "[0, 2]", 5);
  }
}

TEST_P(RowsTest, TilesMayRunInAnyOrder) {
  std::string matrix = tensor({700, 300}, "f32"), row = tensor({700}, "f32");
  TestKernel kernel({matrix}, {matrix, row},
                    expanded(kMax + kExp + kSum + kDiv + "gpuc.yield %out, %sum : $M, $R", matrix, row, 1),
                    target());
  EXPECT_GT(kernel.schedule().tiles, 1);
  std::vector<Buffer> x{Buffer::of(wild<float>(700 * 300))};
  std::vector<Buffer> once = kernel.run(x), scattered = kernel.run(x, true);
  EXPECT_EQ(once[0].values<float>(), scattered[0].values<float>());
  EXPECT_EQ(once[1].values<float>(), scattered[1].values<float>());
}

/// The last sweep reads the operand once more when the sums are known, and a scale for each row: results over
/// either come after that.
TEST_P(RowsTest, UpdateInPlaceWhereTheySaySo) {
  std::string matrix = tensor({7, 33}, "f32"), row = tensor({7}, "f32"), type = matrix + ", " + row;
  TestKernel kernel({matrix, row, matrix}, {matrix, row},
                    expanded("%sum = gpuc.sum %a0 dims [1] : ($M) -> $R\n"
                             "%0 = gpuc.broadcast %sum dims [0] : $R to $M\n"
                             "%1 = gpuc.broadcast %a1 dims [0] : $R to $M\n"
                             "%2 = gpuc.reverse %a2 dims [1] : $M\n"
                             "%3 = gpuc.mul %0, %1 : $M\n%4 = gpuc.add %a0, %3 : $M\n"
                             "%5 = gpuc.add %4, %2 : $M\n%6 = gpuc.neg %sum : $R\n"
                             "gpuc.yield %5, %6 : $M, $R",
                             matrix, row, 1),
                    target());
  mlir::Block &block = kernel.text().block();
  EXPECT_TRUE(canUpdateInPlace(block, 0, 0));
  EXPECT_TRUE(canUpdateInPlace(block, 1, 1));
  EXPECT_FALSE(canUpdateInPlace(block, 2, 0)); // read at another index
  EXPECT_FALSE(canUpdateInPlace(block, 0, 1)); // another shape
  std::vector<Buffer> arguments{Buffer::of(wild<float>(231)), Buffer::of(wild<float>(7)),
                                Buffer::of(wild<float>(231))};
  auto apart = kernel.run(arguments);
  for (unsigned number : {0, 1}) {
    std::vector<Buffer> copies{Buffer::of(arguments[0].values<float>()),
                               Buffer::of(arguments[1].values<float>()), arguments[2]};
    auto over = kernel.runInPlace(copies, number, number);
    EXPECT_EQ(over[0].values<float>(), apart[0].values<float>()) << "result " << number << " in place";
    EXPECT_EQ(over[1].values<float>(), apart[1].values<float>()) << "result " << number << " in place";
  }
}

bool isKernel(const std::vector<std::string> &arguments, const std::vector<std::string> &results,
              const std::string &body) {
  KernelText text(arguments, results, body);
  return succeeded(checkKernel(text.block()));
}

TEST(CheckRows, TakesWhatStaysInItsRow) {
  const std::string matrix = tensor({4, 4}, "f32"), row = tensor({4}, "f32");
  auto check = [&](const std::string &body) {
    std::string results = body.substr(body.find("gpuc.yield"));
    bool whole = results.find("$M") != std::string::npos;
    return isKernel({matrix, row}, {whole ? matrix : row}, expanded(body, matrix, row, 1));
  };
  const std::string sum = "%s = gpuc.sum %a0 dims [1] : ($M) -> $R\n";
  EXPECT_TRUE(check(sum + "%0 = gpuc.exp %s : $R\ngpuc.yield %0 : $R"));
  EXPECT_TRUE(check(sum + "%0 = gpuc.broadcast %s dims [0] : $R to $M\ngpuc.yield %0 : $M"));
  EXPECT_TRUE(check(sum + "%0 = gpuc.broadcast %s dims [0] : $R to $M\n%1 = gpuc.sub %a0, %0 : $M\n"
                          "%2 = gpuc.reverse %1 dims [1] : $M\ngpuc.yield %2 : $M"))
      << "from the row's other end";
  EXPECT_FALSE(check(sum + "%0 = gpuc.broadcast %s dims [1] : $R to $M\ngpuc.yield %0 : $M"))
      << "each column would need another row's sum";
  EXPECT_FALSE(check(sum + "%0 = gpuc.reverse %s dims [0] : $R\ngpuc.yield %0 : $R"));
  EXPECT_FALSE(
      check(sum + "%t = gpuc.sum %a0 dims [0] : ($M) -> $R\n%0 = gpuc.add %s, %t : $R\ngpuc.yield %0 : $R"))
      << "rows and columns";
  EXPECT_FALSE(check(sum + "%0 = gpuc.cumsum %a1 dim 0 : $R\n%1 = gpuc.add %s, %0 : $R\ngpuc.yield %1 : $R"));
  EXPECT_FALSE(isKernel({matrix}, {"tensor<4xf64>", row},
                        expanded(sum + "%0 = gpuc.cast %a0 : $M to tensor<4x4xf64>\n"
                                       "%1 = gpuc.sum %0 dims [1] : (tensor<4x4xf64>) -> tensor<4xf64>\n"
                                       "gpuc.yield %1, %s : tensor<4xf64>, $R",
                                 matrix, row, 1)))
      << "f64 are folded in half as many lanes";
  EXPECT_FALSE(isKernel({matrix}, {"tensor<4xf32>", "tensor<2x2xf32>"},
                        expanded(sum + "%0 = gpuc.constant 1.0 : tensor<2x2xf32>\n"
                                       "gpuc.yield %s, %0 : $R, tensor<2x2xf32>",
                                 matrix, row, 1)))
      << "a result of a third shape";
}

} // namespace
