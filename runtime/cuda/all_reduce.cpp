#include "runtime/cuda/all_reduce.h"

#include <algorithm>

namespace gpuc::cuda {
namespace {

void addSums(const Commands* commands, std::vector<RankSum>& sums) {
  for (const fb::Command* command : each(commands)) {
    if (const std::optional<CommandLoop> loop = loopOf(*command)) addSums(loop->commands, sums);
    const fb::AllReduce* reduce = command->work_as_AllReduce();
    if (reduce && std::find(sums.begin(), sums.end(), rankSumOf(*reduce)) == sums.end())
      sums.push_back(rankSumOf(*reduce));
  }
}

}  // namespace

RankSum rankSumOf(const fb::AllReduce& reduce) {
  const auto type = static_cast<DataType>(reduce.type());
  return {type, reduce.result()->size() / static_cast<uint64_t>(sizeOf(type))};
}

std::vector<RankSum> rankSumsOf(const fb::Plan& plan) {
  std::vector<RankSum> sums;
  for (const fb::Program* program : each(plan.programs()))
    for (const fb::Stream* stream : each(program->streams())) addSums(stream->commands(), sums);
  return sums;
}

}  // namespace gpuc::cuda
