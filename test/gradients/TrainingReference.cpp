//===- TrainingReference.cpp - What a training module means, with tolerances --===//

#include "test/gradients/TrainingReference.h"

#include "passes/Pipelines.h"
#include "test/reference/RunningError.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <cmath>
#include <limits>
#include <sstream>

using namespace mlir;

namespace gpuc::gradients {

using reference::Element;
using reference::Tensor;

//===----------------------------------------------------------------------===//
// From the model to its entries
//===----------------------------------------------------------------------===//

static constexpr const char *kToEntries =
    "gpuc-specialize-batch,gpuc-mask-padding,gpuc-differentiate-loss,gpuc-autodiff,gpuc-expand-recipe";

/// Runs passes by name; the first diagnostic is the error.
static Status runPasses(ModuleOp module, const char *pipeline, const std::string &diagnostic) {
  [[maybe_unused]] static bool registered = (registerAllPasses(), true);
  PassManager passes(module.getContext());
  if (failed(parsePassPipeline(pipeline, passes)) || failed(passes.run(module)))
    return Status::error("the reference cannot expand the module: " + diagnostic);
  return okStatus();
}

Result<TrainingReference> TrainingReference::create(const std::string &text) {
  TrainingReference reference;
  reference.context_ = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  reference.context_->loadDialect<ir::GpucDialect, func::FuncDialect>();
  std::string diagnostic;
  ScopedDiagnosticHandler handler(reference.context_.get(), [&](Diagnostic &said) {
    if (diagnostic.empty() && said.getSeverity() == DiagnosticSeverity::Error)
      diagnostic = said.str();
    return success();
  });
  reference.module_ = parseSourceString<ModuleOp>(text, reference.context_.get());
  if (!reference.module_)
    return Status::error("not a module: " + diagnostic);
  if (reference.module_->getOps<ir::RecipeOp>().empty())
    return Status::error("the module has no recipe");
  GPUC_RETURN_IF_ERROR(runPasses(*reference.module_, kToEntries, diagnostic));
  reference.decomposed_ = reference.module_->clone();
  GPUC_RETURN_IF_ERROR(runPasses(*reference.decomposed_, "gpuc-decompose", diagnostic));
  for (auto variable : reference.module_->getOps<ir::VariableOp>())
    reference.types_[variable.getSymName().str()] = cast<RankedTensorType>(variable.getType());
  return reference;
}

//===----------------------------------------------------------------------===//
// Running them
//===----------------------------------------------------------------------===//

/// What an interpreter gives for a function. A variable that is not assigned keeps its bits.
static Result<Outcome> interpret(func::FuncOp function, ArrayRef<Tensor> arguments, const Variables &state,
                                 bool countsTerms) {
  reference::Interpreter interpreter;
  interpreter.variables = state;
  interpreter.countsTerms = countsTerms;
  GPUC_ASSIGN_OR_RETURN(std::vector<Tensor> results, interpreter.run(function, arguments));
  Outcome outcome{std::move(results), state};
  for (auto &[name, tensor] : interpreter.assigned)
    outcome.variables[name] = tensor;
  return outcome;
}

/// Gives `values` the tolerances of `bounds`.
static Status merge(Tensor &values, const Tensor &bounds, const std::string &what) {
  if (std::string difference = differenceOf(bounds, values); !difference.empty())
    return Status::error(what + " is not what its decomposition is: " + difference);
  for (auto [value, bound] : llvm::zip_equal(values.elements, bounds.elements))
    value.terms = bound.terms;
  return okStatus();
}

Result<Outcome> TrainingReference::run(StringRef name, ArrayRef<Tensor> arguments, const Variables &state) {
  auto decomposed = decomposed_->lookupSymbol<func::FuncOp>(name);
  GPUC_ASSIGN_OR_RETURN(Outcome outcome, interpret(entry(name), arguments, state, /*countsTerms=*/false));
  GPUC_ASSIGN_OR_RETURN(Outcome bounds, interpret(decomposed, arguments, state, /*countsTerms=*/true));
  for (auto [index, result] : llvm::enumerate(outcome.results))
    GPUC_RETURN_IF_ERROR(merge(result, bounds.results[index], "result " + std::to_string(index)));
  for (auto &[variable, tensor] : outcome.variables)
    GPUC_RETURN_IF_ERROR(merge(tensor, bounds.variables[variable], "@" + variable));
  return outcome;
}

//===----------------------------------------------------------------------===//
// Comparing
//===----------------------------------------------------------------------===//

/// Numbers below the type's normal ones have larger relative errors than ε.
static double leastNormal(Type element) {
  return element.isF64() ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
}

static bool agrees(const Element &expected, const Element &found, Type type) {
  if (!isa<FloatType>(type))
    return std::isinf(expected.terms) || expected.integer == found.integer;
  if (!std::isfinite(expected.real))
    return expected.real == found.real || (std::isnan(expected.real) && std::isnan(found.real));
  const double tolerance = reference::toleranceOf(expected, type) + leastNormal(type);
  return std::isinf(tolerance) || std::abs(expected.real - found.real) <= tolerance;
}

std::string differenceOf(const Tensor &expected, const Tensor &found) {
  const Type type = expected.type.getElementType();
  for (int64_t i = 0; i < expected.size(); ++i) {
    if (agrees(expected.elements[i], found.elements[i], type))
      continue;
    std::ostringstream text;
    text.precision(9);
    text << "element " << i << " of " << expected.size() << ": " << found.at(i) << " where " << expected.at(i)
         << " was expected";
    if (expected.isFloat())
      text << ", " << reference::toleranceOf(expected.elements[i], type) << " being the tolerance";
    return text.str();
  }
  return "";
}

void Coverage::count(const Tensor &expected) {
  all += expected.size();
  double largest = 0;
  for (const Element &element : expected.elements)
    largest = std::max(largest, std::abs(element.real));
  for (const Element &element : expected.elements)
    tight += expected.isFloat()
                 ? reference::toleranceOf(element, expected.type.getElementType()) <= std::ldexp(largest, -7)
                 : element.terms == 0;
}

} // namespace gpuc::gradients
