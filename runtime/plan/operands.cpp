#include "runtime/plan/operands.h"

#include <algorithm>
#include <cctype>
#include <span>
#include <string>

namespace gpuc {
namespace {

using Operands = std::vector<CommandOperand>;

Operands pair(std::span<const OperandUse> uses, std::initializer_list<const fb::Operand*> operands) {
  Operands list;
  list.reserve(operands.size());
  for (const fb::Operand* operand : operands) list.push_back({operand, uses[list.size()]});
  return list;
}

Operands operandsOf(const fb::Launch& launch) {
  Operands list;
  list.reserve(size_t{countOf(launch.reads())} + countOf(launch.writes()));
  auto add = [&](const fb::Operand* operand, const char* name, Role role) {
    const auto index = static_cast<uint32_t>(list.size());
    const bool by_rows = index < countOf(launch.by_rows()) && launch.by_rows()->Get(index);
    list.push_back({operand, {.name = name, .role = role, .by_rows = by_rows}});
  };
  for (const fb::Operand* operand : each(launch.reads())) add(operand, "operand", Role::read);
  for (const fb::Operand* operand : each(launch.writes())) add(operand, "result", Role::write);
  return list;
}

/// A product's own operands, and those of its update.
template <typename Product>
Operands productOperands(std::span<const OperandUse> uses, const Product& p) {
  Operands list = pair(uses, {p.a(), p.b(), p.c(), p.bias(), p.workspace(), p.mask(), p.squares()});
  const fb::Update* update = p.update();
  if (!update) return list;
  for (const fb::Operand* operand : each(update->reads())) list.push_back({operand, kUpdateRead});
  for (const fb::Operand* operand : each(update->writes())) list.push_back({operand, kUpdateWrite});
  return list;
}

Operands operandsOf(const fb::Matmul& m) {
  return productOperands(m.update()       ? kUpdatingMatmulOperands
                         : m.accumulate() ? kAccumulatingMatmulOperands
                                          : kMatmulOperands,
                         m);
}

Operands operandsOf(const fb::Conv& c) {
  return productOperands(c.update() ? kUpdatingConvOperands : kConvOperands, c);
}

Operands operandsOf(const fb::Attention& a) {
  return pair(a.kind() == fb::AttentionKind::forward ? kAttentionOperands : kAttentionGradientOperands,
              {a.query(), a.key(), a.value(), a.result(), a.log_sum_exp(), a.mask(), a.seed(), a.step(),
               a.cotangent(), a.query_cotangent(), a.key_cotangent(), a.value_cotangent(), a.mask_cotangent(),
               a.workspace()});
}

using OperandList = flatbuffers::Vector<flatbuffers::Offset<fb::Operand>>;

/// All that is read, then all that is written.
Operands operandsOf(std::span<const OperandUse> uses, const OperandList* read, const OperandList* written) {
  Operands list;
  list.reserve(size_t{countOf(read)} + countOf(written));
  for (const fb::Operand* operand : each(read)) list.push_back({operand, uses[0]});
  for (const fb::Operand* operand : each(written)) list.push_back({operand, uses[1]});
  return list;
}

Operands operandsOf(const fb::ReduceScatter& scatter) {
  return operandsOf(kReduceScatterOperands, scatter.wholes(), scatter.shares());
}

Operands operandsOf(const fb::AllGather& gather) {
  return operandsOf(kAllGatherOperands, gather.shares(), gather.wholes());
}

/// The host's side of a copy is no place in the arena.
Operands operandsOf(const fb::Copy& copy) {
  Operands list;
  if (copy.kind() != fb::CopyKind::host_to_device) list.push_back({copy.from(), kSource});
  if (copy.kind() != fb::CopyKind::device_to_host) list.push_back({copy.to(), kDestination});
  return list;
}

}  // namespace

/// AllReduce → all_reduce, as the dialect has it.
static std::string inSnakeCase(std::string_view name) {
  std::string text;
  for (char c : name) {
    if (std::isupper(c) && !text.empty()) text += '_';
    text += static_cast<char>(std::tolower(c));
  }
  return text;
}

const char* kindOf(const fb::Command& command) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> made;
    for (fb::Work kind : fb::EnumValuesWork()) made.push_back(inSnakeCase(fb::EnumNameWork(kind)));
    return made;
  }();
  return names[static_cast<size_t>(command.work_type())].c_str();
}

std::vector<CommandOperand> operandsOf(const fb::Command& command) {
  switch (command.work_type()) {
    case fb::Work::Launch:
      return operandsOf(*command.work_as_Launch());
    case fb::Work::Matmul:
      return operandsOf(*command.work_as_Matmul());
    case fb::Work::Conv:
      return operandsOf(*command.work_as_Conv());
    case fb::Work::Attention:
      return operandsOf(*command.work_as_Attention());
    case fb::Work::Copy:
      return operandsOf(*command.work_as_Copy());
    case fb::Work::Sum:
      return pair(kSumOperands, {command.work_as_Sum()->parts(), command.work_as_Sum()->result()});
    case fb::Work::AllReduce:
      return pair(kAllReduceOperands,
                  {command.work_as_AllReduce()->part(), command.work_as_AllReduce()->result()});
    case fb::Work::ReduceScatter:
      return operandsOf(*command.work_as_ReduceScatter());
    case fb::Work::AllGather:
      return operandsOf(*command.work_as_AllGather());
    case fb::Work::Fill:
      return {{command.work_as_Fill()->to(), kDestination}};
    default:
      return {};
  }
}

bool isCollective(const fb::Command& command) {
  return command.work_as_AllReduce() || command.work_as_ReduceScatter() || command.work_as_AllGather();
}

bool isWhole(const fb::Plan& plan, const fb::Operand& operand) {
  auto strides = each(operand.strides());
  return operand.size() == plan.buffers()->Get(operand.buffer())->size() &&
         std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride == 0; });
}

uint64_t rowsOf(const fb::Command& command) {
  if (const fb::Launch* launch = command.work_as_Launch()) return launch->rows();
  if (const fb::Matmul* matmul = command.work_as_Matmul())
    return rowsOfMatmul(
        matmul->batch(), matmul->m(), matmul->transpose_a(),
        matmul->workspace() != nullptr || matmul->update() != nullptr || matmul->squares() != nullptr);
  if (const fb::Copy* copy = command.work_as_Copy())
    return copy->kind() == fb::CopyKind::device_to_device ? copy->to()->size() : 0;
  if (const fb::Fill* fill = command.work_as_Fill())
    return fill->to()->size() / std::max<uint32_t>(1, countOf(fill->pattern()));
  return 0;
}

}  // namespace gpuc
