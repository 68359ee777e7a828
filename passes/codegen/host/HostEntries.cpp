//===- HostEntries.cpp - Functions that hand on parameters ------------------===//

#include "passes/codegen/host/HostEntries.h"

#include "passes/codegen/Loops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace gpuc::codegen {

std::string HostEntries::add(const std::string &implementation, const std::vector<int64_t> &parameters) {
  auto &entries = symbols_[implementation];
  auto [entry, isNew] = entries.try_emplace(parameters);
  if (isNew)
    entry->second = implementation + "_" + std::to_string(entries.size());
  return entry->second;
}

OwningOpRef<ModuleOp> HostEntries::emit(MLIRContext *context) const {
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

} // namespace gpuc::codegen
