// What a command touches in the arena, and into which parts it may be cut.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan/access.h"
#include "runtime/plan/roles.h"

namespace gpuc {

/// What kind of command it is, in small letters: "launch".
const char* kindOf(const fb::Command& command);

/// An operand of a command, null if the command goes without it, and what it is there for.
struct CommandOperand {
  const fb::Operand* operand;
  OperandUse use;
};

/// Its operands in the arena, in the order of its kind's table, of a launch in the kernel's; of a repeat, a
/// record and a wait none.
std::vector<CommandOperand> operandsOf(const fb::Command& command);

/// Whether all ranks come to it, and exchange.
bool isCollective(const fb::Command& command);

/// Whether the operand is all of its buffer, in every iteration of the loops around its command.
bool isWhole(const fb::Plan& plan, const fb::Operand& operand);

/// The rows of a command: it may be executed in n parts, in any order, if n divides these, and then the i-th
/// part touches the i-th of n equal parts of the operands that go by rows, and all of the others. 0 or 1: it
/// is executed whole.
uint64_t rowsOf(const fb::Command& command);

}  // namespace gpuc
