// Samples from .npy files.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/dataset.h"

namespace gpuc {

/// Opens one file for each field, as pairs of (field, path). The first extent of each counts the samples and
/// must be the same in all. Files are mapped, not read. Errors name the file (see parseNpy), or two files and
/// both counts, or the field that is named twice.
Result<std::unique_ptr<Dataset>> openNpyDataset(
    const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace gpuc
