#include "runtime/tooling/variable_store.h"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/state/binding.h"

namespace gpuc {
namespace {

Status write(Session& session, const SafetensorsFile::Entry& entry) {
  return session.writeVariable(entry.spec.name, std::as_bytes(std::span(entry.data)));
}

bool isFrozen(const VariableInfo& variable) {
  return variable.kind == VariableKind::parameter && !variable.trainable;
}

/// True for `<variable>/<slot>` of a variable that the plan has.
bool isSlotOf(const PlanInfo& plan, std::string_view name) {
  return std::any_of(plan.variables.begin(), plan.variables.end(), [&](const VariableInfo& variable) {
    const std::string& owner = variable.spec.name;
    return name.size() > owner.size() + 1 && name.starts_with(owner) && name[owner.size()] == '/';
  });
}

/// What one plan counts and another may not: a loss scale and what it goes by, updates where some are left
/// out.
bool isCounter(std::string_view name) {
  constexpr std::string_view kCounters[] = {"seed", "step", "updates", "loss_scale", "growth_tracker"};
  return std::find(std::begin(kCounters), std::end(kCounters), name) != std::end(kCounters);
}

/// What of a plan's variables is to come from files.
class Selection {
 public:
  Selection(const PlanInfo& plan, const NamedTensors& files, SeedFrom seed) : files_(files), seed_(seed) {
    for (const VariableInfo& variable : plan.variables) {
      bool has = files.find(variable.spec.name);
      trained_ += variable.trainable;
      if (isFrozen(variable)) frozen_.insert(variable.spec.name);
      if (variable.kind == VariableKind::optimizer) (has ? state_ : missing_state_) += 1;
    }
    for (const VariableInfo& variable : plan.variables)
      if (variable.trainable && !frozen_.empty()) findFresh(variable.spec);
    continues_ = missing_state_ == 0 && fresh_.empty();
  }

  /// Whether the optimizer goes on from where the files left it.
  bool continues() const { return continues_; }

