// Kernels for GPUs: the same numbers as the host's, from PTX that says nothing about rounding which it should
// not, and that ptxas takes without spilling a register.
#include "test/passes/codegen/cuda_harness.h"

#include "llvm/ADT/StringExtras.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <regex>

using namespace gpuc;
using namespace gpuc::test;

namespace {

struct Case {
  const char *name;
  std::vector<std::string> arguments, results;
  std::string body;
  bool shares; ///< Threads share an output and meet at barriers.
};

/// One op on %a0, %a1, ….
Case single(const char *name, std::vector<std::string> arguments, std::string result, const std::string &op,
            bool shares) {
  std::string type = "(" + llvm::join(arguments, ", ") + ") -> " + result;
  return {
      name, arguments, {result}, "%0 = gpuc." + op + " : " + type + "\ngpuc.yield %0 : " + result, shares};
}

/// sort or top_k, which both return values and indices.
Case sorting(const char *name, std::string argument, const std::string &shape, const std::string &op) {
  std::string element = argument.substr(argument.size() - 4, 3);
  std::vector<std::string> results{"tensor<" + shape + "x" + element + ">", "tensor<" + shape + "xi64>"};
  std::string types = llvm::join(results, ", ");
  return {name,
          {argument},
          results,
          "%0, %1 = gpuc." + op + " : (" + argument + ") -> (" + types + ")\ngpuc.yield %0, %1 : " + types,
          false};
}

/// Two reductions, the second of what the first is taken from, and results of both shapes.
Case rows(const char *name, const std::string &matrix, const std::string &row, int folded, bool shares) {
  std::string reduced = "dims [" + std::to_string(folded) + "] : (" + matrix + ") -> " + row + "\n",
              spread = "dims [" + std::to_string(1 - folded) + "] : " + row + " to " + matrix + "\n";
  return {name,
          {matrix, row},
          {matrix, row, row},
          "%0 = gpuc.reduce_max %a0 " + reduced + "%1 = gpuc.broadcast %0 " + spread +
              "%2 = gpuc.sub %a0, %1 : " + matrix + "\n%3 = gpuc.sum %2 " + reduced +
              "%4 = gpuc.argmax %a0 dim " + std::to_string(folded) + " : (" + matrix + ") -> " +
              std::regex_replace(row, std::regex("f32"), "i64") +
              "\n%5 = gpuc.cast %4 : " + std::regex_replace(row, std::regex("f32"), "i64") + " to " + row +
              "\n%6 = gpuc.add %3, %a1 : " + row + "\n%7 = gpuc.broadcast %6 " + spread +
              "%8 = gpuc.mul %2, %7 : " + matrix + "\n%9 = gpuc.sub %3, %5 : " + row +
              "\ngpuc.yield %8, %9, %6 : " + matrix + ", " + row + ", " + row,
          shares};
}

/// A sum, and what it adds up: an element for each of a row's that needs no sum, and is written beside it.
Case summands(const char *name, const std::string &matrix, const std::string &row, int folded, bool shares) {
  return {name,
          {matrix, matrix},
          {row, matrix},
          "%0 = gpuc.mul %a0, %a1 : " + matrix + "\n%1 = gpuc.sum %0 dims [" + std::to_string(folded) +
              "] : (" + matrix + ") -> " + row + "\ngpuc.yield %1, %0 : " + row + ", " + matrix,
          shares};
}

/// Eight sums of few columns in f64: of 1,024 threads no block would have the room.
Case manySums() {
  const std::string matrix = "tensor<4096x8xf64>", row = "tensor<8xf64>";
  std::string body = "%p0 = gpuc.mul %a0, %a1 : " + matrix + "\n";
  std::vector<std::string> sums, rows(8, row);
  for (int i = 0; i < 8; ++i) {
    const std::string term = "%p" + std::to_string(i), next = "%p" + std::to_string(i + 1);
    sums.push_back("%s" + std::to_string(i));
    body += sums.back() + " = gpuc.sum " + term + " dims [0] : (" + matrix + ") -> " + row + "\n" + next +
            " = gpuc.add " + term + ", %a1 : " + matrix + "\n";
  }
  body += "gpuc.yield " + llvm::join(sums, ", ") + " : " + llvm::join(rows, ", ");
  return {"many_sums", {matrix, matrix}, rows, body, true};
}

/// Every form of kernel, with extents that fill no block and folds that no number of threads divides. Results
/// are exact whatever the order, but for the transcendental ones, in which no order exists.
std::vector<Case> cases() {
  const char *wide = "tensor<1000x7xf32>";
  return {
      {"pointwise",
       {wide, wide},
       {wide, "tensor<1000x7xf32>"},
       "%0 = gpuc.exp %a0 : tensor<1000x7xf32>\n%1 = gpuc.tanh %a1 : tensor<1000x7xf32>\n"
       "%2 = gpuc.div %0, %1 : tensor<1000x7xf32>\ngpuc.yield %2, %0 : tensor<1000x7xf32>, "
       "tensor<1000x7xf32>",
       false},
      {"double",
       {"tensor<333xf64>"},
       {"tensor<333xf64>"},
       "%0 = gpuc.log %a0 : tensor<333xf64>\n%1 = gpuc.sqrt %0 : tensor<333xf64>\ngpuc.yield %1 : "
       "tensor<333xf64>",
       false},
      {"turned",
       {"tensor<30x40xf32>", "tensor<30xf32>"},
       {"tensor<40x30xf32>"},
       "%0 = gpuc.transpose %a0 permutation [1, 0] : (tensor<30x40xf32>) -> tensor<40x30xf32>\n"
       "%1 = gpuc.broadcast %a1 dims [1] : tensor<30xf32> to tensor<40x30xf32>\n"
       "%2 = gpuc.add %0, %1 : tensor<40x30xf32>\ngpuc.yield %2 : tensor<40x30xf32>",
       false},
      single("rows", {"tensor<70x301xf32>"}, "tensor<70xf32>", "sum %a0 dims [1]", true),
      single("few", {"tensor<70x5xf32>"}, "tensor<70xf32>", "sum %a0 dims [1]", false),
      single("columns", {"tensor<301x70xf32>"}, "tensor<70xf32>", "sum %a0 dims [0]", true),
      single("all", {"tensor<37x41xf64>"}, "tensor<f64>", "sum %a0 dims [0, 1]", true),
      single("middle", {"tensor<3x100x5xi32>"}, "tensor<3x5xi32>", "reduce_max %a0 dims [1]", true),
      single("bf16", {"tensor<3x100xbf16>"}, "tensor<3xbf16>", "reduce_min %a0 dims [1]", true),
      single("argmax", {"tensor<9x100xf32>"}, "tensor<9xi64>", "argmax %a0 dim 1", true),
      rows("several", "tensor<70x301xf32>", "tensor<70xf32>", 1, true),
      rows("several_few", "tensor<70x5xf32>", "tensor<70xf32>", 1, false),
      rows("several_columns", "tensor<301x70xf32>", "tensor<70xf32>", 0, true),
      manySums(),
      // Folded in vectors: of one loop with a rest, of several loops, of 16 bits, of more threads than a warp
      // has.
      rows("several_vectors", "tensor<70x404xf32>", "tensor<70xf32>", 1, true),
      summands("summands_vectors", "tensor<5x4100xf32>", "tensor<5xf32>", 1, true),
      single("vectors_of_loops", {"tensor<6x9x7x40xf32>"}, "tensor<9xf32>", "sum %a0 dims [0, 2, 3]", true),
      single("vectors_of_bf16", {"tensor<3x808xbf16>"}, "tensor<3xbf16>", "reduce_max %a0 dims [1]", true),
      // Columns side by side as vectors.
      rows("several_wide_columns", "tensor<40x4096xf32>", "tensor<4096xf32>", 0, true),
      summands("summands_wide_columns", "tensor<33x4104xf32>", "tensor<4104xf32>", 0, true),
      single("wide_columns_bf16", {"tensor<3x70x2048xbf16>"}, "tensor<3x2048xbf16>",
             "reduce_max %a0 dims [1]", true),
      single("wide_columns_f64", {"tensor<3x70x1024xf64>"}, "tensor<3x1024xf64>", "sum %a0 dims [1]", true),
      {"vectors_and_rest",
       {"tensor<50x304xf32>", "tensor<50xi32>"},
       {"tensor<50xf32>", "tensor<50xf32>"},
       "%0 = gpuc.slice %a0 starts [0, 0] limits [50, 299] strides [1, 1] : (tensor<50x304xf32>) -> "
       "tensor<50x299xf32>\n%1 = gpuc.sum %0 dims [1] : (tensor<50x299xf32>) -> tensor<50xf32>\n"
       "%2 = gpuc.iota dim 1 : tensor<50x299xi32>\n"
       "%3 = gpuc.broadcast %a1 dims [0] : tensor<50xi32> to tensor<50x299xi32>\n"
       "%4 = gpuc.compare eq %2, %3 : tensor<50x299xi32>\n%5 = gpuc.constant 0.0 : tensor<50x299xf32>\n"
       "%6 = gpuc.select %4, %0, %5 : tensor<50x299xi1>, tensor<50x299xf32>\n"
       "%7 = gpuc.sum %6 dims [1] : (tensor<50x299xf32>) -> tensor<50xf32>\n"
       "gpuc.yield %1, %7 : tensor<50xf32>, tensor<50xf32>",
       true},
      summands("summands", "tensor<70x301xf32>", "tensor<70xf32>", 1, true),
      summands("summands_few", "tensor<70x5xf32>", "tensor<70xf32>", 1, false),
      summands("summands_columns", "tensor<301x70xf32>", "tensor<70xf32>", 0, true),
      summands("summands_of_one", "tensor<70x1xf32>", "tensor<70xf32>", 1, false),
      {"cumsum",
       {"tensor<6x50xf32>"},
       {"tensor<6x50xf32>"},
       "%0 = gpuc.cumsum %a0 dim 1 : tensor<6x50xf32>\ngpuc.yield %0 : tensor<6x50xf32>",
       false},
      sorting("sort", "tensor<300x9xf32>", "300x9", "sort %a0 dim 1"),
      sorting("sort_columns", "tensor<67x5xi32>", "67x5", "sort %a0 dim 0 descending"),
      sorting("top_k", "tensor<300x50xf32>", "300x7", "top_k %a0 k 7 dim 1"),
      sorting("top_k_middle", "tensor<3x40x5xi32>", "3x11x5", "top_k %a0 k 11 dim 1 smallest"),
      single("gather", {"tensor<20x6xf32>", "tensor<9xi32>"}, "tensor<9x6xf32>", "gather %a0, %a1 dim 0",
             false),
      single("scatter", {"tensor<20x6xf32>", "tensor<9xi32>", "tensor<9x6xf32>"}, "tensor<20x6xf32>",
             "scatter_add %a0, %a1, %a2 dim 0", true),
      // Threads share the slots: in the middle, all there is, one, more than the least for each.
      single("scatter_middle", {"tensor<3x20x5xf32>", "tensor<35xi32>", "tensor<3x35x5xf32>"},
             "tensor<3x20x5xf32>", "scatter_add %a0, %a1, %a2 dim 1", true),
      single("scatter_vector", {"tensor<100xf32>", "tensor<3x7xi64>", "tensor<3x7xf32>"}, "tensor<100xf32>",
             "scatter_add %a0, %a1, %a2 dim 0", true),
      single("scatter_one", {"tensor<20x6xbf16>", "tensor<i32>", "tensor<6xbf16>"}, "tensor<20x6xbf16>",
             "scatter_add %a0, %a1, %a2 dim 0", true),
      single("scatter_slot", {"tensor<1x6xf32>", "tensor<9xi32>", "tensor<9x6xf32>"}, "tensor<1x6xf32>",
             "scatter_add %a0, %a1, %a2 dim 0", true),
      single("scatter_nothing", {"tensor<20x6xf32>", "tensor<0xi32>", "tensor<0x6xf32>"}, "tensor<20x6xf32>",
             "scatter_add %a0, %a1, %a2 dim 0", true),
      single("scatter_nowhere", {"tensor<0x6xf32>", "tensor<9xi32>", "tensor<9x6xf32>"}, "tensor<0x6xf32>",
             "scatter_add %a0, %a1, %a2 dim 0", true),
      single("scatter_many", {"tensor<700x33xf32>", "tensor<5x211xi32>", "tensor<5x211x33xf32>"},
             "tensor<700x33xf32>", "scatter_add %a0, %a1, %a2 dim 0", true),
      single("scatter_wide", {"tensor<400x3000xf32>", "tensor<30xi32>", "tensor<30x3000xf32>"},
             "tensor<400x3000xf32>", "scatter_add %a0, %a1, %a2 dim 0", true),
      {"random",
       {"tensor<i64>", "tensor<i64>"},
       {"tensor<777xi32>"},
       "%0 = gpuc.random_bits seed %a0 step %a1 id 7 : (tensor<i64>, tensor<i64>) -> tensor<777xi32>\n"
       "gpuc.yield %0 : tensor<777xi32>",
       false},
      {"table",
       {"tensor<4xf32>"},
       {"tensor<4xf32>"},
       "%0 = gpuc.constant dense<[1.0, -2.0, 4.0, 8.0]> : tensor<4xf32>\n%1 = gpuc.mul %a0, %0 : "
       "tensor<4xf32>\n"
       "gpuc.yield %1 : tensor<4xf32>",
       false},
  };
}

class CudaForms : public testing::TestWithParam<Case> {
protected:
  /// Small integers, as the arguments' element types have them. Indices leave their range now and then.
  std::vector<Buffer> inputs() {
    std::vector<Buffer> buffers;
    KernelText text(GetParam().arguments, GetParam().results, GetParam().body);
    for (mlir::BlockArgument argument : text.block().getArguments())
      buffers.push_back(filled(llvm::cast<mlir::RankedTensorType>(argument.getType())));
    return buffers;
  }

