// The variables of a session in and out of safetensors files.
#pragma once

#include <string>

#include "runtime/gpuc.h"

namespace gpuc {

/// Writes every variable from the file; names, shapes and types must agree, none may be missing. A file
/// without any counter or optimizer state holds weights alone, as other programs write them: all else begins
/// as `init` makes it.
Status loadVariables(Session& session, const std::string& path);

/// Replaces the file by all variables.
Status saveVariables(Session& session, const std::string& path);

}  // namespace gpuc
