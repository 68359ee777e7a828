// The CSV form of problems: what is read, what is written, and how an error names its line.
#include "passes/placement/Csv.h"

#include <gtest/gtest.h>

namespace gpuc::placement {
namespace {

std::string errorOf(const std::string& text) { return parseCsv(text, "p.csv").message(); }

TEST(Csv, ReadsRowsByTheNamesOfTheColumns) {
  Result<CsvTable> table = parseCsv("size,id,upper,lower\n7,a,3,-1\n0,b,9,3\n", "p.csv");
  ASSERT_TRUE(table.ok()) << table.message();
  ASSERT_EQ(table->problem.buffers.size(), 2u);
  const Buffer& a = table->problem.buffers[0];
  EXPECT_EQ(a.id, "a");
  EXPECT_EQ(a.lower, -1);
  EXPECT_EQ(a.upper, 3);
  EXPECT_EQ(a.size, 7);
  EXPECT_EQ(a.alignment, 1);
}

TEST(Csv, AddsTheOffsetLastAndKeepsTheRest) {
  Result<CsvTable> table = parseCsv("size,id,upper,lower\n7,a,3,-1\n5,b,9,3\n", "p.csv");
  ASSERT_TRUE(table.ok()) << table.message();
  EXPECT_EQ(printCsv(*table, {{8, 0}, 15}), "size,id,upper,lower,offset\n7,a,3,-1,8\n5,b,9,3,0\n");
}

TEST(Csv, ReplacesAnOffsetThatIsThere) {
  Result<CsvTable> table = parseCsv("offset,id,lower,upper,size\nwhatever,a,0,1,2\n", "p.csv");
  ASSERT_TRUE(table.ok()) << table.message();
  EXPECT_EQ(printCsv(*table, {{4}, 6}), "offset,id,lower,upper,size\n4,a,0,1,2\n");
}

TEST(Csv, HeaderAloneIsAnEmptyProblem) {
  Result<CsvTable> table = parseCsv("id,lower,upper,size", "p.csv");
  ASSERT_TRUE(table.ok()) << table.message();
  EXPECT_TRUE(table->problem.buffers.empty());
  EXPECT_EQ(printCsv(*table, {}), "id,lower,upper,size,offset\n");
}

TEST(Csv, QuotesByteOrderMarkAndCrLfAreUnderstood) {
  Result<CsvTable> table =
      parseCsv("\xef\xbb\xbfid,lower,upper,size\r\n\"x,\"\"y\"\"\",0,1,2\r\n\r\n", "p.csv");
  ASSERT_TRUE(table.ok()) << table.message();
  EXPECT_EQ(table->problem.buffers[0].id, "x,\"y\"");
  EXPECT_EQ(printCsv(*table, {{0}, 2}), "id,lower,upper,size,offset\n\"x,\"\"y\"\"\",0,1,2,0\n");
}

TEST(Csv, HeaderErrors) {
  EXPECT_EQ(errorOf(""), "p.csv:1: no header line; expected id,lower,upper,size");
  EXPECT_EQ(errorOf("id,lower,upper\n"), "p.csv:1: column 'size' is missing");
  EXPECT_EQ(errorOf("id,lower,upper,size,id\n"), "p.csv:1: column 'id' occurs twice");
  EXPECT_EQ(errorOf("id,lower,upper,size,alignment,hint\n"),
            "p.csv:1: unknown columns: 'alignment', 'hint'; the header line names id, lower, upper, size");
}

TEST(Csv, RowErrorsNameTheirLine) {
  const std::string header = "id,lower,upper,size\na,0,1,1\n\n";  // the blank line counts
  EXPECT_EQ(errorOf(header + "b,0,1\n"), "p.csv:4: 3 fields, but the header line names 4");
  EXPECT_EQ(errorOf(header + "b,0,1,2,3\n"), "p.csv:4: 5 fields, but the header line names 4");
  EXPECT_EQ(errorOf(header + "b,0,x,2\n"), "p.csv:4: upper: 'x' is not an integer");
  EXPECT_EQ(errorOf(header + "b,0,1,1e3\n"), "p.csv:4: size: '1e3' is not an integer");
  EXPECT_EQ(errorOf(header + "b,0,1,9223372036854775808\n"),
            "p.csv:4: size: '9223372036854775808' is not within the range of 64-bit integers");
  EXPECT_EQ(errorOf(header + "b,1,1,2\n"),
            "p.csv:4: buffer 'b': the interval [1, 1) is empty; upper must be more than lower");
  EXPECT_EQ(errorOf(header + "b,0,1,-2\n"), "p.csv:4: buffer 'b': the size -2 is negative");
  EXPECT_EQ(errorOf(header + "a,0,1,2\n"), "p.csv:4: id 'a' stands on line 2 already");
  EXPECT_EQ(errorOf(header + ",0,1,2\n"), "p.csv:4: the id is empty");
  EXPECT_EQ(errorOf(header + "\"b,0,1,2\n"), "p.csv:4: a quoted field does not end on its line");
  EXPECT_EQ(errorOf(header + "\"b\"c,0,1,2\n"), "p.csv:4: a quoted field is followed by more than a comma");
}

TEST(Csv, SizesThatSumBeyondInt64AreAnError) {
  EXPECT_EQ(errorOf("id,lower,upper,size\na,0,1,9223372036854775807\nb,5,6,1\n"),
            "p.csv: buffer 'b': the sizes up to here sum to 2^63 bytes or more");
}

}  // namespace
}  // namespace gpuc::placement
