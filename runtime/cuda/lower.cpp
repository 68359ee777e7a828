#include <algorithm>

#include "runtime/cuda/command.h"
#include "runtime/cuda/exchange.h"
#include "runtime/plan/access.h"
#include "runtime/plan/header.h"
#include "runtime/plan/operands.h"
#include "runtime/plan/pinned_bytes.h"

namespace gpuc::cuda {
namespace {

/// What must be set aside before commands can point to it.
struct Counts {
  size_t addresses = 0;
  uint64_t longest_distance = 0;  // of a wait behind its record

  void add(const Commands* commands) {
    for (const fb::Command* command : each(commands)) {
      addresses +=
          command->work_as_Copy() ? 2 : operandsOf(*command).size();  // of copies the host's side, too
      if (const fb::Wait* wait = command->work_as_Wait())
        longest_distance = std::max<uint64_t>(longest_distance, wait->distance());
      else if (const std::optional<CommandLoop> loop = loopOf(*command))
        add(loop->commands);
    }
  }
};

CUdeviceptr asEntry(const void* host) { return reinterpret_cast<CUdeviceptr>(host); }

class Lowering {
 public:
  Lowering(const fb::Plan& plan, const fb::Program& program, std::byte* pinned,
           const LoweringContext& context, CudaProgram& out)
      : plan_(plan), program_(program), pinned_(pinned), context_(context), out_(out) {}

  Status lower() {
    Counts counts;
    for (const fb::Stream* stream : each(program_.streams())) counts.add(stream->commands());
    out_.addresses.resize(counts.addresses, 0);
    for (CUdeviceptr& address : out_.addresses) out_.parameters.push_back(&address);
    GPUC_RETURN_IF_ERROR(createEvents(counts.longest_distance));
    placePorts();
    for (const fb::Stream* stream : each(program_.streams())) {
      stream_ = &out_.streams.emplace_back();
      exchange_ = {};
      GPUC_RETURN_IF_ERROR(lower(stream->commands()));
    }
    placeDirectInputs();
    if (!plan_.no_graphs()) markGraphs(out_);
    return createStagingEvents();
  }

 private:
  struct OpenRepeat {
    std::vector<MovingAddress>* moving;
    uint64_t count;
  };

  /// Of the arena, in the first slot and iterations.
  struct ByteRange {
    uint64_t begin, end;
  };
  static bool doOverlap(const ByteRange& a, const ByteRange& b) { return a.begin < b.end && b.begin < a.end; }

  /// The exchanges between ranks that were lowered last, as long as nothing stands behind them.
  struct Exchange {
    ExchangeCall* call = nullptr;
    std::vector<ByteRange> read, written;

    bool isIndependentOf(const ByteRange& other, Role role) const {
      auto meets = [&](const std::vector<ByteRange>& ranges) {
        return std::any_of(ranges.begin(), ranges.end(),
                           [&](const ByteRange& range) { return doOverlap(range, other); });
      };
      return !meets(written) && !(isWritten(role) && meets(read));
    }
  };

  ByteRange bytesOf(const fb::Operand& operand) const {
    const uint64_t begin = bufferOf(operand.buffer()).offset() + operand.offset();
    return {begin, begin + operand.size()};
  }

  /// From slot to slot, or from one iteration to another.
  bool doesMove(const fb::Operand& operand) const {
    bool moves = slotStride(bufferOf(operand.buffer())) != 0;
    for (uint32_t d = 0; d < repeats_.size(); ++d) moves |= strideOf(operand, d) != 0;
    return moves;
  }

  const fb::Buffer& bufferOf(uint32_t index) const { return *plan_.buffers()->Get(index); }

  uint64_t slotStride(const fb::Buffer& buffer) const { return slotStrideOf(plan_, buffer); }

  Status createEvents(uint64_t longest_distance) {
    out_.events.resize(countOf(program_.events()));
    for (EventRing& event : out_.events)
      for (uint64_t i = 0; i < longest_distance + 2; ++i) {
        GPUC_ASSIGN_OR_RETURN(Event entry, createEvent(context_.driver));
        event.ring.push_back(std::move(entry));
      }
    return okStatus();
  }

  void placePorts() {
    for (const fb::Input* input : each(program_.inputs())) {
      uint64_t bytes = bufferOf(input->buffer()).size(), stride = pinnedTensorBytes(bytes);
      out_.inputs.push_back({pinned_, stride, bytes});
      pinned_ += stride * plan_.input_slots();
    }
    copied_inputs_.resize(out_.inputs.size(), false);
    for (const fb::Output* output : each(program_.outputs())) {
      const fb::Buffer& buffer = bufferOf(output->buffer());
      out_.outputs.push_back({context_.arena + buffer.offset(), slotStride(buffer), buffer.size(), pinned_});
      pinned_ += pinnedTensorBytes(buffer.size());
    }
  }

