// A concat's operands and a pad's surroundings each have loops of their own where whole vectors lie in them.
// Which loops there are is compared with ranges counted by hand, what they compute with the op's definition.
#include "passes/codegen/Ranges.h"
#include "passes/codegen/host/HostKernel.h"
#include "test/passes/codegen/kernel_harness.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/STLExtras.h"

#include <gtest/gtest.h>
#include <numeric>

using namespace gpuc;
using namespace gpuc::test;

namespace {

constexpr int64_t kRows = 3;

std::string tensorOf(int64_t columns) {
  return "tensor<" + std::to_string(kRows) + "x" + std::to_string(columns) + "xf32>";
}

/// Of as many channels.
std::string imagesOf(int64_t channels) { return "tensor<2x" + std::to_string(channels) + "x24xf32>"; }

/// The operands, each times itself, side by side in rows of their summed widths, or images of their channels.
struct Squares {
  explicit Squares(std::vector<int64_t> widths, std::string (*typeOf)(int64_t) = tensorOf)
      : widths(std::move(widths)) {
    int64_t sum = std::accumulate(this->widths.begin(), this->widths.end(), int64_t(0));
    result = typeOf(sum);
    std::string names, types;
    for (auto [number, width] : llvm::enumerate(this->widths)) {
      std::string n = std::to_string(number), separator = number ? ", " : "";
      arguments.push_back(typeOf(width));
      body += "%s" + n + " = gpuc.mul %a" + n + ", %a" + n + " : " + typeOf(width) + "\n";
      names += separator + "%s" + n;
      types += separator + typeOf(width);
    }
    body +=
        "%c = gpuc.concat " + names + " dim 1 : (" + types + ") -> " + result + "\ngpuc.yield %c : " + result;
  }
  std::vector<int64_t> widths;
  std::vector<std::string> arguments;
  std::string result, body;
};

std::string rangesOf(KernelText text, int64_t lanes) {
  codegen::Kernel kernel(text.block());
  std::string found;
  for (codegen::Range range : codegen::rangesAlong(kernel, kernel.groups.size() - 1, lanes))
    found += (found.empty() ? "" : " ") + std::to_string(range.low) + "-" + std::to_string(range.high);
  return found;
}

std::string rangesOf(const Squares &squares, int64_t lanes = 16) {
  return rangesOf(KernelText(squares.arguments, {squares.result}, squares.body), lanes);
}

std::string rangesOfPad(int64_t columns, int64_t low, int64_t high) {
  std::string from = tensorOf(columns), to = tensorOf(low + columns + high);
  return rangesOf(KernelText({from}, {to},
                             "%p = gpuc.pad %a0 low [0, " + std::to_string(low) + "] high [0, " +
                                 std::to_string(high) + "] interior [0, 0] : (" + from + ") -> " + to +
                                 "\ngpuc.yield %p : " + to),
                  16);
}

TEST(RangesTest, OperandsOfWholeVectorsHaveOneEach) {
  EXPECT_EQ(rangesOf(Squares({64, 64, 64, 64})), "0-64 64-128 128-192 192-256");
  EXPECT_EQ(rangesOf(Squares({16, 40})), "0-16 16-56"); // the last may end within a vector
  EXPECT_EQ(rangesOf(Squares({64, 0, 64})), "0-64 64-128");
}

TEST(RangesTest, VectorsThatSeeSeveralOperandsHaveOneInBetween) {
  EXPECT_EQ(rangesOf(Squares({40, 24})), "0-32 32-48 48-64"); // 40 is in the vector from 32 on
  EXPECT_EQ(rangesOf(Squares({8, 8, 48})), "0-16 16-64");
  EXPECT_EQ(rangesOf(Squares({8, 8, 8})), "0-16 16-24");
  EXPECT_EQ(rangesOf(Squares({40, 24}), 8), "0-40 40-64");
}

TEST(RangesTest, PadsHaveThreeAtMost) {
  EXPECT_EQ(rangesOfPad(64, 32, 16), "0-32 32-96 96-112");
  EXPECT_EQ(rangesOfPad(62, 1, 1), "0-16 16-48 48-64");
  EXPECT_EQ(rangesOfPad(64, 0, 16), "0-64 64-80");
}

TEST(RangesTest, WithoutGainThereIsOne) {
  EXPECT_EQ(rangesOf(Squares({8, 12, 10})), "0-30"); // no vector lies in one operand
  EXPECT_EQ(rangesOfPad(28, 1, 1), "0-30");
  EXPECT_EQ(rangesOf(Squares({64})), "0-64");
  EXPECT_EQ(rangesOf(Squares(std::vector<int64_t>(8, 16))),
            "0-16 16-32 32-48 48-64 64-80 80-96 96-112 112-128");
  EXPECT_EQ(rangesOf(Squares(std::vector<int64_t>(9, 16))), "0-144"); // too much code
}

/// How often an op stands in the kernel as emitted, for vectors of 64 bytes.
class EmittedKernel {
public:
  explicit EmittedKernel(const Squares &squares) {
    KernelText text(squares.arguments, {squares.result}, squares.body);
    context_.loadDialect<mlir::arith::ArithDialect, mlir::func::FuncDialect, mlir::LLVM::LLVMDialect,
                         mlir::math::MathDialect, mlir::scf::SCFDialect, mlir::vector::VectorDialect>();
    module_ = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context_));
    codegen::emitHostKernel(*module_, "kernel", text.block(), *HostTarget::parse("x86-64-v4"));
  }
  template <typename Op> int count() {
    int found = 0;
    module_->walk([&](Op) { ++found; });
    return found;
  }

