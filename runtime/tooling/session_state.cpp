#include "runtime/tooling/session_state.h"

#include <algorithm>
#include <deque>

#include "runtime/state/binding.h"
#include "runtime/state/safetensors.h"

namespace gpuc {

namespace {

/// Whether a file of weights alone, as other programs write them, has this one.
bool isWeight(const VariableInfo& variable) {
  return variable.kind == VariableKind::parameter || variable.kind == VariableKind::statistic;
}

}  // namespace

Status loadVariables(Session& session, const std::string& path) {
  GPUC_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(path));
  const std::vector<VariableInfo>& variables = session.plan().info().variables;
  bool has_state = std::any_of(variables.begin(), variables.end(), [&](const VariableInfo& variable) {
    return !isWeight(variable) && file.find(variable.spec.name);
  });
  if (!has_state) GPUC_RETURN_IF_ERROR(session.initialize());
  std::vector<TensorSpec> specs;
  for (const VariableInfo& variable : variables)
    if (has_state || isWeight(variable)) specs.push_back(variable.spec);
  GPUC_ASSIGN_OR_RETURN(std::vector<const SafetensorsFile::Entry*> entries, bindByName(specs, file));
  for (size_t i = 0; i < specs.size(); ++i)
    GPUC_RETURN_IF_ERROR(session.writeVariable(specs[i].name, std::as_bytes(std::span(entries[i]->data))));
  return okStatus();
}

Status saveVariables(Session& session, const std::string& path) {
  GPUC_RETURN_IF_ERROR(session.wait());
  std::vector<TensorView> tensors;
  std::deque<std::vector<std::byte>> bytes;
  for (const VariableInfo& variable : session.plan().info().variables) {
    std::vector<std::byte>& data = bytes.emplace_back(static_cast<size_t>(variable.spec.sizeBytes()));
    GPUC_RETURN_IF_ERROR(session.readVariable(variable.spec.name, data));
    tensors.push_back({variable.spec, data.data()});
  }
  return writeSafetensors(path, std::move(tensors), {});
}

}  // namespace gpuc
