#include "runtime/base/flags.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/base/flags_elsewhere.h"
#include "runtime/base/parse.h"
#include "runtime/base/quote.h"
#include "runtime/base/version.h"

namespace gpuc {
namespace {

using Setter = std::function<Result<double>(const std::string&)>;

// Texts are not held against a range: their number is 0, and only numbers are given one.
Setter textSetter(std::function<void(std::string)> set) {
  return [set = std::move(set)](const std::string& text) -> Result<double> {
    set(text);
    return 0.0;
  };
}

template <typename Number>
Setter numberSetter(std::function<void(Number)> set, Result<Number> (*parse)(std::string_view)) {
  return [set = std::move(set), parse](const std::string& text) -> Result<double> {
    GPUC_ASSIGN_OR_RETURN(Number number, parse(text));
    set(number);
    return static_cast<double>(number);
  };
}

std::string shortest(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", value);
  return text;
}

/// Levenshtein's distance, one row at a time.
size_t editDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearestName(const std::string& name, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = std::numeric_limits<size_t>::max();
  for (const std::string& candidate : candidates) {
    size_t distance = editDistance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string similarName(const std::string& name, const std::vector<std::string>& candidates) {
  std::string nearest = nearestName(name, candidates);
  return 2 * editDistance(name, nearest) < name.size() ? nearest : "";
}

Flag& Flag::required() {
  required_ = true;
  return *this;
}

Flag& Flag::shortName(char letter) {
  letter_ = letter;
  return *this;
}

Flag& Flag::impliedValue(std::string value) {
  implied_ = std::move(value);
  return *this;
}

Flag& Flag::choices(std::vector<std::string> texts) {
  choices_ = std::move(texts);
  return *this;
}

Flag& Flag::range(double low, double high) {
  low_ = low;
  high_ = high;
  return *this;
}

Flag& Flag::orWord(std::string word, bool* said) {
  word_ = std::move(word);
  word_said_ = said;
  return *this;
}

Status Flag::accept(const std::string& text) {
  if (seen_ && !repeatable_) return Status::error("--" + name_ + " is given twice");
  seen_ = true;
  if (text.empty()) return Status::error("missing value: " + spelling());
  Status status = store(text);
  return status.ok() ? status : Status::error("--" + name_ + ": " + status.message());
}

Status Flag::store(const std::string& text) const {
  if (!choices_.empty() && std::find(choices_.begin(), choices_.end(), text) == choices_.end()) {
    std::string known;
    for (const std::string& choice : choices_) known += (known.empty() ? "" : ", ") + choice;
    return Status::error("'" + text + "' is none of " + known);
  }
  if (word_said_ && text == word_) {
    *word_said_ = true;
    return okStatus();
  }
  Result<double> number = set_(text);
  if (!number.ok()) return Status::error(number.message() + (word_said_ ? ", nor '" + word_ + "'" : ""));
  if (*number < low_) return Status::error(text + " is less than " + shortest(low_));
  if (*number > high_) return Status::error(text + " is more than " + shortest(high_));
  return okStatus();
}

/// The arguments with a place in them.
class CommandLine::Arguments {
 public:
  explicit Arguments(const std::vector<std::string>& texts) : texts_(texts) {}
  bool done() const { return next_ == texts_.size(); }
  const std::string& peek() const { return texts_[next_]; }
  const std::string& take() { return texts_[next_++]; }

 private:
  const std::vector<std::string>& texts_;
  size_t next_ = 0;
};

CommandLine::CommandLine(std::string tool, std::string summary)
    : tool_(std::move(tool)), summary_(std::move(summary)) {
  addBool("help", &wants_help_, "print this text").shortName('h');
  addBool("version", &wants_version_, "print the version");
}

Flag& CommandLine::add(std::string name, std::string value_name, std::string help, std::string default_text,
                       Setter set) {
  Flag& flag = flags_.emplace_back();
  flag.name_ = std::move(name);
  flag.value_name_ = std::move(value_name);
  flag.help_ = std::move(help);
  flag.default_text_ = std::move(default_text);
  flag.set_ = std::move(set);
  return flag;
}

Flag& CommandLine::addString(std::string name, FlagTarget<std::string> value, std::string value_name,
                             std::string help) {
  return add(std::move(name), std::move(value_name), std::move(help), value.initial.value_or(""),
             textSetter(value.set));
}

Flag& CommandLine::addInt(std::string name, FlagTarget<int64_t> value, std::string value_name,
                          std::string help) {
  return add(std::move(name), std::move(value_name), std::move(help),
             value.initial ? std::to_string(*value.initial) : "", numberSetter(value.set, parseInt64));
}

Flag& CommandLine::addDouble(std::string name, FlagTarget<double> value, std::string value_name,
                             std::string help) {
  return add(std::move(name), std::move(value_name), std::move(help),
             value.initial ? shortest(*value.initial) : "", numberSetter(value.set, parseDouble));
}

Flag& CommandLine::addSize(std::string name, FlagTarget<int64_t> bytes, std::string help) {
  return add(std::move(name), "SIZE", std::move(help), bytes.initial ? std::to_string(*bytes.initial) : "",
             numberSetter(bytes.set, parseSize));
}

Flag& CommandLine::addBool(std::string name, bool* value, std::string help) {
  auto set = [value](const std::string& text) -> Result<double> {
    if (text != "true" && text != "false") return Status::error("'" + text + "' is neither true nor false");
    *value = text == "true";
    return 0.0;
  };
  return add(std::move(name), "", std::move(help), "", set).impliedValue("true");
}

Flag& CommandLine::addStrings(std::string name, std::vector<std::string>* values, std::string value_name,
                              std::string help) {
  auto append = [values](const std::string& text) { values->push_back(text); };
  Flag& flag = add(std::move(name), std::move(value_name), std::move(help), "", textSetter(append));
  flag.repeatable_ = true;
  return flag;
}

void CommandLine::addPositional(std::string name, FlagTarget<std::string> value, std::string help) {
  positionals_.push_back({std::move(name), std::move(help), std::move(value.set),
                          /*required=*/value.initial.has_value()});
}

void CommandLine::addPositionals(std::string name, std::vector<std::string>* values, std::string help) {
  positionals_.push_back({std::move(name), std::move(help),
                          [values](const std::string& text) { values->push_back(text); }, /*required=*/false,
                          /*rest=*/true});
}

void CommandLine::passThrough(std::string prefix, std::vector<std::string>* arguments, std::string help) {
  prefixes_.push_back({std::move(prefix), std::move(help), arguments});
}

Flag* CommandLine::find(const std::string& name) {
  for (Flag& flag : flags_)
    if (flag.name_ == name) return &flag;
  return nullptr;
}

Flag* CommandLine::find(char letter) {
  for (Flag& flag : flags_)
    if (flag.letter_ == letter) return &flag;
  return nullptr;
}

Status CommandLine::unknownFlag(const std::string& written, const std::string& name) const {
  std::vector<std::string> names;
  for (const Flag& flag : flags_) names.push_back(flag.name_);
  // --help and --version come first; of equally near names the tool's own is likelier.
  std::rotate(names.begin(), names.begin() + 2, names.end());
  std::string cure = suggestFlag(names, name);
  for (const Positional& positional : positionals_)
    if (positional.rest && similarName(name, names).empty())
      cure += (cure.ends_with('?') ? " " : "; ") + positional.name + " is written without dashes";
  return Status::error("unknown flag " + written + "; " + cure);
}

Status CommandLine::unknownLetter(char letter) const {
  std::string known;
  for (const Flag& flag : flags_)
    if (flag.name_[0] == letter) known += (known.empty() ? "" : " or ") + flag.spelling();
  std::string cure = known.empty() ? "see --help" : "did you mean " + known + "?";
  return Status::error(std::string("unknown flag -") + letter + "; " + cure);
}

Status CommandLine::parseValue(Flag& flag, std::optional<std::string> attached, Arguments& arguments) {
  if (attached) return flag.accept(*attached);
  if (flag.implied_) return flag.accept(*flag.implied_);
  // A long flag in the value's place means that the value was forgotten, not that it is called so.
  if (arguments.done() || arguments.peek().starts_with("--"))
    return Status::error("missing value: " + flag.spelling());
  return flag.accept(arguments.take());
}

Status CommandLine::parseLong(const std::string& argument, Arguments& arguments) {
  size_t equals = argument.find('=');
  std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
  std::optional<std::string> attached;
  if (equals != std::string::npos) attached = argument.substr(equals + 1);

  if (Flag* flag = find(name)) return parseValue(*flag, std::move(attached), arguments);
  for (Prefix& prefix : prefixes_) {
    if (!name.starts_with(prefix.text)) continue;
    prefix.arguments->push_back(argument);
    return okStatus();
  }
  return unknownFlag("--" + name, name);
}

Status CommandLine::parseShort(const std::string& argument, Arguments& arguments) {
  Flag* flag = find(argument[1]);
  // -epochs, as some programs have it. -output=x is not -o with the value "utput=x".
  std::string name = argument.substr(1, argument.find('=') - 1);
  if (!flag && name.size() == 1) return unknownLetter(name[0]);
  if (!flag || find(name)) return unknownFlag("-" + name, name);
  std::optional<std::string> attached;
  if (argument.size() > 2) attached = argument.substr(argument[2] == '=' ? 3 : 2);
  return parseValue(*flag, std::move(attached), arguments);
}

Status CommandLine::setPositional(const std::string& argument) {
  if (argument.empty()) return Status::error("an argument is empty; see --help");
  for (Positional& positional : positionals_) {
    if (positional.seen && !positional.rest) continue;
    positional.set(argument);
    positional.seen = true;
    return okStatus();
  }
  return Status::error("unexpected argument '" + argument + "'; see --help");
}

Status CommandLine::checkComplete() const {
  for (const Positional& positional : positionals_)
    if (positional.required && !positional.seen) return Status::error("missing argument: " + positional.name);
  for (const Flag& flag : flags_)
    if (flag.required_ && !flag.seen_) return Status::error("missing argument: " + flag.spelling());
  return okStatus();
}

std::string CommandLine::givenBeside(const std::vector<std::string>& names) const {
  for (const Positional& positional : positionals_)
    if (positional.seen) return positional.name;
  for (const Flag& flag : flags_)
    if (flag.seen_ && std::find(names.begin(), names.end(), flag.name_) == names.end())
      return flag.spelling();
  return "";
}

Status CommandLine::parseAll(Arguments& arguments) {
  bool flags_ended = false;
  while (!arguments.done()) {
    const std::string& argument = arguments.take();
    if (!flags_ended && argument == "--") {
      flags_ended = true;
    } else if (flags_ended || argument.size() < 2 || argument[0] != '-') {
      GPUC_RETURN_IF_ERROR(setPositional(argument));
    } else {
      GPUC_RETURN_IF_ERROR(argument[1] == '-' ? parseLong(argument, arguments)
                                              : parseShort(argument, arguments));
      // What is asked for help need not be complete.
      if (wants_help_ || wants_version_) return okStatus();
    }
  }
  return checkComplete();
}

ParseOutcome CommandLine::parse(const std::vector<std::string>& arguments) {
  Arguments rest(arguments);
  Status status = parseAll(rest);
  if (!status.ok()) return {2, "", "error: " + status.message() + "\n"};
  if (wants_help_) return {0, help(), ""};
  if (wants_version_) return {0, tool_ + " " GPUC_VERSION "\n", ""};
  return {};
}

std::optional<int> CommandLine::parse(int argc, const char* const* argv) {
  ParseOutcome outcome = parse(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
  std::fputs(outcome.err.c_str(), stderr);
  // A stream would take what fits its buffer, and forget why the rest could not be written.
  if (Status written = writeFileAtomically("-", outcome.out); !written.ok()) {
    std::fprintf(stderr, "error: %s\n", written.message().c_str());
    return 1;
  }
  return outcome.exit_code;
}

int CommandLine::usageError(const std::string& message) {
  std::fprintf(stderr, "error: %s\n", printable(message).c_str());
  return 2;
}

}  // namespace gpuc
