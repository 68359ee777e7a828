#include "runtime/base/quote.h"

#include <gtest/gtest.h>

#include <random>

#include "runtime/base/status.h"
#include "runtime/base/warn.h"

namespace gpuc {
namespace {

TEST(Quote, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(printable("\x1b[2J"), "\\x1b[2J");
  EXPECT_EQ(printable("a\tb\r\n"), "a\\x09b\\x0d\\x0a");
  EXPECT_EQ(printable("\x7f"), "\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "1m"),
            "\\xc2\\x9b1m")
      << "U+009B, which begins a sequence";
  EXPECT_EQ(printable("\x9b"
                      "1m"),
            "\\x9b1m")
      << "of no UTF-8";
  EXPECT_EQ(printable("\xe2\x80\xaegnp.exe"), "\\xe2\\x80\\xaegnp.exe") << "U+202E, right to left";
  EXPECT_EQ(printable("\xe2\x81\xa6"), "\\xe2\\x81\\xa6") << "U+2066, an isolate";
  EXPECT_EQ(printable("\xe2\x80\xa8"), "\\xe2\\x80\\xa8") << "U+2028, a line's end";
  EXPECT_EQ(printable(std::string_view("\0x", 2)), "\\x00x");
}

TEST(Quote, LeavesTextOfAnyLanguage) {
  for (const char* text : {"", "plain", "naïve", "прогноз", "予測", "🙂", "…", "\xc2\xa0", "\xef\xbf\xbd"}) {
    EXPECT_TRUE(isPrintable(text)) << text;
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Quote, WhatIsNoUtf8IsShownByteByByte) {
  for (const char* text :
       {"\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff", "\xe2\x80"}) {
    EXPECT_FALSE(isPrintable(text));
    EXPECT_EQ(printable(text).size(), 4 * std::string_view(text).size());
  }
}

TEST(Quote, ShownTextIsPrintableAndShowsTheSameAgain) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string text(random() % 12, '\0');
    for (char& c : text) c = static_cast<char>(random());
    const std::string shown = printable(text);
    ASSERT_TRUE(isPrintable(shown));
    EXPECT_EQ(printable(shown), shown);
    EXPECT_EQ(shown == text, isPrintable(text));
    EXPECT_TRUE(isPrintable(inQuotes(text)));
    EXPECT_EQ(Status::error(text).message(), shown);
  }
}

TEST(Quote, CutsBetweenCharacters) {
  EXPECT_EQ(firstBytes("äöü", 3), "ä");
  EXPECT_EQ(firstBytes("äöü", 4), "äö");
  EXPECT_EQ(firstBytes("abc", 9), "abc");
  EXPECT_LE(firstBytes("\x80\x80\x80\x80\x80\x80", 5).size(), 5u);
  EXPECT_EQ(inQuotes(std::string(99, 'a') + "ä"), "'" + std::string(99, 'a') + "…'");
}

TEST(Quote, AnErrorAndAWarningAreOneLine) {
  EXPECT_EQ(errorf("%s: damaged", "a\n\x1b[31mb").message(), "a\\x0a\\x1b[31mb: damaged");
  testing::internal::CaptureStderr();
  warn("tensor '\x1b]0;owned\a'");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "warning: tensor '\\x1b]0;owned\\x07'\n");
}

}  // namespace
}  // namespace gpuc
