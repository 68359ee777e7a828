//===- PlanOps.cpp - Verifiers, syntax and interfaces of the plan's ops -----===//

#include "dialects/plan/ProductCommands.h"

#include "runtime/base/shares.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

//===----------------------------------------------------------------------===//
// Offsets in hexadecimal
//===----------------------------------------------------------------------===//

static ParseResult parseHexadecimal(OpAsmParser &parser, IntegerAttr &attribute) {
  int64_t value;
  if (parser.parseInteger(value))
    return failure();
  attribute = parser.getBuilder().getI64IntegerAttr(value);
  return success();
}

static void printHexadecimal(OpAsmPrinter &printer, Operation *, IntegerAttr attribute) {
  printer << llvm::formatv("{0:X}", static_cast<uint64_t>(attribute.getInt()));
}

/// Those that are there, of an op whose operands have the order of the table. An update's stand behind.
template <typename Op>
static SmallVector<gpuc::plan::CommandOperand> operandsByTable(Op op, ArrayRef<gpuc::OperandUse> uses) {
  SmallVector<gpuc::plan::CommandOperand> operands;
  for (auto [index, use] : llvm::enumerate(uses))
    for (Value buffer : op.getODSOperands(index))
      operands.push_back({buffer, use});
  if constexpr (requires { op.getUpdateInputs(); }) {
    for (Value buffer : op.getUpdateInputs())
      operands.push_back({buffer, gpuc::kUpdateRead});
    for (Value buffer : op.getUpdateOutputs())
      operands.push_back({buffer, gpuc::kUpdateWrite});
  }
  return operands;
}

/// Bytes read and written.
static int64_t bytesTouchedBy(ArrayRef<gpuc::plan::CommandOperand> operands) {
  int64_t bytes = 0;
  for (const auto &[buffer, use] : operands)
    bytes += (isRead(use.role) + isWritten(use.role)) * gpuc::plan::rangeOf(buffer).size;
  return bytes;
}

#define GET_OP_CLASSES
#include "dialects/plan/PlanOps.cpp.inc"

