// The command lines of gpuc's tools. A tool declares its flags and positional arguments bound to variables
// that hold the defaults, then parses:
//
//   std::string input;
//   int64_t threads = 0;
//   gpuc::CommandLine cli("gpuc-run", "Runs one entry of a plan.");
//   cli.addString("input", &input, "FILE", "what to read; - is stdin").required();
//   cli.addInt("threads", &threads, "N", "threads to compute with; 0 is one a core").range(0, 4096);
//   if (std::optional<int> exit_code = cli.parse(argc, argv)) return *exit_code;
//
// Accepted forms: --name=value, --name value, -n value, -nvalue, --switch, --switch=false; `--` ends the
// flags, `-` is a positional argument. --help (-h) and --version come with every command line. A flag given
// twice is an error unless it was declared with addStrings; so is an empty value.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace gpuc {

/// One declared flag; its methods refine the declaration and return it, so that they chain.
class Flag {
 public:
  /// The command line is an error without it.
  Flag& required();

  /// Also `-c value` and `-cvalue` (as in -O2).
  Flag& shortName(char letter);

  /// `--name` alone means `--name=value`; the next argument is then never taken as the value.
  Flag& impliedValue(std::string value);

  /// Only these texts are accepted.
  Flag& choices(std::vector<std::string> texts);

  /// Numbers and sizes must lie within [low, high].
  Flag& range(double low, double high = std::numeric_limits<double>::infinity());

  /// In place of a value, this word; `said` is set then, and the value is not.
  Flag& orWord(std::string word, bool* said);

 private:
  friend class CommandLine;

  Status accept(const std::string& text);
  Status store(const std::string& text) const;
  /// "--input=FILE", "-o FILE", "--json[=FILE]": how help and errors write the flag.
  std::string spelling() const;

  std::string name_;
  std::string value_name_;
  std::string help_;
  std::string default_text_;
  std::function<Result<double>(const std::string&)>
      set_;  // stores the text; gives the number to hold against the range
  std::vector<std::string> choices_;
  std::string word_;
  bool* word_said_ = nullptr;
  std::optional<std::string> implied_;
  double low_ = -std::numeric_limits<double>::infinity();
  double high_ = std::numeric_limits<double>::infinity();
  char letter_ = 0;
  bool required_ = false;
  bool repeatable_ = false;
  bool seen_ = false;
};

/// The variable that a flag's value goes to. A plain one holds the default; one of std::optional stays empty
/// when the flag is not given.
template <typename T>
struct FlagTarget {
  FlagTarget(T* value) : set([value](T text) { *value = std::move(text); }), initial(*value) {}  // NOLINT
  FlagTarget(std::optional<T>* value) : set([value](T text) { *value = std::move(text); }) {}    // NOLINT

  std::function<void(T)> set;
  std::optional<T> initial;
};

/// What parsing came to: `exit_code` is set when the tool must end now, after printing the texts.
struct ParseOutcome {
  std::optional<int> exit_code;
  std::string out;  // for stdout: the help or the version
  std::string err;  // for stderr: one line "error: …"
};

/// The flags and positional arguments of one tool. Variables bound to it must outlive it.
class CommandLine {
 public:
  CommandLine(std::string tool, std::string summary);

  // One kind of value each. `value_name` is what help calls the value: FILE, N, SIZE.
  Flag& addString(std::string name, FlagTarget<std::string> value, std::string value_name, std::string help);
  Flag& addInt(std::string name, FlagTarget<int64_t> value, std::string value_name, std::string help);
  Flag& addDouble(std::string name, FlagTarget<double> value, std::string value_name, std::string help);

  /// A size in bytes, written as parseSize reads it.
  Flag& addSize(std::string name, FlagTarget<int64_t> bytes, std::string help);

  /// A switch: `--name`, or `--name=true|false`.
  Flag& addBool(std::string name, bool* value, std::string help);

  /// A flag that may be given many times; its values are appended.
  Flag& addStrings(std::string name, std::vector<std::string>* values, std::string value_name,
                   std::string help);

  /// Positional arguments, filled in the order of their declaration: one that must be there, unless it goes
  /// to a std::optional, and last all the rest.
  void addPositional(std::string name, FlagTarget<std::string> value, std::string help);
  void addPositionals(std::string name, std::vector<std::string>* values, std::string help);

  /// Flags whose name starts with `prefix` are not interpreted but appended to `arguments` as written
  /// (`--mlir-timing`, for an option parser of somebody else). They take values only by '='.
  void passThrough(std::string prefix, std::vector<std::string>* arguments, std::string help);

  /// Parses without printing. `arguments` are those after the tool's name.
  ParseOutcome parse(const std::vector<std::string>& arguments);

  /// Parses and prints. A value is the exit code with which main must return at once: 0 after --help and
  /// --version, 2 after an error.
  std::optional<int> parse(int argc, const char* const* argv);

  /// After parsing: the first of the arguments that is none of these flags, as help writes it; empty if there
  /// is none. For a flag that asks for something else than the tool's work, by which others mean nothing.
  std::string givenBeside(const std::vector<std::string>& names) const;

  /// Prints "error: message" on stderr and returns 2: for what only the tool can find wrong with its
  /// arguments.
  static int usageError(const std::string& message);

  /// The text of --help.
  std::string help() const;

 private:
  struct Positional {
    std::string name;
    std::string help;
    std::function<void(const std::string&)> set;
    bool required = false;
    bool rest = false;
    bool seen = false;
  };
  struct Prefix {
    std::string text;
    std::string help;
    std::vector<std::string>* arguments;
  };
  class Arguments;  // the arguments with a place in them

  Flag& add(std::string name, std::string value_name, std::string help, std::string default_text,
            std::function<Result<double>(const std::string&)> set);
  Flag* find(const std::string& name);
  Flag* find(char letter);
  Status parseAll(Arguments& arguments);
  Status parseLong(const std::string& argument, Arguments& arguments);
  Status parseShort(const std::string& argument, Arguments& arguments);
  Status parseValue(Flag& flag, std::optional<std::string> attached, Arguments& arguments);
  Status setPositional(const std::string& argument);
  Status checkComplete() const;
  Status unknownFlag(const std::string& written, const std::string& name) const;
  Status unknownLetter(char letter) const;
  std::string usage() const;

  std::string tool_;
  std::string summary_;
  std::deque<Flag> flags_;  // a deque: the references given out stay valid
  std::vector<Positional> positionals_;
  std::vector<Prefix> prefixes_;
  bool wants_help_ = false;
  bool wants_version_ = false;
};

/// The candidate with the smallest edit distance to `name`, the first of several; "" if there are none.
std::string nearestName(const std::string& name, const std::vector<std::string>& candidates);

/// nearestName() where it may be what was meant: less than half of the letters differ; else "".
std::string similarName(const std::string& name, const std::vector<std::string>& candidates);

}  // namespace gpuc
