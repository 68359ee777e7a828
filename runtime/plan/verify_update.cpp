// What takes a weight's gradient, tile by tile, and the squares of these tiles. How many tiles there are, and
// that the kernel is called with them, is between the kernel and the host's product of that shape: the host
// holds the plan's numbers against its own when it loads the plan.
#include <cinttypes>

#include "runtime/base/data_type.h"
#include "runtime/plan/verify.h"

namespace gpuc {

Status verifySquares(const fb::Plan& plan, const fb::Operand& squares, DataType type, const char* what) {
  if (plan.target()->kind() == fb::TargetKind::cuda)
    return errorf("%s: with squares, which products have on the host alone", what);
  if (!beginsAtElement(squares, type) || squares.size() % static_cast<uint64_t>(sizeOf(type)) != 0)
    return errorf("%s: squares begin or end within an element", what);
  return okStatus();
}

Status verifyUpdate(const fb::Plan& plan, const fb::Update& update, const char* what) {
  if (plan.target()->kind() == fb::TargetKind::cuda)
    return errorf("%s: with an update, which products have on the host alone", what);
  if (update.kernel() >= countOf(plan.kernels()))
    return errorf("%s: with an update by kernel %" PRIu32 " of %" PRIu32, what, update.kernel(),
                  countOf(plan.kernels()));
  const uint64_t operands = 1 + uint64_t{countOf(update.reads())} + countOf(update.writes());
  if (const uint32_t takes = plan.kernels()->Get(update.kernel())->operands(); operands != takes)
    return errorf("%s: with an update of %" PRIu64 " operands, its kernel takes %" PRIu32, what, operands,
                  takes);
  if (update.grain() == 0 || update.grain() > kMostExecutions)
    return errorf("%s: with an update whose grain is %" PRIu64 ", expected 1 to %" PRIu64, what,
                  update.grain(), kMostExecutions);
  return okStatus();
}

}  // namespace gpuc