namespace gpuc::plan {

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

BufferOpInterface bufferOf(Value value) {
  while (auto view = value.getDefiningOp<ViewOp>())
    value = view.getSource();
  return cast<BufferOpInterface>(value.getDefiningOp());
}

/// A view of a view moves with both.
static void addStrides(SmallVectorImpl<int64_t> &sum, ArrayRef<int64_t> strides) {
  sum.resize(std::max(sum.size(), strides.size()), 0);
  for (auto [total, stride] : llvm::zip(sum, strides))
    total += stride;
}

Range rangeOf(Value value) {
  Range range{{}, 0, -1, {}};
  while (auto view = value.getDefiningOp<ViewOp>()) {
    if (range.size < 0)
      range.size = ir::sizeInBytes(view.getType());
    addStrides(range.strides, view.getStrides());
    range.offset += view.getOffset();
    value = view.getSource();
  }
  range.buffer = bufferOf(value);
  if (range.size < 0)
    range.size = sizeInBytes(range.buffer);
  return range;
}

int64_t Range::offsetAt(ArrayRef<int64_t> iterations) const {
  int64_t at = offset;
  for (auto [stride, iteration] : llvm::zip(strides, iterations))
    at += stride * iteration;
  return at;
}

DataType dataTypeOf(Type element) {
  std::string name;
  llvm::raw_string_ostream(name) << element;
  return *parseDataType(name);
}

int64_t sizeInBytes(BufferOpInterface buffer) { return ir::sizeInBytes(buffer.getTensorType()); }

const void *identityOf(BufferOpInterface buffer) {
  if (auto use = dyn_cast<UseOp>(*buffer))
    return use.getSymbolAttr().getAttr().getAsOpaquePointer();
  return buffer.getOperation();
}

static int64_t sizeInBytes(ArrayRef<Value> buffers) {
  int64_t bytes = 0;
  for (Value buffer : buffers)
    bytes += rangeOf(buffer).size;
  return bytes;
}

int64_t summedBytes(CollectiveOpInterface collective) {
  auto command = cast<CommandOpInterface>(*collective);
  const int64_t bytes = std::max(sizeInBytes(command.getReads()), sizeInBytes(command.getWrites()));
  return isa<AllReduceOp>(*collective) ? bytes : bytes / 2;
}

LogicalResult verifyShares(Operation *op, ValueRange wholes, ValueRange shares, Type element,
                           int64_t worldSize, int64_t owners) {
  auto error = [&] { return op->emitOpError(); };
  const std::string label = " [" + op->getName().stripDialect().str() + "_C1]";
  if (owners < 0 || (owners > 0 && owners > worldSize))
    return error() << "of " << owners << " owners among " << worldSize << " ranks" << label;
  const size_t tensors = owners == 0 ? 1 : owners;
  if (wholes.empty() || wholes.size() != tensors * shares.size())
    return error() << "of " << shares.size() << " shares of " << wholes.size() << " tensors" << label;
  const int64_t bytes = ir::elementBytes(element);
  for (auto [number, share] : llvm::enumerate(shares)) {
    ValueRange ofShare = wholes.slice(number * tensors, tensors);
    const int64_t has = rangeOf(ofShare.front()).size, each = rangeOf(share).size;
    const auto elements = llvm::map_to_vector(
        ofShare, [&](Value whole) -> uint64_t { return bytes < 1 ? 0 : rangeOf(whole).size / bytes; });
    std::optional<Shares> known =
        worldSize < 1 ? std::nullopt : Shares::of(elements, worldSize, bytes, owners);
    if (known && has % bytes == 0 && each == static_cast<int64_t>(known->elements) * bytes)
      continue;
    InFlightDiagnostic diagnostic = error();
    diagnostic << "of " << has << " bytes, of which " << worldSize << " ranks have " << each << " each";
    if (known)
      diagnostic << ", but a share is of " << known->elements * bytes;
    return diagnostic << label;
  }
  return success();
}

Category VariableOp::getCategory() {
  return getKind() == "optimizer" ? Category::optimizer : Category::parameter;
}

RankedTensorType InputOp::getTensorType() { return cast<RankedTensorType>(getType()); }
StringRef InputOp::getBufferName() { return getName(); }
Category InputOp::getBufferCategory() { return Category::input; }

RankedTensorType AllocOp::getTensorType() { return cast<RankedTensorType>(getType()); }
StringRef AllocOp::getBufferName() { return getName(); }
Category AllocOp::getBufferCategory() { return getCategory(); }

RankedTensorType UseOp::getTensorType() { return cast<RankedTensorType>(getType()); }
StringRef UseOp::getBufferName() { return getSymbol(); }
Category UseOp::getBufferCategory() { return getCategory(); }

/// What is stored under a symbol, if anything is.
static std::optional<std::pair<Type, Category>> storedUnder(Operation *symbol) {
  if (auto variable = dyn_cast_if_present<VariableOp>(symbol))
    return std::pair<Type, Category>(variable.getType(), variable.getCategory());
  if (auto constant = dyn_cast_if_present<ConstantOp>(symbol))
    return std::pair<Type, Category>(constant.getValue().getType(), Category::constant);
  return std::nullopt;
}

void UseOp::build(OpBuilder &builder, OperationState &state, Operation *symbol) {
  auto [type, category] = *storedUnder(symbol);
  build(builder, state, BufferType::get(builder.getContext()), SymbolTable::getSymbolName(symbol).getValue(),
        cast<RankedTensorType>(type), category);
}

LogicalResult UseOp::verify() {
  if (!isStorable(getType()))
    return emitOpError("of @") << getSymbol() << ", which no buffer can hold";
  return success();
}

LogicalResult UseOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto stored = storedUnder(tables.lookupSymbolIn((*this)->getParentOfType<ModuleOp>(), getSymbolAttr()));
  if (!stored)
    return emitOpError("of @") << getSymbol() << ", which is neither a plan.variable nor a plan.constant";
  auto [type, category] = *stored;
  if (type != getType() || category != getCategory())
    return emitOpError("says ") << getType() << ' ' << stringifyCategory(getCategory()) << ", but @"
                                << getSymbol() << " is " << type << ' ' << stringifyCategory(category);
  return success();
}

LogicalResult ArenaOp::verify() {
  if (getSlots() < 1 || static_cast<int64_t>(getSlots()) > kMostSlots)
    return emitOpError("has ") << getSlots() << " slots; there are from 1 to " << kMostSlots;
  return success();
}

LogicalResult ConstantOp::verify() {
  if (!isStorable(getValue().getType()))
    return emitOpError("is of ") << getValue().getType() << ", which no buffer can hold";
  return success();
}

LogicalResult ViewOp::verify() {
  Range source = rangeOf(getSource());
  int64_t size = ir::sizeInBytes(getType());
  if (static_cast<int64_t>(getOffset()) + size > source.size)
    return emitOpError("of bytes [") << getOffset() << ", " << getOffset() + size << ") of "
                                     << source.buffer.getBufferName() << ", which has " << source.size;
  return success();
}

