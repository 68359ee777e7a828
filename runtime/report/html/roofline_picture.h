// What each command is predicted to be bound by.
#pragma once

#include "runtime/report/compiler_files.h"
#include "runtime/report/inspect.h"

namespace gpuc::html {

/// x is operations for each byte, y the rate that is predicted, both in powers of ten; the roof is what the
/// device does at best. Nothing of an entry whose commands do not compute.
void drawRoofline(const CompilerReport& report, std::string_view entry, const TextSink& sink);

}  // namespace gpuc::html
