//===- NodeCase.cpp - One case of ONNX's backend node tests -----------------===//

#include "test/onnx/NodeCase.h"

#include "frontend/onnx/Onnx.h"
#include "frontend/onnx/reader/HostTensor.h"
#include "frontend/onnx/reader/Reader.h"
#include "passes/Compiler.h"
#include "runtime/base/file.h"
#include "runtime/gpuc.h"

#include <cmath>
#include <filesystem>

namespace gpuc::onnx {
namespace {

namespace fs = std::filesystem;

struct DataSet {
  std::vector<HostTensorPtr> inputs, outputs;
};

Result<std::vector<HostTensorPtr>> readTensors(const fs::path &folder, const std::string &kind) {
  std::vector<HostTensorPtr> tensors;
  for (int i = 0;; ++i) {
    std::string path = (folder / (kind + "_" + std::to_string(i) + ".pb")).string();
    if (!fs::exists(path))
      return tensors;
    GPUC_ASSIGN_OR_RETURN(std::string bytes, readFile(path));
    GPUC_ASSIGN_OR_RETURN(HostTensorPtr tensor, parseTensor(bytes, path));
    if (!tensor->supported)
      return Status::error("element type " + tensor->typeName);
    tensors.push_back(tensor);
  }
}

/// Extents that the model leaves open are those of the data.
void bindShapes(Model &model, const std::vector<HostTensorPtr> &inputs) {
  for (size_t i = 0; i < model.graph.inputs.size() && i < inputs.size(); ++i) {
    auto &shape = model.graph.inputs[i].shape;
    const std::vector<int64_t> &actual = inputs[i]->spec.shape;
    if (!shape || shape->size() != actual.size())
      shape.emplace(actual.size());
    for (size_t d = 0; d < actual.size(); ++d)
      (*shape)[d].number = actual[d];
  }
}

/// Imports; inputs that must be known are given as constants and taken out of `inputs`.
ImportedModel import(const Model &model, const std::vector<HostTensorPtr> &inputs, ImportOptions &options) {
  for (;;) {
    ImportedModel imported = importModel(model, options);
    size_t before = options.constants.size();
    for (const Problem &problem : imported.problems)
      for (const std::string &name : problem.unknown)
        for (size_t i = 0; i < model.graph.inputs.size() && i < inputs.size(); ++i)
          if (model.graph.inputs[i].name == name)
            options.constants[name] = inputs[i];
    if (options.constants.size() == before)
      return imported;
  }
}

Result<Plan> compile(const std::string &text) {
  Compiler compiler;
  CompilerOptions options;
  GPUC_ASSIGN_OR_RETURN(auto module, compiler.parse(text, "imported.mlir"));
  GPUC_RETURN_IF_ERROR(
      compiler.advance(*module, Stage::plan, options, [](mlir::PassManager &) { return okStatus(); }));
  GPUC_ASSIGN_OR_RETURN(std::string bytes, compiler.emit(*module, options));
  return Plan::parse(std::move(bytes));
}

Result<std::vector<HostTensorPtr>> run(const Plan &plan, const ImportedModel &imported,
                                       const std::vector<HostTensorPtr> &inputs) {
  SessionOptions options;
  options.device = "host";
  options.threads = 1;
  GPUC_ASSIGN_OR_RETURN(Session session, Session::create(plan, options));
  GPUC_RETURN_IF_ERROR(session.initialize());
  for (const HostTensorPtr &weight : imported.weights)
    GPUC_RETURN_IF_ERROR(session.writeVariable(weight->spec.name, std::as_bytes(std::span(*weight->bytes))));
  GPUC_ASSIGN_OR_RETURN(ProgramId predict, session.program("predict"));
  std::vector<HostTensorView> views;
  for (const HostTensorPtr &input : inputs)
    views.emplace_back(input->bytes->data(), input->spec);
  GPUC_RETURN_IF_ERROR(session.run(predict, views));
  GPUC_RETURN_IF_ERROR(session.wait());
  std::vector<HostTensorPtr> outputs;
  for (size_t i = 0; i < plan.info().programs[predict.index].outputs.size(); ++i) {
    HostTensorView view = session.output(predict, i);
    auto made = std::make_shared<HostTensor>();
    made->spec.type = view.type;
    made->spec.shape.assign(view.shape.begin(), view.shape.end());
    made->bytes = std::make_shared<const std::string>(static_cast<const char *>(view.data), view.sizeBytes());
    outputs.push_back(made);
  }
  return outputs;
}

/// numpy.testing.assert_allclose: |actual - expected| ≤ 1e-7 + 1e-3 · |expected|, NaN equal to NaN.
std::string difference(const HostTensor &actual, const HostTensor &expected) {
  if (actual.spec.type != expected.spec.type || actual.spec.shape != expected.spec.shape)
    return "is " + actual.spec.str() + ", expected " + expected.spec.str();
  if (!isFloat(expected.spec.type)) {
    std::vector<int64_t> a = integersOf(actual), e = integersOf(expected);
    for (size_t i = 0; i < e.size(); ++i)
      if (a[i] != e[i])
        return "element " + std::to_string(i) + " is " + std::to_string(a[i]) + ", expected " +
               std::to_string(e[i]);
    return "";
  }
  std::vector<double> a = numbersOf(actual), e = numbersOf(expected);
  for (size_t i = 0; i < e.size(); ++i) {
    bool same = a[i] == e[i] || (std::isnan(a[i]) && std::isnan(e[i]));
    if (!same && !(std::fabs(a[i] - e[i]) <= 1e-7 + 1e-3 * std::fabs(e[i])))
      return "element " + std::to_string(i) + " is " + std::to_string(a[i]) + ", expected " +
             std::to_string(e[i]);
  }
  return "";
}

} // namespace

Outcome runNodeCase(const std::string &folder) {
  Outcome skipped{Verdict::skipped, ""}, failed{Verdict::failed, ""};
  std::string path = (fs::path(folder) / "model.onnx").string();
  auto strip = [&](std::string text) { return text.starts_with(path) ? text.substr(path.size() + 2) : text; };
  Result<std::string> bytes = readFile(path);
  if (!bytes.ok())
    return failed.reason = bytes.message(), failed;
  Result<Model> model = parseModel(*bytes, path);
  if (!model.ok())
    return skipped.reason = strip(model.message()), skipped;

  fs::path data = fs::path(folder) / "test_data_set_0";
  Result<std::vector<HostTensorPtr>> inputs = readTensors(data, "input"),
                                     expected = readTensors(data, "output");
  if (inputs.ok())
    bindShapes(*model, *inputs);
  ImportOptions options;
  ImportedModel imported = import(*model, inputs.ok() ? *inputs : std::vector<HostTensorPtr>(), options);
  if (!imported.problems.empty())
    return skipped.reason = imported.problems.front().text, skipped;
  if (!inputs.ok() || !expected.ok())
    return skipped.reason = inputs.ok() ? expected.message() : inputs.message(), skipped;

  Result<Plan> plan = compile(imported.text);
  if (!plan.ok())
    return failed.reason = "compilation: " + plan.message(), failed;
  std::vector<HostTensorPtr> given;
  for (size_t i = 0; i < inputs->size(); ++i)
    if (i >= model->graph.inputs.size() || !options.constants.count(model->graph.inputs[i].name))
      given.push_back((*inputs)[i]);
  Result<std::vector<HostTensorPtr>> outputs = run(*plan, imported, given);
  if (!outputs.ok())
    return failed.reason = "run: " + outputs.message(), failed;
  if (outputs->size() != expected->size())
    return failed.reason = "outputs: " + std::to_string(outputs->size()) + ", expected " +
                           std::to_string(expected->size()),
           failed;
  for (size_t i = 0; i < expected->size(); ++i)
    if (std::string differs = difference(*(*outputs)[i], *(*expected)[i]); !differs.empty())
      return failed.reason = "output " + std::to_string(i) + ": " + differs, failed;
  return {Verdict::passed, ""};
}

} // namespace gpuc::onnx