private:
  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

TEST(RangesTest, ARangeComputesOneOperandAndChoosesNothing) {
  EmittedKernel kernel(Squares({64, 64, 64, 64}));
  EXPECT_EQ(kernel.count<mlir::arith::MulFOp>(), 4); // one in each loop
  // Of pointers, of elements, and of the numbers of rows: how many, in a tile, and two strides.
  EXPECT_EQ(kernel.count<mlir::LLVM::LoadOp>(), 5 + 4 + 4);
  EXPECT_EQ(kernel.count<mlir::scf::ForOp>(), 2 + 4); // tiles, rows, ranges
  EXPECT_EQ(kernel.count<mlir::arith::SelectOp>(), 0);
  EXPECT_EQ(kernel.count<mlir::LLVM::MaskedLoadOp>(), 0);
  EXPECT_EQ(kernel.count<mlir::scf::IfOp>(), 0); // no tail
}

TEST(RangesTest, AVectorThatSeesTwoOperandsChoosesOnce) {
  EmittedKernel kernel(Squares({40, 24})); // 0-32, 32-48 of both, 48-64
  EXPECT_EQ(kernel.count<mlir::arith::MulFOp>(), 1 + 2 + 1);
  EXPECT_EQ(kernel.count<mlir::arith::SelectOp>(), 1);
  EXPECT_EQ(kernel.count<mlir::LLVM::MaskedLoadOp>(), 2);
}

TEST(RangesTest, WhatIsNotSplitChoosesInEachLane) {
  EmittedKernel kernel(Squares({8, 12, 10})); // one loop and its tail
  EXPECT_EQ(kernel.count<mlir::arith::MulFOp>(), 2 * 3);
  EXPECT_EQ(kernel.count<mlir::arith::SelectOp>(), 2 * 2);
}

TEST(RangesTest, ARowThatLiesInOneOperandComputesNoOther) {
  EmittedKernel kernel(Squares({5, 1, 7}, imagesOf));
  EXPECT_EQ(kernel.count<mlir::arith::MulFOp>(), 2 * 3); // a vector and the tail
  EXPECT_EQ(kernel.count<mlir::scf::IfOp>(), 3 + 3);     // whether the row is there, whether there is a tail
  EXPECT_EQ(kernel.count<mlir::arith::SelectOp>(), 0);
  EmittedKernel longer(Squares(std::vector<int64_t>(9, 2), imagesOf)); // too much code
  EXPECT_EQ(longer.count<mlir::scf::IfOp>(), 1);
}

//===----------------------------------------------------------------------===//
// What they compute
//===----------------------------------------------------------------------===//

class RangesValueTest : public testing::TestWithParam<int> {
protected:
  HostTarget target() { return testTargets()[GetParam()]; }
};
INSTANTIATE_TEST_SUITE_P(Targets, RangesValueTest, testing::Range(0, int(testTargets().size())),
                         [](auto info) { return info.param == 0 ? "v3" : "v4"; });

