#include "runtime/tooling/session_state.h"

#include <deque>

#include "runtime/state/binding.h"
#include "runtime/state/safetensors.h"

namespace gpuc {

Status loadVariables(Session& session, const std::string& path) {
  GPUC_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(path));
  std::vector<TensorSpec> specs;
  for (const VariableInfo& variable : session.plan().info().variables) specs.push_back(variable.spec);
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
