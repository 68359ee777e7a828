//===- NodeCase.h - One case of ONNX's backend node tests -------------------===//
//
// A folder with model.onnx and test_data_set_N/{input,output}_M.pb, as ONNX ships them
// (https://github.com/onnx/onnx/blob/main/docs/OnnxBackendTest.md).
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>

namespace gpuc::onnx {

enum class Verdict { passed, failed, skipped };

struct Outcome {
  Verdict verdict = Verdict::failed;
  std::string reason; ///< One line; empty if passed.
};

/// Imports, compiles for the host and runs the case in this process, and compares with its outputs by ONNX's
/// own tolerances: relative 1e-3, absolute 1e-7. What the importer refuses is skipped, with its reason; what
/// goes wrong after that has failed. Inputs that the importer must know become constants of the model.
Outcome runNodeCase(const std::string &folder);

} // namespace gpuc::onnx
