#include "test/passes/codegen/cuda_harness.h"

#include "test/passes/codegen/cuda_warp.h"

#include "passes/codegen/cuda/CudaKernel.h"
#include "passes/codegen/cuda/CudaMachine.h"
#include "passes/codegen/host/HostMachine.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <csetjmp>
#include <deque>
#include <functional>
#include <gtest/gtest.h>
#include <ucontext.h>

using namespace mlir;

namespace gpuc::test {
namespace {

/// What the kernel asks of its surroundings, through pointers that it exports.
struct Surroundings {
  int (*thread)();
  int (*block)();
  void (*barrier)();
  float (*shuffle)(int mask, float value, int distance, int clamp);
  int (*vote)(int mask, int holds); ///< Of `holds` the lowest bit is given.
  void (*onWords)(int what, void *words);
};

int currentThread = 0, currentBlock = 0;

/// The threads of a block as coroutines that leave where they wait for one another: cheap, and always in the
/// same order. A warp goes on until all of its threads wait at a barrier; those of the others come after, so
/// that what a barrier is missing for is shown.
///
/// A coroutine stays for the next block. From one to another is a jump: swapcontext() asks the system about
/// signals each time, which took more than half of what a model took.
class Fibers {
public:
  static void run(uint32_t count, const std::function<void()> &body) {
    entry = &body;
    while (fibers.size() < count)
      fibers.emplace_back();
    waitsFor.assign(count, Wait::Nothing);
    slots.assign(count, 0);
    for (;;) {
      for (uint32_t first = (count - 1) / warp * warp;; first -= warp) { // the last one first
        while (advance(first, std::min(first + warp, count)))
          ;
        if (first == 0)
          break;
      }
      bool goesOn = false;
      for (Wait &wait : waitsFor)
        if (wait == Wait::Block)
          wait = Wait::Nothing, goesOn = true;
      if (!goesOn)
        return;
    }
  }
  static void meet() { leave(Wait::Block); }
  static void meetWarp() { leave(Wait::Warp); }

  /// What the thread `distance` away, by exclusive or, gives at the same place.
  static float shuffle(float value, int distance) {
    slots[currentThread] = value;
    leave(Wait::Warp);
    float other = slots[currentThread ^ distance];
    leave(Wait::Warp); // nobody gives the next before all have taken this
    return other;
  }
  /// A bit for each thread of the warp: whether it holds there.
  static int vote(bool holds) {
    slots[currentThread] = holds ? 1 : 0;
    leave(Wait::Warp);
    uint32_t votes = 0;
    const uint32_t first = currentThread / warp * warp;
    for (uint32_t lane = 0; lane < warp && first + lane < slots.size(); ++lane)
      votes |= static_cast<uint32_t>(slots[first + lane] != 0) << lane;
    leave(Wait::Warp);
    return static_cast<int>(votes);
  }

private:
  static constexpr uint32_t warp = 32;
  enum class Wait { Nothing, Warp, Block, Ever };

  struct Fiber {
    std::unique_ptr<char[]> stack; ///< None before it goes on for the first time.
    jmp_buf place;                 ///< Where it left.
  };

  /// Lets each thread of a warp go on that does not wait for the block; true if any may go on after.
  static bool advance(uint32_t first, uint32_t end) {
    bool goesOn = false;
    for (uint32_t thread = end; thread-- > first;) {
      if (waitsFor[thread] != Wait::Nothing && waitsFor[thread] != Wait::Warp)
        continue;
      currentThread = static_cast<int>(thread);
      goOn(fibers[thread]);
      goesOn |= waitsFor[thread] == Wait::Warp;
    }
    return goesOn;
  }

  // Nothing of these three lies in a register that a jump brings back. [[gnu::noinline]]: nor of who calls
  // them.
  [[gnu::noinline]] static void goOn(Fiber &fiber) {
    if (_setjmp(scheduler))
      return;
    if (fiber.stack)
      _longjmp(fiber.place, 1);
    start(fiber);
  }
  static void start(Fiber &fiber) {
    constexpr size_t stackBytes = 128 << 10;
    fiber.stack.reset(new char[stackBytes]);
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = fiber.stack.get();
    context.uc_stack.ss_size = stackBytes;
    context.uc_link = nullptr; // it has no end
    makecontext(&context, &enter, 0);
    setcontext(&context);
  }
  [[gnu::noinline]] static void leave(Wait wait) {
    waitsFor[currentThread] = wait;
    if (_setjmp(fibers[currentThread].place) == 0)
      _longjmp(scheduler, 1);
  }