LogicalResult OutputOp::verify() {
  std::optional<ArrayAttr> checks = getChecks();
  if (!checks)
    return success();
  BufferOpInterface buffer = bufferOf(getBuffer());
  auto type =
      RankedTensorType::get({static_cast<int64_t>(checks->size())}, IntegerType::get(getContext(), 32));
  if (buffer.getTensorType() != type)
    return emitOpError("has ") << checks->size() << " checks and is " << buffer.getTensorType()
                               << ", expected " << type;
  return success();
}

//===----------------------------------------------------------------------===//
// Kernels and programs
//===----------------------------------------------------------------------===//

// plan.kernel @name (%a: tensor<…>, …) { …  gpuc.yield … }
ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseSymbolName(name, SymbolTable::getSymbolAttrName(), result.attributes) ||
      parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren, /*allowType=*/true) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  return parser.parseRegion(*result.addRegion(), arguments);
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << " (";
  llvm::interleaveComma(getBody().getArguments(), printer,
                        [&](BlockArgument argument) { printer.printRegionArgument(argument); });
  printer << ')';
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {SymbolTable::getSymbolAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult KernelOp::verify() {
  Block &body = getBody().front();
  if (body.empty() || !isa<ir::YieldOp>(body.back()))
    return emitOpError("must end with gpuc.yield");
  WalkResult walk = getBody().walk([&](Operation *op) {
    for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
      if (!isStorable(type))
        return emitOpError("computes with ") << type << ", which no buffer can hold", WalkResult::interrupt();
    return WalkResult::advance();
  });
  for (Type type : body.getArgumentTypes())
    if (!isStorable(type) && !walk.wasInterrupted())
      return emitOpError("reads ") << type << ", which no buffer can hold";
  return failure(walk.wasInterrupted());
}

LogicalResult ProgramOp::verify() {
  bool streams = !getBody().getOps<StreamOp>().empty();
  for (Operation &op : getBody().front())
    if (streams && isa<CommandOpInterface>(op))
      return op.emitOpError("stands outside of the program's streams");
  return success();
}

/// What a command hands to a kernel: buffers as large as the arguments, but for those in front that are no
/// buffers, and as the results.
static LogicalResult verifyKernelUse(Operation *command, FlatSymbolRefAttr symbol,
                                     SymbolTableCollection &tables, ValueRange inputs, ValueRange outputs,
                                     size_t noBuffers) {
  auto kernel = tables.lookupNearestSymbolFrom<KernelOp>(command->getParentOfType<ModuleOp>(), symbol);
  if (!kernel)
    return command->emitOpError("of @") << symbol.getValue() << ", which is no plan.kernel of this module";
  Block &body = kernel.getBody().front();
  auto check = [&](Value buffer, Type type, StringRef role, size_t index) -> LogicalResult {
    int64_t has = rangeOf(buffer).size, needs = ir::sizeInBytes(type);
    if (has == needs)
      return success();
    return command->emitOpError(role) << ' ' << index << " has " << has << " bytes, kernel @"
                                      << symbol.getValue() << " takes " << type << ", " << needs << " bytes";
  };
  if (noBuffers + inputs.size() != body.getNumArguments() ||
      outputs.size() != body.getTerminator()->getNumOperands())
    return command->emitOpError("gives ")
           << inputs.size() << " inputs and " << outputs.size() << " outputs, kernel @" << symbol.getValue()
           << " has " << body.getNumArguments() << " and " << body.getTerminator()->getNumOperands();
  for (auto [index, buffer] : llvm::enumerate(inputs))
    if (failed(check(buffer, body.getArgument(noBuffers + index).getType(), "input", index)))
      return failure();
  for (auto [index, buffer] : llvm::enumerate(outputs))
    if (failed(check(buffer, body.getTerminator()->getOperand(index).getType(), "output", index)))
      return failure();
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyKernelUse(*this, getKernelAttr(), tables, getInputs(), getOutputs(), /*noBuffers=*/0);
}

/// The update's kernel begins with as many elements as the product has, whose extents are these.
static LogicalResult verifyUpdateUse(ProductOpInterface product, ArrayRef<int64_t> extents,
                                     SymbolTableCollection &tables, StringRef label) {
  FlatSymbolRefAttr update = product.getUpdateAttr();
  if (!update)
    return success();
  if (failed(verifyKernelUse(product, update, tables, product.getUpdateInputs(), product.getUpdateOutputs(),
                             /*noBuffers=*/1)))
    return failure();
  auto kernel = tables.lookupNearestSymbolFrom<KernelOp>(product->getParentOfType<ModuleOp>(), update);
  auto first = dyn_cast<RankedTensorType>(kernel.getBody().getArgument(0).getType());
  if (first && first.hasStaticShape() && first.getElementType() == product.getElement() &&
      first.getNumElements() == saturatingProduct(extents))
    return success();
  InFlightDiagnostic error = product->emitOpError("of ");
  llvm::interleave(extents, error, "x");
  return error << " elements of " << product.getElement() << ", but the update @" << update.getValue()
               << " begins with " << kernel.getBody().getArgument(0).getType() << label;
}

LogicalResult MatmulOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyUpdateUse(*this, {static_cast<int64_t>(getM()), static_cast<int64_t>(getN())}, tables,
                         " [matmul_C1]");
}

