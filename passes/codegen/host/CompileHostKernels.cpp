//===- CompileHostKernels.cpp - Blocks in, shared object out ----------------===//
//
// Most kernels of a deep model are equal to others: layers repeat. Those of equal bodies share their code,
// and so do those that differ in numbers alone (emitHostKernel's parameters), such as the updates of weights
// of different sizes.
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/KernelText.h"
#include "passes/codegen/Segments.h"
#include "passes/codegen/host/HostKernel.h"
#include "passes/codegen/host/HostObjects.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

#include <map>

using namespace mlir;

namespace gpuc {

using namespace codegen;

//===----------------------------------------------------------------------===//
// Functions that hand on parameters
//===----------------------------------------------------------------------===//

namespace {
/// Functions `entry(ptr operands, i64 begin, i64 end)` that call `implementation` with one argument more, a
/// table of numbers. A kernel whose code is another's but for such numbers is a jump of two instructions.
class HostEntries {
public:
  /// The entry's symbol; the same for the same implementation and parameters.
  std::string add(const std::string &implementation, const std::vector<int64_t> &parameters) {
    auto &entries = symbols_[implementation];
    auto [entry, isNew] = entries.try_emplace(parameters);
    if (isNew)
      entry->second = implementation + "_" + std::to_string(entries.size());
    return entry->second;
  }

  bool empty() const { return symbols_.empty(); }

  /// As text for LLVM's assembler: as functions, each of which goes through all of LLVM's passes, ResNet-50's
  /// 187 took as long as five kernels.
  OwningOpRef<ModuleOp> emit(MLIRContext *context) const {
    if (!llvm::Triple(llvm::sys::getDefaultTargetTriple()).isX86())
      return emitFunctions(context);
    std::string text;
    llvm::raw_string_ostream stream(text);
    size_t number = 0;
    for (const auto &[implementation, entries] : symbols_)
      for (const auto &[parameters, symbol] : entries)
        writeJump(stream, symbol, implementation, parameters, number++);
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context));
    Builder builder(context);
    (*module)->setAttr(LLVM::LLVMDialect::getModuleLevelAsmAttrName(), builder.getStrArrayAttr({text}));
    return module;
  }

private:
  /// The fourth argument is in rcx (System V).
  static void writeJump(llvm::raw_ostream &stream, StringRef symbol, StringRef implementation,
                        ArrayRef<int64_t> parameters, size_t number) {
    stream << llvm::formatv(".section .rodata,\"a\",@progbits\n.p2align 3\n.Lparameters{0}:\n", number);
    for (int64_t parameter : parameters)
      stream << ".quad " << parameter << '\n';
    stream << llvm::formatv(".text\n.p2align 4\n.globl {0}\n.type {0},@function\n{0}:\n"
                            "leaq .Lparameters{1}(%rip), %rcx\njmp {2}@PLT\n.size {0}, .-{0}\n",
                            symbol, number, implementation);
  }

  OwningOpRef<ModuleOp> emitFunctions(MLIRContext *context) const {
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context));
    OpBuilder globals = OpBuilder::atBlockEnd(module->getBody());
    ImplicitLocOpBuilder builder(module->getLoc(), context);
    Type pointer = LLVM::LLVMPointerType::get(context), integer = builder.getI64Type();
    Type nothing = LLVM::LLVMVoidType::get(context);
    auto entryType = LLVM::LLVMFunctionType::get(nothing, {pointer, integer, integer});
    auto implementationType = LLVM::LLVMFunctionType::get(nothing, {pointer, integer, integer, pointer});
    for (const auto &[implementation, entries] : symbols_) {
      auto callee = LLVM::LLVMFuncOp::create(globals, module->getLoc(), implementation, implementationType);
      for (const auto &[parameters, symbol] : entries) {
        auto entry = LLVM::LLVMFuncOp::create(globals, module->getLoc(), symbol, entryType);
        builder.setInsertionPointToStart(entry.addEntryBlock(builder));
        SmallVector<Value> arguments(entry.getArguments());
        arguments.push_back(emitNumbers(builder, globals, symbol + ".parameters", parameters));
        auto call = LLVM::CallOp::create(builder, callee, arguments);
        call.setTailCallKind(LLVM::TailCallKind::Tail); // a jump
        LLVM::ReturnOp::create(builder, ValueRange());
      }
    }
    return module;
  }

  std::map<std::string, std::map<std::vector<int64_t>, std::string>> symbols_; ///< Of each implementation.
};
} // namespace

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

namespace codegen {

/// Collects kernels, each body once.
class HostKernels {
public:
  HostKernels(const HostTarget &target, const CodegenOptions &options)
      : target_(target), objects_(target, options) {}

