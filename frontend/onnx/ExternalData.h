//===- ExternalData.h - Tensors that a model keeps in other files -----------===//
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <map>
#include <string>

namespace gpuc::onnx {

/// Reads `length` bytes that a tensor of the model `file` keeps outside. `keys` are its external_data
/// entries: location, offset and length (https://onnx.ai/onnx/repo-docs/ExternalData.html). A location is a
/// path relative to the model's folder; one that leads out of it, by "..", from the root or by a link, is
/// refused.
Result<std::string> readExternalData(const std::string &file, const std::map<std::string, std::string> &keys,
                                     int64_t length);

} // namespace gpuc::onnx
