//===- HostObjects.h - Many small modules, compiled side by side ------------===//
#pragma once

#include "passes/codegen/host/HostMachine.h"

#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ThreadPool.h"

#include <deque>

namespace gpuc::codegen {

/// Compiles modules, each to an object of its own: equal ones once, those in the cache not at all, the others
/// on as many threads as there are. What comes out depends on neither.
class HostObjects {
public:
  HostObjects(const HostTarget &target, const CodegenOptions &options);
  /// The context in which modules are to be made.
  mlir::MLIRContext *context() { return context_.get(); }

  /// Takes a module in the dialects that kernels are emitted in, and renames its function `name`, if that is
  /// not empty, after the module's text, so that no two modules define the same symbol. Returns the new name.
  std::string add(mlir::OwningOpRef<mlir::ModuleOp> module, llvm::StringRef name = {});

  /// The objects of these names, in their order.
  mlir::FailureOr<std::vector<std::string>> finish(llvm::ArrayRef<std::string> symbols, std::string &error);

private:
  struct Job {
    std::string key; ///< In the cache.
    std::unique_ptr<llvm::LLVMContext> context;
    std::unique_ptr<llvm::Module> module;
    std::string object, error;
    bool isCached = false;
  };

  /// Lowers to LLVM IR, which is the job's own, so that any thread can go on with it.
  mlir::LogicalResult lower(mlir::ModuleOp module, Job &job);
  void compile(Job &job);

  const HostTarget &target_;
  CodegenOptions options_;
  std::unique_ptr<mlir::MLIRContext> context_;
  std::unique_ptr<KernelLowering> lowering_;
  std::string fingerprint_;                           ///< Of target, options and compiler.
  std::deque<Job> jobs_;                              ///< Which threads hold references to.
  llvm::StringMap<std::string> symbols_;              ///< Of each module's text.
  llvm::StringMap<Job *> jobOf_;                      ///< Of each symbol.
  std::vector<std::unique_ptr<ObjectCompiler>> idle_; ///< Compilers that no thread is using.
  std::mutex mutex_;                                  ///< Of idle_.
  std::unique_ptr<llvm::DefaultThreadPool> threads_;  ///< Null: everything on the caller's.
};

} // namespace gpuc::codegen