  /// One block after another.
  static void enter() {
    for (;;) {
      (*entry)();
      leave(Wait::Ever);
    }
  }
  static inline const std::function<void()> *entry;
  static inline jmp_buf scheduler; ///< Where it let a thread go on.
  static inline std::deque<Fiber> fibers;
  static inline std::vector<Wait> waitsFor;
  static inline std::vector<float> slots; // of shuffles
};

/// One for all: warps go on one after another.
WarpExchange warpExchange;

/// A copy to shared memory that a thread has begun: what is not read is zeros. It is made when the thread
/// waits for it, since nobody may rely on it before.
struct CopyBegun {
  void *to;
  const void *from;
  uint64_t bytes;
};
std::map<int, std::vector<CopyBegun>> copiesBegun; // of each thread

void awaitCopies() {
  constexpr size_t all = 16;
  for (const CopyBegun &copy : std::exchange(copiesBegun[currentThread], {})) {
    std::memset(copy.to, 0, all);
    std::memcpy(copy.to, copy.from, copy.bytes);
  }
}

/// `words`: what the thread gives, and then what it gets.
void computeByWarp(int what, void *words) {
  const int lane = currentThread % 32;
  switch (auto instruction = static_cast<WarpInstruction>(what)) {
  case WarpInstruction::CopyAhead: {
    CopyBegun copy{};
    std::memcpy(&copy, words, sizeof copy);
    copy.bytes &= 0xFFFFFFFF; // a word
    return copiesBegun[currentThread].push_back(copy);
  }
  case WarpInstruction::AwaitCopies:
    return awaitCopies();
  case WarpInstruction::RoundToBf16:
  case WarpInstruction::RoundToF16:
  case WarpInstruction::PowerOfTwo: // each thread for itself
    return warpExchange.take(instruction, lane, static_cast<uint32_t *>(words));
  default:
    break;
  }
  auto instruction = static_cast<WarpInstruction>(what);
  warpExchange.give(instruction, lane, static_cast<const uint32_t *>(words));
  Fibers::meetWarp();
  warpExchange.take(instruction, lane, static_cast<uint32_t *>(words));
  Fibers::meetWarp(); // nobody gives the next before all have taken this
}

constexpr char kSurroundings[] = "surroundings";
constexpr int kSurroundingCount = 6;

/// What is computed by a warp together, and roundings of two numbers at once, as calls of the last entry.
std::optional<WarpInstruction> warpInstructionOf(llvm::StringRef name) {
  return llvm::StringSwitch<std::optional<WarpInstruction>>(name)
      .Case("llvm.nvvm.mma.m16n8k16.row.col.bf16", WarpInstruction::MultiplyBf16)
      .Case("llvm.nvvm.mma.m16n8k16.row.col.f32.f32", WarpInstruction::MultiplyF16)
      .Case("llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3", WarpInstruction::LoadMatrices)
      .Case("llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3", WarpInstruction::LoadTransposed)
      .Case("llvm.nvvm.ff2bf16x2.rn", WarpInstruction::RoundToBf16)
      .Case("llvm.nvvm.ff2f16x2.rn", WarpInstruction::RoundToF16)
      .Case("llvm.nvvm.ex2.approx.ftz.f32", WarpInstruction::PowerOfTwo)
      .Case("llvm.nvvm.cp.async.cg.shared.global.16.s", WarpInstruction::CopyAhead)
      .Case("llvm.nvvm.cp.async.wait.all", WarpInstruction::AwaitCopies)
      .Default(std::nullopt);
}

/// The call's arguments go through memory, and so does what it gives.
void replaceWarpInstruction(llvm::CallInst *call, WarpInstruction instruction, llvm::GlobalVariable *global,
                            llvm::Type *table) {
  llvm::LLVMContext &context = call->getContext();
  auto *pointer = llvm::PointerType::get(context, 0);
  llvm::IRBuilder<> builder(&*call->getFunction()->getEntryBlock().getFirstInsertionPt());
  constexpr uint64_t mostWords = 10;
  auto *words = builder.CreateAlloca(llvm::ArrayType::get(builder.getInt32Ty(), mostWords));
  words->setAlignment(llvm::Align(16));
  builder.SetInsertPoint(call);
  uint64_t at = 0;
  for (llvm::Value *argument : call->args()) {
    llvm::Value *value =
        argument->getType()->isPointerTy() ? builder.CreateAddrSpaceCast(argument, pointer) : argument;
    builder.CreateAlignedStore(value, builder.CreateConstInBoundsGEP1_64(builder.getInt32Ty(), words, at),
                               llvm::Align(4));
    at += argument->getType()->isPointerTy() ? 2 : 1;
  }
  auto *type = llvm::FunctionType::get(builder.getVoidTy(), {builder.getInt32Ty(), pointer}, false);
  llvm::Value *target = builder.CreateLoad(
      pointer, builder.CreateConstInBoundsGEP2_32(table, global, 0, kSurroundingCount - 1));
  builder.CreateCall(type, target, {builder.getInt32(static_cast<uint32_t>(instruction)), words});
  if (!call->getType()->isVoidTy())
    call->replaceAllUsesWith(builder.CreateAlignedLoad(call->getType(), words, llvm::Align(4)));
  call->eraseFromParent();
}

/// cvt.rn.bf16.f32, for which a CPU calls a library: to the nearest, ties to even, and one NaN for all.
void replaceBfloat16Roundings(llvm::Module &module) {
  std::vector<llvm::FPTruncInst *> roundings;
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *rounding = dyn_cast<llvm::FPTruncInst>(&instruction);
          rounding && rounding->getType()->getScalarType()->isBFloatTy())
        roundings.push_back(rounding);
  for (llvm::FPTruncInst *rounding : roundings) {
    llvm::IRBuilder<> builder(rounding);
    llvm::Value *number = rounding->getOperand(0);
    auto ofShape = [&](llvm::Type *element) { return number->getType()->getWithNewType(element); };
    auto integer = [&](uint32_t value) {
      return llvm::ConstantInt::get(ofShape(builder.getInt32Ty()), value);
    };
    llvm::Value *bits = builder.CreateBitCast(number, ofShape(builder.getInt32Ty()));
    llvm::Value *kept = builder.CreateLShr(bits, integer(16)),
                *rest = builder.CreateAnd(bits, integer(0xFFFF));
    llvm::Value *isOdd = builder.CreateICmpNE(builder.CreateAnd(kept, integer(1)), integer(0));
    llvm::Value *isUp =
        builder.CreateOr(builder.CreateICmpUGT(rest, integer(0x8000)),
                         builder.CreateAnd(builder.CreateICmpEQ(rest, integer(0x8000)), isOdd));
    llvm::Value *nearest = builder.CreateAdd(kept, builder.CreateZExt(isUp, kept->getType()));
    llvm::Value *result =
        builder.CreateSelect(builder.CreateFCmpUNO(number, number), integer(0x7FFF), nearest);
    result = builder.CreateTrunc(result, ofShape(builder.getInt16Ty()));
    rounding->replaceAllUsesWith(builder.CreateBitCast(result, rounding->getType()));
    rounding->eraseFromParent();
  }
}

std::unique_ptr<MLIRContext> gpuContext() {
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

/// Thread and block numbers, barriers and shuffles become calls through the exported pointers. Gives the
/// functions that hold barriers.
std::set<std::string> replaceIntrinsics(llvm::Module &module) {
  std::set<std::string> withBarriers;
  llvm::LLVMContext &context = module.getContext();
  auto *pointer = llvm::PointerType::get(context, 0);
  auto *table = llvm::ArrayType::get(pointer, kSurroundingCount);
  auto *global = new llvm::GlobalVariable(module, table, false, llvm::GlobalValue::ExternalLinkage,
                                          llvm::Constant::getNullValue(table), kSurroundings);
  for (llvm::Function &callee : llvm::make_early_inc_range(module)) {
    llvm::StringRef name = callee.getName();
    if (std::optional<WarpInstruction> instruction = warpInstructionOf(name)) {
      for (llvm::User *user : llvm::make_early_inc_range(callee.users())) {
        auto *call = cast<llvm::CallInst>(user);
        withBarriers.insert(call->getFunction()->getName().str());
        replaceWarpInstruction(call, *instruction, global, table);
      }
      callee.eraseFromParent();
      continue;
    }
    int entry = name.starts_with("llvm.nvvm.read.ptx.sreg.tid.x")     ? 0
                : name.starts_with("llvm.nvvm.read.ptx.sreg.ctaid.x") ? 1
                : name.starts_with("llvm.nvvm.barrier")               ? 2
                : name == "llvm.nvvm.shfl.sync.bfly.f32"              ? 3
                : name == "llvm.nvvm.vote.ballot.sync"                ? 4
                                                                      : -1;
    if (entry < 0)
      continue;
    llvm::FunctionType *type =
        entry >= 3 ? callee.getFunctionType() : llvm::FunctionType::get(callee.getReturnType(), false);
    for (llvm::User *user : llvm::make_early_inc_range(callee.users())) {
      auto *call = cast<llvm::CallInst>(user);
      if (entry >= 2)
        withBarriers.insert(call->getFunction()->getName().str());
      llvm::IRBuilder<> builder(call);
      llvm::Value *target =
          builder.CreateLoad(pointer, builder.CreateConstInBoundsGEP2_32(table, global, 0, entry));
      llvm::SmallVector<llvm::Value *> arguments(call->args());
      if (entry < 3) // a barrier's number
        arguments.clear();
      call->replaceAllUsesWith(builder.CreateCall(type, target, arguments));
      call->eraseFromParent();
    }
    callee.eraseFromParent();
  }
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      function.setCallingConv(llvm::CallingConv::C);
  return withBarriers;
}

/// `void SYMBOL_of(void *const *operands)` calls `SYMBOL(operands[0], operands[1], …)`, or, of a kernel whose
/// one parameter is an array, hands it that of the operands.
void addCaller(llvm::Function &kernel) {
  llvm::LLVMContext &context = kernel.getContext();
  auto *pointer = llvm::PointerType::get(context, 0);
  auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer}, false);
  auto *caller = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, kernel.getName() + "_of",
                                        kernel.getParent());
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "entry", caller));
  if (kernel.getArg(0)->hasByValAttr()) {
    kernel.removeParamAttr(0, llvm::Attribute::ByVal); // the host's own way would be a copy on the stack
    builder.CreateCall(&kernel, caller->getArg(0));
    builder.CreateRetVoid();
    return;
  }
  std::vector<llvm::Value *> operands;
  for (size_t i = 0; i < kernel.arg_size(); ++i)
    operands.push_back(
        builder.CreateLoad(pointer, builder.CreateConstInBoundsGEP1_64(pointer, caller->getArg(0), i)));
  builder.CreateCall(&kernel, operands);
  builder.CreateRetVoid();
}

} // namespace

