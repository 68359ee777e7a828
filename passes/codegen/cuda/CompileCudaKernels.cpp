//===- CompileCudaKernels.cpp - Blocks in, PTX and cubin out ----------------===//

#include "passes/codegen/KernelCache.h"
#include "passes/codegen/KernelText.h"
#include "passes/codegen/cuda/CudaAttention.h"
#include "passes/codegen/cuda/CudaKernel.h"
#include "passes/codegen/cuda/CudaMachine.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"

#include <map>

using namespace mlir;

namespace gpuc {

using namespace codegen;

/// Kernels are emitted in a context of their own, in which nothing else is loaded or running.
static std::unique_ptr<MLIRContext> kernelContext() {
  DialectRegistry registry;
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, gpu::GPUDialect, LLVM::LLVMDialect,
                  math::MathDialect, memref::MemRefDialect, NVVM::NVVMDialect, scf::SCFDialect,
                  vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
  auto context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

/// LLVM does not say of products by a warp what it says of shuffles: that all of its threads take part, so
/// that none may sink to where some of them go.
static void keepWarpsTogether(llvm::Module &module) {
  for (llvm::Function &callee : module)
    if (callee.getName().starts_with("llvm.nvvm.mma."))
      for (llvm::User *user : callee.users())
        llvm::cast<llvm::CallInst>(user)->setConvergent();
}

/// Optimises and writes the module as text.
static FailureOr<std::string> writePtx(llvm::Module &module, llvm::TargetMachine &machine, int optLevel,
                                       std::string &error) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  llvm::raw_string_ostream complaint(error);
  if (llvm::verifyModule(module, &complaint))
    return failure();
  keepWarpsTogether(module);
  Optimizer(machine, optLevel, /*once=*/true).run(module);
  SmallVector<char> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager emission;
  if (machine.addPassesToEmitFile(emission, stream, nullptr, llvm::CodeGenFileType::AssemblyFile)) {
    error = "LLVM cannot write PTX";
    return failure();
  }
  emission.run(module);
  return std::string(text.begin(), text.end());
}

/// PTX of kernels that differ from one another.
static FailureOr<std::string> compileToPtx(ArrayRef<KernelSource> kernels, const CudaTarget &target,
                                           int optLevel, std::string &error) {
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(target, optLevel, error);
  if (!machine)
    return failure();
  std::unique_ptr<MLIRContext> context = kernelContext();
  OwningOpRef<ModuleOp> holder = ModuleOp::create(UnknownLoc::get(context.get()));
  OpBuilder builder = OpBuilder::atBlockEnd(holder->getBody());
  auto module = gpu::GPUModuleOp::create(builder, holder->getLoc(), "kernels");
  for (const KernelSource &kernel : kernels)
    emitCudaKernel(module, kernel.symbol, *kernel.body);
  if (failed(verify(*holder)) || failed(lowerToNvvm(module)))
    return error = "kernels could not be lowered to NVVM's dialect", failure();
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> llvmModule = translateModuleToLLVMIR(module, llvmContext, "kernels");
  if (!llvmModule)
    return error = "kernels could not be translated to LLVM IR", failure();
  return writePtx(*llvmModule, *machine, optLevel, error);
}

/// Which ptxas it is: another may compile the same PTX to other bytes.
static std::string describeProgram(const FailureOr<std::string> &path) {
  llvm::sys::fs::file_status status;
  if (failed(path) || llvm::sys::fs::status(*path, status))
    return "none";
  return *path + " " + std::to_string(status.getSize()) + " " +
         std::to_string(status.getLastModificationTime().time_since_epoch().count());
}

/// One entry of the cache holds both: the length of the PTX, and then each.
static std::string pack(const CudaCode &code) {
  return std::to_string(code.ptx.size()) + "\n" + code.ptx + code.cubin;
}

static void unpack(StringRef entry, CudaCode &code) {
  size_t length = 0;
  entry.consumeInteger(10, length);
  entry = entry.drop_front();
  code.ptx = entry.take_front(length).str();
  code.cubin = entry.drop_front(length).str();
}

FailureOr<CudaCode> compileCudaKernels(ArrayRef<KernelSource> kernels, const CudaTarget &target,
                                       const CodegenOptions &options) {
  CudaCode code;
  if (kernels.empty())
    return code;
  FailureOr<std::string> ptxas = failure();
  if (options.cubin)
    ptxas = findPtxas();
  std::string program = describeProgram(ptxas), level = std::to_string(options.optLevel);
  std::map<std::string, KernelSource> distinct;
  for (const KernelSource &kernel : kernels) {
    if (failed(AttentionKernel::parse(*kernel.body)) && failed(checkKernel(*kernel.body)))
      return emitError(kernel.location) << "kernel '" << kernel.symbol
                                        << "' holds ops that cannot be one kernel: split the fused region";
    std::string symbol =
        "gpuc_" + hashOfTexts({textOfBody(*kernel.body),
                               kernel.body->getParentOp()->hasAttr(kAlignedAttr) ? "aligned" : ""});
    distinct.try_emplace(symbol, KernelSource{symbol, kernel.body, kernel.location});
    code.symbols.push_back(std::move(symbol));
  }
  std::vector<KernelSource> sources; // in the order of their names
  for (const auto &[symbol, kernel] : distinct)
    sources.push_back(kernel);

  Location first = kernels.front().location;
  if (options.cubin && failed(ptxas))
    emitWarning(first)
        << "no ptxas: the plan holds PTX alone, which the driver compiles each time the plan is loaded; "
           "install the CUDA toolkit and put its bin on the path, or set CUDA_HOME";
  std::string key;
  if (options.cache) {
    key = hashOfTexts({compilerFingerprint(), target.architecture, target.ptxFeature, level, program,
                       llvm::join(llvm::make_first_range(distinct), " ")});
    if (std::optional<std::string> entry = options.cache->load(key)) {
      unpack(*entry, code);
      return code;
    }
  }
  std::string error;
  FailureOr<std::string> ptx = compileToPtx(sources, target, options.optLevel, error);
  if (failed(ptx))
    return emitError(first) << error;
  code.ptx = std::move(*ptx);
  if (succeeded(ptxas)) {
    FailureOr<std::string> cubin = assembleCubin(*ptxas, code.ptx, target, error);
    if (failed(cubin))
      return emitError(first) << error;
    code.cubin = std::move(*cubin);
  }
  if (options.cache)
    options.cache->store(key, pack(code));
  return code;
}

} // namespace gpuc
