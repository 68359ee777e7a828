// What --help prints: a usage line, the summary, then every positional argument and flag with its default.
// Lines end where the terminal does, and go on under what they say.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/base/flags.h"

namespace gpuc {
namespace {

constexpr size_t kHelpColumn = 30, kMostColumns = 100, kFewestColumns = 60;

/// A narrower terminal than the fewest breaks lines by itself.
size_t columns() {
  winsize window{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) return kMostColumns;
  return std::clamp<size_t>(window.ws_col, kFewestColumns, kMostColumns);
}

/// In characters; of UTF-8, bytes that begin none do not count.
size_t widthOf(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; });
}

/// `text` behind what fills a line up to `indent`, where further lines begin, too. No word is broken.
std::string wrapped(std::string_view text, size_t indent) {
  const size_t most = columns();
  std::string lines;
  size_t used = indent;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const bool is_first = used == indent;
    if (!is_first && used + 1 + widthOf(word) > most) {
      lines += "\n" + std::string(indent, ' ');
      used = indent;
    } else if (!is_first) {
      lines += ' ';
      ++used;
    }
    lines += word;
    used += widthOf(word);
  }
  return lines + "\n";
}

/// "  --input=FILE    what to read", the help on a line of its own when the left part is long.
std::string row(const std::string& left, const std::string& help) {
  std::string text = "  " + left;
  size_t used = widthOf(text);
  if (used + 2 > kHelpColumn) {
    text += "\n";
    used = 0;
  }
  return text + std::string(kHelpColumn - used, ' ') + wrapped(help, kHelpColumn);
}

}  // namespace

std::string Flag::spelling() const {
  std::string value = value_name_.empty() ? "" : "=" + value_name_;
  if (implied_ && !value.empty()) value = "[" + value + "]";
  return "--" + name_ + value;
}

std::string CommandLine::usage() const {
  std::string text = "Usage: " + tool_;
  for (const Positional& positional : positionals_) {
    std::string name = positional.name + (positional.rest ? " …" : "");
    text += positional.required ? " " + name : " [" + name + "]";
  }
  for (const Flag& flag : flags_)
    if (flag.required_) text += " " + flag.spelling();
  return text + " [flags]\n";
}

std::string CommandLine::help() const {
  std::string text = usage() + wrapped(summary_, 0);
  if (!positionals_.empty()) text += "\nArguments:\n";
  for (const Positional& positional : positionals_) text += row(positional.name, positional.help);

  text += "\nFlags:\n";
  auto describe = [&text](const Flag& flag) {
    std::string left = flag.spelling();
    if (flag.letter_) left = "-" + std::string(1, flag.letter_) + ", " + left;
    std::string help = flag.help_;
    for (size_t i = 0; i < flag.choices_.size(); ++i) help += (i == 0 ? ": " : ", ") + flag.choices_[i];
    if (flag.required_) help += " (required)";
    if (flag.repeatable_) help += " (may be repeated)";
    if (!flag.required_ && !flag.default_text_.empty()) help += " (default: " + flag.default_text_ + ")";
    text += row(left, help);
  };
  // --help and --version are declared first and read best last.
  std::for_each(flags_.begin() + 2, flags_.end(), describe);
  for (const Prefix& prefix : prefixes_) text += row("--" + prefix.text + "…", prefix.help);
  std::for_each(flags_.begin(), flags_.begin() + 2, describe);
  return text;
}

}  // namespace gpuc
