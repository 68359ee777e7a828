//===- ToPlan.cpp - From tensors to buffers and commands --------------------===//
//
// Each entry function becomes a plan.program: a fused region becomes a kernel and its launch, a product a
// library command, a value a buffer of its own. A reshape is another name for its operand's
// buffer; what attention sees through strides (AttentionViews.h) is none at all. An assigned value is written
// where the variable lies (VariableUpdates.h makes that legal first), so that an update moves no byte twice.
// A scan becomes repeated commands (ScanToPlan.cpp). Order, streams and places come later; here the list
// keeps the order of the function.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/base/AttentionViews.h"
#include "passes/base/Entries.h"
#include "passes/base/Locations.h"
#include "passes/base/Target.h"
#include "passes/base/TensorSizes.h"
#include "passes/base/WrittenAgain.h"
#include "passes/kernels/CommandForms.h"
#include "passes/plan/PartBuffers.h"
#include "passes/plan/ProgramWriter.h"
#include "passes/plan/VariableUpdates.h"

#include "dialects/gpuc/CountsRows.h"
#include "dialects/gpuc/ScanParts.h"
#include "dialects/gpuc/Tf32.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace gpuc {

#define GEN_PASS_DEF_TOPLANPASS
#include "passes/Passes.h.inc"

namespace {

constexpr StringLiteral kChecksAttr = "gpuc.checks";
constexpr StringLiteral kRangeAttr = "gpuc.range";
constexpr StringLiteral kIgnoredAttr = "gpuc.ignored";

/// Lets a command say that it computes again, as the op does that becomes it.
struct RecomputedMark : OpBuilder::Listener {
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint previous) override {
    if (isSet && isa<plan::CommandOpInterface>(op))
      op->setAttr(kRecomputedAttr, UnitAttr::get(op->getContext()));
  }
  bool isSet = false;
};

class ProgramBuilder : public ProgramWriter {
public:
  ProgramBuilder(func::FuncOp function, SymbolTable &planSymbols, plan::TargetAttr target)
      : ProgramWriter(target), function(function), planSymbols(planSymbols),
        bufferType(plan::BufferType::get(function.getContext())) {
    builder.setListener(&recomputed);
  }

  LogicalResult build() {
    OpBuilder unattached(builder.getContext());
    program =
        plan::ProgramOp::create(unattached, function.getLoc(), function.getSymNameAttr(), IntegerAttr());
    planSymbols.insert(program);
    builder.setInsertionPointToStart(builder.createBlock(&program.getBody()));
    for (auto assign : function.getBody().getOps<ir::AssignOp>())
      variableOfValue[assign.getValue()] = assign.getVariableAttr();
    declareInputs();
    Block &body = function.getBody().front();
    prepareScans(*this, body);
    if (failed(convertOps(body)))
      return failure();
    if (failed(convertReturn(cast<func::ReturnOp>(body.getTerminator()))))
      return failure();
    // Now all users of a buffer are there.
    program.walk([](plan::ParallelOp parallel) { separateParts(parallel); });
    return success();
  }

  LogicalResult convertOps(Block &block) override {
    for (Operation &op : block.without_terminator()) {
      llvm::SaveAndRestore marked(recomputed.isSet, recomputed.isSet || op.hasAttr(kRecomputedAttr));
      if (failed(convert(&op)))
        return failure();
    }
    return success();
  }

  bool isAssigned(Value value) const override { return variableOfValue.contains(value); }

private:
  void declareInputs() {
    for (BlockArgument argument : function.getArguments()) {
      unsigned index = argument.getArgNumber();
      auto name = function.getArgAttrOfType<StringAttr>(index, kNameAttr);
      auto range = function.getArgAttrOfType<IntegerAttr>(index, kRangeAttr);
      auto ignored = function.getArgAttrOfType<IntegerAttr>(index, kIgnoredAttr);
      auto role = function.getArgAttrOfType<StringAttr>(index, kRoleAttr);
      bool rows = role && role.getValue() == kRowsRole;
      if (!name)
        name = builder.getStringAttr(rows ? kRowsRole.str() : "arg" + std::to_string(index));
      buffers[argument] = plan::InputOp::create(
          builder, argument.getLoc(), bufferType, name, TypeAttr::get(argument.getType()), range, ignored,
          rows ? builder.getUnitAttr() : UnitAttr(), IntegerAttr(), IntegerAttr());
    }
    for (BlockArgument argument : function.getArguments())
      plan::UploadOp::create(builder, argument.getLoc(), buffers.lookup(argument));
  }

