// Commands as people read them: in profiles, listings and drawings.
#pragma once

#include <string>
#include <vector>

#include "runtime/plan/access.h"

namespace gpuc {

/// What it does in a few words: the kernel's name, "matmul 64x128x784", "copy h2d", "fill", "wait
/// batch_ready".
std::string nameOf(const fb::Plan& plan, const fb::Program& program, const fb::Command& command);

}  // namespace gpuc
