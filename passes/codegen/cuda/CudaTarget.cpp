//===- CudaTarget.cpp - GPUs to compile for ---------------------------------===//

#include "passes/codegen/cuda/CudaMachine.h"

#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"

using namespace mlir;

namespace gpuc {

/// The oldest PTX version with the architecture and with more than 4 KiB of parameters (8.1, of CUDA 12.1),
/// so that the oldest driver takes it.
ArrayRef<CudaTarget> CudaTarget::known() {
  static const CudaTarget targets[] = {{"sm_80", "+ptx81"},
                                       {"sm_89", "+ptx81"},
                                       {"sm_90", "+ptx81"},
                                       {"sm_100", "+ptx86"},
                                       {"sm_120", "+ptx87"}};
  return targets;
}

FailureOr<CudaTarget> CudaTarget::parse(StringRef architecture, std::string *error) {
  for (const CudaTarget &target : known())
    if (target.architecture == architecture)
      return target;
  if (error) {
    SmallVector<std::string> names;
    for (const CudaTarget &target : known())
      names.push_back(target.architecture);
    *error = ("unknown GPU architecture '" + architecture + "': one of " + llvm::join(names, ", ")).str();
  }
  return failure();
}

namespace codegen {

std::unique_ptr<llvm::TargetMachine> createMachine(const CudaTarget &target, int optLevel,
                                                   std::string &error) {
  static const bool initialized = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)initialized;
  llvm::Triple triple("nvptx64-nvidia-cuda");
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict; // an FMA is where the IR has one, and nowhere else
  auto level = llvm::CodeGenOpt::getLevel(std::clamp(optLevel, 0, 3));
  return std::unique_ptr<llvm::TargetMachine>(
      backend->createTargetMachine(triple, target.architecture, target.ptxFeature, options, llvm::Reloc::PIC_,
                                   std::nullopt, level.value_or(llvm::CodeGenOptLevel::Default)));
}

} // namespace codegen
} // namespace gpuc
