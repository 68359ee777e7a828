// What gpuc-inspect shows of a plan: a table, JSON, or a drawing of the arena.
#pragma once

#include <string>

#include "runtime/plan/plan.h"

namespace gpuc {

/// Programs with their inputs and outputs, and the plan's size. `variables` and `activations` add a table of
/// each.
std::string inspectText(const Plan& plan, bool variables, bool activations);

/// {target, libraries, variables: [{name, shape, dtype, kind, bytes, offset}], entries: {NAME: {inputs:
/// [{name, shape, dtype, range}], outputs: [{name, shape, dtype}], peak_bytes}}, buffers, commands}; hidden
/// inputs are not listed.
std::string inspectJson(const Plan& plan);

/// A page that needs nothing else: for each program the arena, time from left to right, bytes from bottom to
/// top.
std::string inspectHtml(const Plan& plan);

}  // namespace gpuc
