#include "runtime/plan/timeline.h"

#include <algorithm>

namespace gpuc {
namespace {

/// Whether the command of these operands writes all of the buffer, and reads nothing of it.
bool overwrites(const std::vector<CommandOperand>& operands, const fb::Plan& plan, uint32_t buffer) {
  bool is_written = false;
  for (const auto& [operand, use] : operands) {
    if (!operand || operand->buffer() != buffer) continue;
    if (isRead(use.role)) return false;
    is_written = is_written || isWhole(plan, *operand);
  }
  return is_written;
}

}  // namespace

Timeline::Timeline(const fb::Plan& plan, const fb::Program& program)
    : plan_(plan), recorded_(countOf(program.events()), false), touched_(countOf(plan.buffers())) {
  loops_.push_back({kNone, false, {0, 0}});
  std::vector<std::vector<Placed>> streams;
  streams.reserve(countOf(program.streams()));
  for (const fb::Stream* stream : each(program.streams()))
    flatten(stream->commands(), 0, streams.emplace_back());
  merge(streams);
  finish(program);
}

void Timeline::flatten(const Commands* commands, uint32_t loop, std::vector<Placed>& list) {
  for (const fb::Command* command : each(commands))
    if (const std::optional<CommandLoop> inner = loopOf(*command)) {
      loops_.push_back({loop, command->work_as_Parallel() != nullptr, {kNone, 0}});
      flatten(inner->commands, static_cast<uint32_t>(loops_.size() - 1), list);
    } else {
      list.push_back({command, loop});
    }
}

/// Every stream goes on until it waits for what is not yet recorded; the main one last, as it waits for most.
void Timeline::merge(const std::vector<std::vector<Placed>>& streams) {
  std::vector<size_t> at(streams.size(), 0);
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t s = streams.size(); s-- > 0;)
      while (at[s] < streams[s].size() && ready(*streams[s][at[s]].command)) {
        execute(streams[s][at[s]++], static_cast<uint32_t>(s));
        progress = true;
      }
  }
}

bool Timeline::ready(const fb::Command& command) const {
  const fb::Wait* wait = command.work_as_Wait();
  return !wait || wait->distance() > 0 || recorded_[wait->event()];
}

void Timeline::execute(const Placed& placed, uint32_t stream) {
  const fb::Record* record = placed.command->work_as_Record();
  if (record) recorded_[record->event()] = true;
  if (record || placed.command->work_as_Wait()) signals_.push_back({placed.command, stream, length()});
  const std::vector<CommandOperand> operands = operandsOf(*placed.command);
  if (operands.empty()) return;
  for (uint32_t loop = placed.loop; loop != kNone; loop = loops_[loop].parent) {
    Span& span = loops_[loop].span;
    span = {std::min(span.first, length()), length()};
  }
  for (const auto& [operand, use] : operands)
    if (operand) {
      const bool is_first = placed.loop != 0 && touched_[operand->buffer()].scope == kNone;
      touch(*operand, placed.loop, is_first && overwrites(operands, plan_, operand->buffer()));
    }
  steps_.push_back({placed.command, stream});
}

void Timeline::touch(const fb::Operand& operand, uint32_t loop, bool is_overwritten) {
  Touched& touched = touched_[operand.buffer()];
  const uint32_t scope = scopeOf(operand, loop);
  if (touched.scope == kNone) {
    touched = {scope, loop, loop, is_overwritten, {length(), length()}};
    return;
  }
  touched.scope = around(touched.scope, scope);
  touched.last_loop = loop;
  touched.span.last = length();
}

uint32_t Timeline::depthOf(uint32_t loop) const {
  uint32_t depth = 0;
  while (loops_[loop].parent != kNone) loop = loops_[loop].parent, ++depth;
  return depth;
}

/// The innermost loop of one iteration of which all of the operand is.
uint32_t Timeline::scopeOf(const fb::Operand& operand, uint32_t loop) const {
  uint32_t scope = loop;
  for (uint32_t depth = depthOf(loop); depth-- > 0; loop = loops_[loop].parent)
    if (loops_[loop].is_parallel || strideOf(operand, depth) != 0) scope = loops_[loop].parent;
  return scope;
}

/// The innermost loop around both.
uint32_t Timeline::around(uint32_t loop, uint32_t other) const {
  uint32_t depth = depthOf(loop), other_depth = depthOf(other);
  while (loop != other)
    if (depth >= other_depth)
      loop = loops_[loop].parent, --depth;
    else
      other = loops_[other].parent, --other_depth;
  return loop;
}

/// Which of the loops that stand in `scope` leads to `loop`; kNone if it is `scope` itself.
uint32_t Timeline::below(uint32_t scope, uint32_t loop) const {
  if (loop == scope) return kNone;
  while (loops_[loop].parent != scope) loop = loops_[loop].parent;
  return loop;
}

Span Timeline::spanOf(const Touched& touched) const {
  uint32_t scope = touched.scope;
  if (scope != 0 && (touched.first_loop != scope || !touched.is_overwritten)) scope = 0;
  const uint32_t first_loop = below(scope, touched.first_loop), last_loop = below(scope, touched.last_loop);
  return {first_loop == kNone ? touched.span.first : loops_[first_loop].span.first,
          last_loop == kNone ? touched.span.last : loops_[last_loop].span.last};
}

void Timeline::finish(const fb::Program& program) {
  const uint32_t last = length() == 0 ? 0 : length() - 1;
  spans_.resize(touched_.size());
  for (size_t i = 0; i < touched_.size(); ++i)
    if (touched_[i].scope != kNone) spans_[i] = spanOf(touched_[i]);
  touched_ = {};
  for (const fb::Output* output : each(program.outputs()))
    if (std::optional<Span>& span = spans_[output->buffer()]) span->last = last;
  for (const fb::Input* input : each(program.inputs())) spans_[input->buffer()] = {0, last};
  for (const fb::Variable* variable : each(plan_.variables())) spans_[variable->buffer()] = {0, last};
  for (const fb::Constant* constant : each(plan_.constants())) spans_[constant->buffer()] = {0, last};
}

}  // namespace gpuc
