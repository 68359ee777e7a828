#include "runtime/host/operand_table.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "runtime/plan/footprint.h"

namespace gpuc {

OperandTable::OperandTable(const fb::Plan& plan, const fb::Program& program, const Arena& arena,
                           HostProgram& out)
    : plan_(plan), program_(program), arena_(arena), out_(out) {
  copied_inputs_.resize(countOf(program_.inputs()), false);
  out_.outputs.reserve(countOf(program_.outputs()));
  placeOutputs();
}

OperandTable::Section::Section(OperandTable& table, std::vector<HostCommand>& list, void** entries)
    : table_(table),
      list_(std::exchange(table.list_, &list)),
      next_entry_(std::exchange(table.next_entry_, entries)) {}

OperandTable::Section::~Section() {
  table_.list_ = list_;
  table_.next_entry_ = next_entry_;
}

void OperandTable::reserve(size_t operands) {
  static_assert(sizeof(void*) + sizeof(Use) + sizeof(CommandAccess) <= kBytesPerOperand);
  uses_.reserve(operands);
  out_.accesses.reserve(operands);
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

void OperandTable::add(const CommandOperand& added, uint64_t first_byte) {
  void** entry = next_entry_++;
  if (!added.operand) return;
  const fb::Operand& operand = *added.operand;
  const fb::Buffer& buffer = bufferOf(operand.buffer());
  const uint64_t offset =
      operand.offset() + first_byte + static_cast<uint64_t>(strideOf(operand, 0) * iteration_);
  std::byte* address = arena_.data() + buffer.offset() + offset;
  *entry = address;
  uses_.push_back({.entry = entry,
                   .buffer = operand.buffer(),
                   .offset = offset,
                   .list = list_,
                   .command = list_->size(),
                   .written = isWritten(added.use.role)});
  if (slotStride(buffer) != 0) out_.slot_pointers.push_back({entry, address, slotStride(buffer)});
  noteStrides(entry, operand);
  noteAccess(entry, buffer.offset() + offset, added);
}

void OperandTable::addInput(const fb::Operand* operand, uint32_t port) {
  copied_inputs_[port] = true;
  void** entry = next_entry_++;
  if (operand) noteStrides(entry, *operand);
  out_.input_pointers.push_back({entry, port, operand ? operand->offset() : 0});
}

void OperandTable::addOutput(const fb::Operand* operand, uint32_t port) {
  void** entry = next_entry_++;
  std::byte* staging = stagingOf(port);
  *entry = staging && operand ? staging + operand->offset() : staging;
  if (operand) noteStrides(entry, *operand);
}

std::byte* OperandTable::stagingOf(uint32_t port) {
  HostProgram::OutputPlace& output = out_.outputs[port];
  if (staged_.size() <= port) staged_.resize(port + 1, nullptr);
  if (!staged_[port]) {
    const fb::Buffer& buffer = bufferOf(program_.outputs()->Get(port)->buffer());
    staged_[port] = out_.staging.emplace_back(buffer.size()).data();
    output = {staged_[port], 0};
  }
  return staged_[port];
}

//===----------------------------------------------------------------------===//
// Repeats
//===----------------------------------------------------------------------===//

void OperandTable::enterRepeat(uint64_t count, std::vector<MovingPointer>* moving) {
  repeats_.push_back(moving);
  repeat_counts_.push_back(count);
}

void OperandTable::leaveRepeat() {
  repeats_.pop_back();
  repeat_counts_.pop_back();
}

void OperandTable::noteStrides(void** entry, const fb::Operand& operand) {
  for (uint32_t d = 0; d < repeats_.size(); ++d)
    if (int64_t stride = strideOf(operand, d); stride && repeats_[d]) repeats_[d]->push_back({entry, stride});
}

/// What the main stream touches; strides of repeats make the range longer, at either end.
void OperandTable::noteAccess(void** entry, uint64_t begin, const CommandOperand& added) {
  if (!isMainStream()) return;
  const fb::Operand& operand = *added.operand;
  const auto first = static_cast<int64_t>(begin), size = static_cast<int64_t>(operand.size());
  const ByteRange bytes = overLoops({first, first + size}, loopsOf(operand, repeat_counts_));
  out_.accesses.push_back({.command = static_cast<uint32_t>(list_->size()),
                           .operand = static_cast<uint32_t>(entry - operands_),
                           .begin = static_cast<uint64_t>(bytes.begin),
                           .end = static_cast<uint64_t>(bytes.end),
                           .bytes = operand.size(),
                           .written = isWritten(added.use.role),
                           .by_rows = added.use.by_rows});
}

//===----------------------------------------------------------------------===//
// Inputs and outputs
//===----------------------------------------------------------------------===//

void OperandTable::placeOutputs() {
  for (const fb::Output* output : each(program_.outputs())) {
    const fb::Buffer& buffer = bufferOf(output->buffer());
    out_.outputs.push_back({arena_.data() + buffer.offset(), slotStride(buffer)});
  }
}

void OperandTable::placeInputs() {
  std::sort(uses_.begin(), uses_.end(), [](const Use& a, const Use& b) { return a.buffer < b.buffer; });
  std::unordered_set<uint32_t> outputs;
  for (const fb::Output* output : each(program_.outputs())) outputs.insert(output->buffer());
  out_.inputs.reserve(copied_inputs_.size());
  for (uint32_t port = 0; port < copied_inputs_.size(); ++port)
    placeInput(port, outputs.count(program_.inputs()->Get(port)->buffer()) > 0);
}

std::span<const OperandTable::Use> OperandTable::usesOf(uint32_t buffer) const {
  auto before = [](const Use& use, uint32_t index) { return use.buffer < index; };
  auto first = std::lower_bound(uses_.begin(), uses_.end(), buffer, before);
  return {first, std::lower_bound(first, uses_.end(), buffer + 1, before)};
}

void OperandTable::placeInput(uint32_t port, bool is_output) {
  const uint32_t index = program_.inputs()->Get(port)->buffer();
  const std::span<const Use> uses = usesOf(index);
  const fb::Buffer& buffer = bufferOf(index);
  HostProgram::InputPlace input{.port = port,
                                .place = arena_.data() + buffer.offset(),
                                .slot_stride = slotStride(buffer),
                                .bytes = buffer.size(),
                                .only_read = !is_output,
                                .copied = copied_inputs_[port],
                                .readers = {}};
  input.readers.reserve(uses.size());
  for (const Use& use : uses) {
    input.only_read &= !use.written || bringsInput(commandOf(use), port);
    input.readers.push_back({use.entry, use.offset});
  }
  for (const Use& use : uses)
    if (bringsInput(commandOf(use), port)) commandOf(use).copy.of_read_input = input.only_read;
  out_.inputs.push_back(std::move(input));
}

/// Whether a command copies all of the input at this port into its buffer.
bool OperandTable::bringsInput(const HostCommand& command, uint32_t port) const {
  const fb::Copy* copy = command.source->work_as_Copy();
  const uint32_t buffer = program_.inputs()->Get(port)->buffer();
  return copy && copy->kind() == fb::CopyKind::host_to_device && copy->port() == port &&
         copy->to()->buffer() == buffer && copy->to()->size() == bufferOf(buffer).size();
}

}  // namespace gpuc
