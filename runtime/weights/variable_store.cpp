#include "runtime/weights/variable_store.h"

#include "runtime/base/warn.h"
#include "runtime/state/binding.h"

namespace gpuc {
namespace {

Status write(Session& session, const SafetensorsFile::Entry& entry) {
  return session.writeVariable(entry.spec.name, std::as_bytes(std::span(entry.data)));
}

}  // namespace

Result<std::vector<TensorView>> VariableStore::read(Saved saved) {
  GPUC_RETURN_IF_ERROR(session_->wait());
  const std::vector<VariableInfo>& variables = session_->plan().info().variables;
  values_.resize(variables.size());
  std::vector<TensorView> views;
  for (size_t i = 0; i < variables.size(); ++i) {
    if (isOfSession(variables[i]) || (saved == Saved::trained && isFrozen(variables[i]))) continue;
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
  for (const VariableInfo& variable : session_->plan().info().variables)
    if (!isOfSession(variable)) specs.push_back(variable.spec);
  GPUC_ASSIGN_OR_RETURN(std::vector<const SafetensorsFile::Entry*> entries, bindByName(specs, file));
  for (const SafetensorsFile::Entry* entry : entries) GPUC_RETURN_IF_ERROR(write(*session_, *entry));
  return okStatus();
}

Result<std::vector<std::string>> VariableStore::start(const NamedTensors& files, SeedFrom seed) {
  const PlanInfo& plan = session_->plan().info();
  const WeightsSelection selection(plan, files, seed);
  std::vector<TensorSpec> bound;
  for (const VariableInfo& variable : plan.variables)
    if (selection.wants(variable)) bound.push_back(variable.spec);
  const size_t wanted = bound.size();
  // What may lie in the files unused is bound with the type and shape that it has there.
  for (const SafetensorsFile::Entry* entry : files.all()) {
    const VariableInfo* variable = selection.find(entry->spec.name);
    if (!(variable && selection.wants(*variable)) && selection.mayIdle(entry->spec.name))
      bound.push_back(entry->spec);
  }
  GPUC_ASSIGN_OR_RETURN(std::vector<const SafetensorsFile::Entry*> entries, bindByName(bound, files));
  GPUC_RETURN_IF_ERROR(session_->initialize());
  for (size_t i = 0; i < wanted; ++i) GPUC_RETURN_IF_ERROR(write(*session_, *entries[i]));
  // Where no update was left out, so many were made as there were steps.
  const SafetensorsFile::Entry* step = selection.continues() ? files.find("step") : nullptr;
  if (step && !files.find("updates") && selection.find("updates")) {
    SafetensorsFile::Entry updates = *step;
    updates.spec.name = "updates";
    GPUC_RETURN_IF_ERROR(write(*session_, updates));
  }
  // A running mean that begins anew begins with its weight.
  for (size_t i = 0; i < wanted; ++i) {
    const VariableInfo* mean = selection.find(entries[i]->spec.name + "/ema");
    if (mean && !selection.wants(*mean))
      GPUC_RETURN_IF_ERROR(
          session_->writeVariable(mean->spec.name, std::as_bytes(std::span(entries[i]->data))));
  }
  return selection.warnings();
}

Status VariableStore::startFrom(std::span<const std::string> paths, SeedFrom seed) {
  if (paths.empty()) return Status::error("no files to start from: initialize() is what begins anew");
  GPUC_ASSIGN_OR_RETURN(std::vector<SafetensorsFile> files, openSafetensors(paths));
  GPUC_ASSIGN_OR_RETURN(std::vector<std::string> warnings, start(NamedTensors(files), seed));
  for (const std::string& warning : warnings) warn(warning);
  return okStatus();
}

}  // namespace gpuc
