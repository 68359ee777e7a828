// What a command touches in the arena.
#pragma once

#include <vector>

#include "runtime/plan/access.h"

namespace gpuc {

/// The ranges that a command reads and writes; of a repeat none.
struct CommandOperands {
  std::vector<const fb::Operand*> reads;
  std::vector<const fb::Operand*> writes;
};
CommandOperands operandsOf(const fb::Command& command);

}  // namespace gpuc
