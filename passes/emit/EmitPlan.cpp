//===- EmitPlan.cpp - Write a placed plan as a file -------------------------===//
//
// One walk over the module fills the schema's tables (runtime/plan/plan.fbs), in their order. Machine code is
// made last, by the target's code generator, from the kernels' bodies.
//
//===----------------------------------------------------------------------===//

#include "passes/emit/EmitPlan.h"

#include "dialects/plan/PlanOps.h"
#include "passes/Passes.h"
#include "passes/base/Decisions.h"
#include "passes/base/Locations.h"
#include "passes/emit/EmitParts.h"
#include "passes/plan/PinnedBytes.h"

#include "runtime/base/quote.h"
#include "runtime/base/same_numbers.h"
#include "runtime/base/version.h"
#include "runtime/plan/header.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/plan_generated.h"
#include "runtime/plan/seal.h"
#include "runtime/plan/verify.h"

using namespace mlir;

namespace gpuc {
namespace {

static_assert(haveSameNumbers<fb::Category, plan::Category>(
    fb::Category::MAX, {{fb::Category::parameter, plan::Category::parameter},
                        {fb::Category::gradient, plan::Category::gradient},
                        {fb::Category::optimizer, plan::Category::optimizer},
                        {fb::Category::activation, plan::Category::activation},
                        {fb::Category::workspace, plan::Category::workspace},
                        {fb::Category::input, plan::Category::input},
                        {fb::Category::constant, plan::Category::constant}}));
static_assert(haveSameNumbers<fb::TargetKind, plan::TargetKind>(
    fb::TargetKind::MAX,
    {{fb::TargetKind::host, plan::TargetKind::host}, {fb::TargetKind::cuda, plan::TargetKind::cuda}}));

/// The layer that something came from, for profiles and errors.
std::string locationText(Location location) { return printable(layerName(location)); }

/// Of what nobody looks up: it begins with the layer's name, which may be of any length.
std::string shownName(StringRef name) { return std::string(firstBytes(printable(name), kMostNameBytes)); }

std::string specText(ir::SpecAttr spec) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  Attribute(spec).print(stream);
  StringRef bare = text; // #gpuc.spec<NAME(…)>
  bare.consume_front("#gpuc.spec<");
  bare.consume_back(">");
  return bare.str();
}

/// The bytes of a constant in memory; i1 takes a byte.
std::vector<uint8_t> bytesOf(DenseElementsAttr elements) {
  std::vector<uint8_t> bytes;
  auto append = [&](const APInt &number) {
    unsigned size = llvm::divideCeil(number.getBitWidth(), 8);
    uint64_t word = number.getZExtValue();
    for (unsigned byte = 0; byte < size; ++byte)
      bytes.push_back(static_cast<uint8_t>(word >> (8 * byte)));
  };
  if (isa<FloatType>(elements.getElementType()))
    for (const APFloat &number : elements.getValues<APFloat>())
      append(number.bitcastToAPInt());
  else
    for (const APInt &number : elements.getValues<APInt>())
      append(number);
  return bytes;
}

class Emitter {
public:
  Emitter(ModuleOp module, const EmitOptions &options, int64_t ranksOfShares)
      : module(module), symbols(module), options(options), arena(*module.getOps<plan::ArenaOp>().begin()) {
    file.world_size = ranksOfShares;
  }

  LogicalResult run() {
    emitFacts();
    for (auto variable : module.getOps<plan::VariableOp>())
      emitVariable(variable);
    for (auto constant : module.getOps<plan::ConstantOp>())
      if (failed(emitConstant(constant)))
        return failure();
    if (failed(emitKernels()))
      return failure();
    for (auto program : module.getOps<plan::ProgramOp>())
      emitProgram(program);
    if (file.target->kind == fb::TargetKind::cuda)
      file.pinned_bytes = pinnedBytesOf(module, arena.getSlots());
    return success();
  }

