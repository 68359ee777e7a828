#include "runtime/plan/contents.h"

#include <algorithm>
#include <cinttypes>
#include <iterator>
#include <map>
#include <span>
#include <string>

#include "runtime/plan/lifetimes.h"
#include "runtime/plan/operands.h"
#include "runtime/plan/verify.h"

namespace gpuc {
namespace {

/// Operands that are looked at in all programs together; a second or two.
constexpr int64_t kMostTouches = int64_t{1} << 22;

/// Of bytes that nothing in this run has written.
constexpr uint32_t kNobody = ~uint32_t{0};

/// Which buffer each byte of the arena was last written as.
class Owners {
 public:
  void write(ByteRange bytes, uint32_t buffer) {
    if (bytes.begin >= bytes.end) return;
    const uint32_t behind = std::prev(owners_.upper_bound(bytes.end))->second;
    owners_.erase(owners_.lower_bound(bytes.begin), owners_.upper_bound(bytes.end));
    owners_[bytes.begin] = buffer;
    owners_[bytes.end] = behind;
  }

  /// Somebody else who has a part of the bytes, or nobody; the buffer itself if it has all.
  uint32_t otherThan(uint32_t buffer, ByteRange bytes) const {
    for (auto at = std::prev(owners_.upper_bound(bytes.begin)); at != owners_.end() && at->first < bytes.end;
         ++at)
      if (at->second != buffer) return at->second;
    return buffer;
  }

 private:
  std::map<int64_t, uint32_t> owners_ = {{0, kNobody}};  // from this byte on, up to the next
};

class Play {
 public:
  Play(const fb::Plan& plan, const fb::Program& program, int64_t& touches_left)
      : plan_(plan), program_(program), touches_left_(touches_left), unseen_(countOf(plan.buffers()), false) {
    const ProgramLifetimes lifetimes = lifetimesOf(plan, program);
    for (uint32_t buffer : lifetimes.written_elsewhere) unseen_[buffer] = true;
    for (uint32_t buffer : lifetimes.lasting)
      if (!unseen_[buffer]) owners_.write(bytesOf(plan, buffer), buffer);
  }

  Status run() {
    if (countOf(program_.streams()) == 0) return okStatus();
    GPUC_RETURN_IF_ERROR(play(program_.streams()->Get(0)->commands()));
    if (touches_left_ < 0) return okStatus();
    for (const fb::Output* output : each(program_.outputs()))
      GPUC_RETURN_IF_ERROR(checkEnd("output", textOf(output->name()), output->buffer()));
    for (const fb::Variable* variable : each(plan_.variables()))
      GPUC_RETURN_IF_ERROR(checkEnd("variable", textOf(variable->name()), variable->buffer()));
    for (const fb::Constant* constant : each(plan_.constants()))
      GPUC_RETURN_IF_ERROR(
          checkEnd("constant", textOf(bufferOf(constant->buffer()).name()), constant->buffer()));
    return okStatus();
  }

 private:
  const fb::Buffer& bufferOf(uint32_t index) const { return *plan_.buffers()->Get(index); }

  Status play(const Commands* commands) {
    for (const fb::Command* command : each(commands)) {
      if (touches_left_ < 0) return okStatus();
      const std::optional<CommandLoop> loop = loopOf(*command);
      GPUC_RETURN_IF_ERROR(loop ? playLoop(*loop) : execute(*command));
    }
    return okStatus();
  }

  Status playLoop(const CommandLoop& loop) {
    iterations_.push_back(0);
    for (; iterations_.back() < static_cast<int64_t>(loop.count) && touches_left_ >= 0;
         ++iterations_.back()) {
      --touches_left_;
      GPUC_RETURN_IF_ERROR(play(loop.commands));
    }
    iterations_.pop_back();
    return okStatus();
  }

  Status execute(const fb::Command& command) {
    std::vector<CommandOperand> operands = operandsOf(command);
    std::erase_if(operands, [](const CommandOperand& it) { return !it.operand; });
    touches_left_ -= 1 + static_cast<int64_t>(operands.size());
    GPUC_RETURN_IF_ERROR(checkApart(command, operands));
    for (const auto& [operand, use] : operands)
      if (isRead(use.role)) GPUC_RETURN_IF_ERROR(checkRead(command, *operand));
    for (const auto& [operand, use] : operands)
      if (isWritten(use.role)) owners_.write(touchedBy(*operand), operand->buffer());
    return okStatus();
  }

