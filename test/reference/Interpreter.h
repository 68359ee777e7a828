//===- Interpreter.h - What gpuc ops mean, computed plainly in f64 -----------===//
//
// The oracle of tests: each op as its description in dialects/gpuc/*.td defines it, one element at a time,
// without looking at how the compiler does it. Composite ops are computed from their definition, not from
// their decomposition.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"
#include "runtime/base/status.h"
#include "test/reference/Tensor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>
#include <string>

namespace gpuc::reference {

/// How floating-point results are kept.
enum class Precision {
  exact, ///< In f64, whatever the type says: the value that rounding errors are measured from.
  typed, ///< Rounded to the type after each op.
};

struct Interpreter {
  Precision precision = Precision::exact;
  std::map<std::string, Tensor> variables; ///< What gpuc.read sees.
  std::map<std::string, Tensor> assigned;  ///< What gpuc.assign wrote; reads do not see it.
  double largest = 0; ///< The largest finite magnitude that any floating-point op has given.
  /// Keeps Element::terms, of graphs without composite ops: RunningError.h. Variables and arguments begin
  /// with their magnitudes.
  bool countsTerms = false;

  /// Runs a function of one block on `arguments`. Errors: an op without a case, gpuc.gradient among them
  /// (autodiff runs first); a variable without a value.
  Result<std::vector<Tensor>> run(mlir::func::FuncOp function, llvm::ArrayRef<Tensor> arguments);

private:
  Result<std::vector<Tensor>> runBlock(mlir::Block &block, llvm::ArrayRef<Tensor> arguments);
  Result<std::vector<Tensor>> runOp(mlir::Operation *op, llvm::ArrayRef<Tensor> operands);
  Result<std::vector<Tensor>> runScan(ir::ScanOp scan, llvm::ArrayRef<Tensor> operands);
  void keepPrecision(Tensor &tensor);
  Tensor given(Tensor tensor) const;
};

/// True if the interpreter knows the op of this name, as "gpuc.add".
bool isInterpreted(llvm::StringRef name);

} // namespace gpuc::reference
