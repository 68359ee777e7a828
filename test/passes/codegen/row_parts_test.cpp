// Into how many rows a kernel's tiles fall, and which operands go by them. That each row keeps to its parts
// is checked wherever a kernel runs: see kernel_harness.cpp.
#include "test/passes/codegen/kernel_harness.h"

#include <gtest/gtest.h>
#include <ostream>

using namespace gpuc;
using namespace gpuc::test;

namespace {

using Texts = std::vector<std::string>;

struct Case {
  const char *name;
  Texts arguments, results;
  std::string body;
  int64_t rows;    ///< 0: none.
  std::string cut; ///< A letter for each operand: c where it is cut.
};

void PrintTo(const Case &value, std::ostream *out) { *out << value.name; }

/// How each operand is cut, as in Case.
std::string cutOf(const KernelSchedule &schedule) {
  std::string letters;
  for (bool cut : schedule.byRows)
    letters += cut ? 'c' : '-';
  return letters;
}

/// How many elements a tensor type has, and of which type.
std::pair<int64_t, std::string> elementsOf(const std::string &type) {
  int64_t count = 1;
  size_t at = type.find('<') + 1;
  for (size_t end; (end = type.find('x', at)) != std::string::npos; at = end + 1)
    count *= std::stoll(type.substr(at, end - at));
  return {count, type.substr(at, type.size() - 1 - at)};
}

/// Small numbers, which serve as indices too.
template <typename T> Buffer counted(int64_t count) {
  std::vector<T> values(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = static_cast<T>(i % 11);
  return Buffer::of(values);
}

Buffer operandOf(const std::string &type) {
  auto [count, element] = elementsOf(type);
  return element == "f32"   ? counted<float>(count)
         : element == "i32" ? counted<int32_t>(count)
                            : counted<int64_t>(count);
}

std::string joined(const Texts &types) {
  std::string text;
  for (const std::string &type : types)
    text += (text.empty() ? "" : ", ") + type;
  return text;
}

std::string yield(const Texts &types, const std::string &values = "%y") {
  return "gpuc.yield " + values + " : " + joined(types);
}

/// %y = one op, its name without "gpuc.".
Case oneOp(const char *name, const Texts &arguments, const std::string &result, const std::string &op,
           int64_t rows, const std::string &cut) {
  return {
      name,     arguments,
      {result}, "%y = gpuc." + op + " : (" + joined(arguments) + ") -> " + result + "\n" + yield({result}),
      rows,     cut};
}

/// %a0 + what `op` makes of %a1, which is %b.
Case sum(const char *name, const std::string &type, const std::string &other, const std::string &op,
         int64_t rows, const std::string &cut) {
  return {name,   {type, other},
          {type}, "%b = gpuc." + op + "\n%y = gpuc.add %a0, %b : " + type + "\n" + yield({type}),
          rows,   cut};
}

/// %a0 + %a1, the latter along dimensions `dims` alone.
Case sumOfBroadcast(const char *name, const std::string &type, const std::string &other,
                    const std::string &dims, int64_t rows, const std::string &cut) {
  return sum(name, type, other, "broadcast %a1 dims " + dims + " : " + other + " to " + type, rows, cut);
}

/// -%a0.
Case negative(const char *name, const std::string &type, int64_t rows, const std::string &cut) {
  return {name, {type}, {type}, "%y = gpuc.neg %a0 : " + type + "\n" + yield({type}), rows, cut};
}

// What is transposed is read in blocks of 16 rows, or of 8.
const std::string kTurned = "tensor<256x256xf32>";
const std::string kMatrix = "tensor<64x32xf32>", kSquare = "tensor<32x32xf32>", kColumn = "tensor<64xf32>",
                  kRow = "tensor<32xf32>", kPlanes = "tensor<6x8x24xf32>";

const std::string kSoftmax = R"(
    %max = gpuc.reduce_max %a0 dims [1] : (tensor<64x32xf32>) -> tensor<64xf32>
    %spread = gpuc.broadcast %max dims [0] : tensor<64xf32> to tensor<64x32xf32>
    %less = gpuc.sub %a0, %spread : tensor<64x32xf32>
    %exp = gpuc.exp %less : tensor<64x32xf32>
    %sum = gpuc.sum %exp dims [1] : (tensor<64x32xf32>) -> tensor<64xf32>
    %below = gpuc.broadcast %sum dims [0] : tensor<64xf32> to tensor<64x32xf32>
    %y = gpuc.div %exp, %below : tensor<64x32xf32>
)";

/// Each row times its norm, which a column scales, and times a row of weights.
const std::string kScaled = R"(
    %square = gpuc.mul %a0, %a0 : tensor<64x32xf32>
    %sum = gpuc.sum %square dims [1] : (tensor<64x32xf32>) -> tensor<64xf32>
    %norm = gpuc.mul %sum, %a1 : tensor<64xf32>
    %spread = gpuc.broadcast %norm dims [0] : tensor<64xf32> to tensor<64x32xf32>
    %weight = gpuc.broadcast %a2 dims [1] : tensor<32xf32> to tensor<64x32xf32>
    %z = gpuc.mul %a0, %weight : tensor<64x32xf32>
    %y = gpuc.mul %z, %spread : tensor<64x32xf32>
)";

