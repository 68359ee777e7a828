//===- CompileObject.cpp - From LLVM IR to a relocatable object -------------===//

#include "passes/codegen/host/HostMachine.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"

using namespace mlir;

namespace gpuc::codegen {

/// No function may be turned into, or taken for, one of a C library: there is none at run time.
static void prepare(llvm::Module &module, llvm::TargetMachine &machine, int vectorBytes) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("no-builtins");
    function.addFnAttr(llvm::Attribute::NoUnwind);
    // CPUs with 64-byte vectors are tuned for 32; our loops are written for the full width.
    function.addFnAttr("prefer-vector-width", std::to_string(8 * vectorBytes));
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
  }
}

std::unique_ptr<ObjectCompiler> ObjectCompiler::create(const HostTarget &target, int optLevel,
                                                       std::string &error) {
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(target, optLevel, error);
  if (!machine)
    return nullptr;
  return std::unique_ptr<ObjectCompiler>(
      new ObjectCompiler(std::move(machine), optLevel, target.vectorBytes));
}

FailureOr<std::string> ObjectCompiler::compile(llvm::Module &module, std::string &error) {
  prepare(module, *machine_, vectorBytes_);
  optimizer_.run(module);
  SmallVector<char> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager emission;
  if (machine_->addPassesToEmitFile(emission, stream, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    error = "LLVM cannot write an object for " + machine_->getTargetTriple().str();
    return failure();
  }
  emission.run(module);
  return std::string(object.begin(), object.end());
}

} // namespace gpuc::codegen
