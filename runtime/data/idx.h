// The IDX format of MNIST and its kin: http://yann.lecun.com/exdb/mnist, section "FILE FORMATS".
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/dataset.h"

namespace gpuc {

/// Checks the header of an IDX file of unsigned bytes against its length and gives the extents. Data begin at
/// byte 4 + 4 * rank. Errors begin with `name`: not IDX, another element type, another rank, cut short, bytes
/// too many.
Result<std::vector<int64_t>> parseIdx(std::string_view bytes, size_t rank, const std::string& name);

/// All files that openIdx may read.
std::vector<std::string> idxPaths(const std::string& prefix);

/// Opens PREFIX-images-idx3-ubyte and PREFIX-labels-idx1-ubyte, each plain or with .gz. Fields: `x`
/// (rows x columns, ui8) and `labels` (labelType(); may idle). Errors name the file and both numbers.
Result<std::unique_ptr<Dataset>> openIdx(const std::string& prefix, std::span<const InputSpec> inputs = {});

}  // namespace gpuc