const Case kCases[] = {
    // One group of dimensions: 2048 elements in 16 chunks of 128; of 1025, the last chunk is shorter.
    {"Flat",
     {kMatrix, kMatrix},
     {kMatrix},
     "%y = gpuc.add %a0, %a1 : " + kMatrix + "\n" + yield({kMatrix}),
     16,
     "ccc"},
    negative("ShortLastChunk", "tensor<1025xf32>", 0, ""),
    negative("OneChunk", "tensor<32xf32>", 0, ""),
    negative("ExtentOfOneBetween", "tensor<8x1x256xf32>", 16, "cc"),
    negative("Scalar", "tensor<f32>", 0, ""),
    sumOfBroadcast("OfOneNumber", kMatrix, "tensor<f32>", "[]", 16, "c-c"),
    sumOfBroadcast("OneRow", "tensor<1x1024xf32>", "tensor<1024xf32>", "[1]", 16, "ccc"),
    {"UnequalTypes",
     {kMatrix},
     {"tensor<64x32xf64>"},
     "%y = gpuc.cast %a0 : " + kMatrix + " to tensor<64x32xf64>\n" + yield({"tensor<64x32xf64>"}),
     16,
     "cc"},
    {"AnArgumentThatNobodyReads",
     {kMatrix, "tensor<5xf32>"},
     {kMatrix},
     "%y = gpuc.neg %a0 : " + kMatrix + "\n" + yield({kMatrix}),
     16,
     "c-c"},
    {"RandomBits",
     {"tensor<i64>", "tensor<i64>"},
     {"tensor<64x32xi32>"},
     "%y = gpuc.random_bits seed %a0 step %a1 id 7 : (tensor<i64>, tensor<i64>) -> tensor<64x32xi32>\n" +
         yield({"tensor<64x32xi32>"}),
     16,
     "--c"},

    // 64 rows in 16 tiles of 4; 12 in tiles of one; 100 in tiles of 7, of which the last has 2.
    sumOfBroadcast("Bias", kMatrix, kRow, "[1]", 16, "c-c"),
    sumOfBroadcast("BiasAsLongAsThereAreRows", kSquare, kRow, "[1]", 16, "c-c"),
    sumOfBroadcast("Column", kMatrix, kColumn, "[0]", 16, "ccc"),
    sumOfBroadcast("TwelveRows", "tensor<12x32xf32>", kRow, "[1]", 12, "c-c"),
    sumOfBroadcast("AHundredRows", "tensor<100x32xf32>", kRow, "[1]", 0, ""),
    sum("RowsTurnedAround", kMatrix, kMatrix, "reverse %a1 dims [0] : " + kMatrix, 16, "c-c"),
    sum("ColumnsTurnedAround", kMatrix, kMatrix, "reverse %a1 dims [1] : " + kMatrix, 16, "ccc"),
    sum("Transpose", kTurned, kTurned, "transpose %a1 permutation [1, 0] : (" + kTurned + ") -> " + kTurned,
        16, "c-c"),
    {"OneArgumentReadTwice",
     {kTurned},
     {kTurned},
     "%b = gpuc.transpose %a0 permutation [1, 0] : (" + kTurned + ") -> " + kTurned +
         "\n%y = gpuc.add %a0, %b : " + kTurned + "\n" + yield({kTurned}),
     16,
     "-c"},
    {"OneArgumentReadTwiceTheOtherWayRound",
     {kTurned},
     {kTurned},
     "%b = gpuc.transpose %a0 permutation [1, 0] : (" + kTurned + ") -> " + kTurned +
         "\n%y = gpuc.add %b, %a0 : " + kTurned + "\n" + yield({kTurned}),
     16,
     "-c"},
    // 4 rows, each in 16 chunks.
    sumOfBroadcast("LongRows", "tensor<4x60000xf32>", "tensor<60000xf32>", "[1]", 4, "c-c"),

    // Three dimensions. 6 · 8 rows of 24 in 16 tiles of 3, of which each two make a third of the 6 planes.
    sumOfBroadcast("APlaneWithoutItsRows", kPlanes, "tensor<6x24xf32>", "[0, 2]", 2, "ccc"),
    sumOfBroadcast("OnePlaneForAll", kPlanes, "tensor<8x24xf32>", "[1, 2]", 6, "c-c"),
    sumOfBroadcast("TwoDimensionsOfRows", "tensor<8x4x24xf32>", "tensor<8x4xf32>", "[0, 1]", 16, "ccc"),
    sumOfBroadcast("ExtentsOfOne", "tensor<1x64x1x24xf32>", "tensor<64x1xf32>", "[1, 2]", 16, "ccc"),

    oneOp("ConcatAlongColumns", {"tensor<64x8xf32>", "tensor<64x24xf32>"}, kMatrix, "concat %a0, %a1 dim 1",
          16, "ccc"),
    oneOp("ConcatAlongRows", {kSquare, kSquare}, kMatrix, "concat %a0, %a1 dim 0", 16, "--c"),
    oneOp("SliceOfColumns", {"tensor<64x48xf32>"}, kMatrix,
          "slice %a0 starts [0, 7] limits [64, 39] strides [1, 1]", 16, "cc"),
    oneOp("SliceOfRows", {"tensor<80x32xf32>"}, kMatrix,
          "slice %a0 starts [8, 0] limits [72, 32] strides [1, 1]", 16, "-c"),
    oneOp("SliceOfTheFirstRows", {"tensor<80x32xf32>"}, kMatrix,
          "slice %a0 starts [0, 0] limits [64, 32] strides [1, 1]", 16, "-c"),
    oneOp("GatherOfRows", {"tensor<5x32xf32>", "tensor<64xi32>"}, kMatrix, "gather %a0, %a1 dim 0", 16,
          "-cc"),
    oneOp("GatherOfAsManyRowsAsThereAre", {kMatrix, "tensor<64xi32>"}, kMatrix, "gather %a0, %a1 dim 0", 16,
          "-cc"),
    oneOp("GatherOfColumns", {"tensor<64x5xf32>", "tensor<32xi32>"}, kMatrix, "gather %a0, %a1 dim 1", 16,
          "c-c"),
    oneOp("SliceThatMoves", {"tensor<64x48xf32>", "tensor<2xi32>"}, kMatrix,
          "dynamic_slice %a0, %a1 sizes [64, 32]", 16, "--c"),
    oneOp("UpdateThatMoves", {kMatrix, "tensor<64x8xf32>", "tensor<2xi32>"}, kMatrix,
          "dynamic_update_slice %a0, %a1, %a2", 16, "c--c"),

    {"Windows",
     {"tensor<16x3x8x8xf32>"},
     {"tensor<16x3x4x4xf32>", "tensor<16x3x4x4xi64>"},
     "%y, %i = gpuc.max_pool2d %a0 window [2, 2] strides [2, 2] : (tensor<16x3x8x8xf32>) -> "
     "(tensor<16x3x4x4xf32>, tensor<16x3x4x4xi64>)\n" +
         yield({"tensor<16x3x4x4xf32>", "tensor<16x3x4x4xi64>"}, "%y, %i"),
     16,
     "ccc"},
    {"Softmax", {kMatrix}, {kMatrix}, kSoftmax + yield({kMatrix}), 16, "cc"},
    {"ResultsOfRowsAndOfOneElementEach",
     {kMatrix, kColumn, kRow},
     {kMatrix, kColumn},
     kScaled + yield({kMatrix, kColumn}, "%y, %norm"),
     16,
     "cc-cc"},
    oneOp("SumsOfRows", {kMatrix}, kColumn, "sum %a0 dims [1]", 16, "cc"),
    oneOp("SumsOfColumns", {"tensor<8x1024xf32>"}, "tensor<1024xf32>", "sum %a0 dims [0]", 16, "-c"),
    oneOp("SumsInTheMiddle", {"tensor<16x4x24xf32>"}, "tensor<16x24xf32>", "sum %a0 dims [1]", 16, "cc"),
    oneOp("SumOfAll", {kMatrix}, "tensor<f32>", "sum %a0 dims [0, 1]", 0, ""),

    // Each column less its sum: it lies across the rows, of which a band would be.
    {"ResultsOfWholeColumns",
     {"tensor<8x1024xf32>"},
     {"tensor<8x1024xf32>"},
     "%s = gpuc.sum %a0 dims [0] : (tensor<8x1024xf32>) -> tensor<1024xf32>\n"
     "%b = gpuc.broadcast %s dims [1] : tensor<1024xf32> to tensor<8x1024xf32>\n"
     "%y = gpuc.sub %a0, %b : tensor<8x1024xf32>\n" +
         yield({"tensor<8x1024xf32>"}),
     0,
     ""},

    // Those that put elements in order, or add them to one another, have no rows.
    {"RunningSum",
     {kMatrix},
     {kMatrix},
     "%y = gpuc.cumsum %a0 dim 1 : " + kMatrix + "\n" + yield({kMatrix}),
     0,
     ""},
    {"Sort",
     {kMatrix},
     {kMatrix, "tensor<64x32xi64>"},
     "%y, %i = gpuc.sort %a0 dim 1 : (" + kMatrix + ") -> (" + kMatrix + ", tensor<64x32xi64>)\n" +
         yield({kMatrix, "tensor<64x32xi64>"}, "%y, %i"),
     0,
     ""},
    oneOp("Scatter", {kMatrix, "tensor<16xi32>", "tensor<16x32xf32>"}, kMatrix,
          "scatter_add %a0, %a1, %a2 dim 0", 0, ""),
};

