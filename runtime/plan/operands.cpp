#include "runtime/plan/operands.h"

namespace gpuc {
namespace {

/// Appends those that are there.
void append(std::vector<const fb::Operand*>& list, std::initializer_list<const fb::Operand*> operands) {
  for (const fb::Operand* operand : operands)
    if (operand) list.push_back(operand);
}

}  // namespace

CommandOperands operandsOf(const fb::Command& command) {
  CommandOperands operands;
  if (const fb::Launch* launch = command.work_as_Launch()) {
    for (const fb::Operand* operand : each(launch->reads())) operands.reads.push_back(operand);
    for (const fb::Operand* operand : each(launch->writes())) operands.writes.push_back(operand);
  } else if (const fb::Matmul* matmul = command.work_as_Matmul()) {
    const fb::Operand* added_to = matmul->accumulate() ? matmul->c() : nullptr;
    append(operands.reads, {matmul->a(), matmul->b(), matmul->bias(), matmul->mask(), added_to});
    append(operands.writes, {matmul->c(), matmul->workspace()});
  } else if (const fb::Conv* conv = command.work_as_Conv()) {
    append(operands.reads, {conv->a(), conv->b(), conv->bias(), conv->mask()});
    append(operands.writes, {conv->c(), conv->workspace()});
  } else if (const fb::Attention* attention = command.work_as_Attention()) {
    const bool is_forward = attention->kind() == fb::AttentionKind::forward;
    append(operands.reads, {attention->query(), attention->key(), attention->value(), attention->mask(),
                            attention->seed(), attention->step(), attention->cotangent()});
    append(is_forward ? operands.writes : operands.reads, {attention->result(), attention->log_sum_exp()});
    append(operands.writes,
           {attention->query_cotangent(), attention->key_cotangent(), attention->value_cotangent(),
            attention->mask_cotangent(), attention->workspace()});
  } else if (const fb::Copy* copy = command.work_as_Copy()) {
    // The host's side of a copy is no place in the arena.
    if (copy->kind() != fb::CopyKind::host_to_device) append(operands.reads, {copy->from()});
    if (copy->kind() != fb::CopyKind::device_to_host) append(operands.writes, {copy->to()});
  } else if (const fb::Fill* fill = command.work_as_Fill()) {
    append(operands.writes, {fill->to()});
  }
  return operands;
}

}  // namespace gpuc
