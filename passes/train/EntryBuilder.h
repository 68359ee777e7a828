//===- EntryBuilder.h - Functions whose arguments and results have names -----===//
#pragma once

#include "dialects/gpuc/GpucOps.h"

namespace gpuc {

/// Builds an entry function from the bodies of others. Arguments of one name are one argument.
class EntryBuilder {
public:
  EntryBuilder(mlir::ModuleOp module, llvm::StringRef name);

  /// Puts `callee`'s body here and returns its results. Its arguments become the entry's, by `gpuc.name`; an
  /// argument whose type or range differs from those of an earlier one of that name is an error.
  llvm::FailureOr<llvm::SmallVector<mlir::Value>> append(mlir::func::FuncOp callee);

  /// Adds a result; results must have names of their own.
  void addResult(llvm::StringRef name, mlir::Value value);

  /// Ends the function; nothing may follow.
  mlir::func::FuncOp finish();

  mlir::OpBuilder &builder() { return builder_; }
  mlir::func::FuncOp function() { return function_; }

private:
  llvm::FailureOr<mlir::Value> argument(mlir::func::FuncOp callee, unsigned index);
  llvm::LogicalResult mergeRange(mlir::func::FuncOp callee, unsigned index, unsigned known);

  mlir::func::FuncOp function_;
  mlir::OpBuilder builder_;
  llvm::SmallVector<std::pair<std::string, mlir::Value>> results_;
};

} // namespace gpuc
