// Row-major plans to column-major cuBLASLt: every transpose, batches, types and biases against a plain loop.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "test/runtime/cuda/test_kernels.h"
#include "test/runtime/session_helpers.h"

namespace gpuc::test {
namespace {

struct Case {
  bool transpose_a, transpose_b;
  uint64_t batch, m, n, k;
  bool share_a, share_b;  // one matrix for the whole batch
  bool bias, relu, accumulate;

  uint64_t sizeA() const { return (share_a ? 1 : batch) * m * k; }
  uint64_t sizeB() const { return (share_b ? 1 : batch) * k * n; }
};

std::vector<Case> cases() {
  std::vector<Case> list;
  for (bool ta : {false, true})
    for (bool tb : {false, true})
      for (auto [bias, relu, accumulate] : {std::tuple<bool, bool, bool>{false, false, false},
                                            {true, false, false},
                                            {false, true, false},
                                            {true, true, false},
                                            {false, false, true}})
        for (auto [m, n, k] :
             {std::array<uint64_t, 3>{1, 1, 1}, {3, 5, 7}, {8, 1, 4}, {1, 9, 16}, {12, 10, 1}})
          for (auto [batch, share_a, share_b] : {std::tuple<uint64_t, bool, bool>{1, false, false},
                                                 {4, false, false},
                                                 {3, true, false},
                                                 {3, false, true}})
            list.push_back({ta, tb, batch, m, n, k, share_a, share_b, bias, relu, accumulate});
  return list;
}

std::string nameOf(const Case& c) {
  return std::string(c.transpose_a ? "T" : "N") + (c.transpose_b ? "T" : "N") + " batch " +
         std::to_string(c.batch) + (c.share_a ? " of one a" : "") + (c.share_b ? " of one b" : "") + " m " +
         std::to_string(c.m) + " n " + std::to_string(c.n) + " k " + std::to_string(c.k) +
         (c.bias ? " bias" : "") + (c.relu ? " relu" : "") + (c.accumulate ? " accumulate" : "");
}

template <typename T>
std::vector<T> randomValues(uint64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<T> uniform(-1, 1);
  std::vector<T> values(count);
  for (T& value : values) value = uniform(random);
  return values;
}

/// c[batch, m, n] by the plan format's own words, row-major, in f64.
template <typename T>
std::vector<double> plainLoop(const Case& c, const std::vector<T>& a, const std::vector<T>& b,
                              const std::vector<T>& bias) {
  std::vector<double> result;
  for (uint64_t batch = 0; batch < c.batch; ++batch)
    for (uint64_t i = 0; i < c.m; ++i)
      for (uint64_t j = 0; j < c.n; ++j) {
        double sum = c.bias ? double(bias[j]) : 0;
        for (uint64_t k = 0; k < c.k; ++k) {
          uint64_t at_a = (c.share_a ? 0 : batch * c.m * c.k) + (c.transpose_a ? k * c.m + i : i * c.k + k);
          uint64_t at_b = (c.share_b ? 0 : batch * c.k * c.n) + (c.transpose_b ? j * c.k + k : k * c.n + j);
          sum += double(a[at_a]) * double(b[at_b]);
        }
        if (c.relu && sum <= 0) sum = 0;
        result.push_back(c.accumulate ? 2 * sum : sum);  // to what one more matmul has left there
      }
  return result;
}

template <typename T>
void check(const Case& c, DataType type) {
  SCOPED_TRACE(nameOf(c));
  auto extent = [](uint64_t size) { return std::vector<int64_t>{static_cast<int64_t>(size)}; };
  PlanBuilder builder(1, TargetKind::cuda);
  uint32_t a = builder.variable("a", type, extent(c.sizeA())),
           b = builder.variable("b", type, extent(c.sizeB())),
           bias = builder.variable("bias", type, extent(c.n)),
           result = builder.buffer("c", type, extent(c.batch * c.m * c.n));
  fb::ProgramT& program = builder.program("f");
  fb::MatmulT& matmul = builder.matmul(program.streams[0]->commands, a, b, result, c.m, c.n, c.k);
  matmul.batch = c.batch;
  matmul.transpose_a = c.transpose_a;
  matmul.transpose_b = c.transpose_b;
  matmul.batch_stride_a = c.share_a ? 0 : c.m * c.k;
  matmul.batch_stride_b = c.share_b ? 0 : c.k * c.n;
  if (c.accumulate) {
    auto first = std::make_unique<fb::CommandT>(*program.streams[0]->commands.front());
    matmul.accumulate = true;
    program.streams[0]->commands.insert(program.streams[0]->commands.begin(), std::move(first));
  }
  matmul.relu = c.relu;
  if (c.bias) matmul.bias = builder.operand({bias});
  PlanBuilder::output(program, "c", result);

  Session session = open(builder);
  EXPECT_EQ(session.memory().library_bytes, FakeGpu::current->blas_context_bytes);
  std::vector<T> values_a = randomValues<T>(c.sizeA(), 1), values_b = randomValues<T>(c.sizeB(), 2),
                 values_bias = randomValues<T>(c.n, 3);
  ASSERT_TRUE(session.writeVariable("a", std::as_bytes(std::span(values_a))).ok());
  ASSERT_TRUE(session.writeVariable("b", std::as_bytes(std::span(values_b))).ok());
  ASSERT_TRUE(session.writeVariable("bias", std::as_bytes(std::span(values_bias))).ok());
  ProgramId f = programOf(session, "f");
  runOnce(session, f);
  std::vector<T> found = valuesOf<T>(session.output(f, 0));
  std::vector<double> expected = plainLoop(c, values_a, values_b, values_bias);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], 64 * double(std::numeric_limits<T>::epsilon())) << "element " << i;
}