  /// Compiles the body, in case that it is added.
  void begin(Block &body) {
    if (!isSegmented(body))
      emit(textOfBody(body), body, std::nullopt);
  }

  /// The symbol of a kernel of this body.
  std::string add(Block &body, const std::optional<ProductTiles> &tiles = std::nullopt) {
    std::string text = textOfBody(body) + textOf(tiles);
    if (auto known = symbolOfBody_.find(text); known != symbolOfBody_.end())
      return known->second;
    return symbolOfBody_[text] = isSegmented(body) ? addSegments(body) : addSingle(text, body, tiles);
  }

  FailureOr<std::vector<std::string>> finish(std::string &error) {
    if (!entries_.empty())
      use(objects_.add(entries_.emit(objects_.context())));
    return objects_.finish(used_, error);
  }

private:
  /// Code, and the numbers beside it that make it a kernel's.
  struct Implementation {
    std::string symbol;
    std::vector<int64_t> parameters;
  };

  static std::string textOf(const std::optional<ProductTiles> &tiles) {
    return tiles ? llvm::formatv(" in tiles of {0}x{1}, {2} apart, of {3}x{4}", tiles->tileRows,
                                 tiles->tileColumns, tiles->stride, tiles->rows, tiles->columns)
                       .str()
                 : "";
  }

  const Implementation &emit(StringRef text, Block &body, const std::optional<ProductTiles> &tiles) {
    auto [entry, isNew] = implementations_.try_emplace(text);
    if (!isNew)
      return entry->second;
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(objects_.context()));
    entry->second.parameters = emitHostKernel(*module, "kernel", body, target_, tiles);
    entry->second.symbol = objects_.add(std::move(module), "kernel");
    return entry->second;
  }

  const std::string &use(const std::string &symbol) {
    if (isUsed_.insert(symbol).second)
      used_.push_back(symbol);
    return symbol;
  }

  std::string addSingle(StringRef text, Block &body, const std::optional<ProductTiles> &tiles) {
    const auto &[symbol, parameters] = emit(text, body, tiles);
    return parameters.empty() ? use(symbol) : entries_.add(use(symbol), parameters);
  }

  std::string addSegments(Block &body) {
    SmallVector<Segment> segments = segmentsOf(body);
    SmallVector<HostSegment> functions;
    for (const Segment &segment : segments)
      functions.push_back(
          {add(*segment.body), scheduleHostKernel(*segment.body, target_).tiles, segment.operands});
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(objects_.context()));
    emitHostSegments(*module, "kernel", functions);
    return use(objects_.add(std::move(module), "kernel"));
  }

  const HostTarget &target_;
  HostObjects objects_;
  HostEntries entries_;
  llvm::StringMap<Implementation> implementations_; ///< By a body's text.
  llvm::StringMap<std::string> symbolOfBody_;
  std::vector<std::string> used_; ///< Symbols of objects, each once, in the order in which they were added.
  llvm::StringSet<> isUsed_;
};

} // namespace codegen

HostCompiler::HostCompiler(HostTarget target, const CodegenOptions &options)
    : target_(std::make_unique<HostTarget>(std::move(target))),
      kernels_(std::make_unique<HostKernels>(*target_, options)) {}

HostCompiler::~HostCompiler() = default;

void HostCompiler::begin(Block &body) {
  if (succeeded(checkKernel(body)))
    kernels_->begin(body);
}

FailureOr<HostCode> HostCompiler::finish(ArrayRef<KernelSource> kernels,
                                         llvm::function_ref<void()> meanwhile) {
  HostCode code;
  if (kernels.empty())
    return code;
  for (const KernelSource &kernel : kernels) {
    if (failed(checkKernel(*kernel.body)))
      return emitError(kernel.location) << "kernel '" << kernel.symbol
                                        << "' holds ops that cannot be one kernel: split the fused region";
    if (kernel.tiles && !takesProductTiles(*kernel.body))
      return emitError(kernel.location) << "kernel '" << kernel.symbol
                                        << "' is a product's update, but does not compute element by element";
    code.symbols.push_back(kernels_->add(*kernel.body, kernel.tiles));
  }

  if (meanwhile)
    meanwhile();
  std::string error;
  FailureOr<std::vector<std::string>> compiled = kernels_->finish(error);
  if (failed(compiled))
    return emitError(kernels.front().location) << error;
  FailureOr<std::string> shared = linkSharedObject(*compiled, error);
  if (failed(shared))
    return emitError(kernels.front().location) << error;
  code.object = std::move(*shared);
  return code;
}

FailureOr<HostCode> compileHostKernels(ArrayRef<KernelSource> kernels, const HostTarget &target,
                                       const CodegenOptions &options, llvm::function_ref<void()> meanwhile) {
  return HostCompiler(target, options).finish(kernels, meanwhile);
}

} // namespace gpuc
