#include "runtime/base/flags_elsewhere.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "runtime/base/flags.h"

namespace gpuc {
namespace {

constexpr ToolFlag kToolFlags[] = {
#include "runtime/base/tool_flags.inc"
};

/// As flags are written here: batch_size and Batch-Size are batch-size.
std::string normalized(std::string name) {
  for (char& c : name) c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// "--optimizer=adam:lr=…" is the flag "optimizer".
std::string nameOf(std::string_view flag) { return std::string(flag.substr(2, flag.find('=') - 2)); }

/// "gpuc-run, gpuc-train and gpuc-generate": the tools that have this flag; empty if none has.
std::string ownersOf(const std::string& name) {
  std::vector<std::string> owners;
  for (const ToolFlag& flag : kToolFlags)
    if (name == flag.flag || (flag.flag.ends_with('-') && name.starts_with(flag.flag)))
      owners.emplace_back(flag.tool);
  std::string text;
  for (size_t i = 0; i < owners.size(); ++i)
    text += (i == 0 ? "" : i + 1 == owners.size() ? " and " : ", ") + owners[i];
  return text;
}

std::string didYouMean(std::string_view flag, const std::vector<std::string>& own) {
  bool elsewhere = !has(own, nameOf(flag));
  return "did you mean " + std::string(flag) + (elsewhere ? " of " + ownersOf(nameOf(flag)) : "") + "?";
}

/// What a habit of this name means to a tool with these flags.
std::optional<std::string> explainHabit(const std::string& name, const std::vector<std::string>& own) {
  for (const Habit& habit : habits()) {
    std::string padded = " " + std::string(habit.words) + " ";
    if (padded.find(" " + name + " ") == std::string::npos) continue;
    if (habit.flags.empty()) return std::string(habit.sentence);
    auto mine = std::find_if(habit.flags.begin(), habit.flags.end(),
                             [&](std::string_view flag) { return has(own, nameOf(flag)); });
    return didYouMean(mine == habit.flags.end() ? habit.flags.front() : *mine, own);
  }
  return std::nullopt;
}

std::string similarElsewhere(const std::string& name) {
  std::vector<std::string> names;
  for (const ToolFlag& flag : kToolFlags) names.emplace_back(flag.flag);
  return similarName(name, names);
}

}  // namespace

std::span<const ToolFlag> toolFlags() { return kToolFlags; }

std::string suggestFlag(const std::vector<std::string>& own, const std::string& asked) {
  std::string name = normalized(asked);
  if (has(own, name)) return didYouMean("--" + name, own);
  // A word that we know is surer than one that looks alike, and what this tool has than what another one has.
  std::string owners = ownersOf(name);
  std::string whose = owners.empty() ? "" : "--" + name + " is a flag of " + owners;
  std::optional<std::string> habit = explainHabit(name, own);
  if (habit) return whose.empty() ? *habit : *habit + " " + whose;
  std::string similar = similarName(name, own);
  if (!similar.empty()) return didYouMean("--" + similar, own) + (whose.empty() ? "" : " " + whose);
  if (!whose.empty()) return whose;
  if (std::string other = similarElsewhere(name); !other.empty()) return didYouMean("--" + other, own);
  return didYouMean("--" + nearestName(name, own), own);
}

}  // namespace gpuc