  std::string seal() {
    flatbuffers::FlatBufferBuilder builder(1 << 16);
    builder.Finish(fb::Plan::Pack(builder, &file), fb::PlanIdentifier());
    return sealPlan({reinterpret_cast<const char *>(builder.GetBufferPointer()), builder.GetSize()});
  }

private:
  int64_t moduleNumber(StringRef name, int64_t otherwise) {
    auto attribute = module->getAttrOfType<IntegerAttr>(name);
    return attribute ? attribute.getInt() : otherwise;
  }

  void emitFacts() {
    auto partition = module->getAttrOfType<ir::PartitionAttr>(ir::kPartitionAttr);
    file.name = module.getSymName().value_or("model").str(); // a plan has a name, a module need not
    file.compiler_version = GPUC_VERSION;
    file.seed = options.defaultSeed.value_or(moduleNumber(plan::kSeedAttr, 0));
    file.batch = moduleNumber(plan::kBatchAttr, 0);
    file.global_batch = partition ? partition.getBatchRows() : file.batch;
    file.arena_bytes = arena.getBytes();
    file.alignment = kBufferAlignment;
    file.input_slots = arena.getSlots();
    file.no_graphs = module->hasAttr(plan::kNoGraphsAttr);
    file.training_digest = moduleNumber(kTrainingAttr, 0);
  }

  //===--------------------------------------------------------------------===//
  // Buffers
  //===--------------------------------------------------------------------===//

  /// `key` is what identityOf says of all who use it.
  uint32_t addBuffer(const void *key, Location location, StringRef name, RankedTensorType type,
                     plan::Category category, uint64_t place, uint64_t slotStride = 0) {
    auto buffer = std::make_unique<fb::BufferT>();
    buffer->name = shownName(name);
    buffer->type = dataTypeOf(type.getElementType());
    buffer->shape.assign(type.getShape().begin(), type.getShape().end());
    buffer->offset = place;
    buffer->size = ir::sizeInBytes(type);
    buffer->slot_stride = slotStride;
    buffer->category = static_cast<fb::Category>(category);
    buffer->location = locationText(location);
    buffer->source = printable(filePlace(location));
    file.buffers.push_back(std::move(buffer));
    return bufferIndex[key] = file.buffers.size() - 1;
  }

  /// A variable's or constant's buffer is shared by all programs that use it.
  uint32_t indexOf(plan::BufferOpInterface buffer) { return bufferIndex.lookup(plan::identityOf(buffer)); }

  void emitVariable(plan::VariableOp variable) {
    auto entry = std::make_unique<fb::VariableT>();
    entry->name = variable.getSymName().str();
    entry->kind = llvm::StringSwitch<fb::VariableKind>(variable.getKind())
                      .Case("statistic", fb::VariableKind::statistic)
                      .Case("optimizer", fb::VariableKind::optimizer)
                      .Case("counter", fb::VariableKind::counter)
                      .Default(fb::VariableKind::parameter);
    entry->buffer = addBuffer(variable.getSymNameAttr().getAsOpaquePointer(), variable.getLoc(),
                              variable.getSymName(), cast<RankedTensorType>(variable.getType()),
                              variable.getCategory(), variable.getPlace().value_or(0));
    entry->initializer = specText(variable.getInitializer());
    entry->trainable = entry->kind == fb::VariableKind::parameter && !variable.getFrozen();
    if (std::optional<ArrayRef<int64_t>> whole = variable.getShardOf()) {
      entry->is_share = true;
      entry->whole_shape.assign(whole->begin(), whole->end());
    }
    if (variable.getOwners()) {
      for (StringRef name : variable.getOwnersAttr().getAsValueRange<StringAttr>())
        entry->owned_names.push_back(name.str());
      entry->name = entry->owned_names.front(); // what it is called here is known to the compiler alone
    }
    file.variables.push_back(std::move(entry));
  }

