//===- pytorch_test.cpp - Ops against numbers that PyTorch computed ----------===//
//
// The numbers and how they were made lie beside this file: pytorch_numbers.json, pytorch_numbers.py. They
// hold the interpreter to something that was not written for gpuc, and the derivatives to another autodiff.
//
//===----------------------------------------------------------------------===//

#include "test/gradients/Fixture.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

namespace gpuc::gradients {
namespace {

/// A case and what PyTorch makes of it.
struct Recorded {
  Case described;
  std::vector<std::vector<double>> outputs, gradients;
  std::vector<double> weights;
};

std::vector<double> numbersOf(const llvm::json::Value &array) {
  std::vector<double> numbers;
  for (const llvm::json::Value &value : *array.getAsArray())
    numbers.push_back(*value.getAsNumber());
  return numbers;
}

Recorded readCase(const llvm::json::Object &object) {
  Recorded recorded;
  Case &described = recorded.described;
  described.op = "gpuc.pytorch";
  described.name = object.getString("name")->str();
  described.body = object.getString("body")->str();
  for (const llvm::json::Value &value : *object.getArray("inputs")) {
    const llvm::json::Object &input = *value.getAsObject();
    described.inputs.push_back({input.getString("type")->str(), 0, 0, numbersOf(*input.get("values")),
                                *input.getBoolean("differentiate")});
  }
  for (const llvm::json::Value &value : *object.getArray("outputs")) {
    const llvm::json::Object &output = *value.getAsObject();
    described.outputs.push_back({output.getString("name")->str(), output.getString("type")->str()});
    recorded.outputs.push_back(numbersOf(*output.get("values")));
  }
  recorded.weights = numbersOf(*object.get("weights"));
  for (const llvm::json::Value &gradient : *object.getArray("gradients"))
    recorded.gradients.push_back(numbersOf(gradient));
  return recorded;
}

std::vector<Recorded> readCases() {
  std::vector<Recorded> cases;
  auto file = llvm::MemoryBuffer::getFile(GPUC_PYTORCH_NUMBERS);
  if (!file)
    return cases;
  auto parsed = llvm::json::parse((*file)->getBuffer());
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return cases;
  }
  for (const llvm::json::Value &value : *parsed->getAsObject()->getArray("cases"))
    cases.push_back(readCase(*value.getAsObject()));
  return cases;
}

class PyTorchTest : public DialectTest, public testing::WithParamInterface<Recorded> {
protected:
  void expectNumbers(ArrayRef<Tensor> computed, ArrayRef<std::vector<double>> recorded,
                     const std::string &what) {
    ASSERT_EQ(computed.size(), recorded.size()) << what;
    for (size_t i = 0; i < computed.size(); ++i)
      expectClose(computed[i], Tensor(computed[i].type, recorded[i]), 1e-12, what);
  }
};

TEST_P(PyTorchTest, ComputesTheSame) {
  const Case &described = GetParam().described;
  OwningOpRef<ModuleOp> module = parse(forwardModule(described, "f64"));
  ASSERT_TRUE(module);
  expectNumbers(interpret(*module, "f", makeArguments(described, lookup(*module, "f"))), GetParam().outputs,
                "results of the op and PyTorch's");
}

TEST_P(PyTorchTest, DerivesTheSame) {
  const Case &described = GetParam().described;
  OwningOpRef<ModuleOp> module = parse(gradientModule(described));
  ASSERT_TRUE(module);
  runPasses(*module, "gpuc-autodiff");
  std::vector<Tensor> arguments = makeArguments(described, lookup(*module, "gradient"));
  arguments.back() = Tensor(arguments.back().type, GetParam().weights);
  expectNumbers(interpret(*module, "gradient", arguments), GetParam().gradients,
                "gradients of the op and PyTorch's");
}

INSTANTIATE_TEST_SUITE_P(Recorded, PyTorchTest, testing::ValuesIn(readCases()),
                         [](const testing::TestParamInfo<Recorded> &info) {
                           return info.param.described.testName();
                         });

} // namespace
} // namespace gpuc::gradients