/// Small integers, another row of them for each `seed`: their squares are exact.
std::vector<float> numbers(int64_t columns, int64_t seed) {
  std::vector<float> values(kRows * columns);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((i * 7 + seed * 1000) % 4093);
  return values;
}

TEST_P(RangesValueTest, EachElementIsThatOfItsOperandWhereverTilesAreCut) {
  std::vector<std::vector<int64_t>> cases{
      {64, 64, 64, 64}, {16, 40},  {40, 24},        {8, 8, 48},
      {3, 61, 1, 70},   {1, 1, 1}, {48, 0, 17, 16}, {200'000, 100'003, 50'000}};
  for (const std::vector<int64_t> &widths : cases) {
    Squares squares(widths);
    TestKernel kernel(squares.arguments, {squares.result}, squares.body, target());
    std::vector<Buffer> arguments;
    for (auto [number, width] : llvm::enumerate(widths))
      arguments.push_back(Buffer::of(numbers(width, number)));
    std::vector<float> expected;
    for (int64_t row = 0; row < kRows; ++row)
      for (auto [operand, width] : llvm::zip_equal(arguments, widths)) {
        auto values = operand.values<float>();
        for (int64_t column = 0; column < width; ++column)
          expected.push_back(values[row * width + column] * values[row * width + column]);
      }
    EXPECT_EQ(kernel.run(arguments)[0].values<float>(), expected) << squares.result;
    EXPECT_EQ(kernel.run(arguments, /*scattered=*/true)[0].values<float>(), expected) << squares.result;
    if (expected.size() > 1'000'000)
      EXPECT_GT(kernel.schedule().tiles, 3 * kRows) << "no row is cut into tiles";
  }
}

TEST_P(RangesValueTest, EachChannelIsThatOfItsOperand) {
  for (const std::vector<int64_t> &widths : std::vector<std::vector<int64_t>>{
           {5, 1, 7}, {1, 1}, {3, 0, 4}, {2, 2, 2, 2, 2, 2, 2, 2, 2}, {700, 900}}) {
    Squares squares(widths, imagesOf);
    TestKernel kernel(squares.arguments, {squares.result}, squares.body, target());
    std::vector<Buffer> arguments;
    for (auto [number, width] : llvm::enumerate(widths)) {
      std::vector<float> values = numbers(16 * width, number); // 3 * 16 = 2 * 24
      arguments.push_back(Buffer::of(values));
    }
    std::vector<float> expected;
    for (int64_t image = 0; image < 2; ++image)
      for (auto [operand, width] : llvm::zip_equal(arguments, widths)) {
        auto values = operand.values<float>();
        for (int64_t at = 0; at < width * 24; ++at)
          expected.push_back(values[image * width * 24 + at] * values[image * width * 24 + at]);
      }
    EXPECT_EQ(kernel.run(arguments)[0].values<float>(), expected) << squares.result;
    EXPECT_EQ(kernel.run(arguments, /*scattered=*/true)[0].values<float>(), expected) << squares.result;
  }
}

TEST_P(RangesValueTest, OperandsThatDoNotVaryAlongTheRowStayInTheirRange) {
  // One number for all, one for each row, the column itself.
  TestKernel kernel({"tensor<f32>", "tensor<3xf32>"}, {"tensor<3x96xf32>", "tensor<3x96xf32>"}, R"(
    %all = gpuc.broadcast %a0 dims [] : tensor<f32> to tensor<3x32xf32>
    %row = gpuc.broadcast %a1 dims [0] : tensor<3xf32> to tensor<3x32xf32>
    %column = gpuc.iota dim 1 : tensor<3x32xf32>
    %c = gpuc.concat %all, %row, %column dim 1 : (tensor<3x32xf32>, tensor<3x32xf32>, tensor<3x32xf32>) -> tensor<3x96xf32>
    %n = gpuc.neg %c : tensor<3x96xf32>
    gpuc.yield %c, %n : tensor<3x96xf32>, tensor<3x96xf32>)",
                    target());
  auto results = kernel.run({Buffer::of<float>({7}), Buffer::of<float>({100, 200, 300})});
  auto joined = results[0].values<float>(), negated = results[1].values<float>();
  for (int64_t row = 0; row < 3; ++row)
    for (int64_t column = 0; column < 96; ++column) {
      float expected = column < 32 ? 7 : column < 64 ? 100 * (row + 1) : column - 64;
      EXPECT_EQ(joined[row * 96 + column], expected) << row << ", " << column;
      EXPECT_EQ(negated[row * 96 + column], -expected) << row << ", " << column;
    }
}

TEST_P(RangesValueTest, AnOperandOfAPadThatDoesNotVaryStaysInItsRange) {
  TestKernel kernel({"tensor<f32>"}, {"tensor<3x96xf32>"}, R"(
    %all = gpuc.broadcast %a0 dims [] : tensor<f32> to tensor<3x32xf32>
    %p = gpuc.pad %all low [0, 32] high [0, 32] interior [0, 0] {value = 9.0 : f64} : (tensor<3x32xf32>) -> tensor<3x96xf32>
    gpuc.yield %p : tensor<3x96xf32>)",
                    target());
  auto padded = kernel.run({Buffer::of<float>({7})})[0].values<float>();
  for (int64_t at = 0; at < 3 * 96; ++at)
    EXPECT_EQ(padded[at], at % 96 / 32 == 1 ? 7 : 9) << at;
}

