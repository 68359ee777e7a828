//===- ExternalData.h - Tensors that a model keeps in other files -----------===//
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <map>
#include <string>

namespace gpuc::onnx {

/// A tensor's external_data entries.
using ExternalKeys = std::map<std::string, std::string>;

/// Errors: a key that is there, and one that is nearly a known one: by either, other bytes than those that
/// are meant would be read. Other keys are for other programs.
Status addExternalKey(ExternalKeys &keys, const std::string &key, const std::string &value);

/// Reads `length` bytes that a tensor of the model `file` keeps outside. `keys` are its external_data
/// entries: location, offset and length (https://onnx.ai/onnx/repo-docs/ExternalData.html). A location is a
/// path relative to the model's folder; one that leads out of it, by "..", from the root or by a link, is
/// refused.
Result<std::string> readExternalData(const std::string &file, const ExternalKeys &keys, int64_t length);

} // namespace gpuc::onnx