  template <typename T> static Buffer counting(size_t count, int low) {
    std::vector<T> values(count);
    for (size_t i = 0; i < count; ++i)
      values[i] = static_cast<T>(low + static_cast<int>(i * 7 % 31));
    return Buffer::of(values);
  }

  static Buffer filled(mlir::RankedTensorType type) {
    mlir::Type element = type.getElementType();
    size_t count = type.getNumElements();
    if (element.isF64())
      return counting<double>(count, 1);
    if (element.isF32())
      return counting<float>(count, -15);
    if (element.isInteger(64))
      return counting<int64_t>(count, 3);
    if (element.isInteger(32))
      return counting<int32_t>(count, -4);
    return counting<uint16_t>(count, 0x3f80); // bf16 from 1.0 up
  }
};
INSTANTIATE_TEST_SUITE_P(Cuda, CudaForms, testing::ValuesIn(cases()),
                         [](auto info) { return info.param.name; });

TEST_P(CudaForms, GivesTheHostsBits) {
  const Case &test = GetParam();
  std::vector<Buffer> arguments = inputs();
  EmulatedKernel gpu(test.arguments, test.results, test.body);
  TestKernel host(test.arguments, test.results, test.body, testTargets().front());
  EXPECT_EQ(gpu.hasBarriers(), test.shares);
  std::vector<Buffer> expected = host.run(arguments), found = gpu.run(arguments);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(found[i].values<uint8_t>(), expected[i].values<uint8_t>()) << "result " << i;
}

TEST_P(CudaForms, NamesEveryRoundingAndNoLibrary) {
  KernelText text(GetParam().arguments, GetParam().results, GetParam().body);
  std::string ptx = compileForCuda(text, *CudaTarget::parse("sm_90")).ptx;
  EXPECT_NE(ptx.find(".target sm_90\n"), std::string::npos) << "no features that later architectures lack";
  EXPECT_NE(ptx.find(".version 8.1\n"), std::string::npos);
  EXPECT_NE(ptx.find(".visible .entry gpuc_"), std::string::npos);
  // Without .rn ptxas may make an fma of a product and a sum.
  std::smatch found;
  EXPECT_FALSE(std::regex_search(
      ptx, found, std::regex("\\s(add|sub|mul|mad|div|sqrt)\\.(f16|bf16|f32|f64|full|approx)[^\n]*")))
      << found.str();
  EXPECT_EQ(ptx.find(".ftz"), std::string::npos) << "denormals are kept";
  EXPECT_EQ(ptx.find("__nv_"), std::string::npos);
  EXPECT_EQ(ptx.find(".extern"), std::string::npos);
}

TEST_P(CudaForms, AssemblesWithoutSpills) {
  mlir::FailureOr<std::string> ptxas = findPtxas();
  if (failed(ptxas))
    GTEST_SKIP() << "no ptxas on the path or in $CUDA_HOME/bin";
  KernelText text(GetParam().arguments, GetParam().results, GetParam().body);
  for (const CudaTarget &target : CudaTarget::known()) {
    std::string said = assemble(*ptxas, compileForCuda(text, target).ptx, target.architecture);
    EXPECT_NE(said.find("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"), std::string::npos)
        << said;
  }
}

TEST(Cuda, LaunchesFollowFromShapes) {
  auto scheduleOf = [](const std::string &from, const std::string &op, const std::string &to) {
    KernelText text({from}, {to},
                    "%0 = gpuc." + op + " : " +
                        (op.find("dims") == std::string::npos ? to : "(" + from + ") -> " + to) +
                        "\ngpuc.yield %0 : " + to);
    CudaSchedule schedule = scheduleCudaKernel(text.block());
    return std::make_pair(schedule.grid, schedule.block);
  };
  using Launch = std::pair<uint32_t, uint32_t>;
  EXPECT_EQ(scheduleOf("tensor<7000xf32>", "exp %a0", "tensor<7000xf32>"), Launch(28, 256))
      << "7000 / 256 blocks";
  EXPECT_EQ(scheduleOf("tensor<9000000xf32>", "exp %a0", "tensor<9000000xf32>"), Launch(2048, 256))
      << "then blocks take turns";
  EXPECT_EQ(scheduleOf("tensor<70x301xf32>", "sum %a0 dims [1]", "tensor<70xf32>"), Launch(70, 64))
      << "a block for each row, of threads with 4 or 5 numbers each";
  EXPECT_EQ(scheduleOf("tensor<8192x768xf32>", "sum %a0 dims [1]", "tensor<8192xf32>"), Launch(1024, 256))
      << "a warp for each row";
  EXPECT_EQ(scheduleOf("tensor<8192x32xf32>", "sum %a0 dims [1]", "tensor<8192xf32>"), Launch(512, 128))
      << "8 threads with a vector each";
  EXPECT_EQ(scheduleOf("tensor<301x70xf32>", "sum %a0 dims [0]", "tensor<70xf32>"), Launch(5, 1024))
      << "64 threads for each column, of 4 or 5 numbers each";
  EXPECT_EQ(scheduleOf("tensor<8192x768xf32>", "sum %a0 dims [0]", "tensor<768xf32>"), Launch(96, 1024))
      << "no fewer than 8 columns a block";
  EXPECT_EQ(scheduleOf("tensor<8192x50257xf32>", "sum %a0 dims [0]", "tensor<50257xf32>"), Launch(1571, 256))
      << "enough blocks as they are";
  EXPECT_EQ(scheduleOf("tensor<64x3136x256xbf16>", "sum %a0 dims [1]", "tensor<64x256xbf16>"),
            Launch(256, 1024))
      << "8 vectors of columns a block";
  EXPECT_EQ(scheduleOf("tensor<128x50257xf32>", "sum %a0 dims [1]", "tensor<128xf32>"), Launch(128, 1024))
      << "few long rows: more threads for each";
}

/// Blocks that take a second tile use the same shared memory again.
TEST(Cuda, BlocksTakeTurns) {
  constexpr size_t kColumns = 2060 * 32 - 5; // 2060 tiles of 32 columns, the last one not full
  std::string to = "tensor<" + std::to_string(kColumns) + "xf32>",
              from = "tensor<32x" + std::to_string(kColumns) + "xf32>";
  std::string body = "%0 = gpuc.sum %a0 dims [0] : (" + from + ") -> " + to + "\ngpuc.yield %0 : " + to;
  EmulatedKernel gpu({from}, {to}, body);
  ASSERT_EQ(gpu.schedule().grid, 2048u);
  std::vector<float> values(32 * kColumns);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i % 13);
  TestKernel host({from}, {to}, body, testTargets().front());
  std::vector<Buffer> arguments{Buffer::of(values)};
  EXPECT_EQ(gpu.run(arguments)[0].values<float>(), host.run(arguments)[0].values<float>());
}

