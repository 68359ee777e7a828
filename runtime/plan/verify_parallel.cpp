// Parallels: parts that neither wait nor touch what another one writes, and rows that all commands have.
#include <cinttypes>
#include <vector>

#include "runtime/plan/operands.h"
#include "runtime/plan/parts.h"
#include "runtime/plan/verify.h"

namespace gpuc {
namespace {

/// Walks the commands of one parallel. Keeps the counts of the loops around the current one, outermost first.
class PartsCollector {
 public:
  PartsCollector(const fb::Plan& plan, const fb::Parallel& parallel, std::span<const uint64_t> counts)
      : plan_(plan),
        parallel_(parallel),
        parts_({static_cast<int64_t>(parallel.parts()), parallel.by_rows()}),
        counts_(counts.begin(), counts.end()),
        depth_(static_cast<uint32_t>(counts.size())) {
    counts_.push_back(1);  // the parts, which touchOfParts() sees to
  }

  Status add(const Commands* commands) {
    for (const fb::Command* command : each(commands)) GPUC_RETURN_IF_ERROR(add(*command));
    return okStatus();
  }

  Status stayApart() const {
    const auto meeting = findMeetingParts(touches_);
    if (!meeting) return okStatus();
    const auto& [a, b] = *meeting;
    return errorf("the %s of one part may touch the %s of another, which one of the two writes",
                  nameOf(a).c_str(), nameOf(b).c_str());
  }

 private:
  Status add(const fb::Command& command) {
    if (const auto loop = loopOf(command)) {
      if (command.work_as_Parallel()) return errorf("a parallel stands in another");
      counts_.push_back(loop->count);
      GPUC_RETURN_IF_ERROR(add(loop->commands));
      counts_.pop_back();
      return okStatus();
    }
    GPUC_RETURN_IF_ERROR(verifyKind(command));
    for (const CommandOperand& operand : operandsOf(command))
      if (operand.operand) GPUC_RETURN_IF_ERROR(add(operand));
    return okStatus();
  }

  Status verifyKind(const fb::Command& command) const {
    const fb::Copy* copy = command.work_as_Copy();
    if (command.work_as_Record() || command.work_as_Wait() || isCollective(command) ||
        (copy && copy->kind() != fb::CopyKind::device_to_device))
      return errorf("a %s%s stands in it, and its parts wait for nothing", kindOf(command),
                    copy ? " from or to the host" : "");
    if (const uint64_t rows = rowsOf(command); parts_.by_rows && (rows == 0 || rows % parallel_.parts() != 0))
      return errorf("a %s of %" PRIu64 " rows does not fall into its parts", kindOf(command), rows);
    return okStatus();
  }

  Status add(const CommandOperand& added) {
    if (operands_.size() == kMostPartOperands)
      return errorf("its commands have more than %zu operands", kMostPartOperands);
    const fb::Operand& operand = *added.operand;
    const fb::Buffer& buffer = *plan_.buffers()->Get(operand.buffer());
    const auto begin = static_cast<int64_t>(buffer.offset() + operand.offset());
    std::vector<Loop> loops = loopsOf(operand, counts_);
    loops.push_back({static_cast<int64_t>(buffer.slot_stride()), static_cast<int64_t>(plan_.input_slots())});
    touches_.push_back(touchOfParts(parts_, {begin, begin + static_cast<int64_t>(operand.size())}, loops,
                                    strideOf(operand, depth_), added.use.by_rows, isWritten(added.use.role)));
    operands_.push_back(added);
    return okStatus();
  }

  std::string nameOf(size_t touch) const {
    const CommandOperand& named = operands_[touch];
    return named.use.name + (" in buffer " + quoted(plan_.buffers()->Get(named.operand->buffer())->name()));
  }

  const fb::Plan& plan_;
  const fb::Parallel& parallel_;
  Parts parts_;
  std::vector<uint64_t> counts_;
  uint32_t depth_;  // of the parallel
  std::vector<PartTouch> touches_;
  std::vector<CommandOperand> operands_;
};

}  // namespace

Status verifyParallel(const fb::Plan& plan, const fb::Parallel& parallel, std::span<const uint64_t> counts) {
  auto verify = [&]() -> Status {
    if (parallel.parts() < 2 || parallel.parts() > kMostExecutions)
      return errorf("expected 2 to %" PRIu64, kMostExecutions);
    if (!parallel.by_rows() && !counts.empty())
      return errorf("it stands in a repeat, where only one by rows may be");
    PartsCollector collector(plan, parallel, counts);
    GPUC_RETURN_IF_ERROR(collector.add(parallel.commands()));
    return collector.stayApart();
  };
  Status status = verify();
  if (status.ok()) return status;
  return errorf("parallel of %" PRIu64 " %s: %s", parallel.parts(), parallel.by_rows() ? "rows" : "parts",
                status.message().c_str());
}

}  // namespace gpuc
