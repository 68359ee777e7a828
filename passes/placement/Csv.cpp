#include "passes/placement/Csv.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <unordered_map>

#include "runtime/base/parse.h"

namespace gpuc::placement {
namespace {

constexpr std::string_view kColumnNames[] = {"id", "lower", "upper", "size", "offset"};

std::string_view nameOf(CsvColumn column) { return kColumnNames[static_cast<size_t>(column)]; }

/// Where the number of a column stands; not of the id and of the offset.
int64_t Buffer::* memberOf(CsvColumn column) {
  constexpr int64_t Buffer::* kMembers[] = {nullptr, &Buffer::lower, &Buffer::upper, &Buffer::size};
  return kMembers[static_cast<size_t>(column)];
}

bool has(const std::vector<CsvColumn>& columns, CsvColumn column) {
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

/// Takes one field in double quotes off the front of `rest`; a doubled quote stands for one.
Result<std::string> takeQuoted(std::string_view& rest) {
  std::string field;
  rest.remove_prefix(1);
  while (true) {
    size_t quote = rest.find('"');
    if (quote == std::string_view::npos) return Status::error("a quoted field does not end on its line");
    field += rest.substr(0, quote);
    rest.remove_prefix(quote + 1);
    if (!rest.starts_with('"')) break;
    field += '"';
    rest.remove_prefix(1);
  }
  if (!rest.empty() && rest[0] != ',')
    return Status::error("a quoted field is followed by more than a comma");
  return field;
}

Result<std::vector<std::string>> splitFields(std::string_view line) {
  std::vector<std::string> fields;
  while (true) {
    if (line.starts_with('"')) {
      GPUC_ASSIGN_OR_RETURN(std::string field, takeQuoted(line));
      fields.push_back(std::move(field));
    } else {
      fields.emplace_back(line.substr(0, line.find(',')));
      line.remove_prefix(fields.back().size());
    }
    if (line.empty()) return fields;
    line.remove_prefix(1);  // the comma
  }
}

Result<std::vector<CsvColumn>> parseHeader(std::string_view line) {
  GPUC_ASSIGN_OR_RETURN(std::vector<std::string> names, splitFields(line));
  std::vector<CsvColumn> columns;
  std::string unknown;
  for (const std::string& name : names) {
    auto known = std::find(std::begin(kColumnNames), std::end(kColumnNames), name);
    if (known == std::end(kColumnNames)) {
      unknown += (unknown.empty() ? "'" : ", '") + name + "'";
      continue;
    }
    CsvColumn column = static_cast<CsvColumn>(known - std::begin(kColumnNames));
    if (has(columns, column)) return Status::error("column '" + name + "' occurs twice");
    columns.push_back(column);
  }
  if (!unknown.empty())
    return Status::error("unknown columns: " + unknown + "; the header line names id, lower, upper, size");
  for (CsvColumn column : {CsvColumn::kId, CsvColumn::kLower, CsvColumn::kUpper, CsvColumn::kSize})
    if (!has(columns, column))
      return Status::error("column '" + std::string(nameOf(column)) + "' is missing");
  return columns;
}

Result<int64_t> parseNumber(CsvColumn column, const std::string& field) {
  Result<int64_t> number = parseInt64(field);
  if (!number.ok()) return Status::error(std::string(nameOf(column)) + ": " + number.message());
  return number;
}

Result<Buffer> parseRow(std::string_view line, const std::vector<CsvColumn>& columns) {
  GPUC_ASSIGN_OR_RETURN(std::vector<std::string> fields, splitFields(line));
  if (fields.size() != columns.size())
    return Status::error(std::to_string(fields.size()) + " fields, but the header line names " +
                         std::to_string(columns.size()));
  Buffer buffer;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (columns[i] == CsvColumn::kOffset) continue;
    if (columns[i] == CsvColumn::kId) {
      buffer.id = fields[i];
      continue;
    }
    GPUC_ASSIGN_OR_RETURN(buffer.*memberOf(columns[i]), parseNumber(columns[i], fields[i]));
  }
  if (buffer.id.empty()) return Status::error("the id is empty");
  return buffer;
}

/// The lines of a text, numbered from 1, without their ends (LF or CRLF); blank ones are skipped.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  std::optional<std::string_view> next() {
    while (!rest_.empty()) {
      std::string_view line = rest_.substr(0, rest_.find('\n'));
      rest_.remove_prefix(std::min(line.size() + 1, rest_.size()));
      ++number_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.empty()) return line;
    }
    return std::nullopt;
  }

  size_t number() const { return number_; }

 private:
  std::string_view rest_;
  size_t number_ = 0;
};

/// Adds the row to the table; `line_of` knows where each id stood.
Status addRow(std::string_view line, size_t number, CsvTable& table,
              std::unordered_map<std::string, size_t>& line_of) {
  GPUC_ASSIGN_OR_RETURN(Buffer buffer, parseRow(line, table.columns));
  GPUC_RETURN_IF_ERROR(checkProblem({.buffers = {buffer}, .conflicts = {}, .capacity = {}}));
  auto [known, is_new] = line_of.emplace(buffer.id, number);
  if (!is_new)
    return Status::error("id '" + buffer.id + "' stands on line " + std::to_string(known->second) +
                         " already");
  table.problem.buffers.push_back(std::move(buffer));
  return okStatus();
}

std::string quoteIfNeeded(const std::string& field) {
  if (field.find_first_of(",\"\r") == std::string::npos) return field;
  std::string quoted = "\"";
  for (char c : field) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string fieldText(CsvColumn column, const Buffer& buffer, int64_t offset) {
  if (column == CsvColumn::kId) return quoteIfNeeded(buffer.id);
  return std::to_string(column == CsvColumn::kOffset ? offset : buffer.*memberOf(column));
}

}  // namespace

Result<CsvTable> parseCsv(std::string_view text, const std::string& file_name) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // the byte order mark that spreadsheets write
  Lines lines(text);
  auto at = [&](const Status& status) {
    return Status::error(file_name + ":" + std::to_string(std::max<size_t>(lines.number(), 1)) + ": " +
                         status.message());
  };
  std::optional<std::string_view> header = lines.next();
  if (!header) return at(Status::error("no header line; expected id,lower,upper,size"));

  CsvTable table;
  Result<std::vector<CsvColumn>> columns = parseHeader(*header);
  if (!columns.ok()) return at(columns.status());
  table.columns = *std::move(columns);

  std::unordered_map<std::string, size_t> line_of;
  while (std::optional<std::string_view> line = lines.next()) {
    Status status = addRow(*line, lines.number(), table, line_of);
    if (!status.ok()) return at(status);
  }
  // What is left is the sum of the sizes, which belongs to no one line.
  Status status = checkProblem(table.problem);
  if (!status.ok()) return Status::error(file_name + ": " + status.message());
  return table;
}

std::string printCsv(const CsvTable& table, const Solution& solution) {
  std::vector<CsvColumn> columns = table.columns;
  if (!has(columns, CsvColumn::kOffset)) columns.push_back(CsvColumn::kOffset);
  std::string text;
  for (CsvColumn column : columns) text += (text.empty() ? "" : ",") + std::string(nameOf(column));
  text += "\n";
  for (size_t i = 0; i < table.problem.buffers.size(); ++i) {
    for (size_t c = 0; c < columns.size(); ++c)
      text += (c == 0 ? "" : ",") + fieldText(columns[c], table.problem.buffers[i], solution.offsets[i]);
    text += "\n";
  }
  return text;
}

}  // namespace gpuc::placement