  LogicalResult emitConstant(plan::ConstantOp constant) {
    auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!elements)
      return constant.emitOpError("has elements that are not stored in the module");
    auto entry = std::make_unique<fb::ConstantT>();
    entry->buffer = addBuffer(constant.getSymNameAttr().getAsOpaquePointer(), constant.getLoc(),
                              constant.getSymName(), cast<RankedTensorType>(elements.getType()),
                              plan::Category::constant, constant.getPlace().value_or(0));
    entry->data = bytesOf(elements);
    file.constants.push_back(std::move(entry));
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Kernels
  //===--------------------------------------------------------------------===//

  LogicalResult emitKernels() {
    FailureOr<DenseMap<Operation *, KernelCode>> compiled = compileKernels(module, options, file);
    if (failed(compiled))
      return failure();
    codes = std::move(*compiled);
    for (auto kernel : module.getOps<plan::KernelOp>()) {
      auto entry = std::make_unique<fb::KernelT>();
      entry->name = shownName(kernel.getSymName());
      entry->symbol = codes[kernel].symbol;
      entry->operands =
          kernel.getBody().getNumArguments() + kernel.getBody().front().getTerminator()->getNumOperands();
      entry->location = locationText(kernel.getLoc());
      kernelIndex[kernel.getSymName()] = file.kernels.size();
      file.kernels.push_back(std::move(entry));
    }
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Programs
  //===--------------------------------------------------------------------===//

  void emitProgram(plan::ProgramOp op) {
    program = std::make_unique<fb::ProgramT>();
    program->name = op.getSymName().str();
    program->peak_bytes = op.getPeakBytes().value_or(0);
    eventIndex.clear();
    inputPort.clear();
    outputPorts.clear();
    for (auto input : op.getBody().getOps<plan::InputOp>())
      emitInput(input);
    for (auto buffer : op.getBody().getOps<plan::AllocOp>())
      if (buffer.getPlace()) // none if nothing uses it
        addBuffer(buffer, buffer.getLoc(), buffer.getName(), cast<RankedTensorType>(buffer.getType()),
                  buffer.getCategory(), *buffer.getPlace());
    for (auto event : op.getBody().getOps<plan::EventOp>()) {
      eventIndex[event] = program->events.size();
      program->events.push_back(event.getName().str());
    }
    for (auto output : op.getBody().getOps<plan::OutputOp>()) {
      auto entry = std::make_unique<fb::OutputT>();
      entry->name = output.getName().str();
      entry->buffer = indexOf(plan::bufferOf(output.getBuffer()));
      entry->counts_once = output.getCountsOnce();
      emitChecks(output, *entry);
      outputPorts[output.getBuffer()].push_back(program->outputs.size());
      program->outputs.push_back(std::move(entry));
    }
    for (auto stream : op.getBody().getOps<plan::StreamOp>()) {
      auto entry = std::make_unique<fb::StreamT>();
      entry->name = stream.getName().str();
      emitCommands(stream.getBody().front(), entry->commands);
      program->streams.push_back(std::move(entry));
    }
    file.programs.push_back(std::move(program));
  }

  static void emitChecks(plan::OutputOp output, fb::OutputT &entry) {
    if (!output.getChecks())
      return;
    for (auto check : output.getChecks()->getAsRange<ir::CheckAttr>()) {
      auto label = std::make_unique<fb::CheckT>();
      label->op = check.getOp().str();
      label->layer = printable(check.getLayer());
      label->location = printable(check.getLocation());
      label->backward = check.getBackward();
      entry.checks.push_back(std::move(label));
    }
  }

  void emitInput(plan::InputOp input) {
    auto entry = std::make_unique<fb::InputT>();
    entry->name = input.getName().str();
    entry->role = input.getRows() ? fb::InputRole::rows : fb::InputRole::data;
    entry->buffer =
        addBuffer(input, input.getLoc(), input.getName(), cast<RankedTensorType>(input.getType()),
                  plan::Category::input, input.getPlace().value_or(0), input.getSlotStride().value_or(0));
    entry->range = input.getRange().value_or(-1);
    entry->ignored = input.getIgnored().value_or(0);
    inputPort[input.getBuffer()] = program->inputs.size();
    program->inputs.push_back(std::move(entry));
  }

  /// What every command says of itself.
  static std::unique_ptr<fb::CommandT> commandOf(Operation *op) {
    auto command = std::make_unique<fb::CommandT>();
    command->location = locationText(op->getLoc());
    command->backward = isBackward(op->getLoc());
    command->recomputed = op->hasAttr(kRecomputedAttr);
    return command;
  }

  void emitCommands(Block &block, std::vector<std::unique_ptr<fb::CommandT>> &commands) {
    for (auto op : block.getOps<plan::CommandOpInterface>()) {
      if (auto download = dyn_cast<plan::DownloadOp>(*op)) {
        emitDownloads(download, commands);
        continue;
      }
      std::unique_ptr<fb::CommandT> command = commandOf(op);
      TypeSwitch<Operation *>(op)
          .Case([&](plan::LaunchOp launch) { command->work.Set(emitLaunch(launch)); })
          .Case([&](plan::UploadOp upload) { command->work.Set(emitUpload(upload)); })
          .Case([&](plan::CopyOp copy) { command->work.Set(emitCopy(copy)); })
          .Case([&](plan::FillOp fill) { command->work.Set(emitFill(fill)); })
          .Case([&](plan::RecordOp record) {
            fb::RecordT entry;
            entry.event = eventIndex.lookup(record.getEvent());
            command->work.Set(std::move(entry));
          })
          .Case([&](plan::WaitOp wait) {
            fb::WaitT entry;
            entry.event = eventIndex.lookup(wait.getEvent());
            entry.distance = wait.getDistance();
            command->work.Set(std::move(entry));
          })
          .Case([&](plan::RepeatOp repeat) {
            fb::RepeatT entry;
            entry.count = repeat.getCount();
            emitCommands(repeat.getBody().front(), entry.commands);
            command->work.Set(std::move(entry));
          })
          .Case([&](plan::ParallelOp parallel) {
            fb::ParallelT entry;
            entry.parts = parallel.getParts();
            entry.by_rows = parallel.getByRows();
            emitCommands(parallel.getBody().front(), entry.commands);
            command->work.Set(std::move(entry));
          })
          .Default([&](Operation *other) {
            command->work = emitLibraryCommand(other, [&](Value value) { return operand(value); });
            if (auto product = dyn_cast<plan::ProductOpInterface>(other); product && product.getUpdateAttr())
              (isa<plan::MatmulOp>(other) ? command->work.AsMatmul()->update
                                          : command->work.AsConv()->update) = emitUpdate(product);
          });
      commands.push_back(std::move(command));
    }
  }

  /// Null of null.
  std::unique_ptr<fb::OperandT> operand(Value value) {
    if (!value)
      return nullptr;
    plan::Range range = plan::rangeOf(value);
    auto entry = std::make_unique<fb::OperandT>();
    entry->buffer = indexOf(range.buffer);
    entry->offset = range.offset;
    entry->size = range.size;
    entry->strides.assign(range.strides.begin(), range.strides.end());
    return entry;
  }

  fb::LaunchT emitLaunch(plan::LaunchOp launch) {
    fb::LaunchT entry = codes[symbols.lookup(launch.getKernel())].launch;
    entry.kernel = kernelIndex.lookup(launch.getKernel());
    for (Value input : launch.getInputs())
      entry.reads.push_back(operand(input));
    for (Value output : launch.getOutputs())
      entry.writes.push_back(operand(output));
    return entry;
  }

  std::unique_ptr<fb::UpdateT> emitUpdate(plan::ProductOpInterface product) {
    StringRef kernel = product.getUpdateAttr().getValue();
    auto entry = std::make_unique<fb::UpdateT>(codes[symbols.lookup(kernel)].update);
    entry->kernel = kernelIndex.lookup(kernel);
    for (Value input : product.getUpdateInputs())
      entry->reads.push_back(operand(input));
    for (Value output : product.getUpdateOutputs())
      entry->writes.push_back(operand(output));
    return entry;
  }

  fb::CopyT emitUpload(plan::UploadOp upload) {
    fb::CopyT entry;
    entry.kind = fb::CopyKind::host_to_device;
    entry.port = inputPort.lookup(upload.getTo());
    entry.to = operand(upload.getTo());
    return entry;
  }

  /// One copy for each output that the buffer is.
  void emitDownloads(plan::DownloadOp download, std::vector<std::unique_ptr<fb::CommandT>> &commands) {
    for (uint32_t port : outputPorts.lookup(download.getFrom())) {
      fb::CopyT entry;
      entry.kind = fb::CopyKind::device_to_host;
      entry.port = port;
      entry.from = operand(download.getFrom());
      std::unique_ptr<fb::CommandT> command = commandOf(download);
      command->work.Set(std::move(entry));
      commands.push_back(std::move(command));
    }
  }

  fb::CopyT emitCopy(plan::CopyOp copy) {
    fb::CopyT entry;
    entry.kind = fb::CopyKind::device_to_device;
    entry.from = operand(copy.getFrom());
    entry.to = operand(copy.getTo());
    return entry;
  }

  fb::FillT emitFill(plan::FillOp fill) {
    fb::FillT entry;
    entry.to = operand(fill.getTo());
    auto type = RankedTensorType::get({1}, cast<TypedAttr>(fill.getValue()).getType());
    entry.pattern = bytesOf(DenseElementsAttr::get(type, Attribute(fill.getValue())));
    return entry;
  }

  ModuleOp module;
  SymbolTable symbols;
  const EmitOptions &options;
  plan::ArenaOp arena;
  fb::PlanT file;
  DenseMap<Operation *, KernelCode> codes; // of each plan.kernel
  std::unique_ptr<fb::ProgramT> program;   // the one that is being written
  DenseMap<const void *, uint32_t> bufferIndex;
  llvm::StringMap<uint32_t> kernelIndex;
  DenseMap<Value, uint32_t> eventIndex;
  DenseMap<Value, uint32_t> inputPort;
  // Of a buffer; it may be several outputs, and an input, too.
  DenseMap<Value, SmallVector<uint32_t>> outputPorts;
};

/// How many ranks share anything out, which is the same for all of it; 0 if none does.
FailureOr<int64_t> ranksOfShares(ModuleOp module) {
  int64_t known = 0;
  WalkResult walked = module.walk([&](Operation *op) {
    std::optional<int64_t> ranks;
    if (auto variable = dyn_cast<plan::VariableOp>(op))
      ranks = variable.getShards();
    else if (auto scatter = dyn_cast<plan::ReduceScatterOp>(op))
      ranks = scatter.getWorldSize();
    else if (auto gather = dyn_cast<plan::AllGatherOp>(op))
      ranks = gather.getWorldSize();
    if (ranks && known != 0 && *ranks != known) {
      op->emitOpError("is shared out among ") << *ranks << " ranks, and others among " << known;
      return WalkResult::interrupt();
    }
    known = ranks.value_or(known);
    return WalkResult::advance();
  });
  return walked.wasInterrupted() ? FailureOr<int64_t>() : known;
}

} // namespace

FailureOr<std::string> emitPlan(ModuleOp module, const EmitOptions &options) {
  if (module.getOps<plan::ArenaOp>().empty())
    return module.emitError("has no plan.arena: plan-place-buffers comes before a plan is written"),
           failure();
  FailureOr<int64_t> ranks = ranksOfShares(module);
  if (failed(ranks) || failed(checkNames(module)))
    return failure();
  Emitter emitter(module, options, *ranks);
  if (failed(emitter.run()))
    return failure();
  std::string file = emitter.seal();
  // Who wrote a file that no runtime reads would find that out too late.
  if (Result<Plan> plan = Plan::parse(file); !plan.ok())
    return module.emitError("cannot be written as a plan: ") << plan.message(), failure();
  return file;
}

} // namespace gpuc
