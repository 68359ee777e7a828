#include "runtime/host/lower.h"

#include <algorithm>

#include "runtime/host/exchange.h"
#include "runtime/host/operand_table.h"
#include "runtime/host/row_parts.h"
#include "runtime/plan/operands.h"

namespace gpuc {
namespace {

/// Entries of the pointer table that a command takes; a copy from or to the host has one for the host's side.
size_t countPointers(const fb::Command& command) {
  return command.work_as_Copy() ? 2 : operandsOf(command).size();
}

/// Those that the commands will take.
size_t countPointers(const Commands* commands) {
  size_t count = 0;
  for (const fb::Command* command : each(commands))
    if (const std::optional<CommandLoop> loop = loopOf(*command))
      count += countPointers(loop->commands);
    else
      count += countPointers(*command);
  return count;
}

/// The host's commands for them, at most: of a loop its own, its end, and perhaps a fork in front of it.
size_t countHostCommands(const Commands* commands) {
  size_t count = countOf(commands);
  for (const fb::Command* command : each(commands))
    if (const std::optional<CommandLoop> loop = loopOf(*command))
      count += 1 + countHostCommands(loop->commands);
  return count;
}

/// What the lists of parallels, one for each part, may take together: a constant, and as much for each byte
/// of the plan's file as reading it does.
constexpr uint64_t kMostListBytes = uint64_t{16} << 20, kListBytesPerByte = 4;

/// A parallel of more is executed part after part.
constexpr uint64_t kMostLists = 64;

class Lowering {
 public:
  Lowering(const Plan& plan, const fb::Program& program, Arena& arena,
           const std::vector<KernelFunction>& kernels, Ranks& ranks, int threads, HostProgram& out)
      : plan_(plan.root()),
        list_bytes_left_(kMostListBytes + kListBytesPerByte * plan.fileBytes()),
        program_(program),
        arena_(arena),
        kernels_(kernels),
        ranks_(ranks),
        threads_(threads),
        out_(out),
        table_(plan.root(), program, arena, out) {}

  Status lower() {
    size_t pointers = 0;
    for (const fb::Stream* stream : each(program_.streams())) pointers += countPointers(stream->commands());
    out_.pointers.resize(pointers);  // commands point into it: it must not move from here on
    out_.events = std::vector<EventCounter>(countOf(program_.events()));
    out_.streams.resize(countOf(program_.streams()));  // nor must these
    table_.reserve(pointers);
    size_t first = 0;
    for (uint32_t i = 0; i < countOf(program_.streams()); ++i) {
      const OperandTable::Section section(table_, out_.streams[i], out_.pointers.data() + first);
      const Commands* commands = program_.streams()->Get(i)->commands();
      out_.streams[i].reserve(countHostCommands(commands) + out_.dead.behind.size());
      GPUC_RETURN_IF_ERROR(lower(commands));
      first += countPointers(commands);
    }
    table_.placeInputs();
    return okStatus();
  }

 private:
  /// The rows of which commands are lowered: all, or one of equal parts.
  struct RowPart {
    int64_t number = 0, count = 1;
  };
  uint64_t rowParts() const { return static_cast<uint64_t>(row_part_.count); }

  Status lower(const Commands* commands) {
    return lowerEach(commands, [&](const fb::Command& command) {
      GPUC_RETURN_IF_ERROR(lower(command));
      poisonBehind(command);
      return okStatus();
    });
  }

  /// Threads that take parts of a parallel side by side are not at the same command: a part's list has
  /// nothing to poison, but its commands at the same places.
  void poisonBehind(const fb::Command& command) {
    static const std::vector<ByteRange> nothing;
    auto found = out_.dead.behind.find(&command);
    if (found == out_.dead.behind.end()) return;
    HostCommand poison{};
    poison.kind = HostCommand::Kind::poison;
    poison.poison = {.arena = &arena_, .dead = table_.isMainStream() ? &found->second : &nothing};
    table_.endCommand(poison);
  }

