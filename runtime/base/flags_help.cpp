// What --help prints: a usage line, the summary, then every positional argument and flag with its default.
#include <algorithm>

#include "runtime/base/flags.h"

namespace gpuc {
namespace {

constexpr size_t kHelpColumn = 30;

/// "  --input=FILE    what to read", the help on a line of its own when the left part is long.
std::string row(const std::string& left, const std::string& help) {
  std::string text = "  " + left;
  if (text.size() + 2 > kHelpColumn) text += "\n";
  size_t used = text.back() == '\n' ? 0 : text.size();
  return text + std::string(kHelpColumn - used, ' ') + help + "\n";
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
  std::string text = usage() + summary_ + "\n";
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
