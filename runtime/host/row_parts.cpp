#include "runtime/host/row_parts.h"

#include <algorithm>

#include "runtime/host/library_kernel.h"
#include "runtime/workspace/matmul_plan.h"

namespace gpuc {
namespace {

/// Whether a product's rows have the same bits in a product of fewer.
bool keepsBits(const fb::Matmul& matmul, uint64_t parts) {
  MatmulShape shape = shapeOf(matmul);
  if (!checkMatmulShape(shape).ok() || !planMatmul(shape).addsInOrder()) return false;
  shape.m /= static_cast<int64_t>(parts);
  return planMatmul(shape).addsInOrder();
}

bool keepBits(const Commands* commands, uint64_t parts) {
  return std::all_of(each(commands).begin(), each(commands).end(), [&](const fb::Command* command) {
    if (const std::optional<CommandLoop> loop = loopOf(*command)) return keepBits(loop->commands, parts);
    const fb::Matmul* matmul = command->work_as_Matmul();
    return !matmul || keepsBits(*matmul, parts);
  });
}

}  // namespace

uint64_t rowPartsOf(const fb::Parallel& parallel, uint64_t most) {
  uint64_t parts = std::max<uint64_t>(1, std::min(most, parallel.parts()));
  while (parallel.parts() % parts != 0) --parts;
  return parts > 1 && keepBits(parallel.commands(), parts) ? parts : 1;
}

}  // namespace gpuc
