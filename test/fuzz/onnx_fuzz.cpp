// ONNX files: any bytes give a model, whose import gives a module or problems, or an error; each of them one
// line.
#include "frontend/onnx/Onnx.h"
#include "frontend/onnx/reader/Reader.h"
#include "test/fuzz/fuzz_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  gpuc::Result<gpuc::onnx::Model> model = gpuc::onnx::parseModel(bytes, "f");
  if (!model.ok()) {
    gpuc::requireOneLine(model, "f:");
    return 0;
  }
  gpuc::onnx::ImportedModel imported = gpuc::onnx::importModel(*model, {});
  gpuc::require(imported.text.empty() == !imported.problems.empty(), "a module, or problems");
  for (const gpuc::onnx::Problem& problem : imported.problems)
    gpuc::require(problem.text.find('\n') == std::string::npos, "a problem is one line");
  for (const gpuc::onnx::HostTensorPtr& weight : imported.weights)
    gpuc::require(weight->bytes->size() == static_cast<size_t>(weight->spec.sizeBytes()),
                  "a weight has its bytes");
  return 0;
}
