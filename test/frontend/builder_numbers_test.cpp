// What the builder composes of several ops, against numbers that test/gradients/pytorch_numbers.py had of
// PyTorch.
#include "frontend/builder/nn.h"
#include "test/reference/Interpreter.h"

#include "mlir/IR/BuiltinOps.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace gpuc::nn {
namespace {

struct Recorded {
  std::string name;
  std::vector<Shape> shapes;
  std::vector<std::vector<double>> inputs;
  std::vector<double> output;
};

std::vector<double> numbersOf(const llvm::json::Value &array) {
  std::vector<double> numbers;
  for (const llvm::json::Value &value : *array.getAsArray())
    numbers.push_back(*value.getAsNumber());
  return numbers;
}

std::vector<Recorded> readModels() {
  std::vector<Recorded> models;
  auto file = llvm::MemoryBuffer::getFile(GPUC_PYTORCH_NUMBERS);
  if (!file)
    return models;
  auto parsed = llvm::json::parse((*file)->getBuffer());
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return models;
  }
  for (const llvm::json::Value &value : *parsed->getAsObject()->getArray("models")) {
    const llvm::json::Object &object = *value.getAsObject();
    Recorded &model = models.emplace_back();
    model.name = object.getString("name")->str();
    model.output = numbersOf(*object.get("output"));
    for (const llvm::json::Value &input : *object.getArray("inputs")) {
      std::vector<double> extents = numbersOf(*input.getAsObject()->get("shape"));
      model.shapes.emplace_back(extents.begin(), extents.end());
      model.inputs.push_back(numbersOf(*input.getAsObject()->get("values")));
    }
  }
  return models;
}

/// "nearest_6x8" → nearest and (6, 8).
Tensor resizeByName(const std::string &name, const Tensor &x) {
  const std::string kind = name.substr(0, name.find('_'));
  Shape extents;
  std::stringstream rest(name.substr(name.find('_') + 1));
  for (std::string extent; std::getline(rest, extent, 'x');)
    extents.push_back(std::stoll(extent));
  return resize(x, extents, kind == "nearest" ? Interpolation::nearest : Interpolation::linear,
                kind == "corners");
}

/// As pytorch_numbers.py has them.
const std::map<std::string, UpsampleOptions> kUpsamples = {
    {"upsample_nearest", {.scaleFactor = {2}}},
    {"upsample_linear", {.scaleFactor = {1, 2.5}, .mode = Interpolation::linear}},
    {"upsample_corners", {.scaleFactor = {2}, .mode = Interpolation::linear, .alignCorners = true}},
    {"upsample_size", {.size = {4, 9}, .mode = Interpolation::linear, .alignCorners = true}}};

class BuilderNumbers : public testing::TestWithParam<Recorded> {
protected:
  Result<Model> build() {
    const Recorded &recorded = GetParam();
    ModelBuilder model("test", DataType::f64);
    if (recorded.name == "group_norm_affine")
      model.predict({{"x", recorded.shapes[0]}, {"w", recorded.shapes[1]}, {"b", recorded.shapes[2]}}, "y",
                    [](Tensor x, Tensor w, Tensor b) { return groupNorm(x, 4, w, b); });
    else if (auto found = kUpsamples.find(recorded.name); found != kUpsamples.end())
      model.predict({{"x", recorded.shapes[0]}}, "y", [&](Tensor x) { return Upsample(found->second)(x); });
    else
      model.predict({{"x", recorded.shapes[0]}}, "y", [&](Tensor x) {
        return recorded.name == "group_norm" ? groupNorm(x, 2) : resizeByName(recorded.name, x);
      });
    return model.finish();
  }
};

TEST_P(BuilderNumbers, ArePyTorchs) {
  Result<Model> model = build();
  ASSERT_TRUE(model.ok()) << model.message();
  auto predict = model->module().lookupSymbol<mlir::func::FuncOp>("predict");
  std::vector<reference::Tensor> arguments;
  for (size_t i = 0; i < GetParam().inputs.size(); ++i)
    arguments.emplace_back(reference::typeOf(predict.getArgument(i)), GetParam().inputs[i]);
  reference::Interpreter interpreter;
  auto results = interpreter.run(predict, arguments);
  ASSERT_TRUE(results.ok()) << results.status().message();
  const reference::Tensor &y = results->front();
  ASSERT_EQ(static_cast<size_t>(y.size()), GetParam().output.size());
  for (int64_t i = 0; i < y.size(); ++i)
    ASSERT_NEAR(y.at(i), GetParam().output[i], 1e-12) << "element " << i;
}

INSTANTIATE_TEST_SUITE_P(Recorded, BuilderNumbers, testing::ValuesIn(readModels()),
                         [](const testing::TestParamInfo<Recorded> &info) { return info.param.name; });

} // namespace
} // namespace gpuc::nn
