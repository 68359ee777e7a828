//===- Fixture.h - What the tests over the registry share --------------------===//
#pragma once

#include "test/gradients/CaseModule.h"

#include <gtest/gtest.h>

namespace gpuc::gradients {

using reference::Tensor;

/// A context with the dialect, and diagnostics as test failures.
class DialectTest : public testing::Test {
protected:
  DialectTest();

  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text);
  /// Runs passes over the module, in the notation of gpuc-opt: "gpuc-decompose,gpuc-autodiff".
  void runPasses(mlir::ModuleOp module, const std::string &pipeline);
  /// Interprets a function of the module.
  std::vector<Tensor> interpret(mlir::ModuleOp module, llvm::StringRef function,
                                llvm::ArrayRef<Tensor> arguments);
  static mlir::func::FuncOp lookup(mlir::ModuleOp module, llvm::StringRef function) {
    return module.lookupSymbol<mlir::func::FuncOp>(function);
  }

  /// Expects element by element |a - b| ≤ tolerance · max(1, |a|, |b|), and NaN or infinity where the other
  /// has it.
  static void expectClose(llvm::ArrayRef<Tensor> a, llvm::ArrayRef<Tensor> b, double tolerance,
                          const std::string &what);

  mlir::MLIRContext context_;
};

class CaseTest : public DialectTest, public testing::WithParamInterface<Case> {};

/// For INSTANTIATE_TEST_SUITE_P: the cases for which `wanted` holds, and their names.
std::vector<Case> casesWhere(llvm::function_ref<bool(const Case &)> wanted);
inline std::string nameOfCase(const testing::TestParamInfo<Case> &info) { return info.param.testName(); }

/// True if the case's op has an interface, as "composite".
template <typename Interface> bool opHasInterface(mlir::MLIRContext *context, const std::string &op) {
  auto name = mlir::RegisteredOperationName::lookup(op, context);
  return name && name->hasInterface<Interface>();
}

/// A context of its own, for questions about registered ops before any test runs.
mlir::MLIRContext *sharedContext();

} // namespace gpuc::gradients