  LogicalResult convert(Operation *op) {
    std::optional<CommandForm> form = commandFormOf(op);
    if (!form)
      return op->emitOpError(
          "cannot become a command: gpuc-decompose and gpuc-fuse come before gpuc-to-plan");
    switch (*form) {
    case CommandForm::launch:
      return convertFused(cast<ir::FusedOp>(op));
    case CommandForm::product:
      return convertProduct(*this, op);
    case CommandForm::attention:
      return convertAttention(*this, op);
    case CommandForm::collective:
      return convertCollective(op);
    case CommandForm::repeat:
      return convertScan(*this, cast<ir::ScanOp>(op));
    case CommandForm::none:
      return nameBuffer(op);
    }
  }

  /// What moves nothing: an assigned value is written in place, and who computes attention knows where it
  /// lies.
  LogicalResult nameBuffer(Operation *op) {
    if (auto read = dyn_cast<ir::ReadOp>(op))
      buffers[read.getResult()] = useOf(read.getVariable(), op->getLoc());
    else if (auto reshape = dyn_cast<ir::ReshapeOp>(op))
      buffers[reshape.getResult()] = buffers.lookup(reshape.getOperand());
    else if (auto constant = dyn_cast<ir::ConstantOp>(op))
      return llvm::all_of(op->getUses(), ir::isSplatInit) ? success() : convertConstant(constant);
    return success();
  }

  LogicalResult convertFused(ir::FusedOp fused) {
    if (Value sum = addedElsewhere.lookup(fused)) // a matmul has done it
      return buffers[fused.getOutputs()[0]] = sum, success();
    if (std::optional<Epilogue> epilogue = epilogueOf(fused))
      return convertProduct(*this, fused, *epilogue);
    if (Value parts = summedParts(fused))
      return convertSum(fused, parts);
    auto kernel = makeKernel(fused);
    SmallVector<Value> inputs, outputs;
    for (Value input : fused.getInputs())
      inputs.push_back(buffers.lookup(input));
    for (Value output : fused.getOutputs())
      outputs.push_back(bufferFor(output, fused.getName()));
    auto launch = plan::LaunchOp::create(builder, fused.getLoc(),
                                         FlatSymbolRefAttr::get(kernel.getSymNameAttr()), inputs, outputs);
    noteWrittenAgain(fused, launch);
    return success();
  }

  /// By the names that the kernels have in the plan.
  void noteWrittenAgain(ir::FusedOp fused, plan::LaunchOp launch) {
    kernelNames.try_emplace(fused.getName(), launch.getKernel());
    SmallVector<StringRef> names;
    for (StringRef name : writtenAgainBy(fused))
      if (StringRef kernel = kernelNames.lookup(name); !kernel.empty())
        names.push_back(kernel);
    if (!names.empty())
      launch->setAttr(kWritesAgainAttr, builder.getStrArrayAttr(names));
  }

  /// What the parts of a parallel have computed, numbers, if all that the kernel does is to add it up; null
  /// otherwise.
  static Value summedParts(ir::FusedOp fused) {
    Block &body = fused.getBody().front();
    auto sum = dyn_cast<ir::SumOp>(body.front());
    if (!sum || !isa<FloatType>(getElementTypeOrSelf(sum)) || body.getTerminator() != sum->getNextNode() ||
        sum.getDims() != ArrayRef<int64_t>{0})
      return {};
    auto scan = throughReshapes(fused.getInputs().front()).getDefiningOp<ir::ScanOp>();
    return scan && scan.getParallel() ? fused.getInputs().front() : Value();
  }