  void placeDirectInputs() {
    for (uint32_t port = 0; port < copied_inputs_.size(); ++port) {
      if (copied_inputs_[port]) continue;
      const fb::Buffer& buffer = bufferOf(program_.inputs()->Get(port)->buffer());
      out_.direct_inputs.push_back({port, context_.arena + buffer.offset(), slotStride(buffer)});
    }
  }

  /// Direct inputs are read by the first stream.
  Status createStagingEvents() {
    if (!out_.direct_inputs.empty() && !out_.streams.empty()) out_.streams.front().uploads = true;
    out_.staging_read.resize(plan_.input_slots());
    for (std::vector<Event>& slot : out_.staging_read)
      for (const StreamCommands& stream : out_.streams) {
        if (!stream.uploads) {
          slot.emplace_back();
          continue;
        }
        GPUC_ASSIGN_OR_RETURN(Event event, createEvent(context_.driver));
        slot.push_back(std::move(event));
      }
    return okStatus();
  }

  Status lower(const Commands* commands) {
    return lowerEach(commands, [&](const fb::Command& command) { return lower(command); });
  }

  Status lower(const fb::Command& command) {
    if (const std::optional<CommandLoop> loop = loopOf(command)) return lowerLoop(*loop);
    if (isCollective(command)) return lowerExchange(command);
    exchange_ = {};
    CudaCommand result{};
    result.operands = out_.addresses.data() + used_addresses_;
    switch (command.work_type()) {
      case fb::Work::Launch:
        lowerLaunch(command, result);
        break;
      case fb::Work::Copy:
        GPUC_RETURN_IF_ERROR(lower(*command.work_as_Copy(), result));
        break;
      case fb::Work::Fill:
        lower(*command.work_as_Fill(), result);
        break;
      case fb::Work::Record:
        result.kind = CudaCommand::Kind::record;
        result.record = &out_.events[command.work_as_Record()->event()];
        break;
      case fb::Work::Wait: {
        const fb::Wait& wait = *command.work_as_Wait();
        result.kind = CudaCommand::Kind::wait;
        result.wait = {.event = &out_.events[wait.event()], .distance = wait.distance(), .executions = 0};
        break;
      }
      default:
        GPUC_RETURN_IF_ERROR(lowerLibraryCall(command, result));
    }
    stream_->commands.push_back(result);
    return okStatus();
  }

  void lowerLaunch(const fb::Command& command, CudaCommand& result) {
    const fb::Launch& launch = *command.work_as_Launch();
    result.kind = CudaCommand::Kind::launch;
    result.launch = {.function = context_.kernels[launch.kernel()],
                     .parameters = out_.parameters.data() + used_addresses_,
                     .grid = launch.grid(),
                     .block = launch.block()};
    for (const auto& [operand, use] : operandsOf(command)) addOperand(operand);
  }

  Status lowerLibraryCall(const fb::Command& command, CudaCommand& result) {
    const std::vector<CommandOperand> operands = operandsOf(command);
    const uint32_t alignment = addAligned(operands);
    GPUC_ASSIGN_OR_RETURN(std::unique_ptr<LibraryCall> call,
                          context_.libraries.prepare(command, out_.streams.size() - 1, alignment));
    result.kind = CudaCommand::Kind::library;
    result.library = call.get();
    LibraryCall& prepared = *out_.library_calls.emplace_back(std::move(call));
    return prepared.mustBeBound() ? bind(prepared, operands, result.operands) : okStatus();
  }

  /// The next operands; by how much all of their addresses are aligned.
  uint32_t addAligned(const std::vector<CommandOperand>& operands) {
    uint64_t alignment = kBufferAlignment;
    for (const auto& [operand, use] : operands) {
      alignment = std::min(alignment, alignmentOf(operand));
      addOperand(operand);
    }
    return static_cast<uint32_t>(alignment);
  }

