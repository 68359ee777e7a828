#include "runtime/host/lower.h"

#include <algorithm>
#include <cstring>

#include "runtime/host/bands.h"
#include "runtime/host/iterations.h"
#include "runtime/host/operand_table.h"
#include "runtime/plan/operands.h"

namespace gpuc {
namespace {

using Commands = flatbuffers::Vector<flatbuffers::Offset<fb::Command>>;

/// Entries of the pointer table that a command takes; a copy from or to the host has one for the host's side.
size_t countPointers(const fb::Command& command) {
  return command.work_as_Copy() ? 2 : operandsOf(command).size();
}

/// Those that the commands will take.
size_t countPointers(const Commands* commands) {
  size_t count = 0;
  for (const fb::Command* command : each(commands))
    if (const fb::Repeat* repeat = command->work_as_Repeat())
      count += countPointers(repeat->commands());
    else
      count += countPointers(*command);
  return count;
}

/// The host's commands for them: of a repeat its own, its end, and perhaps a fork in front of it.
size_t countHostCommands(const Commands* commands) {
  size_t count = countOf(commands);
  for (const fb::Command* command : each(commands))
    if (const fb::Repeat* repeat = command->work_as_Repeat())
      count += 1 + countHostCommands(repeat->commands());
  return count;
}

/// What lists of a repeat's own, one for each band or iteration, may take together: a constant, and as much
/// for each byte of the plan's file as reading it does.
constexpr uint64_t kMostListBytes = uint64_t{16} << 20, kListBytesPerByte = 4;

uint64_t repeatedElement(const fb::Fill& fill) {
  uint8_t bytes[8] = {};
  uint32_t element = countOf(fill.pattern());
  for (uint32_t i = 0; element != 0 && i < sizeof(bytes); ++i) bytes[i] = fill.pattern()->Get(i % element);
  uint64_t pattern;
  std::memcpy(&pattern, bytes, sizeof(pattern));
  return pattern;
}

class Lowering {
 public:
  Lowering(const Plan& plan, const fb::Program& program, const Arena& arena,
           const std::vector<KernelFunction>& kernels, int threads, HostProgram& out)
      : plan_(plan.root()),
        list_bytes_left_(kMostListBytes + kListBytesPerByte * plan.fileBytes()),
        program_(program),
        kernels_(kernels),
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
      out_.streams[i].reserve(countHostCommands(commands));
      GPUC_RETURN_IF_ERROR(lower(commands));
      first += countPointers(commands);
    }
    table_.placeInputs();
    return okStatus();
  }

 private:
  /// The rows of which commands are lowered: all, or one of the bands of a repeat.
  struct Band {
    int64_t number = 0, count = 1;
  };
  uint64_t bands() const { return static_cast<uint64_t>(band_.count); }

  Status lower(const Commands* commands) {
    for (const fb::Command* command : each(commands)) {
      Status status = lower(*command);
      if (status.ok()) continue;
      std::string location(textOf(command->location()));
      return location.empty() ? status : Status::error(status.message() + " (" + location + ")");
    }
    return okStatus();
  }

  Status lower(const fb::Command& command) {
    if (command.work_type() == fb::Work::Repeat) return lowerRepeat(command);
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
        result.record = {.event = &out_.events[command.work_as_Record()->event()]};
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

  /// Which of a launch's tiles a band has tells where it begins.
  void lowerLaunch(const fb::Command& command, HostCommand& result) {
    for (const CommandOperand& operand : operandsOf(command)) table_.add(operand);
    const fb::Launch& launch = *command.work_as_Launch();
    result.kind = HostCommand::Kind::launch;
    const int64_t tiles = static_cast<int64_t>(launch.tiles()) / band_.count;
    result.launch = {
        .function = kernels_[launch.kernel()],
        .first_tile = tiles * band_.number,
        .tiles = tiles,
        .tile_ns = 10'000 / static_cast<double>(launch.grain()),
    };
  }

  Status lowerLibraryCall(const fb::Command& command, HostCommand& result) {
    GPUC_ASSIGN_OR_RETURN(std::unique_ptr<LibraryKernel> kernel, makeLibraryKernel(command, band_.count));
    for (const CommandOperand& operand : operandsOf(command)) addRows(operand);
    result.kind = HostCommand::Kind::library;
    result.library = {.kernel = kernel.get()};
    out_.library_kernels.push_back(std::move(kernel));
    return okStatus();
  }

  void lower(const fb::Copy& copy, HostCommand& result) {
    result.kind = HostCommand::Kind::copy;
    if (copy.kind() == fb::CopyKind::device_to_device) {
      addRows({copy.from(), kSource});
      addRows({copy.to(), kDestination});
      result.copy = {.bytes = copy.from()->size() / bands(), .of_read_input = false};
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
    result.fill = {.bytes = fill.to()->size() / bands(),
                   .pattern = repeatedElement(fill),
                   .element_bytes = std::max<uint32_t>(1, countOf(fill.pattern()))};
  }

  /// The repeat, and in front of it its bands or iterations, if threads may take such side by side.
  Status lowerRepeat(const fb::Command& command) {
    const fb::Repeat& repeat = *command.work_as_Repeat();
    // Neither another stream's, nor within a band, nor within a repeat that has bands.
    const bool may_be_cut = threads_ > 1 && table_.isMainStream() && !is_forked_;
    if (!may_be_cut) return lowerCommandsOf(command);
    const uint64_t most_lists = list_bytes_left_ / std::max<uint64_t>(1, listBytes(repeat));
    const int most_bands = static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(threads_), most_lists));
    const int bands = bandsOf(plan_, repeat, table_.repeatCounts(), most_bands);
    const bool by_iterations = bands == 1 && table_.repeatCounts().empty() && repeat.count() <= most_lists &&
                               areIndependent(plan_, repeat);
    if (bands == 1 && !by_iterations) return lowerCommandsOf(command);
    list_bytes_left_ -= listBytes(repeat) * (by_iterations ? repeat.count() : static_cast<uint64_t>(bands));
    const size_t place = table_.list().size();
    HostCommand fork{};
    fork.kind = HostCommand::Kind::bands;
    fork.source = &command;
    table_.endCommand(fork);
    is_forked_ = true;
    GPUC_RETURN_IF_ERROR(lowerCommandsOf(command));
    is_forked_ = false;
    GPUC_RETURN_IF_ERROR(by_iterations ? lowerIterations(repeat) : lowerBands(command, bands));
    table_.list()[place].bands = {.lists = &out_.bands.back(),
                                  .last = static_cast<uint32_t>(table_.list().size() - 1),
                                  .by_iterations = by_iterations};
    return okStatus();
  }

