//===- Profile.cpp - What commands took in a run -------------------------------===//

#include "passes/cost/Profile.h"

#include "passes/cost/Json.h"

#include <algorithm>
#include <limits>
#include <vector>

using namespace mlir;

namespace gpuc {
namespace {

/// Of an event of the trace, if it is a command of a training step.
struct Event {
  Profile::Key command;
  double nanoseconds;
};

std::optional<Event> eventOf(const llvm::json::Value &value) {
  const llvm::json::Object *event = value.getAsObject();
  const llvm::json::Object *arguments = event ? event->getObject("args") : nullptr;
  if (!arguments || event->getString("ph") != "X" || arguments->getString("entry") != "train_step")
    return std::nullopt;
  const auto name = event->getString("name");
  const auto bytes = arguments->getInteger("bytes");
  const auto microseconds = event->getNumber("dur");
  constexpr double kMostMicroseconds = 1e12;
  if (!name || !bytes || !microseconds || !(*microseconds >= 0 && *microseconds <= kMostMicroseconds))
    return std::nullopt;
  return Event{{name->str(), *bytes}, *microseconds * 1000};
}

double medianOf(std::vector<double> &values) {
  auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

} // namespace

Result<Profile> Profile::parse(StringRef text, const std::string &name) {
  const Result<llvm::json::Value> trace = parseJson(text);
  const std::string cure = "; give what gpuc-run PLAN --entry=train_step --profile=FILE wrote";
  if (!trace.ok())
    return Status::error(name + ": " + trace.message() + cure);
  const llvm::json::Object *root = trace->getAsObject();
  const llvm::json::Array *events = root ? root->getArray("traceEvents") : nullptr;
  if (!events)
    return Status::error(name + ": not a profile" + cure);
  std::map<Key, std::vector<double>> times;
  double least = std::numeric_limits<double>::max();
  for (const llvm::json::Value &value : *events)
    if (std::optional<Event> event = eventOf(value)) {
      times[event->command].push_back(event->nanoseconds);
      least = std::min(least, event->nanoseconds);
    }
  if (times.empty())
    return Status::error(name + ": no command of train_step in it" + cure);
  Profile profile;
  profile.name_ = name;
  // The shortest command of all, which marks an event or has nothing to copy, is what taking the time takes.
  for (auto &[command, seen] : times)
    profile.commands_[command] = {std::max(0.0, medianOf(seen) - least), static_cast<int64_t>(seen.size())};
  return profile;
}

const Profile::Command *Profile::find(const Key &command) const {
  auto found = commands_.find(command);
  return found == commands_.end() ? nullptr : &found->second;
}

bool Profile::hasName(const std::string &name) const {
  auto found = commands_.lower_bound({name, std::numeric_limits<int64_t>::min()});
  return found != commands_.end() && found->first.first == name;
}

} // namespace gpuc
