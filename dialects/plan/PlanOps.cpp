//===- PlanOps.cpp - Verifiers, syntax and interfaces of the plan's ops -----===//

#include "dialects/plan/PlanOps.h"

#include "runtime/plan/cost.h"

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

static ParseResult parseSpec(OpAsmParser &parser, gpuc::ir::SpecAttr &spec) {
  FailureOr<gpuc::ir::SpecAttr> parsed = gpuc::ir::SpecAttr::parseBare(parser);
  if (failed(parsed))
    return failure();
  spec = *parsed;
  return success();
}

static void printSpec(OpAsmPrinter &printer, Operation *, gpuc::ir::SpecAttr spec) {
  spec.printBare(printer);
}

/// Those that are there, of an op whose operands have the order of the table.
template <typename Op>
static SmallVector<gpuc::plan::CommandOperand> operandsByTable(Op op, ArrayRef<gpuc::OperandUse> uses) {
  SmallVector<gpuc::plan::CommandOperand> operands;
  for (auto [index, use] : llvm::enumerate(uses))
    for (Value buffer : op.getODSOperands(index))
      operands.push_back({buffer, use});
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

int64_t sizeInBytes(BufferOpInterface buffer) { return ir::sizeInBytes(buffer.getTensorType()); }

const void *identityOf(BufferOpInterface buffer) {
  if (auto use = dyn_cast<UseOp>(*buffer))
    return use.getSymbolAttr().getAttr().getAsOpaquePointer();
  return buffer.getOperation();
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

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto kernel =
      tables.lookupNearestSymbolFrom<KernelOp>((*this)->getParentOfType<ModuleOp>(), getKernelAttr());
  if (!kernel)
    return emitOpError("of @") << getKernel() << ", which is no plan.kernel of this module";
  Block &body = kernel.getBody().front();
  auto check = [&](Value buffer, Type type, StringRef role, size_t index) -> LogicalResult {
    int64_t has = rangeOf(buffer).size, needs = ir::sizeInBytes(type);
    if (has == needs)
      return success();
    return emitOpError(role) << ' ' << index << " has " << has << " bytes, kernel @" << getKernel()
                             << " takes " << type << ", " << needs << " bytes";
  };
  if (getInputs().size() != body.getNumArguments() ||
      getOutputs().size() != body.getTerminator()->getNumOperands())
    return emitOpError("gives ") << getInputs().size() << " inputs and " << getOutputs().size()
                                 << " outputs, kernel @" << getKernel() << " has " << body.getNumArguments()
                                 << " and " << body.getTerminator()->getNumOperands();
  for (auto [index, buffer] : llvm::enumerate(getInputs()))
    if (failed(check(buffer, body.getArgument(index).getType(), "input", index)))
      return failure();
  for (auto [index, buffer] : llvm::enumerate(getOutputs()))
    if (failed(check(buffer, body.getTerminator()->getOperand(index).getType(), "output", index)))
      return failure();
  return success();
}

/// TF32 is how f32 is multiplied.
template <typename Op> static LogicalResult verifyTf32(Op op) {
  if (op.getTf32() && !op.getElement().isF32())
    return op.emitOpError("rounds f32 to TF32, but its elements are ") << op.getElement();
  return success();
}

LogicalResult ConvOp::verify() {
  if (failed(verifyTf32(*this)))
    return failure();
  if (getInput().size() != 3 || getFilter().size() != 4 || getOutput().size() != 3 ||
      getStrides().size() != 2 || getPadding().size() != 4 || getDilation().size() != 2)
    return emitOpError(
        "wants input [C, H, W], filter [O, C / groups, kh, kw], output [O, OH, OW], two strides, four "
        "paddings and two dilations");
  auto check = [&](Value buffer, StringRef name, ArrayRef<int64_t> extents, int64_t count) -> LogicalResult {
    int64_t has = rangeOf(buffer).size,
            needs = saturatingProduct({count, ir::elementBytes(getElement()), saturatingProduct(extents)});
    if (has == needs)
      return success();
    return emitOpError() << name << " has " << has << " bytes, " << count << " x [" << extents << "] take "
                         << needs;
  };
  int64_t batch = getBatch();
  struct Role {
    StringRef name;
    ArrayRef<int64_t> extents;
    int64_t count;
  };
  Role input{"input", getInput(), batch}, filter{"filter", getFilter(), 1},
      output{"output", getOutput(), batch};
  Role roles[3][3] = {{input, filter, output}, {output, filter, input}, {output, input, filter}};
  const Value buffers[] = {getLhs(), getRhs(), getResult()};
  for (auto [buffer, role] : llvm::zip_equal(buffers, roles[static_cast<size_t>(getKind())]))
    if (failed(check(buffer, role.name, role.extents, role.count)))
      return failure();
  if ((getBias() || getRelu()) && getKind() != ConvKind::forward)
    return emitOpError("is a gradient, which neither bias nor relu follows");
  if (getMask() && getKind() != ConvKind::input_gradient)
    return emitOpError("has a mask, which follows an input_gradient alone");
  if (getMask() && failed(check(getMask(), "mask", getInput(), batch)))
    return failure();
  return getBias() ? check(getBias(), "bias", getOutput().front(), 1) : success();
}

LogicalResult MatmulOp::verify() {
  if (failed(verifyTf32(*this)))
    return failure();
  if (getAccumulate() && (getBias() || getRelu() || getMask()))
    return emitOpError("adds to its result, which neither bias nor relu nor mask follows");
  if (getMask() && (getBias() || getRelu()))
    return emitOpError("has a mask, of a gradient, which neither bias nor relu follows");
  auto check = [&](Value buffer, StringRef name, int64_t elements) -> LogicalResult {
    int64_t has = rangeOf(buffer).size, needs = saturatingProduct({elements, ir::elementBytes(getElement())});
    if (has != needs)
      return emitOpError() << name << " has " << has << " bytes, " << elements << " elements take " << needs;
    return success();
  };
  if (getMask() &&
      failed(check(getMask(), "mask",
                   saturatingProduct({static_cast<int64_t>(getBatch()), static_cast<int64_t>(getM()),
                                      static_cast<int64_t>(getN())}))))
    return failure();
  return getBias() ? check(getBias(), "bias", getN()) : success();
}

/// From the first element to the last of what lies with these strides; they are as many as the extents.
static int64_t spanOf(ArrayRef<int64_t> extents, ArrayRef<int64_t> strides) {
  __int128 elements = 1;
  for (auto [extent, stride] : llvm::zip_equal(extents, strides))
    elements += static_cast<__int128>(extent - 1) * stride;
  return std::clamp<__int128>(elements, -kMostNumber, 2 * kMostNumber);
}

/// What an operand of attention is an instance of: heads of so many rows of so many elements.
struct AttentionRole {
  StringRef name;
  Value buffer;
  int64_t heads, rows, width;
};

/// Whether each buffer is as long as its layout says; `roles` are in the order of `strides`.
template <typename Op> static LogicalResult verifyAttention(Op op, ArrayRef<AttentionRole> roles) {
  const int64_t bytes = ir::elementBytes(op.getElement());
  auto check = [&](StringRef name, Value buffer, int64_t needs) -> LogicalResult {
    int64_t has = rangeOf(buffer).size;
    if (has == needs)
      return success();
    return op.emitOpError() << name << " has " << has << " bytes, its layout takes " << needs;
  };
  if (op.getStrides().size() != 3 * roles.size())
    return op.emitOpError("wants three strides for each of ")
           << roles.size() << " operands, has " << op.getStrides().size();
  const int64_t batch = op.getBatch();
  for (auto [index, role] : llvm::enumerate(roles)) {
    ArrayRef<int64_t> strides = op.getStrides().slice(3 * index, 3);
    int64_t elements = spanOf({batch, role.heads, role.rows}, strides) - 1 + role.width;
    if (failed(check(role.name, role.buffer, elements * bytes)))
      return failure();
  }
  const int64_t heads = op.getHeads(), queries = op.getQueries();
  if (failed(check("log_sum_exp", op.getLogSumExp(), saturatingProduct({batch, heads, queries, bytes}))))
    return failure();
  if (!op.getMask())
    return success();
  if (!op.getMaskStrides() || op.getMaskStrides()->size() != 4)
    return op.emitOpError("wants four strides of the mask");
  const int64_t scores[] = {batch, heads, queries, static_cast<int64_t>(op.getKeys())};
  const int64_t elements = spanOf(scores, *op.getMaskStrides()), has = rangeOf(op.getMask()).size;
  if (has == elements || has == elements * bytes)
    return success();
  return op.emitOpError("mask has ") << has << " bytes, " << elements << " elements of i1 or "
                                     << op.getElement() << " take " << elements << " or " << elements * bytes;
}

template <typename Op> static SmallVector<AttentionRole> attentionRoles(Op op) {
  const int64_t heads = op.getHeads(), groups = op.getGroups(), queries = op.getQueries(),
                keys = op.getKeys(), width = op.getWidth(), valueWidth = op.getValueWidth();
  return {{"query", op.getQuery(), heads, queries, width},
          {"key", op.getKey(), groups, keys, width},
          {"value", op.getValue(), groups, keys, valueWidth},
          {"result", op.getResult(), heads, queries, valueWidth}};
}

LogicalResult AttentionOp::verify() { return verifyAttention(*this, attentionRoles(*this)); }

LogicalResult AttentionGradientOp::verify() {
  SmallVector<AttentionRole> roles = attentionRoles(*this);
  AttentionRole query = roles[0], key = roles[1], value = roles[2], result = roles[3];
  roles.push_back({"cotangent", getCotangent(), result.heads, result.rows, result.width});
  roles.push_back({"query's cotangent", getQueryCotangent(), query.heads, query.rows, query.width});
  roles.push_back({"key's cotangent", getKeyCotangent(), key.heads, key.rows, key.width});
  roles.push_back({"value's cotangent", getValueCotangent(), value.heads, value.rows, value.width});
  return verifyAttention(*this, roles);
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
// What commands cost
//===----------------------------------------------------------------------===//

/// Operations on each element behind a product: an addition, a maximum, relu's gradient.
template <typename Product> static int64_t opsBehind(Product product) {
  return (product.getBias() ? 1 : 0) + product.getRelu() + (product.getMask() ? 2 : 0);
}

int64_t MatmulOp::getFlops() { return flopsOfMatmul(getBatch(), getM(), getN(), getK(), opsBehind(*this)); }

int64_t ConvOp::getFlops() {
  auto elementsOf = [](ArrayRef<int64_t> shape) { return ShapedType::getNumElements(shape); };
  return flopsOfConv(getBatch() * elementsOf(getOutput()), elementsOf(getFilter().drop_front()),
                     rangeOf(getResult()).size / ir::elementBytes(getElement()), opsBehind(*this));
}

template <typename Op> static int64_t attentionFlops(Op op, bool isGradient) {
  return flopsOfAttention(isGradient, op.getBatch() * op.getHeads() * op.getQueries() * op.getKeys(),
                          op.getWidth(), op.getValueWidth());
}

int64_t AttentionOp::getFlops() { return attentionFlops(*this, /*isGradient=*/false); }
int64_t AttentionGradientOp::getFlops() { return attentionFlops(*this, /*isGradient=*/true); }

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
