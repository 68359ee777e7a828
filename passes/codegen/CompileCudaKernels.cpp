//===- CompileCudaKernels.cpp - Blocks in, PTX and cubin out ----------------===//

#include "passes/codegen/CudaKernel.h"
#include "passes/codegen/CudaMachine.h"
#include "passes/codegen/KernelText.h"

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
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"

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

static FailureOr<CudaCode> fail(Location location, const Twine &message) {
  emitError(location) << message;
  return failure();
}

/// Optimises and writes the module as text.
static FailureOr<std::string> writePtx(llvm::Module &module, llvm::TargetMachine &machine, int optLevel,
                                       std::string &error) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  llvm::raw_string_ostream complaint(error);
  if (llvm::verifyModule(module, &complaint))
    return failure();
  Optimizer(machine, optLevel).run(module);
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

FailureOr<CudaCode> compileCudaKernels(ArrayRef<KernelSource> kernels, const CudaTarget &target,
                                       const CodegenOptions &options) {
  if (kernels.empty())
    return CudaCode();
  Location first = kernels.front().location;
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(target, options.optLevel, error);
  if (!machine)
    return fail(first, error);

  std::unique_ptr<MLIRContext> context = kernelContext();
  OwningOpRef<ModuleOp> holder = ModuleOp::create(UnknownLoc::get(context.get()));
  OpBuilder builder = OpBuilder::atBlockEnd(holder->getBody());
  auto module = gpu::GPUModuleOp::create(builder, holder->getLoc(), "kernels");
  CudaCode code;
  llvm::StringMap<std::string> symbolOfBody;
  for (const KernelSource &kernel : kernels) {
    if (failed(checkKernel(*kernel.body)))
      return fail(kernel.location,
                  "kernel '" + kernel.name + "' holds ops that cannot be one kernel: split the fused region");
    auto [known, isNew] = symbolOfBody.try_emplace(textOfBody(*kernel.body), kernel.name);
    if (isNew)
      emitCudaKernel(module, kernel.name, *kernel.body);
    code.symbols.push_back(known->second);
  }
  if (failed(verify(*holder)) || failed(lowerToNvvm(module)))
    return fail(first, "kernels could not be lowered to NVVM's dialect");

  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> llvmModule = translateModuleToLLVMIR(module, llvmContext, "kernels");
  if (!llvmModule)
    return fail(first, "kernels could not be translated to LLVM IR");
  FailureOr<std::string> ptx = writePtx(*llvmModule, *machine, options.optLevel, error);
  if (failed(ptx))
    return fail(first, error);

  code.ptx = std::move(*ptx);
  FailureOr<std::string> ptxas = findPtxas();
  if (failed(ptxas)) {
    emitWarning(first)
        << "no ptxas: the plan holds PTX alone, which the driver compiles each time the plan is loaded; "
           "install the CUDA toolkit and put its bin on the path, or set CUDA_HOME";
    return code;
  }
  FailureOr<std::string> cubin = assembleCubin(*ptxas, code.ptx, target, error);
  if (failed(cubin))
    return fail(first, error);
  code.cubin = std::move(*cubin);
  return code;
}

} // namespace gpuc