  /// What one more list of the repeat's commands takes.
  static uint64_t listBytes(const fb::Repeat& repeat) {
    return (2 + countHostCommands(repeat.commands())) * sizeof(HostCommand) +
           countPointers(repeat.commands()) * OperandTable::kBytesPerOperand;
  }

  /// Entries for another list of the repeat's commands.
  void** newEntries(const fb::Repeat& repeat) {
    return out_.band_pointers.emplace_back(countPointers(repeat.commands())).data();
  }

  /// The repeat once for each band of rows.
  Status lowerBands(const fb::Command& command, int count) {
    std::vector<std::vector<HostCommand>>& lists = out_.bands.emplace_back(static_cast<size_t>(count));
    for (int band = 0; band < count; ++band) {
      band_ = {.number = band, .count = count};
      lists[static_cast<size_t>(band)].reserve(1 + countHostCommands(command.work_as_Repeat()->commands()));
      const OperandTable::Section section(table_, lists[static_cast<size_t>(band)],
                                          newEntries(*command.work_as_Repeat()));
      GPUC_RETURN_IF_ERROR(lowerCommandsOf(command));
    }
    band_ = {};
    return okStatus();
  }

  /// The commands of each iteration as a list of its own, whose operands lie where that iteration's do.
  Status lowerIterations(const fb::Repeat& repeat) {
    std::vector<std::vector<HostCommand>>& lists = out_.bands.emplace_back(repeat.count());
    table_.enterRepeat(repeat.count(), nullptr);
    for (size_t iteration = 0; iteration < lists.size(); ++iteration) {
      table_.setIteration(iteration);
      lists[iteration].reserve(countHostCommands(repeat.commands()));
      const OperandTable::Section section(table_, lists[iteration], newEntries(repeat));
      GPUC_RETURN_IF_ERROR(lower(repeat.commands()));
    }
    table_.setIteration(0);
    table_.leaveRepeat();
    return okStatus();
  }

  /// The repeated commands, then one that jumps back to them. Operands that move are noted on the way, for
  /// each repeat.
  Status lowerCommandsOf(const fb::Command& command) {
    const fb::Repeat& repeat = *command.work_as_Repeat();
    std::vector<MovingPointer>& moving = out_.moving.emplace_back();
    const uint32_t first = static_cast<uint32_t>(table_.list().size());
    table_.enterRepeat(repeat.count(), &moving);
    GPUC_RETURN_IF_ERROR(lower(repeat.commands()));
    table_.leaveRepeat();
    HostCommand end{};
    end.kind = HostCommand::Kind::repeat;
    end.source = &command;
    end.repeat = {.count = repeat.count(), .iteration = 0, .first = first, .moving = &moving};
    table_.endCommand(end);
    return okStatus();
  }

  /// The next operand, of which a band may have its part alone.
  void addRows(const CommandOperand& added) {
    const bool is_part = added.operand && added.use.by_rows;
    table_.add(added, is_part ? added.operand->size() / bands() * static_cast<uint64_t>(band_.number) : 0);
  }

  const fb::Plan& plan_;
  uint64_t list_bytes_left_;
  const fb::Program& program_;
  const std::vector<KernelFunction>& kernels_;
  int threads_;
  HostProgram& out_;
  OperandTable table_;
  Band band_;
  bool is_forked_ = false;  // a repeat around the current command, of which there are other lists
};

}  // namespace

Result<std::unique_ptr<HostProgram>> lowerProgram(const Plan& plan, size_t program, const Arena& arena,
                                                  const std::vector<KernelFunction>& kernels, int threads) {
  auto result = std::make_unique<HostProgram>();
  const fb::Program& source = *plan.root().programs()->Get(static_cast<uint32_t>(program));
  GPUC_RETURN_IF_ERROR(Lowering(plan, source, arena, kernels, threads, *result).lower());
  for (const StagingMemory& staging : result->staging)
    if (!staging.data()) return errorf("no memory for an output of %zu bytes", staging.size());
  return result;
}

}  // namespace gpuc