  Status lower(const fb::Command& command) {
    if (const std::optional<CommandLoop> loop = loopOf(command)) return lowerLoop(command, *loop);
    HostCommand result{};
    result.source = &command;
    result.operands = table_.beginCommand();
    switch (command.work_type()) {
      case fb::Work::Launch:
        lowerLaunch(command, result);
        break;
      case fb::Work::Copy:
        lower(*command.work_as_Copy(), result);
        break;
      case fb::Work::Fill:
        lower(*command.work_as_Fill(), result);
        break;
      case fb::Work::Record:
        result.kind = HostCommand::Kind::record;
        result.record = &out_.events[command.work_as_Record()->event()];
        break;
      case fb::Work::Wait: {
        const fb::Wait& wait = *command.work_as_Wait();
        result.kind = HostCommand::Kind::wait;
        result.wait = {.event = &out_.events[wait.event()], .distance = wait.distance(), .executions = 0};
        break;
      }
      default:
        GPUC_RETURN_IF_ERROR(lowerLibraryCall(command, result));
    }
    table_.endCommand(result);
    return okStatus();
  }

  /// Which of a launch's tiles a part of the rows has tells where it begins.
  void lowerLaunch(const fb::Command& command, HostCommand& result) {
    for (const CommandOperand& operand : operandsOf(command)) table_.add(operand);
    const fb::Launch& launch = *command.work_as_Launch();
    result.kind = HostCommand::Kind::launch;
    const int64_t tiles = static_cast<int64_t>(launch.tiles()) / row_part_.count;
    result.launch = {
        .function = kernels_[launch.kernel()],
        .first_tile = tiles * row_part_.number,
        .tiles = tiles,
        .tile_ns = 10'000 / static_cast<double>(launch.grain()),
    };
  }

  Result<std::unique_ptr<LibraryKernel>> makeKernel(const fb::Command& command) {
    if (std::unique_ptr<LibraryKernel> exchange = makeExchangeKernel(command, plan_.world_size(), ranks_))
      return exchange;
    return makeLibraryKernel(command, kernels_, row_part_.count);
  }

  Status lowerLibraryCall(const fb::Command& command, HostCommand& result) {
    GPUC_ASSIGN_OR_RETURN(std::unique_ptr<LibraryKernel> kernel, makeKernel(command));
    for (const CommandOperand& operand : operandsOf(command)) addRows(operand);
    result.kind = HostCommand::Kind::library;
    result.library = kernel.get();
    out_.library_kernels.push_back(std::move(kernel));
    return okStatus();
  }

  void lower(const fb::Copy& copy, HostCommand& result) {
    result.kind = HostCommand::Kind::copy;
    if (copy.kind() == fb::CopyKind::device_to_device) {
      addRows({copy.from(), kSource});
      addRows({copy.to(), kDestination});
      result.copy = {.bytes = copy.from()->size() / rowParts(), .of_read_input = false};
    } else if (copy.kind() == fb::CopyKind::host_to_device) {
      table_.addInput(copy.from(), copy.port());
      table_.add({copy.to(), kDestination});
      result.copy = {.bytes = copy.to()->size(), .of_read_input = false};
    } else {
      table_.add({copy.from(), kSource});
      table_.addOutput(copy.to(), copy.port());
      result.copy = {.bytes = copy.from()->size(), .of_read_input = false};
    }
  }

  void lower(const fb::Fill& fill, HostCommand& result) {
    addRows({fill.to(), kDestination});
    result.kind = HostCommand::Kind::fill;
    result.fill = lowerFill(fill, rowParts());
  }

  /// The loop, and in front of it the lists of its parts, if it has parts that threads may take side by side.
  Status lowerLoop(const fb::Command& command, const CommandLoop& loop) {
    const fb::Parallel* parallel = command.work_as_Parallel();
    const uint64_t lists = parallel ? listsOf(*parallel) : 1;
    if (lists == 1) return lowerCommandsOf(command, loop);
    list_bytes_left_ -= listBytes(loop.commands) * lists;
    const size_t place = table_.list().size();
    HostCommand fork{};
    fork.kind = HostCommand::Kind::fork;
    fork.source = &command;
    table_.endCommand(fork);
    GPUC_RETURN_IF_ERROR(lowerCommandsOf(command, loop));
    GPUC_RETURN_IF_ERROR(lowerParts(*parallel, lists));
    table_.list()[place].fork = {.lists = &out_.part_lists.back(),
                                 .last = static_cast<uint32_t>(table_.list().size() - 1),
                                 .by_rows = parallel->by_rows()};
    return okStatus();
  }

