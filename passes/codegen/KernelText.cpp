//===- KernelText.cpp - What makes two kernels equal ------------------------===//

#include "passes/codegen/KernelText.h"

#include "dialects/gpuc/GpucOps.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace gpuc::codegen {

namespace {
/// Writes ops so that equal texts are of equal ops, for nobody to read: MLIR's printer, which looks at all
/// else that a text may need, had 7% of the time of the thread that emits kernels. Names, types and
/// attributes are written where they are met first, and from then on by their numbers.
class TextWriter {
public:
  explicit TextWriter(llvm::raw_ostream &stream) : stream_(stream) {}

  void write(Block &block) {
    for (BlockArgument argument : block.getArguments())
      define(argument);
    for (Operation &op : block)
      write(op);
  }

  void write(Operation &op) {
    once(op.getName().getAsOpaquePointer(), [&] { stream_ << op.getName(); });
    NamedAttrList attributes(op.getDiscardableAttrDictionary());
    op.getName().populateInherentAttrs(&op, attributes);
    for (NamedAttribute attribute : attributes) {
      once(attribute.getName().getAsOpaquePointer(), [&] { stream_ << attribute.getName().strref(); });
      once(attribute.getValue().getAsOpaquePointer(), [&] { write(attribute.getValue()); });
    }
    for (Value operand : op.getOperands())
      stream_ << '%' << numbers_.lookup(operand) << ' ';
    for (Value result : op.getResults())
      define(result);
    for (Region &region : op.getRegions()) {
      stream_ << "{\n";
      for (Block &block : region)
        write(block);
      stream_ << '}';
    }
    stream_ << '\n';
  }

private:
  void define(Value value) {
    numbers_.try_emplace(value, numbers_.size());
    once(value.getType().getAsOpaquePointer(), [&] { stream_ << value.getType(); });
  }

  /// Of tables each byte, which a printer may leave out.
  void write(Attribute attribute) {
    auto elements = dyn_cast<DenseIntOrFPElementsAttr>(attribute);
    if (!elements) {
      stream_ << attribute;
      return;
    }
    stream_ << elements.getType() << (elements.isSplat() ? " splat " : " dense ");
    ArrayRef<char> bytes = elements.getRawData();
    stream_ << llvm::toHex(StringRef(bytes.data(), bytes.size()));
  }

  void once(const void *key, llvm::function_ref<void()> write) {
    auto [entry, isNew] = known_.try_emplace(key, known_.size());
    stream_ << entry->second;
    if (isNew) {
      stream_ << '=';
      write();
    }
    stream_ << ' ';
  }

  llvm::raw_ostream &stream_;
  llvm::DenseMap<const void *, size_t> known_;
  llvm::DenseMap<Value, size_t> numbers_;
};
} // namespace

std::string textOfBody(Block &body) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  TextWriter(stream).write(body);
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
  TextWriter(stream).write(*module);
  return text;
}

} // namespace gpuc::codegen