/// Numbers from 1 to 2 in f32 or bf16, whichever they are read as.
static Buffer numbers(size_t bytes) {
  std::vector<uint16_t> halves(bytes / 2);
  for (size_t i = 0; i < halves.size(); ++i)
    halves[i] = static_cast<uint16_t>(0x3f80 + i * 2654435761u % 128);
  return Buffer::of(halves);
}

/// What a large kernel computes in vectors is what the host does, and there is a thread for each of them.
TEST(Cuda, ReadsVectorsWhereOperandsAreAligned) {
  const struct {
    size_t rows, columns;
    uint32_t grid;
  } kCases[] = {{1024, 1028, 1028}, // fours
                {1024, 1026, 2048}, // twos
                {1025, 1027, 2048}, // none: blocks take turns
                {512, 512, 1024}};  // a thread for each
  for (const auto &[rows, columns, grid] : kCases) {
    const std::string row = std::to_string(columns), column = std::to_string(rows),
                      image = column + "x" + row;
    const std::string wide = "tensor<" + image + "xf32>", narrow = "tensor<" + image + "xbf16>",
                      ofRow = "tensor<" + row + "xf32>", ofColumn = "tensor<" + column + "xf32>";
    const std::string body = "%0 = gpuc.broadcast %a1 dims [1] : " + ofRow + " to " + wide +
                             "\n%1 = gpuc.broadcast %a2 dims [0] : " + ofColumn + " to " + wide +
                             "\n%2 = gpuc.cast %a3 : " + narrow + " to " + wide +
                             "\n%3 = gpuc.mul %a0, %0 : " + wide + "\n%4 = gpuc.add %3, %1 : " + wide +
                             "\n%5 = gpuc.add %4, %2 : " + wide + "\n%6 = gpuc.cast %5 : " + wide + " to " +
                             narrow + "\ngpuc.yield %5, %6 : " + wide + ", " + narrow;
    const std::vector<std::string> from{wide, ofRow, ofColumn, narrow}, to{wide, narrow};
    EmulatedKernel gpu(from, to, body);
    EXPECT_EQ(gpu.schedule().grid, grid) << image;
    TestKernel host(from, to, body, testTargets().front());
    const std::vector<Buffer> arguments{numbers(4 * rows * columns), numbers(4 * columns), numbers(4 * rows),
                                        numbers(2 * rows * columns)};
    const std::vector<Buffer> found = gpu.run(arguments), expected = host.run(arguments);
    for (size_t result : {0, 1})
      EXPECT_TRUE(found[result].values<uint16_t>() == expected[result].values<uint16_t>()) << image;
  }
}