TEST(MatmulMapping, IsThatOfThePlan) {
  FakeGpu gpu;
  for (const Case& c : cases()) {
    check<float>(c, DataType::f32);
    check<double>(c, DataType::f64);
    if (testing::Test::HasFailure()) return;
  }
}

/// Operands in the middle of buffers: what cuBLASLt is told of alignment must hold, the bias's included.
TEST(MatmulMapping, SaysHowFarAddressesAreAligned) {
  FakeGpu gpu;
  for (uint64_t offset : {4, 8, 16, 48}) {
    PlanBuilder builder(1, TargetKind::cuda);
    uint32_t all = builder.variable("all", DataType::f32, {256}),
             c = builder.buffer("c", DataType::f32, {64});
    fb::ProgramT& program = builder.program("f");
    for (int operand = 0; operand < 4; ++operand) {
      fb::MatmulT& matmul = builder.matmul(program.streams[0]->commands, all, all, c, 4, 4, 4);
      matmul.a = builder.operand({all, operand == 0 ? offset : 0, 64});
      matmul.b = builder.operand({all, 256 + (operand == 1 ? offset : 0), 64});
      matmul.c = builder.operand({c, operand == 2 ? offset : 0, 64});
      matmul.bias = builder.operand({all, 512 + (operand == 3 ? offset : 0), 16});
    }
    Session session = open(builder);
    runOnce(session, programOf(session, "f"));
  }
}

/// An operand that moves within a repeat is aligned to no more than its stride.
TEST(MatmulMapping, CountsStridesInTheAlignment) {
  FakeGpu gpu;
  PlanBuilder builder(1, TargetKind::cuda);
  uint32_t a = builder.variable("a", DataType::f32, {64}), c = builder.buffer("c", DataType::f32, {64});
  fb::ProgramT& program = builder.program("f");
  fb::MatmulT& matmul =
      builder.matmul(PlanBuilder::repeat(program.streams[0]->commands, 5), a, a, c, 2, 2, 2);
  matmul.a = builder.operand({a, 0, 16, {12}});
  matmul.b = builder.operand({a, 64, 16, {20}});
  matmul.c = builder.operand({c, 0, 16, {16}});
  Session session = open(builder);
  runOnce(session, programOf(session, "f"));
}

/// 1 + 2^-11 lies between two numbers of TF32, which round it to 1 + 2^-10; f32 holds it.
TEST(MatmulMapping, RoundsToTf32WhereThePlanSaysSo) {
  FakeGpu gpu;
  for (bool tf32 : {false, true}) {
    PlanBuilder builder(1, TargetKind::cuda);
    uint32_t a = builder.variable("a", DataType::f32, {1}), b = builder.variable("b", DataType::f32, {1}),
             c = builder.buffer("c", DataType::f32, {1});
    fb::ProgramT& program = builder.program("f");
    builder.matmul(program.streams[0]->commands, a, b, c, 1, 1, 1).tf32 = tf32;
    PlanBuilder::output(program, "c", c);
    Session session = open(builder);
    const float values[] = {1 + 0x1p-11f, 1};
    ASSERT_TRUE(session.writeVariable("a", std::as_bytes(std::span(values, 1))).ok());
    ASSERT_TRUE(session.writeVariable("b", std::as_bytes(std::span(values + 1, 1))).ok());
    ProgramId f = programOf(session, "f");
    runOnce(session, f);
    EXPECT_EQ(valuesOf<float>(session.output(f, 0))[0], tf32 ? 1 + 0x1p-10f : 1 + 0x1p-11f);
  }
}

/// A plan for one matmul whose workspace is `bytes` long.
PlanBuilder workspacePlan(int64_t bytes, DataType type = DataType::f32) {
  PlanBuilder builder(1, TargetKind::cuda);
  uint32_t a = builder.variable("a", type, {16, 16}), c = builder.buffer("c", type, {16, 16}),
           workspace = builder.buffer("workspace", DataType::i8, {bytes});
  fb::MatmulT& matmul = builder.matmul(builder.program("f").streams[0]->commands, a, a, c, 16, 16, 16);
  if (bytes > 0) matmul.workspace = builder.operand({workspace});
  return builder;
}

TEST(MatmulMapping, TakesAnAlgorithmThatFitsItsWorkspace) {
  FakeGpu gpu;
  gpu.blas_workspace_bytes = 1024;
  Session session = open(workspacePlan(1024));
  runOnce(session, programOf(session, "f"));
  EXPECT_EQ(
      Session::create(workspacePlan(960).parse()).message(),
      "program 'f': cuBLASLt " + std::to_string(CUBLAS_VER_MAJOR) + "." + std::to_string(CUBLAS_VER_MINOR) +
          "." + std::to_string(CUBLAS_VER_PATCH) +
          " has no algorithm for this f32 matmul (batch 1, m 16, n 16, k 16) within 960 bytes of workspace: "
          "compile with a newer gpuc, or update cuBLAS (fc1)");
}

}  // namespace
}  // namespace gpuc::test
