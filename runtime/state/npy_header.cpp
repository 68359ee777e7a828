#include "runtime/state/npy_header.h"

#include "runtime/base/parse.h"
#include "runtime/base/quote.h"

namespace gpuc {
namespace {

/// A cursor over the dictionary's text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  void skipBlanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }

  bool atEnd() {
    skipBlanks();
    return at_ == text_.size();
  }

  bool take(char c) {
    skipBlanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool takeWord(std::string_view word) {
    skipBlanks();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Status expect(char c) {
    if (take(c)) return okStatus();
    return expected(std::string("'") + c + "'");
  }

  Status expected(const std::string& what) const {
    return Status::error("bad header: expected " + what + " at byte " + std::to_string(at_) +
                         " of its dictionary");
  }

  Result<std::string> takeString() {
    char quote = take('\'') ? '\'' : take('"') ? '"' : '\0';
    if (!quote) return expected("a string");
    size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) return expected("the end of the string that begins");
    std::string value(text_.substr(at_, end - at_));
    at_ = end + 1;
    return value;
  }

  Result<int64_t> takeExtent() {
    skipBlanks();
    size_t end = at_;
    while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
    Result<int64_t> extent = parseInt64(text_.substr(at_, end - at_));
    if (!extent.ok()) return expected("a non-negative integer of 64 bits");
    at_ = end;
    return extent;
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

/// "()", "(3,)", "(3, 4)".
Result<std::vector<int64_t>> takeShape(Scanner& scanner) {
  std::vector<int64_t> shape;
  GPUC_RETURN_IF_ERROR(scanner.expect('('));
  while (!scanner.take(')')) {
    GPUC_ASSIGN_OR_RETURN(int64_t extent, scanner.takeExtent());
    shape.push_back(extent);
    if (!scanner.take(',')) {
      GPUC_RETURN_IF_ERROR(scanner.expect(')'));
      break;
    }
  }
  return shape;
}

Status takeValue(Scanner& scanner, const std::string& key, NpyHeader& header) {
  if (key == "descr") {
    if (scanner.take('[')) return Status::error("holds records; save each field as an array of its own");
    GPUC_ASSIGN_OR_RETURN(header.descr, scanner.takeString());
  } else if (key == "fortran_order") {
    header.fortran_order = scanner.takeWord("True");
    if (!header.fortran_order && !scanner.takeWord("False")) return scanner.expected("True or False");
  } else {
    GPUC_ASSIGN_OR_RETURN(header.shape, takeShape(scanner));
  }
  return okStatus();
}

}  // namespace

Result<NpyHeader> parseNpyHeader(std::string_view text) {
  constexpr const char* kKeys[] = {"descr", "fortran_order", "shape"};
  Scanner scanner(text);
  NpyHeader header;
  bool seen[3] = {};
  GPUC_RETURN_IF_ERROR(scanner.expect('{'));
  while (!scanner.take('}')) {
    GPUC_ASSIGN_OR_RETURN(std::string key, scanner.takeString());
    int index = 0;
    while (index < 3 && key != kKeys[index]) ++index;
    if (index == 3) return Status::error("bad header: unknown key " + inQuotes(key));
    if (seen[index]) return Status::error("bad header: " + inQuotes(key) + " stands twice");
    seen[index] = true;
    GPUC_RETURN_IF_ERROR(scanner.expect(':'));
    GPUC_RETURN_IF_ERROR(takeValue(scanner, key, header));
    if (!scanner.take(',')) {
      GPUC_RETURN_IF_ERROR(scanner.expect('}'));
      break;
    }
  }
  if (!scanner.atEnd()) return scanner.expected("nothing more");
  for (int i = 0; i < 3; ++i)
    if (!seen[i]) return Status::error(std::string("bad header: no '") + kKeys[i] + "'");
  return header;
}

}  // namespace gpuc
