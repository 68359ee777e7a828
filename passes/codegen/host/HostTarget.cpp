//===- HostTarget.cpp - CPUs to compile for ---------------------------------===//

#include "passes/codegen/host/HostMachine.h"

#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"

using namespace mlir;

namespace gpuc {

namespace codegen {

static const llvm::Target *hostTarget(std::string &error) {
  static const bool initialized = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    return true;
  }();
  (void)initialized;
  return llvm::TargetRegistry::lookupTarget(llvm::Triple(llvm::sys::getDefaultTargetTriple()), error);
}

static std::string featureString(const HostTarget &target) { return llvm::join(target.features, ","); }

std::unique_ptr<llvm::TargetMachine> createMachine(const HostTarget &target, int optLevel,
                                                   std::string &error) {
  const llvm::Target *backend = hostTarget(error);
  if (!backend)
    return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict; // an FMA is where the IR has one, and nowhere else
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  auto level = llvm::CodeGenOpt::getLevel(std::clamp(optLevel, 0, 3));
  return std::unique_ptr<llvm::TargetMachine>(
      backend->createTargetMachine(triple, target.cpu, featureString(target), options, llvm::Reloc::PIC_,
                                   llvm::CodeModel::Small, level.value_or(llvm::CodeGenOptLevel::Default)));
}

} // namespace codegen

static FailureOr<HostTarget> fail(std::string *error, const Twine &message) {
  if (error)
    *error = message.str();
  return failure();
}

/// Fills in what follows from name and features; refuses CPUs that would need calls into a library.
static FailureOr<HostTarget> describe(HostTarget target, std::string *error) {
  std::string reason;
  const llvm::Target *backend = codegen::hostTarget(reason);
  if (!backend)
    return fail(error, reason);
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  std::unique_ptr<llvm::MCSubtargetInfo> baseline(backend->createMCSubtargetInfo(triple, "", ""));
  if (!baseline->isCPUStringValid(target.cpu))
    return fail(error,
                "unknown CPU '" + target.cpu + "': name one as LLVM does, such as x86-64-v3 or native");
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      backend->createMCSubtargetInfo(triple, target.cpu, codegen::featureString(target)));
  if (!triple.isX86()) {
    target.vectorBytes = 16;
    return target;
  }
  auto has = [&](StringRef feature) { return info->checkFeatures(("+" + feature).str()); };
  if (!has("fma") || !has("avx2") || !has("f16c"))
    return fail(error, "CPU '" + target.cpu + "' has no fused multiply-add: kernels need x86-64-v3 or newer");
  bool wide = has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl");
  target.vectorBytes = wide ? 64 : 32;
  return target;
}

/// Names those features that the CPU's name implies and that a machine can be asked for: a plan carries them,
/// and a machine that lacks one refuses it.
static void nameFeatures(HostTarget &target) {
  std::string ignored;
  const llvm::Target *backend = codegen::hostTarget(ignored); // describe() has found it
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  std::unique_ptr<llvm::MCSubtargetInfo> info(backend->createMCSubtargetInfo(triple, target.cpu, ""));
  for (auto &[name, present] : llvm::sys::getHostCPUFeatures())
    if (info->checkFeatures(("+" + name).str()))
      target.features.push_back(("+" + name).str());
  llvm::sort(target.features); // a hash map gave them
}

FailureOr<HostTarget> HostTarget::parse(StringRef cpu, std::string *error) {
  if (cpu == "native")
    return native(error);
  HostTarget target;
  target.cpu = cpu.str();
  FailureOr<HostTarget> described = describe(std::move(target), error);
  if (succeeded(described))
    nameFeatures(*described);
  return described;
}

FailureOr<HostTarget> HostTarget::native(std::string *error) {
  HostTarget target;
  target.cpu = llvm::sys::getHostCPUName().str();
  for (auto &[name, present] : llvm::sys::getHostCPUFeatures())
    target.features.push_back((present ? "+" : "-") + name.str());
  llvm::sort(target.features); // a hash map gave them
  return describe(std::move(target), error);
}

} // namespace gpuc
