//===- Reader.h - From the bytes of an ONNX file to a Model -----------------===//
#pragma once

#include "frontend/onnx/reader/Model.h"
#include "runtime/base/status.h"

#include <string_view>

namespace gpuc::onnx {

/// Parses a ModelProto. `file` is its path and begins every error; data that the model keeps outside are read
/// from files in the same folder or below, never elsewhere. Errors: bytes that are no ModelProto or are cut
/// short, an opset other than 13 to 27, tensors whose bytes do not fit their shape.
Result<Model> parseModel(std::string_view bytes, const std::string &file);

/// Parses a TensorProto by itself, as the test data of ONNX are stored.
Result<HostTensorPtr> parseTensor(std::string_view bytes, const std::string &file);

} // namespace gpuc::onnx
