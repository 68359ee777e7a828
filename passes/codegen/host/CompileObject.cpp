//===- CompileObject.cpp - From LLVM IR to a relocatable object -------------===//

#include "passes/codegen/host/HostMachine.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Transforms/Scalar.h"

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

/// LLVM's passes for emission, set up once: making them takes as long as a small kernel's code.
class ObjectCompiler::Emission {
public:
  /// False if LLVM cannot write objects for the machine.
  bool setUp(llvm::TargetMachine &machine) {
    return !machine.addPassesToEmitFile(passes_, stream_, nullptr, llvm::CodeGenFileType::ObjectFile);
  }

  std::string run(llvm::Module &module) {
    object_.clear();
    passes_.run(module);
    return std::string(object_.begin(), object_.end());
  }

private:
  /// Takes what LLVM emits code with but for the reduction of loops' strength, a third of emission: what
  /// moves with a loop is an address already, from which the others are constants apart. LLVM leaves it out
  /// by a flag of the whole process alone, which would change CUDA's code.
  class Passes : public llvm::legacy::PassManagerBase {
  public:
    void add(llvm::Pass *pass) override {
      if (pass->getPassID() != strengthReduction())
        return passes_.add(pass);
      delete pass;
    }

    void run(llvm::Module &module) { passes_.run(module); }

  private:
    static llvm::AnalysisID strengthReduction() {
      static const llvm::AnalysisID id =
          std::unique_ptr<llvm::Pass>(llvm::createLoopStrengthReducePass())->getPassID();
      return id;
    }

    llvm::legacy::PassManager passes_;
  };

  SmallVector<char, 0> object_;
  llvm::raw_svector_ostream stream_{object_};
  Passes passes_;
};

ObjectCompiler::ObjectCompiler(std::unique_ptr<llvm::TargetMachine> machine, int optLevel, int vectorBytes)
    : machine_(std::move(machine)), optimizer_(*machine_, optLevel), emission_(std::make_unique<Emission>()),
      vectorBytes_(vectorBytes) {}

ObjectCompiler::~ObjectCompiler() = default;

std::unique_ptr<ObjectCompiler> ObjectCompiler::create(const HostTarget &target, int optLevel,
                                                       std::string &error) {
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(target, optLevel, error);
  if (!machine)
    return nullptr;
  std::unique_ptr<ObjectCompiler> compiler(
      new ObjectCompiler(std::move(machine), optLevel, target.vectorBytes));
  if (compiler->emission_->setUp(*compiler->machine_))
    return compiler;
  error = "LLVM cannot write an object for " + compiler->machine_->getTargetTriple().str();
  return nullptr;
}

std::string ObjectCompiler::compile(llvm::Module &module) {
  prepare(module, *machine_, vectorBytes_);
  optimizer_.run(module);
  return emission_->run(module);
}

} // namespace gpuc::codegen
