// Whether the files that a tool will write can be written, asked before hours of work and not after.
#pragma once

#include <span>
#include <string>

#include "runtime/base/status.h"

namespace gpuc {

/// Whether a file can be made or replaced at each of `outputs`: its folder is there, it is no folder itself,
/// and it is apart from the others. Empty paths are those of flags that were not given; "-" is stdin or
/// stdout. Writes nothing; a full disk is found only in writing.
Status checkOutputFiles(std::span<const std::string> outputs, std::span<const std::string> inputs);

/// Whether none of `outputs` is one of `inputs`, no two outputs are one file, by whatever spelling or link,
/// and none is the folder of another. Of an input that is a folder the files in its folders are read, and a
/// folder that is made in it would be.
Status checkOutputsApart(std::span<const std::string> outputs, std::span<const std::string> inputs);

}  // namespace gpuc
