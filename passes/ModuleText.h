//===- ModuleText.h - Text that the parser of MLIR can be given ------------===//
#pragma once

#include "runtime/base/status.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gpuc {

/// Where a text is too deep or too long for the parser, counted from 1, and how.
struct TextFault {
  size_t line = 1;
  size_t column = 1;
  std::string what;
};

/// The parser recurses over brackets, and whoever prints or walks an attribute, over what its aliases stand
/// for; deeper texts end the process. It makes room for as many results of a value as one that is named has a
/// number, whatever there are. Every tool that reads .mlir asks this first. Faults are brackets within more
/// than 256 others, aliases of aliases that are nested as deeply, or that stand for more than 16 MiB of text,
/// and results with a number of more than 6 digits. Takes time in proportion to the text.
std::optional<TextFault> findTextFault(std::string_view text);

/// The same as an error: "FILE:LINE:COLUMN: …".
Status checkModuleText(std::string_view text, const std::string &fileName);

} // namespace gpuc
