// Pictures in folders, one folder for each class.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "runtime/data/dataset.h"

namespace gpuc {

/// Opens FOLDER/CLASS/*.{png,jpg,jpeg}: classes are numbered by their folders' names in byte order, and so
/// are the pictures of a class. Fields: `x`, ui8 of the [channels, height, width] that the plan's input x
/// has, and `labels` (labelType()), which needs no input. All pictures are decoded here, by all cores, into a
/// file that has no name and goes with the data set: a step decodes and allocates nothing.
///
/// Errors: no such folder, no class folders, a class without pictures, another number of classes than the
/// plan's labels have, an input x that is no ui8 [batch, 1 or 3, height, width], whatever decodeImage
/// refuses, no room for the pixels.
Result<std::unique_ptr<Dataset>> openImages(const std::string& folder, std::span<const InputSpec> inputs);

}  // namespace gpuc
