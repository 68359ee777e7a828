//===- link_test.cpp - What ranks exchange by -----------------------------------===//

#include "passes/cost/Link.h"

#include <gtest/gtest.h>

namespace gpuc {
namespace {

std::string errorOf(const std::string &text) {
  Result<Link> link = parseLink(text);
  return link.ok() ? "" : link.message();
}

TEST(Link, IsKnownByNameAndByFigures) {
  EXPECT_TRUE(parseLink("memory")->takesCores);
  const Result<Link> link = parseLink("ethernet:bandwidth=12.5GB,latency=20");
  EXPECT_EQ(link->bytesPerNanosecond, 12.5);
  EXPECT_EQ(link->latencyNanoseconds, 20'000);
  EXPECT_FALSE(link->takesCores);
  EXPECT_EQ(parseLink("ethernet:latency=1")->bytesPerNanosecond, parseLink("ethernet")->bytesPerNanosecond);
}

TEST(Link, IsWrittenAsItIsRead) {
  const Result<Link> link = parseLink("ethernet:bandwidth=12.5GB,latency=20.25");
  EXPECT_EQ(textOf(*link), "ethernet:bandwidth=12500000000,latency=20.250");
  const Result<Link> again = parseLink(textOf(*link));
  EXPECT_EQ(again->bytesPerNanosecond, 12.5);
  EXPECT_EQ(again->latencyNanoseconds, 20'250);
  EXPECT_EQ(textOf({"ethernet", 1e-11, 0}), "ethernet:bandwidth=1,latency=0.000");
}

TEST(Link, TakesTwoMessagesAndAShareOfTheBytesTwice) {
  const Link link = {"", /*bytesPerNanosecond=*/2, /*latencyNanoseconds=*/100};
  EXPECT_EQ(link.allReduceNanoseconds(4000, 1), 0);
  EXPECT_EQ(link.allReduceNanoseconds(4000, 2), 200 + 2000);
  EXPECT_EQ(link.allReduceNanoseconds(4000, 4), 200 + 3000);
  EXPECT_NEAR(link.allReduceNanoseconds(4000), 200 + 4000, 0.01);
}

TEST(Link, WhatIsWrongIsQuoted) {
  EXPECT_EQ(errorOf("etherent"), "unknown link 'etherent'; did you mean ethernet?");
  EXPECT_EQ(errorOf("ethernet:bandwith=1GB"), "unknown key 'bandwith'; did you mean bandwidth?");
  EXPECT_EQ(errorOf("nvlink:bandwidth=0"), "bandwidth=0: nothing would arrive");
  EXPECT_EQ(errorOf("nvlink:latency=-1"), "latency=-1 is less than 0");
  EXPECT_NE(errorOf("nvlink:latency=fast"), "");
  EXPECT_NE(errorOf("nvlink:"), "");
  EXPECT_NE(errorOf(""), "");
}

} // namespace
} // namespace gpuc
