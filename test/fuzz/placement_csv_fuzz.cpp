// The CSV reader of gpuc-place-buffers: any text gives a table or an error, and a table survives printing and
// reading.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "passes/placement/Csv.h"

using namespace gpuc::placement;

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  gpuc::Result<CsvTable> table = parseCsv(text, "f");
  if (!table.ok()) {
    require(table.message().starts_with("f:"), "an error names the file");
    require(table.message().find('\n') == std::string::npos, "an error is one line");
    return 0;
  }
  Solution solution{std::vector<int64_t>(table->problem.buffers.size(), 7), 0};
  gpuc::Result<CsvTable> again = parseCsv(printCsv(*table, solution), "f");
  require(again.ok(), "what is printed can be read");
  require(again->problem.buffers.size() == table->problem.buffers.size(), "no row is lost");
  for (size_t i = 0; i < again->problem.buffers.size(); ++i) {
    const Buffer& a = table->problem.buffers[i];
    const Buffer& b = again->problem.buffers[i];
    require(a.id == b.id && a.lower == b.lower && a.upper == b.upper && a.size == b.size,
            "rows stay as they were");
  }
  return 0;
}