TEST_P(RangesValueTest, AnOperandThatDoesNotVaryStaysInItsRangeWhenItsRowsArePaddedToo) {
  // Whether a row is the operand's or padding is known before the loops along it.
  for (auto [low, interior, high] : {std::tuple{1, 0, 0}, {0, 0, 2}, {0, 1, 0}, {1, 1, 2}}) {
    const int64_t rows = low + 2 + interior + high;
    std::string to = "tensor<" + std::to_string(rows) + "x96xf32>";
    std::string pad = "%p = gpuc.pad %x low [" + std::to_string(low) + ", 32] high [" + std::to_string(high) +
                      ", 16] interior [" + std::to_string(interior) +
                      ", 0] {value = 9.0 : f64} : (tensor<2x48xf32>) -> " + to + "\ngpuc.yield %p : " + to;
    TestKernel byRow({"tensor<2xf32>"}, {to},
                     "%x = gpuc.broadcast %a0 dims [0] : tensor<2xf32> to tensor<2x48xf32>\n" + pad,
                     target());
    TestKernel ofOnes({}, {to}, "%x = gpuc.constant 1.0 : tensor<2x48xf32>\n" + pad, target());
    auto byRowValues = byRow.run({Buffer::of<float>({100, 200})})[0].values<float>();
    auto ones = ofOnes.run({})[0].values<float>();
    for (int64_t at = 0; at < rows * 96; ++at) {
      int64_t row = at / 96 - low, column = at % 96;
      bool inside = (row == 0 || row == 1 + interior) && column >= 32 && column < 80;
      EXPECT_EQ(byRowValues[at], !inside ? 9 : row == 0 ? 100 : 200) << to << ", " << at;
      EXPECT_EQ(ones[at], inside ? 1 : 9) << to << ", " << at;
    }
  }
}

TEST_P(RangesValueTest, PadsHoldTheirValueAroundTheOperand) {
  for (auto [low, columns, high] :
       {std::tuple{32, 64, 16}, {1, 62, 1}, {20, 1, 0}, {0, 17, 47}, {5, 150'000, 100'000}}) {
    int64_t extent = low + columns + high;
    std::string from = tensorOf(columns), to = "tensor<4x" + std::to_string(extent) + "xf32>";
    TestKernel kernel({from}, {to},
                      "%p = gpuc.pad %a0 low [1, " + std::to_string(low) + "] high [0, " +
                          std::to_string(high) + "] interior [0, 0] {value = 9.0 : f64} : (" + from +
                          ") -> " + to + "\ngpuc.yield %p : " + to,
                      target());
    auto x = numbers(columns, 1);
    std::vector<float> expected(4 * extent, 9);
    for (int64_t row = 0; row < kRows; ++row)
      std::copy_n(x.begin() + row * columns, columns, expected.begin() + (row + 1) * extent + low);
    EXPECT_EQ(kernel.run({Buffer::of(x)})[0].values<float>(), expected) << to;
    EXPECT_EQ(kernel.run({Buffer::of(x)}, /*scattered=*/true)[0].values<float>(), expected) << to;
  }
}

} // namespace