  LogicalResult convertSum(ir::FusedOp fused, Value parts) {
    Value result = fused.getOutputs().front();
    plan::SumOp::create(builder, fused.getLoc(), buffers.lookup(parts), bufferFor(result, fused.getName()),
                        getElementTypeOrSelf(result));
    return success();
  }

  LogicalResult convertCollective(Operation *op) {
    const std::string name = op->getName().stripDialect().str();
    if (auto reduce = dyn_cast<ir::ReduceToOwnersOp>(op)) {
      const auto wholes =
          llvm::map_to_vector(reduce.getWholes(), [&](Value whole) { return buffers.lookup(whole); });
      plan::ReduceScatterOp::create(builder, op->getLoc(), wholes, bufferFor(reduce.getOwn(), name),
                                    getElementTypeOrSelf(reduce.getOwn()), reduce.getWorldSize(),
                                    builder.getI64IntegerAttr(wholes.size()));
      return success();
    }
    if (auto gather = dyn_cast<ir::GatherFromOwnersOp>(op)) {
      const auto wholes =
          llvm::map_to_vector(gather.getWholes(), [&](Value whole) { return bufferFor(whole, name); });
      plan::AllGatherOp::create(builder, op->getLoc(), buffers.lookup(gather.getOwn()), wholes,
                                getElementTypeOrSelf(gather.getOwn()), gather.getWorldSize(),
                                builder.getI64IntegerAttr(wholes.size()));
      return success();
    }
    Value part = op->getOperand(0), value = op->getResult(0), from = buffers.lookup(part);
    Value to = bufferFor(value, op->getName().stripDialect());
    Type element = getElementTypeOrSelf(value);
    if (isa<ir::AllReduceOp>(op))
      plan::AllReduceOp::create(builder, op->getLoc(), from, to, element);
    else if (auto scatter = dyn_cast<ir::ReduceScatterOp>(op))
      plan::ReduceScatterOp::create(builder, op->getLoc(), from, to, element, scatter.getWorldSize(),
                                    IntegerAttr());
    else
      plan::AllGatherOp::create(builder, op->getLoc(), from, to, element,
                                cast<ir::AllGatherOp>(op).getWorldSize(), IntegerAttr());
    return success();
  }

  plan::KernelOp makeKernel(ir::FusedOp fused) {
    OpBuilder unattached(builder.getContext());
    auto kernel = plan::KernelOp::create(unattached, fused.getLoc(), fused.getNameAttr());
    kernel.getBody().takeBody(fused.getBody());
    planSymbols.insert(kernel, Block::iterator(program)); // renames it if the name is taken
    return kernel;
  }

  LogicalResult convertConstant(ir::ConstantOp constant) {
    auto type = cast<RankedTensorType>(constant.getType());
    ElementsAttr elements = dyn_cast<ElementsAttr>(constant.getValue());
    if (!elements)
      elements = DenseElementsAttr::get(type, constant.getSplat());
    OpBuilder unattached(builder.getContext());
    auto symbol = plan::ConstantOp::create(unattached, constant.getLoc(), builder.getStringAttr("constant"),
                                           elements, IntegerAttr());
    planSymbols.insert(symbol, Block::iterator(program));
    buffers[constant.getResult()] = useOf(symbol.getSymName(), constant.getLoc());
    return success();
  }

  LogicalResult convertReturn(func::ReturnOp terminator) {
    for (Value value : terminator.getOperands())
      makeWhole(value);
    for (OpOperand &operand : terminator->getOpOperands()) {
      unsigned index = operand.getOperandNumber();
      auto name = function.getResultAttrOfType<StringAttr>(index, kNameAttr);
      if (!name)
        name = builder.getStringAttr("result" + std::to_string(index));
      plan::OutputOp::create(builder, terminator.getLoc(), name, buffers.lookup(operand.get()),
                             function.getResultAttrOfType<ArrayAttr>(index, kChecksAttr),
                             function.getResultAttrOfType<UnitAttr>(index, kCountsOnceAttr));
    }
    return success();
  }

