//===- ModuleText.h - Text that the parser of MLIR can be given ------------===//
#pragma once

#include "runtime/base/status.h"

#include <string>
#include <string_view>

namespace gpuc {

/// The parser recurses over brackets, and whoever prints or walks an attribute, over what its aliases stand
/// for; deeper texts end the process. Every tool that reads .mlir asks this first. Errors: "FILE:LINE:COLUMN:
/// …", for brackets within more than 256 others, and for aliases of aliases that are nested as deeply, or
/// that stand for more than 16 MiB of text. Takes time in proportion to the text.
Status checkModuleText(std::string_view text, const std::string &fileName);

/// The same of every readable file that the command line of one of MLIR's own tools names, flags aside.
Status checkModuleFiles(int argc, char **argv);

} // namespace gpuc
