// Lines of cells for people.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuc {

using Row = std::vector<std::string>;
using AddRow = std::function<void(const Row&)>;

/// Columns that are as wide as their widest cell, but for cells so long that every other line would pay for
/// them; those in `numbers`, counted from 0, end together. `rows` is asked twice: a table of all cells would
/// be several times as long as what it tells of.
inline void writeTable(const std::function<void(const AddRow&)>& rows,
                       const std::function<void(std::string_view)>& sink,
                       const std::vector<size_t>& numbers = {}) {
  constexpr size_t kMostWidth = 64;
  std::vector<size_t> widths;
  rows([&](const Row& row) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t c = 0; c < row.size(); ++c)
      if (row[c].size() <= kMostWidth) widths[c] = std::max(widths[c], row[c].size());
  });
  rows([&](const Row& row) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string blanks(std::max(widths[c], row[c].size()) - row[c].size(), ' ');
      const bool is_number = std::find(numbers.begin(), numbers.end(), c) != numbers.end();
      line += (is_number ? blanks + row[c] : row[c] + blanks) + "  ";
    }
    sink("  " + line.substr(0, line.find_last_not_of(' ') + 1) + "\n");
  });
}

}  // namespace gpuc
