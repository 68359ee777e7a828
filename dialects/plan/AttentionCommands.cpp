//===- AttentionCommands.cpp - Verifiers and cost of plan.attention and its gradient ===//

#include "dialects/plan/PlanOps.h"
#include "runtime/plan/cost.h"

using namespace mlir;

namespace gpuc::plan {

/// From the first element to the last of what lies with these strides; they are as many as the extents.
static int64_t spanOf(ArrayRef<int64_t> extents, ArrayRef<int64_t> strides) {
  __int128 elements = 1;
  for (auto [extent, stride] : llvm::zip_equal(extents, strides))
    elements += static_cast<__int128>(extent - 1) * stride;
  return std::clamp<__int128>(elements, -kMostNumber, 2 * kMostNumber);
}

/// What an operand of attention is an instance of: heads of so many rows of so many elements.
struct AttentionRole {
  StringRef name;
  Value buffer;
  int64_t heads, rows, width;
};

/// Whether each buffer is as long as its layout says; `roles` are in the order of `strides`.
template <typename Op> static LogicalResult verifyAttention(Op op, ArrayRef<AttentionRole> roles) {
  const int64_t bytes = ir::elementBytes(op.getElement());
  auto check = [&](StringRef name, Value buffer, int64_t needs) -> LogicalResult {
    int64_t has = rangeOf(buffer).size;
    if (has == needs)
      return success();
    return op.emitOpError() << name << " has " << has << " bytes, its layout takes " << needs;
  };
  if (op.getStrides().size() != 3 * roles.size())
    return op.emitOpError("wants three strides for each of ")
           << roles.size() << " operands, has " << op.getStrides().size();
  const int64_t batch = op.getBatch();
  for (auto [index, role] : llvm::enumerate(roles)) {
    ArrayRef<int64_t> strides = op.getStrides().slice(3 * index, 3);
    int64_t elements = spanOf({batch, role.heads, role.rows}, strides) - 1 + role.width;
    if (failed(check(role.name, role.buffer, elements * bytes)))
      return failure();
  }
  const int64_t heads = op.getHeads(), queries = op.getQueries();
  if (failed(check("log_sum_exp", op.getLogSumExp(), saturatingProduct({batch, heads, queries, bytes}))))
    return failure();
  if (!op.getMask())
    return success();
  if (!op.getMaskStrides() || op.getMaskStrides()->size() != 4)
    return op.emitOpError("wants four strides of the mask");
  const int64_t scores[] = {batch, heads, queries, static_cast<int64_t>(op.getKeys())};
  const int64_t elements = spanOf(scores, *op.getMaskStrides()), has = rangeOf(op.getMask()).size;
  if (has == elements || has == elements * bytes)
    return success();
  return op.emitOpError("mask has ") << has << " bytes, " << elements << " elements of i1 or "
                                     << op.getElement() << " take " << elements << " or " << elements * bytes;
}

template <typename Op> static SmallVector<AttentionRole> attentionRoles(Op op) {
  const int64_t heads = op.getHeads(), groups = op.getGroups(), queries = op.getQueries(),
                keys = op.getKeys(), width = op.getWidth(), valueWidth = op.getValueWidth();
  return {{"query", op.getQuery(), heads, queries, width},
          {"key", op.getKey(), groups, keys, width},
          {"value", op.getValue(), groups, keys, valueWidth},
          {"result", op.getResult(), heads, queries, valueWidth}};
}

LogicalResult AttentionOp::verify() { return verifyAttention(*this, attentionRoles(*this)); }

LogicalResult AttentionGradientOp::verify() {
  SmallVector<AttentionRole> roles = attentionRoles(*this);
  AttentionRole query = roles[0], key = roles[1], value = roles[2], result = roles[3];
  roles.push_back({"cotangent", getCotangent(), result.heads, result.rows, result.width});
  roles.push_back({"query's cotangent", getQueryCotangent(), query.heads, query.rows, query.width});
  roles.push_back({"key's cotangent", getKeyCotangent(), key.heads, key.rows, key.width});
  roles.push_back({"value's cotangent", getValueCotangent(), value.heads, value.rows, value.width});
  return verifyAttention(*this, roles);
}

template <typename Op> static int64_t attentionFlops(Op op, bool isGradient) {
  return flopsOfAttention(isGradient, op.getBatch() * op.getHeads() * op.getQueries() * op.getKeys(),
                          op.getWidth(), op.getValueWidth());
}

int64_t AttentionOp::getFlops() { return attentionFlops(*this, /*isGradient=*/false); }
int64_t AttentionGradientOp::getFlops() { return attentionFlops(*this, /*isGradient=*/true); }

} // namespace gpuc::plan
