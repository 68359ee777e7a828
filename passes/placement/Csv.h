// Placement problems as CSV, the form in which they are exchanged with other planners: a header line that
// names the columns id, lower, upper and size in any order, then a buffer a line. Fields with commas or
// quotes stand in double quotes. Times and sizes are integers; intervals are half-open.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "passes/placement/Problem.h"
#include "runtime/base/status.h"

namespace gpuc::placement {

enum class CsvColumn { kId, kLower, kUpper, kSize, kOffset };

/// A problem with the order of the columns that it came in.
struct CsvTable {
  Problem problem;
  std::vector<CsvColumn> columns;
};

/// Reads a table. A column `offset` is skipped, any other column is an error, as are ids that are empty or
/// occur twice. Errors read "FILE:LINE: …", where FILE is `file_name`.
Result<CsvTable> parseCsv(std::string_view text, const std::string& file_name);

/// The rows of `table` in their order with the offsets of `solution`; a column `offset` is added last where
/// the table had none.
std::string printCsv(const CsvTable& table, const Solution& solution);

}  // namespace gpuc::placement
