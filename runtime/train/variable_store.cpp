#include "runtime/train/variable_store.h"

#include <algorithm>

#include "runtime/state/binding.h"

namespace gpuc {
namespace {

Status write(Session& session, const SafetensorsFile::Entry& entry) {
  return session.writeVariable(entry.spec.name, std::as_bytes(std::span(entry.data)));
}

/// True for `<variable>/<slot>` of a variable that the plan has.
bool isSlotOf(const PlanInfo& plan, std::string_view name) {
  return std::any_of(plan.variables.begin(), plan.variables.end(), [&](const VariableInfo& variable) {
    const std::string& owner = variable.spec.name;
    return name.size() > owner.size() + 1 && name.starts_with(owner) && name[owner.size()] == '/';
  });
}

bool hasAllOptimizerState(const PlanInfo& plan, const SafetensorsFile& file) {
  return std::all_of(plan.variables.begin(), plan.variables.end(), [&](const VariableInfo& variable) {
    return variable.kind != VariableKind::optimizer || file.find(variable.spec.name);
  });
}

/// Whether the plan's `variable` is to come from the file. What is wanted and not there is then an error.
bool isWanted(const VariableInfo& variable, const SafetensorsFile& file, bool continues) {
  switch (variable.kind) {
    case VariableKind::parameter:
      return true;
    case VariableKind::statistic:
      return file.find(variable.spec.name);
    case VariableKind::optimizer:
      return continues;
    case VariableKind::counter:
      return continues && variable.spec.name != "seed" && file.find(variable.spec.name);
  }
  return false;
}

}  // namespace

Result<std::vector<TensorView>> VariableStore::read() {
  const std::vector<VariableInfo>& variables = session_->plan().info().variables;
  values_.resize(variables.size());
  std::vector<TensorView> views;
  for (size_t i = 0; i < variables.size(); ++i) {
    values_[i].resize(static_cast<size_t>(variables[i].spec.sizeBytes()));
    GPUC_RETURN_IF_ERROR(session_->readVariable(variables[i].spec.name, values_[i]));
    views.push_back({variables[i].spec, values_[i].data()});
  }
  return views;
}

Status VariableStore::save(const std::string& path) {
  GPUC_ASSIGN_OR_RETURN(std::vector<TensorView> views, read());
  return writeSafetensors(path, std::move(views), {});
}

Status VariableStore::restore(const SafetensorsFile& file) {
  std::vector<TensorSpec> specs;
  for (const VariableInfo& variable : session_->plan().info().variables) specs.push_back(variable.spec);
  GPUC_ASSIGN_OR_RETURN(std::vector<const SafetensorsFile::Entry*> entries, bindByName(specs, file));
  for (const SafetensorsFile::Entry* entry : entries) GPUC_RETURN_IF_ERROR(write(*session_, *entry));
  return okStatus();
}

Status VariableStore::start(const SafetensorsFile& file) {
  const PlanInfo& plan = session_->plan().info();
  bool continues = hasAllOptimizerState(plan, file);
  std::vector<TensorSpec> wanted, known;
  for (const VariableInfo& variable : plan.variables)
    (isWanted(variable, file, continues) ? wanted : known).push_back(variable.spec);
  // What may lie in the file unused is bound with the type and shape that it has there.
  size_t used = wanted.size();
  for (const SafetensorsFile::Entry& entry : file.tensors()) {
    const std::string& name = entry.spec.name;
    auto has_name = [&](const TensorSpec& spec) { return spec.name == name; };
    bool is_wanted = std::any_of(wanted.begin(), wanted.begin() + static_cast<ptrdiff_t>(used), has_name);
    bool is_known = std::any_of(known.begin(), known.end(), has_name) || isSlotOf(plan, name) ||
                    name == "seed" || name == "step";
    if (!is_wanted && is_known) wanted.push_back(entry.spec);
  }
  GPUC_ASSIGN_OR_RETURN(std::vector<const SafetensorsFile::Entry*> entries, bindByName(wanted, file));
  for (size_t i = 0; i < used; ++i) GPUC_RETURN_IF_ERROR(write(*session_, *entries[i]));
  return okStatus();
}

}  // namespace gpuc
