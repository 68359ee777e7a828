//===- HostObjects.cpp - Many small modules, compiled side by side ----------===//
//
// MLIR's part, a few per cent of the time, is done where the modules are added: all of them share a context,
// and patterns that take longer to make than to apply. LLVM's part is done on other threads meanwhile.
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/host/HostObjects.h"
#include "passes/codegen/KernelCache.h"
#include "passes/codegen/KernelText.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;

namespace gpuc::codegen {

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

HostObjects::HostObjects(const HostTarget &target, const CodegenOptions &options)
    : target_(target), options_(options), context_(kernelContext()) {
  if (options.cache)
    fingerprint_ = hashOfTexts({compilerFingerprint(), llvm::sys::getDefaultTargetTriple(), target.cpu,
                                llvm::join(target.features, ","), std::to_string(target.vectorBytes),
                                std::to_string(options.optLevel)});
  unsigned threads = llvm::hardware_concurrency(options.threads).compute_thread_count();
  if (threads > 1)
    threads_ = std::make_unique<llvm::DefaultThreadPool>(llvm::hardware_concurrency(threads));
}

std::string HostObjects::add(OwningOpRef<ModuleOp> module, StringRef name) {
  std::string text = textOfModule(*module);
  auto [entry, isNew] = symbols_.try_emplace(text, "gpuc_" + hashOfTexts({text}));
  const std::string &symbol = entry->second;
  if (!isNew)
    return symbol;
  Job &job = jobs_.emplace_back();
  jobOf_[symbol] = &job;
  if (options_.cache) {
    job.key = hashOfTexts({fingerprint_, text});
    if (std::optional<std::string> object = options_.cache->load(job.key)) {
      job.object = std::move(*object);
      job.isCached = true;
      return symbol;
    }
  }
  if (!name.empty())
    SymbolTable::setSymbolName(SymbolTable::lookupSymbolIn(*module, name), symbol);
  if (failed(lower(*module, job)))
    return symbol;
  if (threads_)
    // An exception (no memory) would be kept with a result that nobody asks for, and the job pass for done.
    threads_->async([this, &job]() noexcept { compile(job); });
  else
    compile(job);
  return symbol;
}

LogicalResult HostObjects::lower(ModuleOp module, Job &job) {
  if (!lowering_)
    lowering_ = std::make_unique<KernelLowering>(context());
  assert(succeeded(verify(module)) && "the emitter's own ops");
  if (failed(lowering_->run(module)))
    return job.error = "kernels could not be lowered to LLVM's dialect", failure();
  job.context = std::make_unique<llvm::LLVMContext>();
  job.module = translateModuleToLLVMIR(module, *job.context, "kernel"); // which LLVM's verifier has seen
  if (!job.module)
    return job.error = "kernels could not be translated to LLVM IR", failure();
  return success();
}

void HostObjects::compile(Job &job) {
  std::unique_ptr<ObjectCompiler> compiler;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      compiler = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!compiler)
    compiler = ObjectCompiler::create(target_, options_.optLevel, job.error);
  if (!compiler)
    return;
  job.object = compiler->compile(*job.module);
  job.module.reset();
  job.context.reset();
  std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(std::move(compiler));
}

FailureOr<std::vector<std::string>> HostObjects::finish(ArrayRef<std::string> symbols, std::string &error) {
  if (threads_)
    threads_->wait();
  std::vector<std::string> objects;
  for (const std::string &symbol : symbols) {
    Job &job = *jobOf_.at(symbol);
    if (!job.error.empty())
      return error = job.error, failure();
    if (options_.cache && !job.isCached)
      options_.cache->store(job.key, job.object);
    objects.push_back(std::move(job.object));
  }
  return objects;
}

} // namespace gpuc::codegen