  /// Into how many parts a parallel falls here; 1: it is executed as a loop.
  uint64_t listsOf(const fb::Parallel& parallel) const {
    if (threads_ < 2 || !table_.isMainStream()) return 1;
    const uint64_t most = list_bytes_left_ / listBytes(parallel.commands());
    if (parallel.by_rows())
      return rowPartsOf(parallel, std::min<uint64_t>(static_cast<uint64_t>(threads_), most));
    return parallel.parts() <= std::min(most, kMostLists) ? parallel.parts() : 1;
  }

  /// What one more list of these commands takes.
  static uint64_t listBytes(const Commands* commands) {
    return (2 + countHostCommands(commands)) * sizeof(HostCommand) +
           countPointers(commands) * OperandTable::kBytesPerOperand;
  }

  /// The commands of each part as a list of its own, whose operands lie where that part's do.
  Status lowerParts(const fb::Parallel& parallel, uint64_t count) {
    std::vector<std::vector<HostCommand>>& lists = out_.part_lists.emplace_back(count);
    table_.enterRepeat(count, nullptr);
    for (size_t part = 0; part < count; ++part) {
      if (parallel.by_rows())
        row_part_ = {.number = static_cast<int64_t>(part), .count = static_cast<int64_t>(count)};
      else
        table_.setIteration(part);
      lists[part].reserve(countHostCommands(parallel.commands()));
      void** entries = out_.part_pointers.emplace_back(countPointers(parallel.commands())).data();
      const OperandTable::Section section(table_, lists[part], entries);
      GPUC_RETURN_IF_ERROR(lower(parallel.commands()));
    }
    row_part_ = {};
    table_.setIteration(0);
    table_.leaveRepeat();
    return okStatus();
  }

  /// The repeated commands, then one that jumps back to them. Operands that move are noted on the way, for
  /// each loop.
  Status lowerCommandsOf(const fb::Command& command, const CommandLoop& loop) {
    std::vector<MovingPointer>& moving = out_.moving.emplace_back();
    const uint32_t first = static_cast<uint32_t>(table_.list().size());
    table_.enterRepeat(loop.count, &moving);
    GPUC_RETURN_IF_ERROR(lower(loop.commands));
    table_.leaveRepeat();
    if (loop.count == 1) return okStatus();
    HostCommand end{};
    end.kind = HostCommand::Kind::repeat;
    end.source = &command;
    end.repeat = {.count = loop.count, .iteration = 0, .first = first, .moving = &moving};
    table_.endCommand(end);
    return okStatus();
  }

  /// The next operand, of which a part of the rows may have its part alone.
  void addRows(const CommandOperand& added) {
    const bool is_part = added.operand && added.use.by_rows;
    table_.add(added,
               is_part ? added.operand->size() / rowParts() * static_cast<uint64_t>(row_part_.number) : 0);
  }

  const fb::Plan& plan_;
  uint64_t list_bytes_left_;
  const fb::Program& program_;
  Arena& arena_;
  const std::vector<KernelFunction>& kernels_;
  Ranks& ranks_;
  int threads_;
  HostProgram& out_;
  OperandTable table_;
  RowPart row_part_;
};

}  // namespace

Result<std::unique_ptr<HostProgram>> lowerProgram(const Plan& plan, size_t program, Arena& arena,
                                                  const std::vector<KernelFunction>& kernels, Ranks& ranks,
                                                  int threads, bool check_memory) {
  auto result = std::make_unique<HostProgram>();
  const fb::Program& source = *plan.root().programs()->Get(static_cast<uint32_t>(program));
  if (check_memory) result->dead = deadBytesOf(plan.root(), source);
  GPUC_RETURN_IF_ERROR(Lowering(plan, source, arena, kernels, ranks, threads, *result).lower());
  for (const StagingMemory& staging : result->staging)
    if (!staging.data()) return errorf("no memory for an output of %zu bytes", staging.size());
  return result;
}

}  // namespace gpuc
