//===- KernelText.cpp - What makes two kernels equal ------------------------===//

#include "passes/codegen/KernelText.h"

#include "dialects/gpuc/GpucOps.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Operation.h"

using namespace mlir;

namespace gpuc::codegen {

static OpPrintingFlags flags() {
  return OpPrintingFlags()
      .useLocalScope()
      .enableDebugInfo(false)
      .elideLargeElementsAttrs(INT64_MAX)
      .printGenericOpForm();
}

std::string textOfBody(Block &body) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  AsmState state(body.getParentOp(), flags());
  for (BlockArgument argument : body.getArguments())
    stream << argument.getType() << '\n';
  for (Operation &op : body) {
    op.print(stream, state);
    stream << '\n';
  }
  return text;
}

std::string textWithoutShapes(Block &body) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  DenseMap<Value, size_t> numbers;
  auto define = [&](Value value) {
    numbers.try_emplace(value, numbers.size());
    stream << getElementTypeOrSelf(value.getType())
           << (ir::elementCount(value.getType()) == 1 ? " scalar " : " tensor ");
  };
  llvm::for_each(body.getArguments(), define);
  for (Operation &op : body) {
    stream << op.getName() << ' ';
    for (NamedAttribute attribute : op.getAttrs())
      if (attribute.getName() != "dims")
        stream << attribute.getName() << '=' << attribute.getValue() << ' ';
    for (Value operand : op.getOperands())
      stream << numbers.lookup(operand) << ' ';
    llvm::for_each(op.getResults(), define);
  }
  return text;
}

std::string textOfModule(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, flags());
  return text;
}

} // namespace gpuc::codegen
