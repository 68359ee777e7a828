#include "runtime/base/parse.h"

#include <gtest/gtest.h>

namespace gpuc {
namespace {

TEST(Parse, IntegersMustFillTheText) {
  EXPECT_EQ(*parseInt64("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(*parseInt64("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(parseInt64("9223372036854775808").message(),
            "'9223372036854775808' is not within the range of 64-bit integers");
  for (const char* text : {"", " 1", "1 ", "+1", "1.0", "0x10", "--1"})
    EXPECT_FALSE(parseInt64(text).ok()) << text;
}

TEST(Parse, NumbersMustBeFinite) {
  EXPECT_EQ(*parseDouble("1e-3"), 1e-3);
  EXPECT_EQ(*parseDouble("-0.5"), -0.5);
  for (const char* text : {"", "inf", "nan", "1e999", "1,5", "1e"})
    EXPECT_FALSE(parseDouble(text).ok()) << text;
}

TEST(Parse, SizesKnowPowersOfTenAndOfTwo) {
  EXPECT_EQ(*parseSize("0"), 0);
  EXPECT_EQ(*parseSize("123"), 123);
  EXPECT_EQ(*parseSize("3KB"), 3000);
  EXPECT_EQ(*parseSize("3KiB"), 3072);
  EXPECT_EQ(*parseSize("2MB"), 2000000);
  EXPECT_EQ(*parseSize("2MiB"), 2097152);
  EXPECT_EQ(*parseSize("5GB"), 5000000000);
  EXPECT_EQ(*parseSize("1.5GiB"), 1610612736);
  EXPECT_EQ(*parseSize("0.7KiB"), 716);  // 716.8: what is less than a byte is cut off
}

TEST(Parse, SizesMayNotOverflowOrBeNegative) {
  EXPECT_EQ(*parseSize("8589934591GiB"), 9223372035781033984);  // 2^63 - 2^30
  EXPECT_EQ(parseSize("8589934592GiB").message(), "'8589934592GiB' is not a size below 2^63 bytes");
  EXPECT_EQ(parseSize("9223372036854775808").message(),
            "'9223372036854775808' is not a size below 2^63 bytes");
  EXPECT_EQ(parseSize("99999999999999999999KB").message(),
            "'99999999999999999999KB' is not a size below 2^63 bytes");
  EXPECT_EQ(parseSize("-99999999999999999999").message().find("2^63"), std::string::npos);
  for (const char* text : {"", "-1", "-1KB", "1.5", "GiB", "1 GiB", "1gb", "1TB", "1.KB", ".5KB", "1.-5KB"})
    EXPECT_FALSE(parseSize(text).ok()) << text;
}

}  // namespace
}  // namespace gpuc
