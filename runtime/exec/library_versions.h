// Whether the libraries at hand are those that a plan was compiled against.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

namespace gpuc {

/// A missing library or another major version is an error. Another minor version may give other bits: an
/// error if `strict`, else a line in `warnings`. What follows the minor version does not matter.
Status checkLibraries(const std::vector<LibraryInfo>& needed, const std::vector<LibraryInfo>& present,
                      bool strict, std::vector<std::string>& warnings);

}  // namespace gpuc
