// Philox against Random123's known answers, and the conversions that synthetic data rest on.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/base/half.h"
#include "runtime/base/philox.h"

namespace gpuc {
namespace {

// From kat_vectors of Random123 1.14: nat "philox4x32 10 counter key result".
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformNumbersStayInTheirIntervals) {
  EXPECT_EQ(uniformFloat(0), 0.0f);
  EXPECT_EQ(uniformFloat(0xffffffff), 1.0f - 0x1p-24f);
  EXPECT_EQ(uniformBelow(0, 10), 0u);
  EXPECT_EQ(uniformBelow(UINT64_MAX, 10), 9u);
  EXPECT_EQ(uniformBelow(uint64_t{1} << 63, 10), 5u);
  EXPECT_EQ(philoxKey(0x0123456789abcdef), (PhiloxKey{0x89abcdef, 0x01234567}));
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(floatToHalf(0.0f), 0x0000);
  EXPECT_EQ(floatToHalf(-0.0f), 0x8000);
  EXPECT_EQ(floatToHalf(1.0f), 0x3c00);
  EXPECT_EQ(floatToHalf(-2.0f), 0xc000);
  EXPECT_EQ(floatToHalf(65504.0f), 0x7bff);             // the largest
  EXPECT_EQ(floatToHalf(65519.996f), 0x7bff);           // just below half way to 65536
  EXPECT_EQ(floatToHalf(65520.0f), 0x7c00);             // half way: to even, which is infinity
  EXPECT_EQ(floatToHalf(1.0f + 0x1p-11f), 0x3c00);      // a tie: down to even
  EXPECT_EQ(floatToHalf(1.0f + 3 * 0x1p-11f), 0x3c02);  // a tie: up to even
  EXPECT_EQ(floatToHalf(0x1p-14f), 0x0400);             // the smallest normal
  EXPECT_EQ(floatToHalf(0x1p-24f), 0x0001);             // the smallest subnormal
  EXPECT_EQ(floatToHalf(0x1p-25f), 0x0000);             // a tie: down to zero
  EXPECT_EQ(floatToHalf(0x1.8p-25f), 0x0001);
  EXPECT_EQ(floatToHalf(std::numeric_limits<float>::infinity()), 0x7c00);
  EXPECT_EQ(floatToHalf(std::nanf("")) & 0x7e00, 0x7e00);
}

#ifdef __FLT16_MANT_DIG__
// Against the compiler's own conversion, over a spread of all bit patterns.
TEST(Half, AgreesWithTheCompiler) {
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 4099) {
    float value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(floatToHalf(value), std::bit_cast<uint16_t>(static_cast<_Float16>(value))) << value;
  }
}
#endif

TEST(Bfloat16, RoundsToNearestEven) {
  EXPECT_EQ(floatToBfloat16(1.0f), 0x3f80);
  EXPECT_EQ(floatToBfloat16(1.0f + 0x1p-8f), 0x3f80);      // a tie: down to even
  EXPECT_EQ(floatToBfloat16(1.0f + 3 * 0x1p-8f), 0x3f82);  // a tie: up to even
  EXPECT_EQ(floatToBfloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(floatToBfloat16(std::bit_cast<float>(0x7f800001u)), 0x7fc0);  // not infinity
  EXPECT_EQ(bfloat16ToFloat(0x4049), 3.140625f);
}

}  // namespace
}  // namespace gpuc
