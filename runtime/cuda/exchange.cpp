#include "runtime/cuda/exchange.h"

#include <algorithm>

#include "runtime/hal/lowering.h"
#include "runtime/plan/operands.h"

namespace gpuc::cuda {
namespace {

using Kind = RankExchange::Kind;

template <typename Collective>
RankExchange sharedOut(Kind kind, const Collective& collective, int64_t world_size) {
  Shares shares = sharesOf(collective, world_size);
  return {kind, static_cast<DataType>(collective.type()), std::move(shares.pieces), shares.owners};
}

void addExchanges(const fb::Plan& plan, const Commands* commands, CUdeviceptr arena,
                  std::vector<PlannedExchange>& list) {
  for (const fb::Command* command : each(commands)) {
    if (const std::optional<CommandLoop> loop = loopOf(*command))
      addExchanges(plan, loop->commands, arena, list);
    if (!isCollective(*command)) continue;
    PlannedExchange planned = {rankExchangeOf(*command, plan.world_size()), {}};
    if (std::any_of(list.begin(), list.end(),
                    [&](const PlannedExchange& other) { return other.exchange == planned.exchange; }))
      continue;
    for (const auto& [operand, use] : operandsOf(*command))
      planned.addresses.push_back(arena + plan.buffers()->Get(operand->buffer())->offset() +
                                  operand->offset());
    list.push_back(std::move(planned));
  }
}

}  // namespace

RankExchange rankExchangeOf(const fb::Command& command, int64_t world_size) {
  if (const fb::ReduceScatter* scatter = command.work_as_ReduceScatter())
    return sharedOut(Kind::reduce_scatter, *scatter, world_size);
  if (const fb::AllGather* gather = command.work_as_AllGather())
    return sharedOut(Kind::all_gather, *gather, world_size);
  const fb::AllReduce& reduce = *command.work_as_AllReduce();
  const auto type = static_cast<DataType>(reduce.type());
  const size_t elements = reduce.result()->size() / static_cast<size_t>(sizeOf(type));
  return {Kind::all_reduce, type, {{.elements = elements, .each = elements}}};
}

std::vector<PlannedExchange> rankExchangesOf(const fb::Plan& plan, CUdeviceptr arena) {
  std::vector<PlannedExchange> list;
  for (const fb::Program* program : each(plan.programs()))
    for (const fb::Stream* stream : each(program->streams()))
      addExchanges(plan, stream->commands(), arena, list);
  return list;
}

}  // namespace gpuc::cuda