/// Of what is put side by side along the vectors, each reads one operand, or is computed number by number.
TEST(Cuda, ReadsVectorsOfWhatIsPutTogether) {
  const std::string narrow = "tensor<800x764xf32>", wide = "tensor<800x768xf32>",
                    both = "tensor<800x1536xf32>";
  const std::string
      concat = "%0 = gpuc.concat %a0, %a1 dim 1 : (" + wide + ", " + wide + ") -> " + both +
               "\n%1 = gpuc.neg %0 : " + both + "\ngpuc.yield %1 : " + both,
      pad = "%0 = gpuc.slice %a0 starts [0, 0] limits [800, 762] strides [1, 1] : (" + narrow +
            ") -> tensor<800x762xf32>\n%1 = gpuc.neg %0 : tensor<800x762xf32>\n"
            "%2 = gpuc.pad %1 low [0, 0] high [0, 6] interior [0, 0] : (tensor<800x762xf32>) -> " +
            wide + "\n%3 = gpuc.add %2, %a1 : " + wide + "\ngpuc.yield %3 : " + wide;
  const struct {
    std::vector<std::string> from, to;
    std::string body;
    uint32_t grid; ///< So many numbers by 256 threads, in fours or in twos.
  } kCases[] = {{{wide, wide}, {both}, concat, 800 * 1536 / 4 / 256},
                {{narrow, wide}, {wide}, pad, 800 * 768 / 2 / 256}};
  for (const auto &[from, to, body, grid] : kCases) {
    EmulatedKernel gpu(from, to, body);
    EXPECT_EQ(gpu.schedule().grid, grid) << body;
    TestKernel host(from, to, body, testTargets().front());
    const std::vector<Buffer> arguments{numbers(4 * 800 * 768), numbers(4 * 800 * 768)};
    EXPECT_TRUE(gpu.run(arguments)[0].values<float>() == host.run(arguments)[0].values<float>()) << body;
  }
}