  /// The caller reads whole buffers: what is a part of one is copied.
  void makeWhole(Value value) {
    Value &buffer = buffers[value];
    if (!buffer.getDefiningOp<plan::ViewOp>())
      return;
    Value whole = newBuffer(nameInLayer(value.getLoc(), "copy"), cast<RankedTensorType>(value.getType()),
                            plan::Category::activation, value.getLoc());
    plan::CopyOp::create(builder, value.getLoc(), buffer, whole);
    buffer = whole;
  }

  Value bufferFor(Value value, StringRef name) override {
    if (Value place = places.lookup(value))
      return buffers[value] = place;
    if (auto variable = variableOfValue.lookup(value))
      return buffers[value] = useOf(variable.getValue(), value.getLoc());
    return buffers[value] =
               newBuffer(name, cast<RankedTensorType>(value.getType()), categoryOf(value), value.getLoc());
  }

  Value newBuffer(StringRef name, RankedTensorType type, plan::Category category,
                  Location location) override {
    unsigned count = names[name]++;
    std::string unique = count == 0 ? name.str() : (name + "_" + Twine(count)).str();
    OpBuilder head = declarations();
    return plan::AllocOp::create(head, location, bufferType, builder.getStringAttr(unique),
                                 TypeAttr::get(type), plan::CategoryAttr::get(builder.getContext(), category),
                                 IntegerAttr());
  }

  Value useOf(StringRef variable, Location location) override {
    Value &use = uses[variable];
    if (!use) {
      OpBuilder head = declarations();
      use = plan::UseOp::create(head, location, planSymbols.lookup(variable));
    }
    return use;
  }

  void addUp(Value parts, Value sum) override {
    if (buffers.lookup(sum) == parts)
      return;
    const std::string name = nameInLayer(sum.getLoc(), "sum");
    OpBuilder unattached(builder.getContext());
    auto kernel = plan::KernelOp::create(unattached, sum.getLoc(), name);
    Block &body = kernel.getBody().emplaceBlock();
    Value argument = body.addArgument(cast<plan::AllocOp>(parts.getDefiningOp()).getType(), sum.getLoc());
    OpBuilder inside = OpBuilder::atBlockEnd(&body);
    Value total = ir::SumOp::create(inside, sum.getLoc(), argument, ArrayRef<int64_t>{0});
    ir::YieldOp::create(inside, sum.getLoc(), total);
    planSymbols.insert(kernel, Block::iterator(program)); // renames it if the name is taken
    plan::LaunchOp::create(builder, sum.getLoc(), FlatSymbolRefAttr::get(kernel.getSymNameAttr()), parts,
                           bufferFor(sum, name));
  }

  /// Declarations stand at the head of the program, commands behind them.
  OpBuilder declarations() override {
    Block &body = program.getBody().front();
    if (!firstCommand && !body.empty() && isa<plan::CommandOpInterface>(body.back()))
      firstCommand = &*llvm::find_if(body, [](Operation &op) { return isa<plan::CommandOpInterface>(op); });
    return firstCommand ? OpBuilder(firstCommand) : OpBuilder::atBlockEnd(&body);
  }

  /// A gradient is what an op reads, beside the variable, that writes a parameter of the same shape, in
  /// whatever precision; or those of all slices, one behind the other.
  plan::Category categoryOf(Value value) const override {
    auto type = cast<RankedTensorType>(value.getType());
    if (auto scan = value.getDefiningOp<ir::ScanOp>(); scan && scan.getParallel())
      type = cast<RankedTensorType>(ir::ScanOp::sliceType(type));
    if (!isa<FloatType>(type.getElementType()))
      return plan::Category::activation;
    if (isa_and_nonnull<ir::AllGatherOp, ir::GatherFromOwnersOp>(value.getDefiningOp()))
      return plan::Category::parameter;
    for (Operation *user : value.getUsers())
      if (isa<ir::ReduceScatterOp, ir::ReduceToOwnersOp>(user))
        return plan::Category::gradient;
    for (Operation *user : value.getUsers())
      for (Value result : user->getResults())
        if (variableOfValue.contains(result) && ir::shapeOf(result) == type.getShape())
          return plan::Category::gradient;
    return plan::Category::activation;
  }