  /// Binds whatever addresses the command will see: in each slot, in each iteration of the repeats around it.
  /// `first`: those of the first slot and iterations.
  Status bind(LibraryCall& call, const std::vector<CommandOperand>& operands, const CUdeviceptr* first) {
    // The loops in which an operand moves, and by how much: the slots, then the repeats from the outermost.
    struct Loop {
      uint64_t count;
      std::vector<uint64_t> strides;  // of each operand
    };
    std::vector<Loop> loops;
    auto add = [&](uint64_t count, auto strideOfOperand) {
      Loop loop{count, std::vector<uint64_t>(operands.size())};
      for (size_t i = 0; i < operands.size(); ++i)
        if (const fb::Operand* operand = operands[i].operand)
          loop.strides[i] = static_cast<uint64_t>(strideOfOperand(*operand));
      const bool moves = std::any_of(loop.strides.begin(), loop.strides.end(), [](uint64_t s) { return s; });
      if (moves) loops.push_back(std::move(loop));
    };
    add(plan_.input_slots(),
        [&](const fb::Operand& operand) { return slotStride(bufferOf(operand.buffer())); });
    for (uint32_t d = 0; d < repeats_.size(); ++d)
      add(repeats_[d].count, [&](const fb::Operand& operand) { return strideOf(operand, d); });

    uint64_t combinations = 1;
    for (const Loop& loop : loops) combinations *= loop.count;
    for (uint64_t number = 0; number < combinations; ++number) {
      std::vector<CUdeviceptr> now(first, first + operands.size());
      uint64_t rest = number;
      for (const Loop& loop : loops) {
        for (size_t i = 0; i < now.size(); ++i) now[i] += rest % loop.count * loop.strides[i];
        rest /= loop.count;
      }
      GPUC_RETURN_IF_ERROR(call.bind(now.data()));
    }
    return okStatus();
  }

  /// An exchange between ranks that needs nothing of those right before it goes with them.
  Status lowerExchange(const fb::Command& command) {
    const std::vector<CommandOperand> operands = operandsOf(command);
    if (!context_.libraries.ranks()) return lowerAlone(operands);
    const bool moves = std::any_of(operands.begin(), operands.end(),
                                   [&](const CommandOperand& each) { return doesMove(*each.operand); });
    if (!exchange_.call || moves || !isIndependent(operands)) beginExchange();
    exchange_.call->append(rankExchangeOf(command, plan_.world_size()));
    for (const auto& [operand, use] : operands) {
      (isWritten(use.role) ? exchange_.written : exchange_.read).push_back(bytesOf(*operand));
      addOperand(operand);
    }
    if (moves) exchange_ = {};
    return okStatus();
  }

  /// Of the exchanges right before.
  bool isIndependent(const std::vector<CommandOperand>& operands) const {
    return std::all_of(operands.begin(), operands.end(), [&](const CommandOperand& each) {
      return exchange_.isIndependentOf(bytesOf(*each.operand), each.use.role);
    });
  }

  void beginExchange() {
    auto call = std::make_unique<ExchangeCall>(*context_.libraries.ranks());
    CudaCommand command{};
    command.operands = out_.addresses.data() + used_addresses_;
    command.kind = CudaCommand::Kind::exchange;
    command.library = call.get();
    stream_->commands.push_back(command);
    exchange_ = {.call = call.get(), .read = {}, .written = {}};
    out_.library_calls.push_back(std::move(call));
  }

  /// Where there is no other rank: what is read of each piece is what is written.
  Status lowerAlone(const std::vector<CommandOperand>& operands) {
    const size_t pieces = operands.size() / 2;
    for (size_t piece = 0; piece < pieces; ++piece)
      GPUC_RETURN_IF_ERROR(copyAlone(*operands[piece].operand, *operands[pieces + piece].operand));
    return okStatus();
  }

  Status copyAlone(const fb::Operand& from, const fb::Operand& to) {
    CudaCommand result{};
    result.operands = out_.addresses.data() + used_addresses_;
    addOperand(&from);
    addOperand(&to);
    if (bytesOf(from).begin == bytesOf(to).begin) return okStatus();
    GPUC_RETURN_IF_ERROR(checkApart(from, to));
    result.kind = CudaCommand::Kind::copy;
    result.copy = {.bytes = from.size()};
    stream_->commands.push_back(result);
    return okStatus();
  }

  Status lower(const fb::Copy& copy, CudaCommand& result) {
    if (copy.kind() == fb::CopyKind::device_to_device) {
      GPUC_RETURN_IF_ERROR(checkApart(*copy.from(), *copy.to()));
      addOperand(copy.from());
      addOperand(copy.to());
      result.kind = CudaCommand::Kind::copy;
      result.copy = {.bytes = copy.from()->size()};
    } else if (copy.kind() == fb::CopyKind::host_to_device) {
      const CudaProgram::Staging& staging = out_.inputs[copy.port()];
      copied_inputs_[copy.port()] = true;
      stream_->uploads = true;
      addHostOperand(copy.from(), staging.data, staging.slot_stride);
      addOperand(copy.to());
      result.kind = CudaCommand::Kind::upload;
      result.copy = {.bytes = copy.to()->size()};
    } else {
      CudaProgram::Output& output = out_.outputs[copy.port()];
      output.downloaded = true;
      addOperand(copy.from());
      addHostOperand(copy.to(), output.staging, 0);
      result.kind = CudaCommand::Kind::download;
      result.copy = {.bytes = copy.from()->size()};
    }
    return okStatus();
  }