TEST(Cuda, NamesTheArchitecturesThatItKnows) {
  std::string error;
  EXPECT_TRUE(failed(CudaTarget::parse("sm_35", &error)));
  EXPECT_EQ(error, "unknown GPU architecture 'sm_35': one of sm_80, sm_89, sm_90, sm_100, sm_120");
}

TEST(Cuda, GivesEqualBytesForEqualInputs) {
  Case test = cases()[0];
  KernelText first(test.arguments, test.results, test.body), second(test.arguments, test.results, test.body);
  for (const CudaTarget &target : CudaTarget::known()) {
    CudaCode a = compileForCuda(first, target, /*cubin=*/true),
             b = compileForCuda(second, target, /*cubin=*/true);
    EXPECT_EQ(a.ptx, b.ptx);
    EXPECT_EQ(a.cubin, b.cubin);
    EXPECT_EQ(a.cubin.substr(0, 4), succeeded(findPtxas()) ? "\177ELF" : "") << target.architecture;
  }
}

/// Whatever is computed again, or named otherwise: what was compiled once is found again.
TEST(Cuda, GivesEqualBytesForEqualKernelsInAnyOrder) {
  std::vector<Case> three = cases();
  three.erase(three.begin() + 3, three.end());
  std::vector<std::unique_ptr<KernelText>> texts;
  std::vector<KernelSource> sources;
  for (const Case &test : three) {
    texts.push_back(std::make_unique<KernelText>(test.arguments, test.results, test.body));
    mlir::Block &block = texts.back()->block();
    sources.push_back({"kernel_" + std::to_string(sources.size()), &block, block.front().getLoc()});
  }
  std::vector<KernelSource> others = {sources[2], sources[0], sources[1], sources[0]};
  for (KernelSource &other : others)
    other.symbol = "other_" + other.symbol;
  CodegenOptions options;
  options.cubin = false;
  const CudaTarget target = *CudaTarget::parse("sm_90");
  auto a = compileCudaKernels(sources, target, options), b = compileCudaKernels(others, target, options);
  ASSERT_TRUE(succeeded(a) && succeeded(b));
  EXPECT_EQ(a->ptx, b->ptx);
  EXPECT_EQ(b->symbols, (std::vector{a->symbols[2], a->symbols[0], a->symbols[1], a->symbols[0]}));
}