  func::FuncOp function;
  SymbolTable &planSymbols;
  Type bufferType;
  plan::ProgramOp program;
  RecomputedMark recomputed;
  Operation *firstCommand = nullptr; ///< Once there is one: none is erased, and none comes before it.
  DenseMap<Value, FlatSymbolRefAttr> variableOfValue;
  llvm::StringMap<Value> uses;
  llvm::StringMap<unsigned> names;
  llvm::StringMap<StringRef> kernelNames; ///< In the plan, by those that gpuc-fuse gave.
};

struct ToPlan : impl::ToPlanPassBase<ToPlan> {
  using ToPlanPassBase::ToPlanPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Target> parsed = Target::parse(target, module);
    if (failed(parsed))
      return signalPassFailure();
    auto attribute = plan::TargetAttr::get(&getContext(), parsed->kind, parsed->name);
    module->setAttr(plan::kTargetAttr, attribute);
    module->removeAttr(kFusedForAttr);
    for (auto block : module.getOps<ir::CheckpointOp>()) {
      block.emitOpError("is done before there is a plan: run gpuc-checkpoint before gpuc-to-plan");
      return signalPassFailure();
    }

    SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
    for (func::FuncOp function : functions) {
      if (failed(checkEntry(function, *parsed)))
        return signalPassFailure();
      makeUpdatesInPlace(function);
      if (failed(verifyUpdates(function, Blame(getArgument()))))
        return signalPassFailure();
    }

    SmallVector<ir::VariableOp> variables(module.getOps<ir::VariableOp>());
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    replaceVariables(variables, builder);
    SymbolTable symbols(module);
    for (func::FuncOp function : functions) {
      symbols.remove(function); // the program takes its name
      if (failed(ProgramBuilder(function, symbols, attribute).build()))
        return signalPassFailure();
      function.erase();
    }
  }

  LogicalResult checkEntry(func::FuncOp function, const Target &target) {
    if (!function.isPublic())
      return function.emitOpError("is private: calls are inlined before gpuc-to-plan");
    if (function.isExternal())
      return function.emitOpError("has no body");
    if (!function.getBody().hasOneBlock())
      return function.emitOpError("has control flow, which a program cannot have");
    if (failed(checkValues(function)) || failed(checkTf32(function, target)))
      return failure();
    for (BlockArgument argument : function.getArguments())
      if (llvm::is_contained(cast<RankedTensorType>(argument.getType()).getShape(), 0))
        return emitError(argument.getLoc()) << "input of type " << argument.getType()
                                            << " holds nothing: every extent of an input must be at least 1",
               failure();
    return checkTensorSizes(function);
  }

  /// Whether the target computes products as they are to be computed.
  LogicalResult checkTf32(func::FuncOp function, const Target &target) {
    WalkResult walk = function.walk([&](Operation *op) {
      if (!ir::isTf32(op) || target.isCuda())
        return WalkResult::advance();
      op->emitOpError(
          "is to be computed in TF32, which the host has not: compile with --target=cuda:sm_80 or newer, or "
          "the model, not a later stage of it, with --precision=f32");
      return WalkResult::interrupt();
    });
    return failure(walk.wasInterrupted());
  }

  void replaceVariables(ArrayRef<ir::VariableOp> variables, OpBuilder &builder) {
    for (ir::VariableOp variable : variables) {
      plan::VariableOp::create(builder, variable.getLoc(), variable.getSymName(), variable.getType(),
                               variable.getKind(), variable.getInitializer(), variable.getFrozen(),
                               variable.getShardOfAttr(), variable.getShardsAttr(), variable.getOwnersAttr(),
                               IntegerAttr());
      variable.erase();
    }
  }
};

} // namespace
} // namespace gpuc
