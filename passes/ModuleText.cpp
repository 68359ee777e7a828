//===- ModuleText.cpp - Text that the parser of MLIR can be given ----------===//
//
// The text is read as its tokens are, as far as brackets, aliases and numbers of results go: comments and
// strings are passed over.
//
//===----------------------------------------------------------------------===//

#include "passes/ModuleText.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <vector>

namespace gpuc {
namespace {

constexpr int kMostNested = 256;
constexpr uint64_t kMostAliasBytes = 16 << 20;
constexpr size_t kMostResultDigits = 6;

/// `#name = …` or `!name = …`: its own text, and which others it names.
struct Alias {
  size_t begin = 0;
  uint64_t bytes = 0;
  int depth = 0; ///< Of brackets, and of aliases in it once they are known.
  std::vector<std::string_view> uses = {};
  enum { Unknown, Underway, Known } state = Unknown;
};

bool isNameCharacter(char character) {
  return std::isalnum(static_cast<unsigned char>(character)) || character == '_' || character == '$' ||
         character == '.';
}

class Scanner {
public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::optional<TextFault> find() {
    while (at_ < text_.size())
      if (auto fault = scanToken())
        return fault;
    endAlias();
    return checkAliases();
  }

private:
  TextFault faultAt(size_t place, const std::string &what) const {
    std::string_view before = text_.substr(0, place);
    size_t line = std::count(before.begin(), before.end(), '\n') + 1;
    size_t begin = before.rfind('\n');
    size_t column = place - (begin == std::string_view::npos ? 0 : begin + 1) + 1;
    return {line, column, what};
  }

  std::optional<TextFault> scanToken() {
    const char character = text_[at_];
    if (character == '\n')
      endAliasAtLine();
    hasValue_ |= !std::isspace(static_cast<unsigned char>(character)) && character != '=';
    if (text_.substr(at_).starts_with("//"))
      at_ = std::min(text_.find('\n', at_), text_.size());
    else if (character == '"')
      skipString();
    else if (text_.substr(at_).starts_with("->"))
      at_ += 2;
    else if (character == '#' || character == '!')
      return scanAlias();
    else if (std::string_view("([{<").find(character) != std::string_view::npos)
      return open();
    else if (std::string_view(")]}>").find(character) != std::string_view::npos)
      depth_ -= depth_ > 0, ++at_;
    else
      ++at_;
    return std::nullopt;
  }

  std::optional<TextFault> open() {
    if (++depth_ > kMostNested)
      return faultAt(at_, "this bracket is nested in " + std::to_string(kMostNested) +
                              " others; no module needs as many: write it with fewer");
    if (current_)
      current_->depth = std::max(current_->depth, depth_);
    ++at_;
    return std::nullopt;
  }

  void skipString() {
    for (++at_; at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n'; ++at_)
      at_ += text_[at_] == '\\';
    at_ = std::min(at_ + 1, text_.size());
  }

  /// An alias is defined outside of all brackets, and used elsewhere. `%x#3`, a value's fourth result, looks
  /// as one does.
  std::optional<TextFault> scanAlias() {
    const size_t begin = at_++;
    while (at_ < text_.size() && isNameCharacter(text_[at_]))
      ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    const bool isNumber =
        name.size() > 1 && name.find_first_not_of("0123456789", 1) == std::string_view::npos;
    if (isNumber && name.size() - 1 > kMostResultDigits)
      return faultAt(begin, "a result's number has more than " + std::to_string(kMostResultDigits) +
                                " digits; no op has as many results");
    const size_t next = text_.find_first_not_of(" \t\r\n", at_);
    if (depth_ == 0 && next != std::string_view::npos && text_[next] == '=') {
      endAlias();
      current_ = &aliases_[name];
      *current_ = Alias();
      current_->begin = begin;
      at_ = next + 1;
      hasValue_ = false;
    } else if (current_) {
      current_->uses.push_back(name);
    }
    return std::nullopt;
  }

  /// A value ends with its line, unless a bracket is open or comes next.
  void endAliasAtLine() {
    const size_t next = text_.find_first_not_of(" \t\r\n", at_);
    if (depth_ == 0 && hasValue_ &&
        (next == std::string_view::npos ||
         std::string_view("([{<:").find(text_[next]) == std::string_view::npos))
      endAlias();
  }

  void endAlias() {
    if (current_)
      current_->bytes = at_ - current_->begin;
    current_ = nullptr;
  }

  //===--------------------------------------------------------------------===//
  // What aliases stand for
  //===--------------------------------------------------------------------===//

  std::optional<TextFault> checkAliases() {
    for (auto &[name, alias] : aliases_)
      if (auto fault = measure(alias))
        return fault;
    return std::nullopt;
  }

  /// Adds up what an alias stands for, those that it names first. An alias may name another as often as there
  /// are aliases, so this does not recurse.
  std::optional<TextFault> measure(Alias &first) {
    std::vector<Alias *> underway{&first};
    while (!underway.empty()) {
      Alias &alias = *underway.back();
      if (alias.state == Alias::Known) {
        underway.pop_back();
        continue;
      }
      const bool again = alias.state == Alias::Underway;
      alias.state = again ? Alias::Known : Alias::Underway;
      for (std::string_view use : alias.uses) {
        auto found = aliases_.find(use);
        if (found == aliases_.end())
          continue;
        Alias &used = found->second;
        if (!again && used.state == Alias::Unknown)
          underway.push_back(&used);
        if (!again)
          continue;
        alias.bytes = std::min(alias.bytes + used.bytes, 2 * kMostAliasBytes);
        alias.depth = std::max(alias.depth, used.depth + 1);
      }
      if (again && alias.bytes > kMostAliasBytes)
        return faultAt(alias.begin, "what this alias stands for, with the aliases in it, takes more than " +
                                        std::to_string(kMostAliasBytes >> 20) + " MiB of text");
      if (again && alias.depth > kMostNested)
        return faultAt(alias.begin, "what this alias stands for is nested more than " +
                                        std::to_string(kMostNested) + " deep, with the aliases in it");
      if (again)
        underway.pop_back();
    }
    return std::nullopt;
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  Alias *current_ = nullptr; ///< The alias whose definition is being read.
  bool hasValue_ = false;    ///< Whether that has begun, behind its equals sign.
  std::unordered_map<std::string_view, Alias> aliases_;
};

} // namespace

std::optional<TextFault> findTextFault(std::string_view text) { return Scanner(text).find(); }

Status checkModuleText(std::string_view text, const std::string &fileName) {
  const std::optional<TextFault> fault = findTextFault(text);
  if (!fault)
    return okStatus();
  return Status::error(fileName + ":" + std::to_string(fault->line) + ":" + std::to_string(fault->column) +
                       ": " + fault->what);
}

} // namespace gpuc