  /// The host moves bytes within a buffer as memmove does; CUDA's copies may not overlap.
  Status checkApart(const fb::Operand& from, const fb::Operand& to) const {
    if (doOverlap(bytesOf(from), bytesOf(to)))
      return Status::error("a copy within '" + std::string(textOf(bufferOf(from.buffer()).name())) +
                           "' overlaps itself, which CUDA cannot do");
    return okStatus();
  }

  void lower(const fb::Fill& fill, CudaCommand& result) {
    addOperand(fill.to());
    result.kind = CudaCommand::Kind::fill;
    result.fill = lowerFill(fill);
  }

  /// The repeated commands, then one that jumps back to them. Addresses that move are noted on the way, for
  /// each repeat.
  Status lowerLoop(const CommandLoop& loop) {
    exchange_ = {};
    std::vector<MovingAddress>& moving = out_.moving.emplace_back();
    repeats_.push_back({&moving, loop.count});
    size_t first = stream_->commands.size();
    GPUC_RETURN_IF_ERROR(lower(loop.commands));
    repeats_.pop_back();
    exchange_ = {};
    CudaCommand end{};
    end.kind = CudaCommand::Kind::repeat;
    end.repeat = {.count = loop.count, .iteration = 0, .first = first, .moving = &moving};
    stream_->commands.push_back(end);
    return okStatus();
  }

  void noteStrides(CUdeviceptr* entry, const fb::Operand& operand) {
    for (uint32_t d = 0; d < repeats_.size(); ++d)
      if (int64_t stride = strideOf(operand, d)) repeats_[d].moving->push_back({entry, stride});
  }

  /// The next entry of the address table: an address in the arena, or 0 where there is no operand.
  void addOperand(const fb::Operand* operand) {
    CUdeviceptr* entry = &out_.addresses[used_addresses_++];
    if (!operand) return;
    const fb::Buffer& buffer = bufferOf(operand->buffer());
    *entry = context_.arena + buffer.offset() + operand->offset();
    if (slotStride(buffer) != 0) out_.slot_addresses.push_back({entry, *entry, slotStride(buffer)});
    noteStrides(entry, *operand);
  }

  /// The next entry, in the pinned image of an input or output that begins at `image`.
  void addHostOperand(const fb::Operand* operand, std::byte* image, uint64_t slot_stride) {
    CUdeviceptr* entry = &out_.addresses[used_addresses_++];
    *entry = asEntry(image) + (operand ? operand->offset() : 0);
    if (slot_stride != 0) out_.slot_addresses.push_back({entry, *entry, slot_stride});
    if (operand) noteStrides(entry, *operand);
  }

  /// Of every address that the operand has, as far as matmul algorithms care; it follows from the plan alone.
  uint64_t alignmentOf(const fb::Operand* operand) const {
    if (!operand) return kBufferAlignment;
    const fb::Buffer& buffer = bufferOf(operand->buffer());
    uint64_t bits = kBufferAlignment | buffer.offset() | operand->offset() | slotStride(buffer);
    for (uint32_t d = 0; d < repeats_.size(); ++d) bits |= static_cast<uint64_t>(strideOf(*operand, d));
    return bits & (~bits + 1);
  }

  const fb::Plan& plan_;
  const fb::Program& program_;
  std::byte* pinned_;  // what is left of the program's pinned memory
  const LoweringContext& context_;
  CudaProgram& out_;
  StreamCommands* stream_ = nullptr;
  std::vector<OpenRepeat> repeats_;  // around the current command, outermost first
  Exchange exchange_;
  std::vector<bool> copied_inputs_;
  size_t used_addresses_ = 0;
};

}  // namespace

Result<std::unique_ptr<CudaProgram>> lowerProgram(const fb::Plan& plan, const fb::Program& program,
                                                  std::byte* pinned, const LoweringContext& context) {
  auto result = std::make_unique<CudaProgram>();
  GPUC_RETURN_IF_ERROR(Lowering(plan, program, pinned, context, *result).lower());
  return result;
}

}  // namespace gpuc::cuda