  /// Whether the variable must come from the files.
  bool wants(const VariableInfo& variable) const {
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

  /// What a user may not have meant.
  std::vector<std::string> warnings() const {
    std::vector<std::string> warnings;
    if (!fresh_.empty() && fresh_.size() == trained_ && misfits_ == 0)
      warnings.push_back(files_.name() + " holds the frozen parameters alone; the " +
                         std::to_string(trained_) + " that are trained begin as init makes them");
    else if (!fresh_.empty())
      warnings.push_back(files_.name() + " holds of the " + std::to_string(trained_) +
                         " parameters that are trained not all; as init makes them begin " + freshText());
    if (state_ > 0 && missing_state_ > 0)
      warnings.push_back(files_.name() + " holds the optimizer's state in part (" + std::to_string(state_) +
                         " of " + std::to_string(state_ + missing_state_) + " tensors); it begins anew");
    return warnings;
  }

 private:
  /// A trained parameter begins anew if it is in no file, or if a file of base weights has another in its
  /// place: the head of another task. In a file of what was trained that would be a mistake.
  void findFresh(const TensorSpec& wanted) {
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

  bool holdsFrozen(const SafetensorsFile& file) const {
    return std::any_of(
        file.tensors().begin(), file.tensors().end(),
        [&](const SafetensorsFile::Entry& entry) { return frozen_.contains(entry.spec.name); });
  }

  std::string freshText() const {
    constexpr size_t kMostNamed = 8;
    std::string text;
    size_t named = 0;
    for (const auto& [name, why] : fresh_)
      if (named++ < kMostNamed) text += (text.empty() ? "" : ", ") + name + why;
    return named > kMostNamed ? text + " and " + std::to_string(named - kMostNamed) + " more" : text;
  }

  const NamedTensors& files_;
  SeedFrom seed_;
  int state_ = 0, missing_state_ = 0;  // tensors of the optimizer
  size_t trained_ = 0, misfits_ = 0;
  std::set<std::string> frozen_;
  std::map<std::string, std::string> fresh_;  // what is trained and begins anew, and why if it is not missing
  bool continues_;                            // has the optimizer's state
};

}  // namespace

Result<std::vector<TensorView>> VariableStore::read(Saved saved) {
  GPUC_RETURN_IF_ERROR(session_->wait());
  const std::vector<VariableInfo>& variables = session_->plan().info().variables;
  values_.resize(variables.size());
  std::vector<TensorView> views;
  for (size_t i = 0; i < variables.size(); ++i) {
    if (saved == Saved::trained && isFrozen(variables[i])) continue;
    values_[i].resize(static_cast<size_t>(variables[i].spec.sizeBytes()));
    GPUC_RETURN_IF_ERROR(session_->readVariable(variables[i].spec.name, values_[i]));
    views.push_back({variables[i].spec, values_[i].data()});
  }
  return views;
}

Status VariableStore::save(const std::string& path, Saved saved) {
  GPUC_ASSIGN_OR_RETURN(std::vector<TensorView> views, read(saved));
  return writeSafetensors(path, std::move(views), {});
}

Status VariableStore::restore(const SafetensorsFile& file) {
  std::vector<TensorSpec> specs;
  for (const VariableInfo& variable : session_->plan().info().variables) specs.push_back(variable.spec);
  GPUC_ASSIGN_OR_RETURN(std::vector<const SafetensorsFile::Entry*> entries, bindByName(specs, file));
  for (const SafetensorsFile::Entry* entry : entries) GPUC_RETURN_IF_ERROR(write(*session_, *entry));
  return okStatus();
}

Result<std::vector<std::string>> VariableStore::start(const NamedTensors& files, SeedFrom seed) {
  const PlanInfo& plan = session_->plan().info();
  const Selection selection(plan, files, seed);
  std::vector<TensorSpec> bound, known;
  for (const VariableInfo& variable : plan.variables)
    (selection.wants(variable) ? bound : known).push_back(variable.spec);
  // What may lie in the files unused is bound with the type and shape that it has there.
  const size_t wanted = bound.size();
  for (const SafetensorsFile::Entry* entry : files.all()) {
    const std::string& name = entry->spec.name;
    auto has_name = [&](const TensorSpec& spec) { return spec.name == name; };
    bool is_known =
        std::any_of(known.begin(), known.end(), has_name) || isSlotOf(plan, name) || isCounter(name);
    bool is_wanted = std::any_of(bound.begin(), bound.begin() + static_cast<ptrdiff_t>(wanted), has_name);
    if (!is_wanted && is_known) bound.push_back(entry->spec);
  }
  GPUC_ASSIGN_OR_RETURN(std::vector<const SafetensorsFile::Entry*> entries, bindByName(bound, files));
  GPUC_RETURN_IF_ERROR(session_->initialize());
  for (size_t i = 0; i < wanted; ++i) GPUC_RETURN_IF_ERROR(write(*session_, *entries[i]));
  // Where no update was left out, so many were made as there were steps.
  auto is_updates = [](const TensorSpec& spec) { return spec.name == "updates"; };
  const SafetensorsFile::Entry* step = selection.continues() ? files.find("step") : nullptr;
  if (step && !files.find("updates") && std::any_of(known.begin(), known.end(), is_updates)) {
    SafetensorsFile::Entry updates = *step;
    updates.spec.name = "updates";
    GPUC_RETURN_IF_ERROR(write(*session_, updates));
  }
  // A running mean that begins anew begins with its weight.
  for (const VariableInfo& variable : plan.variables)
    for (size_t i = 0; i < wanted && !selection.wants(variable); ++i)
      if (variable.spec.name == entries[i]->spec.name + "/ema")
        GPUC_RETURN_IF_ERROR(
            session_->writeVariable(variable.spec.name, std::as_bytes(std::span(entries[i]->data))));
  return selection.warnings();
}

}  // namespace gpuc
