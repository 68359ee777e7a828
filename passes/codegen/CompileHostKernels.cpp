//===- CompileHostKernels.cpp - Blocks in, shared object out ----------------===//

#include "passes/codegen/HostKernel.h"
#include "passes/codegen/HostMachine.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace gpuc {

using namespace codegen;

/// The block as text, in which two kernels are equal if and only if their code is.
static std::string bodyText(Block &body) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  OpPrintingFlags flags;
  flags.useLocalScope().enableDebugInfo(false).printGenericOpForm();
  AsmState state(body.getParentOp(), flags);
  for (BlockArgument argument : body.getArguments())
    stream << argument.getType() << '\n';
  for (Operation &op : body) {
    op.print(stream, state);
    stream << '\n';
  }
  return text;
}

/// Kernels are emitted in a context of their own, in which nothing else is loaded or running.
static std::unique_ptr<MLIRContext> kernelContext() {
  DialectRegistry registry;
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, LLVM::LLVMDialect,
                  math::MathDialect, scf::SCFDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  auto context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

static FailureOr<std::string> fail(Location location, const Twine &message) {
  emitError(location) << message;
  return failure();
}

FailureOr<std::string> compileHostKernels(ArrayRef<KernelSource> kernels, const HostTarget &target,
                                          const CodegenOptions &options) {
  if (kernels.empty())
    return std::string();
  Location first = kernels.front().location;
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(target, options.optLevel, error);
  if (!machine)
    return fail(first, error);

  std::unique_ptr<MLIRContext> context = kernelContext();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context.get()));
  llvm::StringMap<StringRef> byBody;
  SmallVector<std::pair<StringRef, StringRef>> aliases; // (symbol, of)
  for (const KernelSource &kernel : kernels) {
    if (failed(checkKernel(*kernel.body)))
      return fail(kernel.location, "kernel '" + kernel.symbol +
                                       "' holds ops that cannot be one kernel: split the fused region");
    auto [known, isNew] = byBody.try_emplace(bodyText(*kernel.body), kernel.symbol);
    if (isNew)
      emitHostKernel(*module, kernel.symbol, *kernel.body, target);
    else
      aliases.push_back({kernel.symbol, known->second});
  }
  if (failed(verify(*module)) || failed(lowerToLLVMDialect(*module)))
    return fail(first, "kernels could not be lowered to LLVM's dialect");

  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> llvmModule = translateModuleToLLVMIR(*module, llvmContext, "kernels");
  if (!llvmModule)
    return fail(first, "kernels could not be translated to LLVM IR");
  for (auto [symbol, of] : aliases)
    llvm::GlobalAlias::create(symbol, llvmModule->getFunction(of));

  FailureOr<std::string> object =
      compileToObject(*llvmModule, *machine, options.optLevel, target.vectorBytes, error);
  if (failed(object))
    return fail(first, error);
  FailureOr<std::string> shared = linkSharedObject(*object, error);
  if (failed(shared))
    return fail(first, error);
  return shared;
}

} // namespace gpuc
