//===- AssignStreams.cpp - Put commands on streams and order them by events -===//
//
// Compute runs on one stream. On a device with memory of its own, uploads of the batch get a stream too; the
// batch then has two slots, so that step k+1's upload runs beside step k's compute:
//
//   copy:     wait %free distance 2 · upload … · record %ready
//   compute:  wait %ready · …                  · record %free
//
// The n-th upload into a slot waits until step n-2, which used that slot, has read it. Outputs are copied
// back where compute ends. The host reads inputs where the caller has them; what it must copy, it copies at
// the head of compute.
//
// Commands that a pass has marked with a stream's name run on that one. Events order them by what they read
// and write, and join their stream with compute where the program ends.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/base/Target.h"
#include "passes/plan/StreamEvents.h"

using namespace mlir;

namespace gpuc {

#define GEN_PASS_DEF_ASSIGNSTREAMSPASS
#include "passes/Passes.h.inc"

namespace {

plan::StreamOp makeStream(OpBuilder &builder, plan::ProgramOp program, StringRef name) {
  auto stream = plan::StreamOp::create(builder, program.getLoc(), name);
  stream.getBody().emplaceBlock();
  return stream;
}

struct AssignStreams : impl::AssignStreamsPassBase<AssignStreams> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto target = module->getAttrOfType<plan::TargetAttr>(plan::kTargetAttr);
    if (!target) {
      module.emitError("has no plan.target: gpuc-to-plan comes before plan-assign-streams");
      return signalPassFailure();
    }
    mostSlots_ = describe(target).inputSlots;
    const bool isDevice = target.getKind() == plan::TargetKind::cuda;
    int64_t slots = 1;
    for (auto program : module.getOps<plan::ProgramOp>()) {
      if (!program.getBody().getOps<plan::StreamOp>().empty()) {
        program.emitOpError("has streams already");
        return signalPassFailure();
      }
      bool copyStream = isDevice && !program.getBody().getOps<plan::UploadOp>().empty();
      if (copyStream)
        slots = mostSlots_;
      assign(program, copyStream, isDevice);
    }
    module->setAttr(plan::kSlotsAttr, OpBuilder(module).getI64IntegerAttr(slots));
  }

  void assign(plan::ProgramOp program, bool copyStream, bool downloads) {
    Block &body = program.getBody().front();
    std::vector<plan::CommandOpInterface> commands = commandsOf(body);
    auto firstOutput = llvm::find_if(body, [](Operation &op) { return isa<plan::OutputOp>(op); });
    OpBuilder builder(&body, firstOutput);
    Value ready, free;
    if (copyStream) {
      ready = plan::EventOp::create(builder, program.getLoc(), "batch_ready");
      free = plan::EventOp::create(builder, program.getLoc(), "slot_free");
    }
    plan::StreamOp compute = makeStream(builder, program, "compute");
    plan::StreamOp copy = copyStream ? makeStream(builder, program, "copy") : compute;
    llvm::MapVector<StringAttr, plan::StreamOp> others; // by name
    std::vector<plan::StreamOp> streams;                // of each command
    const CommandGraph graph(commands);
    for (plan::CommandOpInterface command : commands) {
      plan::StreamOp stream = isa<plan::UploadOp>(command) ? copy : compute;
      if (auto name = dyn_cast_or_null<StringAttr>(command->removeAttr(kStreamAttr))) {
        plan::StreamOp &other = others[name];
        stream = other = other ? other : makeStream(builder, program, name);
      }
      streams.push_back(stream);
      Block &block = stream.getBody().front();
      command->moveBefore(&block, block.end());
    }
    if (!others.empty())
      orderByEvents(graph, streams, compute);
    if (downloads)
      addDownloads(program, compute);
    if (copyStream)
      addEvents(compute, copy, ready, free);
  }

  /// A buffer that is several outputs is one command here: the plan file has one for each.
  void addDownloads(plan::ProgramOp program, plan::StreamOp compute) {
    OpBuilder end = OpBuilder::atBlockEnd(&compute.getBody().front());
    DenseSet<Value> downloaded;
    for (auto output : program.getBody().getOps<plan::OutputOp>())
      if (downloaded.insert(output.getBuffer()).second)
        plan::DownloadOp::create(end, output.getLoc(), output.getBuffer());
  }

  void addEvents(plan::StreamOp compute, plan::StreamOp copy, Value ready, Value free) {
    Block &computeBlock = compute.getBody().front(), &copyBlock = copy.getBody().front();
    Location location = compute.getLoc();
    OpBuilder copyStart = OpBuilder::atBlockBegin(&copyBlock), copyEnd = OpBuilder::atBlockEnd(&copyBlock);
    plan::WaitOp::create(copyStart, location, free, mostSlots_);
    plan::RecordOp::create(copyEnd, location, ready);

    OpBuilder computeStart = OpBuilder::atBlockBegin(&computeBlock);
    plan::WaitOp::create(computeStart, location, ready, 0);
    OpBuilder behindLastReader(&computeBlock, ++Block::iterator(lastReaderOfInputs(computeBlock)));
    plan::RecordOp::create(behindLastReader, location, free);
  }

  static bool readsInput(plan::CommandOpInterface command) {
    return llvm::any_of(command.getReads(),
                        [](Value read) { return isa<plan::InputOp>(plan::bufferOf(read)); });
  }

  /// The last command that reads an input slot; the wait at the head of the stream if none does.
  Operation *lastReaderOfInputs(Block &stream) {
    Operation *last = &stream.front();
    for (auto command : stream.getOps<plan::CommandOpInterface>())
      if (readsInput(command))
        last = command;
    // What other streams read, and a slot that is an output, must stay as it is until the step ends.
    auto program = stream.getParentOp()->getParentOfType<plan::ProgramOp>();
    for (auto output : program.getBody().getOps<plan::OutputOp>())
      if (isa<plan::InputOp>(plan::bufferOf(output.getBuffer())))
        last = &stream.back();
    for (auto other : program.getBody().getOps<plan::StreamOp>())
      for (auto command : other.getBody().getOps<plan::CommandOpInterface>())
        if (other.getOperation() != stream.getParentOp() && readsInput(command))
          last = &stream.back();
    return last;
  }

  int64_t mostSlots_ = 1; ///< Batches on their way at once, where copies run beside compute.
};

} // namespace
} // namespace gpuc
