// Whether a file of weights fits the variables of a plan.
#pragma once

#include <span>
#include <vector>

#include "runtime/state/named_tensors.h"

namespace gpuc {

/// For each variable its tensor in `files`, by name. One error line lists everything that does not fit:
/// missing, of another shape or type, surplus; of each at most five, "and N more".
Result<std::vector<const SafetensorsFile::Entry*>> bindByName(std::span<const TensorSpec> variables,
                                                              const NamedTensors& files);

}  // namespace gpuc