class RowPartsTest : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Kernels, RowPartsTest, testing::ValuesIn(kCases),
                         [](const auto &info) { return info.param.name; });

TEST_P(RowPartsTest, AreAsManyAndGoAsExpected) {
  const Case &expected = GetParam();
  for (const HostTarget &target : testTargets()) {
    KernelText text(expected.arguments, expected.results, expected.body);
    KernelSchedule schedule = scheduleHostKernel(text.block(), target);
    EXPECT_EQ(schedule.rows, expected.rows) << target.cpu;
    EXPECT_EQ(cutOf(schedule), expected.cut) << target.cpu;
  }
}

TEST_P(RowPartsTest, KeepToTheirParts) {
  const Case &kernel = GetParam();
  std::vector<Buffer> arguments;
  for (const std::string &type : kernel.arguments)
    arguments.push_back(operandOf(type));
  TestKernel(kernel.arguments, kernel.results, kernel.body, testTargets().back()).run(arguments);
}

/// Threads share the shortest of loops over time by rows, so that few rows still fall into several.
TEST(RowParts, OfHalvesQuartersAndEighthsOfARecurrentNetworksRows) {
  for (int64_t rows : {2, 4, 8, 16, 32, 48, 64, 96, 128, 256}) {
    const std::string matrix = "tensor<" + std::to_string(rows) + "x24xf32>";
    KernelText text({matrix, "tensor<24xf32>"}, {matrix},
                    "%0 = gpuc.broadcast %a1 dims [1] : tensor<24xf32> to " + matrix +
                        "\n%1 = gpuc.add %a0, %0 : " + matrix + "\n%2 = gpuc.tanh %1 : " + matrix + "\n" +
                        yield({matrix}, "%2"));
    EXPECT_EQ(scheduleHostKernel(text.block(), testTargets().front()).rows, std::min<int64_t>(rows, 16))
        << rows;
  }
}

} // namespace
