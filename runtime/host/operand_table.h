// The pointer table of a program that is being lowered: where each operand of each command lies.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/host/arena.h"
#include "runtime/host/command.h"
#include "runtime/plan/operands.h"

namespace gpuc {

/// Commands are appended to one list at a time, and their operands, in order, to a table of pointers that
/// does not move.
class OperandTable {
 public:
  OperandTable(const fb::Plan& plan, const fb::Program& program, const Arena& arena, HostProgram& out);

  /// A list of commands and the entries for their operands, both of which stay where they are; the one before
  /// goes on when it ends.
  class Section {
   public:
    Section(OperandTable& table, std::vector<HostCommand>& list, void** entries);
    ~Section();
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;

   private:
    OperandTable& table_;
    std::vector<HostCommand>* list_;
    void** next_entry_;
  };

  /// For all operands of the commands to come, but for the lists of parallels' parts.
  void reserve(size_t operands);

  std::vector<HostCommand>& list() { return *list_; }
  bool isMainStream() const { return list_ == &out_.streams[0]; }

  /// Where the next command's operands begin.
  void** beginCommand() { return operands_ = next_entry_; }
  void endCommand(const HostCommand& command) { list_->push_back(command); }

  /// The next operand: its address in the arena, `first_byte` behind its beginning, or null where there is
  /// none.
  void add(const CommandOperand& operand, uint64_t first_byte = 0);

  /// The next operand, which lies at `port` of the caller's inputs, or outputs.
  void addInput(const fb::Operand* operand, uint32_t port);
  void addOutput(const fb::Operand* operand, uint32_t port);

  /// The loops around the next commands. What moves with the innermost one's iterations is noted in
  /// `moving`; if that is null, commands are those of one part: see setIteration().
  void enterRepeat(uint64_t count, std::vector<MovingPointer>* moving);
  void leaveRepeat();

  /// Of the outermost loop, a parallel whose parts have lists of their own.
  void setIteration(uint64_t iteration) { iteration_ = static_cast<int64_t>(iteration); }

  /// When all commands are there: how each input is to be found at the start of a run.
  void placeInputs();

  /// What is kept of an operand while commands are lowered.
  static constexpr uint64_t kBytesPerOperand = 128;

 private:
  /// An entry that points into the arena.
  struct Use {
    void** entry;
    uint32_t buffer;
    uint64_t offset;  // in it
    std::vector<HostCommand>* list;
    size_t command;
    bool written;
  };

  const fb::Buffer& bufferOf(uint32_t index) const { return *plan_.buffers()->Get(index); }
  uint64_t slotStride(const fb::Buffer& buffer) const { return slotStrideOf(plan_, buffer); }
  HostCommand& commandOf(const Use& use) { return (*use.list)[use.command]; }
  void placeOutputs();
  void placeInput(uint32_t port, bool is_output);
  std::span<const Use> usesOf(uint32_t buffer) const;
  bool bringsInput(const HostCommand& command, uint32_t port) const;
  void noteStrides(void** entry, const fb::Operand& operand);
  void noteAccess(void** entry, uint64_t begin, const CommandOperand& operand);
  std::byte* stagingOf(uint32_t port);

  const fb::Plan& plan_;
  const fb::Program& program_;
  const Arena& arena_;
  HostProgram& out_;
  std::vector<HostCommand>* list_ = nullptr;
  void** next_entry_ = nullptr;
  void** operands_ = nullptr;                         // of the current command
  std::vector<std::vector<MovingPointer>*> repeats_;  // outermost first
  std::vector<uint64_t> repeat_counts_;               // likewise
  int64_t iteration_ = 0;
  std::vector<Use> uses_;  // by buffer, once all are there
  std::vector<bool> copied_inputs_;
  std::vector<std::byte*> staged_;
};

}  // namespace gpuc
