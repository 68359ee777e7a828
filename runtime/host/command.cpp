#include "runtime/host/command.h"

namespace gpuc {

bool isWritten(const HostCommand& command, uint32_t operand) {
  switch (command.kind) {
    case HostCommand::Kind::launch:
      return operand >= command.launch.reads;
    case HostCommand::Kind::matmul:
    case HostCommand::Kind::conv:
      return operand == 2 || operand == 4;  // c and the workspace; 3 is the bias, 5 the mask
    case HostCommand::Kind::attention:
      return operand == 3 || operand == 4 || operand >= 9;
    case HostCommand::Kind::copy:
      return operand == 1;
    default:
      return true;
  }
}

}  // namespace gpuc
