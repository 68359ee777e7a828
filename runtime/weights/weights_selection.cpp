#include "runtime/weights/weights_selection.h"

#include <algorithm>

#include "runtime/base/name_list.h"

namespace gpuc {
namespace {

constexpr std::string_view kMeanSlot = "/ema";

/// What one plan counts and another may not: a loss scale and what it goes by, updates where some are left
/// out.
bool isCounter(std::string_view name) {
  constexpr std::string_view kCounters[] = {"seed", "step", "updates", "loss_scale", "growth_tracker"};
  return std::find(std::begin(kCounters), std::end(kCounters), name) != std::end(kCounters);
}

/// "3 tensors of it are left unused (a, b, c): why".
void addUnused(std::vector<std::string>& warnings, const NamedTensors& files, const char* what,
               const std::vector<std::string>& names, const std::string& why) {
  if (names.empty()) return;
  warnings.push_back(files.name() + ": " + what + " left unused (" + std::to_string(names.size()) + ": " +
                     listOf(names) + "): " + why);
}

}  // namespace

bool isFrozen(const VariableInfo& variable) {
  return variable.kind == VariableKind::parameter && !variable.trainable;
}

bool isOfSession(const VariableInfo& variable) {
  const std::string& name = variable.spec.name;
  return variable.kind == VariableKind::counter && (name == "rank" || name == "world_size");
}

bool isDataParallel(const PlanInfo& plan) {
  return std::any_of(plan.variables.begin(), plan.variables.end(), isOfSession);
}

WeightsSelection::WeightsSelection(const PlanInfo& plan, const NamedTensors& files, SeedFrom seed)
    : plan_(plan), files_(files), seed_(seed) {
  for (const VariableInfo& variable : plan.variables) {
    variables_.emplace(variable.spec.name, &variable);
    bool has = files.find(variable.spec.name);
    freezes_ |= isFrozen(variable);
    trained_ += variable.trainable;
    if (variable.kind == VariableKind::optimizer) (has ? state_ : missing_state_) += 1;
  }
  for (const VariableInfo& variable : plan.variables)
    if (variable.trainable && freezes_) findFresh(variable.spec);
  continues_ = missing_state_ == 0 && fresh_.empty();
}

/// A trained parameter begins anew if it is in no file, or if a file of base weights has another in its
/// place: the head of another task. In a file of what was trained that would be a mistake.
void WeightsSelection::findFresh(const TensorSpec& wanted) {
  const SafetensorsFile::Entry* entry = files_.find(wanted.name);
  if (!entry) {
    fresh_[wanted.name] = "";
  } else if ((entry->spec.type != wanted.type || entry->spec.shape != wanted.shape) &&
             holdsFrozen(*files_.fileOf(wanted.name))) {
    fresh_[wanted.name] =
        " (" + entry->spec.str() + files_.whereIs(wanted.name) + ", the plan has " + wanted.str() + ")";
    ++misfits_;
  }
}

bool WeightsSelection::holdsFrozen(const SafetensorsFile& file) {
  auto [known, is_new] = holds_frozen_.emplace(&file, false);
  if (is_new)
    known->second =
        std::any_of(file.tensors().begin(), file.tensors().end(), [&](const SafetensorsFile::Entry& entry) {
          const VariableInfo* variable = find(entry.spec.name);
          return variable && isFrozen(*variable);
        });
  return known->second;
}

const VariableInfo* WeightsSelection::find(std::string_view name) const {
  auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : found->second;
}

bool WeightsSelection::wants(const VariableInfo& variable) const {
  const std::string& name = variable.spec.name;
  switch (variable.kind) {
    case VariableKind::parameter:
      return !fresh_.contains(name);
    case VariableKind::statistic:
      return files_.find(name);
    case VariableKind::optimizer:
      return continues_;
    case VariableKind::counter:
      return files_.find(name) && (name == "seed" ? seed_ == SeedFrom::file : continues_);
  }
  return false;
}

bool WeightsSelection::mayIdle(std::string_view name) const {
  if (find(name) || isCounter(name)) return true;
  // <variable>/<slot> of a variable that the plan has; names of variables may hold slashes too.
  for (size_t slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/', slash + 1))
    if (slash + 1 < name.size() && find(name.substr(0, slash))) return true;
  return false;
}

std::vector<std::string> WeightsSelection::warnings() const {
  std::vector<std::string> warnings;
  warnOfFresh(warnings);
  warnOfMissing(warnings);
  warnOfUnused(warnings);
  return warnings;
}

void WeightsSelection::warnOfFresh(std::vector<std::string>& warnings) const {
  if (fresh_.empty()) return;
  if (fresh_.size() == trained_ && misfits_ == 0) {
    warnings.push_back(files_.name() + " holds the frozen parameters alone; the " + std::to_string(trained_) +
                       " that are trained begin as init makes them");
    return;
  }
  std::vector<std::string> names;
  for (const auto& [name, why] : fresh_) names.push_back(std::string(name) + why);
  warnings.push_back(files_.name() + " holds of the " + std::to_string(trained_) +
                     " parameters that are trained not all; as init makes them begin " + listOf(names));
}

void WeightsSelection::warnOfMissing(std::vector<std::string>& warnings) const {
  if (state_ > 0 && missing_state_ > 0)
    warnings.push_back(files_.name() + " holds the optimizer's state in part (" + std::to_string(state_) +
                       " of " + std::to_string(state_ + missing_state_) + " tensors); it begins anew");
  std::vector<std::string> statistics, counters;
  for (const VariableInfo& variable : plan_.variables) {
    const std::string& name = variable.spec.name;
    if (files_.find(name) || isOfSession(variable)) continue;
    if (variable.kind == VariableKind::statistic) statistics.push_back(name);
    // What a plan keeps with every update and these files do not; `updates` then is `step`.
    bool goes_on = continues_ && state_ > 0 && name != "seed" && name != "updates";
    if (variable.kind == VariableKind::counter && goes_on) counters.push_back(name);
  }
  for (const std::vector<std::string>& names : {statistics, counters})
    if (!names.empty())
      warnings.push_back(files_.name() + " does not hold " + listOf(names) + ": begun as init makes " +
                         (names.size() == 1 ? "it" : "them"));
}

void WeightsSelection::warnOfUnused(std::vector<std::string>& warnings) const {
  std::vector<std::string> means, state, own_state, counters;
  for (const SafetensorsFile::Entry* entry : files_.all()) {
    const std::string& name = entry->spec.name;
    const VariableInfo* variable = find(name);
    if ((variable && wants(*variable)) || name == "seed" || !mayIdle(name)) continue;
    if (variable)
      own_state.push_back(name);
    else if (isCounter(name))
      counters.push_back(name);
    else
      (name.ends_with(kMeanSlot) ? means : state).push_back(name);
  }
  bool trains = std::any_of(plan_.programs.begin(), plan_.programs.end(),
                            [](const ProgramInfo& program) { return program.name == "train_step"; });
  // That the optimizer begins anew has been said.
  if (!fresh_.empty() || state_ > 0) own_state.clear();
  // A plan that does not train counts no steps, and there is nothing to go on from.
  if (!trains) std::erase(counters, "step");
  addUnused(warnings, files_, "running means of weights are", means,
            "the plan computes with the weights themselves; compile it with --ema=… to use the means");
  addUnused(warnings, files_, "an optimizer's state is", state,
            trains
                ? "the plan's optimizer keeps other state, or does not train these; compile the model with "
                  "the one that wrote it to go on"
                : "the plan does not train");
  addUnused(warnings, files_, "what the plan keeps too is", own_state, "the optimizer begins anew");
  addUnused(warnings, files_, "counters are", counters, "the plan has none of this name");
}

}  // namespace gpuc