TEST(Cuda, RoundsToBf16AndBoundsByOneInstructionEach) {
  const std::string type = "tensor<4194304xbf16>"; // so many that each thread takes eight
  KernelText text({type}, {type}, "%0 = gpuc.exp %a0 : " + type + "\ngpuc.yield %0 : " + type);
  text.block().getParentOp()->setAttr(kAlignedAttr, mlir::UnitAttr::get(text.block().front().getContext()));
  std::string ptx = compileForCuda(text, *CudaTarget::parse("sm_80")).ptx;
  EXPECT_NE(ptx.find("cvt.rn.bf16x2.f32"), std::string::npos) << ptx;
  EXPECT_EQ(ptx.find("setp.nan"), std::string::npos) << "no NaN is looked for";
  EXPECT_NE(ptx.find("min.NaN.f32"), std::string::npos) << ptx;
  EXPECT_EQ(ptx.find("selp.f32"), std::string::npos) << ptx;
}

TEST(Cuda, MakesDoWithPtxWhereThereIsNoPtxas) {
  std::string path = getenv("PATH") ? getenv("PATH") : "",
              home = getenv("CUDA_HOME") ? getenv("CUDA_HOME") : "";
  setenv("PATH", "/nowhere", 1);
  setenv("CUDA_HOME", "/nowhere", 1);
  Case test = cases()[0];
  KernelText text(test.arguments, test.results, test.body);
  std::string warning;
  mlir::ScopedDiagnosticHandler handler(text.block().getParentOp()->getContext(),
                                        [&](mlir::Diagnostic &diagnostic) {
                                          warning = diagnostic.str();
                                          return mlir::success();
                                        });
  CudaCode code = compileForCuda(text, *CudaTarget::parse("sm_90"), /*cubin=*/true);
  setenv("PATH", path.c_str(), 1);
  home.empty() ? unsetenv("CUDA_HOME") : setenv("CUDA_HOME", home.c_str(), 1);
  EXPECT_TRUE(code.cubin.empty());
  EXPECT_FALSE(code.ptx.empty());
  EXPECT_EQ(warning.find("no ptxas: the plan holds PTX alone"), 0u) << warning;
}

} // namespace
