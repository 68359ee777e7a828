// The sum of a parallel's parts, in their order, whatever the type and the number of threads.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/half.h"
#include "test/runtime/plan_builder.h"
#include "test/runtime/session_helpers.h"

namespace gpuc::test {
namespace {

/// f(parts) = their sum, of `parts` times `elements` of a type.
PlanBuilder sumOf(DataType type, int64_t parts, int64_t elements) {
  PlanBuilder builder(1, TargetKind::host);
  const uint32_t x = builder.buffer("x", type, {parts, elements}), y = builder.buffer("y", type, {elements});
  fb::ProgramT& program = builder.program("f");
  PlanBuilder::input(program, "x", x);
  PlanBuilder::output(program, "y", y);
  builder.sum(program.streams[0]->commands, type, x, y);
  return builder;
}

template <typename T>
std::vector<T> sumBy(int threads, DataType type, int64_t parts, std::vector<T> x) {
  const int64_t elements = static_cast<int64_t>(x.size()) / parts;
  Session session = open(sumOf(type, parts, elements), {.threads = threads});
  const int64_t shape[] = {parts, elements};
  const HostTensorView views[] = {{x.data(), type, shape}};
  runOnce(session, ProgramId{0}, views);
  return valuesOf<T>(session.output(ProgramId{0}, 0));
}

/// Part by part from 0, in the type of `Total`.
template <typename T, typename Total, typename Widen, typename Round>
std::vector<T> expectedSum(int64_t parts, const std::vector<T>& x, Widen widen, Round round) {
  const size_t elements = x.size() / static_cast<size_t>(parts);
  std::vector<T> y;
  for (size_t i = 0; i < elements; ++i) {
    Total total = 0;
    for (size_t part = 0; part < static_cast<size_t>(parts); ++part) total += widen(x[part * elements + i]);
    y.push_back(round(total));
  }
  return y;
}

/// Of all sizes around a block and a tile, with one thread and several.
template <typename T, typename Total, typename Make, typename Widen, typename Round>
void expectSums(DataType type, Make make, Widen widen, Round round) {
  for (int64_t parts : {1, 2, 3, 4, 7})
    for (int64_t elements : {1, 31, 32, 33, 1023, 1024, 1025, 5000}) {
      std::vector<T> x;
      for (int64_t i = 0; i < parts * elements; ++i) x.push_back(make(i));
      const std::vector<T> expected = expectedSum<T, Total>(parts, x, widen, round);
      for (int threads : {1, 3})
        ASSERT_EQ(sumBy(threads, type, parts, x), expected) << parts << " parts of " << elements;
    }
}

/// Numbers whose sums round, and hang on their order.
float wild(int64_t i) {
  return std::sin(static_cast<float>(i * i % 1013)) * std::exp2(static_cast<float>(i % 23));
}

TEST(Sum, AddsPartsInTheirOrder) {
  const auto same = std::identity();
  expectSums<float, float>(DataType::f32, wild, same, same);
  expectSums<double, double>(DataType::f64, [](int64_t i) { return wild(i) / 3.0; }, same, same);
}

TEST(Sum, RoundsNarrowFloatsOnce) {
  auto half = [](int64_t i) { return floatToHalf(wild(i) / 1024); };
  auto brain = [](int64_t i) { return floatToBfloat16(wild(i)); };
  expectSums<uint16_t, float>(DataType::f16, half, halfToFloat, floatToHalf);
  expectSums<uint16_t, float>(DataType::bf16, brain, bfloat16ToFloat, floatToBfloat16);
}

TEST(Sum, OfNegativeZerosIsZero) {
  EXPECT_FALSE(std::signbit(sumBy<float>(1, DataType::f32, 2, {-0.0f, -0.0f}).front())) << "as gpuc.sum's";
}

}  // namespace
}  // namespace gpuc::test
