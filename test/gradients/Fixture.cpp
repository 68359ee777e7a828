//===- Fixture.cpp - What the tests over the registry share ------------------===//

#include "test/gradients/Fixture.h"

#include "dialects/gpuc/GpucOps.h"
#include "passes/Pipelines.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <cmath>

using namespace mlir;

namespace gpuc::gradients {

DialectTest::DialectTest() : context_(MLIRContext::Threading::DISABLED) {
  context_.loadDialect<ir::GpucDialect, func::FuncDialect>();
  [[maybe_unused]] static bool registered = (registerAllPasses(), true);
  context_.getDiagEngine().registerHandler([](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      ADD_FAILURE() << diagnostic.str();
  });
}

OwningOpRef<ModuleOp> DialectTest::parse(const std::string &text) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context_);
  if (!module)
    ADD_FAILURE() << text;
  return module;
}

void DialectTest::runPasses(ModuleOp module, const std::string &pipeline) {
  PassManager passes(&context_);
  ASSERT_TRUE(succeeded(parsePassPipeline(pipeline, passes)));
  ASSERT_TRUE(succeeded(passes.run(module)));
}

std::vector<Tensor> DialectTest::interpret(ModuleOp module, StringRef function, ArrayRef<Tensor> arguments) {
  reference::Interpreter interpreter = makeInterpreter(&context_);
  auto results = interpreter.run(lookup(module, function), arguments);
  if (results.ok())
    return std::move(*results);
  ADD_FAILURE() << results.status().message();
  return {};
}

static bool isClose(double a, double b, double tolerance) {
  if (!std::isfinite(a) || !std::isfinite(b))
    return a == b || (std::isnan(a) && std::isnan(b));
  return std::abs(a - b) <= tolerance * std::max({1.0, std::abs(a), std::abs(b)});
}

void DialectTest::expectClose(ArrayRef<Tensor> a, ArrayRef<Tensor> b, double tolerance,
                              const std::string &what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t tensor = 0; tensor < a.size(); ++tensor) {
    ASSERT_EQ(a[tensor].size(), b[tensor].size()) << what;
    for (int64_t i = 0; i < a[tensor].size(); ++i) {
      double left = a[tensor].at(i), right = b[tensor].at(i);
      ASSERT_TRUE(isClose(left, right, tolerance))
          << what << ", tensor " << tensor << ", element " << i << ": " << left << " and " << right
          << " differ by " << std::abs(left - right);
    }
  }
}

std::vector<Case> casesWhere(llvm::function_ref<bool(const Case &)> wanted) {
  std::vector<Case> cases;
  for (const Case &described : registry())
    if (wanted(described))
      cases.push_back(described);
  return cases;
}

MLIRContext *sharedContext() {
  static MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<ir::GpucDialect>();
  return &context;
}

} // namespace gpuc::gradients
