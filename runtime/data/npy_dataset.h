// Samples from .npy files.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/dataset.h"

namespace gpuc {

/// Opens one file for each field, as pairs of (field, path). The first extent of each counts the samples and
/// must be the same in all. Files are mapped, not read. Integers of another width than that of the input of
/// their name are served as that takes them: labels of NumPy and PyTorch are i64. Errors name the file (see
/// parseNpy), or two files and both counts, or the field that is named twice, or an integer that does not
/// fit.
Result<std::unique_ptr<Dataset>> openNpyDataset(const std::vector<std::pair<std::string, std::string>>& files,
                                                std::span<const InputSpec> inputs = {});

}  // namespace gpuc