CudaCode compileForCuda(KernelText &text, const CudaTarget &target, bool cubin) {
  mlir::Block &block = text.block();
  CodegenOptions options;
  options.cubin = cubin;
  auto code = compileCudaKernels({KernelSource{"kernel", &block, block.front().getLoc()}}, target, options);
  EXPECT_TRUE(succeeded(code));
  return succeeded(code) ? *code : CudaCode();
}

std::string assemble(const std::string &ptxas, llvm::StringRef ptx, const std::string &architecture) {
  llvm::SmallString<128> source, log;
  EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("gpuc", "ptx", source));
  EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("gpuc", "log", log));
  std::error_code failed;
  llvm::raw_fd_ostream(source, failed) << ptx;
  std::optional<llvm::StringRef> redirects[] = {"", log.str(), log.str()};
  int status = llvm::sys::ExecuteAndWait(
      ptxas, {ptxas, "-arch=" + architecture, "-v", source, "-o", "/dev/null"}, std::nullopt, redirects);
  std::string said = (*llvm::MemoryBuffer::getFile(log))->getBuffer().str();
  EXPECT_EQ(status, 0) << said;
  llvm::sys::fs::remove(source);
  llvm::sys::fs::remove(log);
  return said;
}

EmulatedModule::EmulatedModule(llvm::ArrayRef<KernelSource> kernels) {
  std::unique_ptr<MLIRContext> context = gpuContext();
  OwningOpRef<ModuleOp> holder = ModuleOp::create(UnknownLoc::get(context.get()));
  OpBuilder builder = OpBuilder::atBlockEnd(holder->getBody());
  auto module = gpu::GPUModuleOp::create(builder, holder->getLoc(), "kernels");
  for (const KernelSource &kernel : kernels)
    codegen::emitCudaKernel(module, kernel.symbol, *kernel.body);
  if (failed(codegen::lowerToNvvm(module))) {
    ADD_FAILURE() << "cannot be lowered";
    return;
  }
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> llvmModule = translateModuleToLLVMIR(module, llvmContext, "kernels");
  replaceBfloat16Roundings(*llvmModule);
  withBarriers_ = replaceIntrinsics(*llvmModule);
  for (const KernelSource &kernel : kernels)
    addCaller(*llvmModule->getFunction(kernel.symbol));

  HostTarget target = *HostTarget::parse("x86-64-v3");
  std::string error;
  const std::string object = codegen::ObjectCompiler::create(target, 2, error)->compile(*llvmModule);
  FailureOr<std::string> shared = codegen::linkSharedObject(object, error);
  if (failed(shared)) {
    ADD_FAILURE() << error;
    return;
  }
  loaded_ = std::make_unique<LoadedObject>(*shared);
  auto *surroundings = reinterpret_cast<Surroundings *>(loaded_->find(kSurroundings));
  *surroundings = {[] { return currentThread; },
                   [] { return currentBlock; },
                   [] { Fibers::meet(); },
                   [](int, float value, int distance, int) { return Fibers::shuffle(value, distance); },
                   [](int, int holds) { return Fibers::vote((holds & 1) != 0); },
                   computeByWarp};
}

