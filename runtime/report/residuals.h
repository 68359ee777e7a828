// The tensors between the forward and the backward pass, on which training spends its memory.
#pragma once

#include <vector>

#include "runtime/plan/access.h"

namespace gpuc {

/// Of a buffer that the forward pass writes and the backward pass reads, whether it stays in memory between
/// the two or is computed again; `none` of every other buffer.
enum class Residual : uint8_t { none, kept, recomputed };

/// "kept", "recomputed"; "" of none.
const char* nameOf(Residual residual);

/// Of each buffer of the plan. The compiler's report lists the same of train_step (docs/report.md).
std::vector<Residual> residualsOf(const fb::Plan& plan);

}  // namespace gpuc