  /// What the operand touches in this iteration.
  ByteRange touchedBy(const fb::Operand& operand) const {
    auto begin = static_cast<int64_t>(bufferOf(operand.buffer()).offset() + operand.offset());
    for (uint32_t d = 0; d < iterations_.size(); ++d) begin += strideOf(operand, d) * iterations_[d];
    return {begin, begin + static_cast<int64_t>(operand.size())};
  }

  Status checkRead(const fb::Command& command, const fb::Operand& operand) const {
    const ByteRange bytes = touchedBy(operand);
    const uint32_t other =
        unseen_[operand.buffer()] ? operand.buffer() : owners_.otherThan(operand.buffer(), bytes);
    if (other == operand.buffer()) return okStatus();
    return Status::error("program " + quoted(program_.name()) + ": " + nameOf(command) + " reads " +
                         describe(operand.buffer(), bytes, other));
  }

  /// A command that writes over what it still reads.
  Status checkApart(const fb::Command& command, std::span<const CommandOperand> operands) const {
    for (const CommandOperand& write : operands)
      for (const CommandOperand& other : operands) {
        if (!isWritten(write.use.role) || mayShareBytes(command, write, other)) continue;
        const ByteRange bytes = touchedBy(*other.operand);
        return Status::error("program " + quoted(program_.name()) + ": " + nameOf(command) +
                             " writes buffer " + quoted(bufferOf(write.operand->buffer()).name()) +
                             " over buffer " + quoted(bufferOf(other.operand->buffer()).name()) +
                             " at bytes [" + std::to_string(bytes.begin) + ", " + std::to_string(bytes.end) +
                             ") of the arena, which it needs");
      }
    return okStatus();
  }

  /// A sum over ranks may lie over its part. A kernel may update an operand in place; whether it reads each
  /// element no later than it writes it is its own affair. Results that are parts of one buffer may be
  /// written into each other's gaps, and a copy within a buffer finds its way.
  bool mayShareBytes(const fb::Command& command, const CommandOperand& write,
                     const CommandOperand& other) const {
    const ByteRange written = touchedBy(*write.operand), bytes = touchedBy(*other.operand);
    if (&write == &other || !written.meets(bytes)) return true;
    const bool is_same_buffer = write.operand->buffer() == other.operand->buffer();
    if (isWritten(other.use.role) || command.work_as_Copy()) return is_same_buffer;
    return (command.work_as_Launch() || command.work_as_AllReduce() || other.use.in_place) &&
           written.begin == bytes.begin && written.end == bytes.end;
  }

  /// What must outlast the run.
  Status checkEnd(const char* what, std::string_view name, uint32_t buffer) const {
    if (unseen_[buffer]) return okStatus();
    const auto begin = static_cast<int64_t>(bufferOf(buffer).offset());
    const ByteRange bytes = {begin, begin + static_cast<int64_t>(bufferOf(buffer).size())};
    const uint32_t other = owners_.otherThan(buffer, bytes);
    if (other == buffer) return okStatus();
    return Status::error("program " + quoted(program_.name()) + ": its " + what + " '" + std::string(name) +
                         "' is left in " + describe(buffer, bytes, other));
  }

  std::string nameOf(const fb::Command& command) const {
    std::string text = kindOf(command);
    if (const fb::Launch* launch = command.work_as_Launch())
      text += " of kernel " + quoted(plan_.kernels()->Get(launch->kernel())->name());
    if (const std::string_view location = textOf(command.location()); !location.empty())
      text += " (" + std::string(location) + ")";
    return text;
  }

  std::string describe(uint32_t buffer, ByteRange bytes, uint32_t other) const {
    return "buffer " + quoted(bufferOf(buffer).name()) + " at bytes [" + std::to_string(bytes.begin) + ", " +
           std::to_string(bytes.end) + ") of the arena, " +
           (other == kNobody ? "some of which nothing in this run has written"
                             : "some of which buffer " + quoted(bufferOf(other).name()) + " has overwritten");
  }

  const fb::Plan& plan_;
  const fb::Program& program_;
  int64_t& touches_left_;
  std::vector<bool> unseen_;  // by buffer: what other streams write
  std::vector<int64_t> iterations_;
  Owners owners_;
};

}  // namespace

Result<bool> checkContents(const fb::Plan& plan) {
  int64_t touches_left = kMostTouches;
  for (const fb::Program* program : each(plan.programs()))
    GPUC_RETURN_IF_ERROR(Play(plan, *program, touches_left).run());
  return touches_left >= 0;
}

}  // namespace gpuc
