#include "runtime/weights/shared_variables.h"

#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/weights/weights_selection.h"

namespace gpuc {

Status shareVariables(Session& session, Communicator& ranks) {
  std::vector<std::byte> bytes;
  for (const VariableInfo& variable : session.plan().info().variables) {
    if (isOfSession(variable)) continue;
    bytes.resize(static_cast<size_t>(variable.spec.sizeBytes()));
    GPUC_RETURN_IF_ERROR(session.readVariable(variable.spec.name, bytes));
    GPUC_RETURN_IF_ERROR(ranks.broadcast(bytes, /*root=*/0));
    GPUC_RETURN_IF_ERROR(session.writeVariable(variable.spec.name, bytes));
  }
  return okStatus();
}

}  // namespace gpuc
