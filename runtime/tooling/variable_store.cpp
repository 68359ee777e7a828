#include "runtime/tooling/variable_store.h"

#include <algorithm>

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
    bool freezes = false, has_trained = false;
    for (const VariableInfo& variable : plan.variables) {
      bool has = files.find(variable.spec.name);
      freezes |= isFrozen(variable);
      trained_ += variable.trainable;
      has_trained |= has && variable.trainable;
      if (variable.kind == VariableKind::optimizer) (has ? state_ : missing_state_) += 1;
    }
    trains_anew_ = freezes && !has_trained;
    continues_ = missing_state_ == 0 && !trains_anew_;
  }

  /// Whether the optimizer goes on from where the files left it.
  bool continues() const { return continues_; }

  /// Whether the variable must come from the files.
  bool wants(const VariableInfo& variable) const {
    const std::string& name = variable.spec.name;
    switch (variable.kind) {
      case VariableKind::parameter:
        return !variable.trainable || !trains_anew_;
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
    if (trains_anew_ && trained_ > 0)
      warnings.push_back(files_.name() + " holds the frozen parameters alone; the " +
                         std::to_string(trained_) + " that are trained begin as init makes them");
    if (state_ > 0 && missing_state_ > 0)
      warnings.push_back(files_.name() + " holds the optimizer's state in part (" + std::to_string(state_) +
                         " of " + std::to_string(state_ + missing_state_) + " tensors); it begins anew");
    return warnings;
  }

 private:
  const NamedTensors& files_;
  SeedFrom seed_;
  int trained_ = 0, state_ = 0, missing_state_ = 0;  // parameters, and tensors of the optimizer
  bool continues_;                                   // has the optimizer's state
  bool trains_anew_;                                 // has the frozen weights alone
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