LogicalResult ConvOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyUpdateUse(*this, getFilter(), tables, "");
}

KernelOp kernelOf(LaunchOp launch) {
  return launch->getParentOfType<ModuleOp>().lookupSymbol<KernelOp>(launch.getKernelAttr());
}

KernelOp updateOf(ProductOpInterface product) {
  return product.getUpdateAttr()
             ? product->getParentOfType<ModuleOp>().lookupSymbol<KernelOp>(product.getUpdateAttr())
             : KernelOp();
}

static LogicalResult holdsCommands(Operation *loop) {
  for (Operation &op : loop->getRegion(0).front())
    if (!isa<CommandOpInterface, ViewOp>(op))
      return op.emitOpError("may not stand in a ") << loop->getName();
  return success();
}

LogicalResult RepeatOp::verify() {
  if (getCount() < 1)
    return emitOpError("of ") << getCount() << " iterations; there must be at least one";
  return holdsCommands(*this);
}

int64_t RepeatOp::getTripCount() { return getCount(); }

LogicalResult ParallelOp::verify() {
  if (getParts() < 2)
    return emitOpError("of ") << getParts() << " parts; there must be at least two";
  if ((*this)->getParentOfType<ParallelOp>())
    return emitOpError("stands in another");
  if (!getByRows() && (*this)->getParentOfType<RepeatOp>())
    return emitOpError("stands in a plan.repeat, where only one by rows may be");
  WalkResult walk = getBody().walk([](Operation *op) {
    if (!isa<RecordOp, WaitOp, UploadOp, DownloadOp>(op))
      return WalkResult::advance();
    op->emitOpError("may not stand in a plan.parallel: its parts wait for nothing");
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted() || failed(holdsCommands(*this)));
}

int64_t ParallelOp::getTripCount() { return getByRows() ? 1 : getParts(); }

//===----------------------------------------------------------------------===//
// What commands read and write
//===----------------------------------------------------------------------===//

using Operands = SmallVector<CommandOperand>;

SmallVector<Value> buffersOf(ArrayRef<CommandOperand> operands, bool (*isWanted)(Role)) {
  SmallVector<Value> buffers;
  for (const CommandOperand &operand : operands)
    if (isWanted(operand.use.role))
      buffers.push_back(operand.buffer);
  return buffers;
}

Operands LaunchOp::getCommandOperands() {
  Operands operands;
  for (Value input : getInputs())
    operands.push_back({input, {.name = "operand"}});
  for (Value output : getOutputs())
    operands.push_back({output, {.name = "result", .role = Role::write}});
  return operands;
}

Operands UploadOp::getCommandOperands() { return {{getTo(), kDestination}}; }
Operands DownloadOp::getCommandOperands() { return {{getFrom(), kSource}}; }
Operands CopyOp::getCommandOperands() { return {{getFrom(), kSource}, {getTo(), kDestination}}; }
Operands FillOp::getCommandOperands() { return {{getTo(), kDestination}}; }
Operands RecordOp::getCommandOperands() { return {}; }
Operands WaitOp::getCommandOperands() { return {}; }

/// Each buffer once for each way in which it is used.
static Operands operandsIn(Block &commands) {
  Operands operands;
  DenseSet<std::pair<Value, unsigned>> seen;
  for (auto command : commands.getOps<CommandOpInterface>())
    for (const CommandOperand &operand : command.getCommandOperands())
      if (seen.insert({operand.buffer, static_cast<unsigned>(operand.use.role)}).second)
        operands.push_back(operand);
  return operands;
}

Operands RepeatOp::getCommandOperands() { return operandsIn(getBody().front()); }
Operands ParallelOp::getCommandOperands() { return operandsIn(getBody().front()); }

LogicalResult FillOp::verify() {
  Type element = rangeOf(getTo()).buffer.getTensorType().getElementType();
  auto view = getTo().getDefiningOp<ViewOp>();
  if (view)
    element = cast<RankedTensorType>(view.getType()).getElementType();
  if (cast<TypedAttr>(getValue()).getType() != element)
    return emitOpError("writes ") << getValue() << " into a buffer of " << element;
  if (!isa<FloatAttr, IntegerAttr>(getValue()))
    return emitOpError("writes ") << getValue() << ", which is no number";
  return success();
}

} // namespace gpuc::plan