void EmulatedModule::run(const std::string &symbol, uint32_t grid, uint32_t block,
                         void *const *operands) const {
  if (!loaded_)
    return;
  using Kernel = void (*)(void *const *);
  auto kernel = reinterpret_cast<Kernel>(reinterpret_cast<void *>(loaded_->find(symbol + "_of")));
  for (currentBlock = static_cast<int>(grid); currentBlock-- > 0;)
    if (hasBarriers(symbol))
      Fibers::run(block, [&] { kernel(operands); });
    else
      for (currentThread = static_cast<int>(block); currentThread-- > 0;)
        kernel(operands);
}

/// Buffers are aligned here.
static CudaSchedule scheduleAligned(Block &body) {
  body.getParentOp()->setAttr(kAlignedAttr, UnitAttr::get(body.getParentOp()->getContext()));
  return scheduleCudaKernel(body);
}

EmulatedKernel::EmulatedKernel(const std::vector<std::string> &argumentTypes,
                               const std::vector<std::string> &resultTypes, const std::string &body)
    : text_(argumentTypes, resultTypes, body), schedule_(scheduleAligned(text_.block())),
      module_(KernelSource{"kernel", &text_.block(), text_.block().front().getLoc()}) {}

std::vector<Buffer> EmulatedKernel::run(const std::vector<Buffer> &arguments) {
  std::vector<Buffer> results;
  for (size_t bytes : text_.resultBytes())
    results.emplace_back(bytes);
  std::vector<void *> operands;
  for (const Buffer &buffer : arguments)
    operands.push_back(buffer.data());
  for (const Buffer &buffer : results)
    operands.push_back(buffer.data());
  module_.run("kernel", schedule_.grid, schedule_.block, operands.data());
  for (const Buffer &buffer : results)
    EXPECT_TRUE(buffer.intact()) << "wrote behind the end of a result";
  return results;
}

} // namespace gpuc::test
