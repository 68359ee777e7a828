//===- DefinitionVjp.cpp - Derivatives by way of definitions ----------------===//

#include "dialects/gpuc/definitions/DefinitionVjp.h"

using namespace mlir;

namespace gpuc::ir {

namespace {
/// Cotangents of values, added up over their uses.
class CotangentSums {
public:
  explicit CotangentSums(OpBuilder &builder, Location location) : builder_(builder), location_(location) {}

  void add(Value value, Value cotangent) {
    if (!cotangent)
      return;
    Value &sum = sums_[value];
    sum = sum ? AddOp::create(builder_, location_, sum, cotangent).getResult() : cotangent;
  }
  Value of(Value value) const { return sums_.lookup(value); }

private:
  OpBuilder &builder_;
  Location location_;
  llvm::DenseMap<Value, Value> sums_;
};
} // namespace

LogicalResult buildDefinitionVJP(CompositeOpInterface op, OpBuilder &builder, ValueRange cotangents,
                                 SmallVectorImpl<Value> &operandCotangents) {
  return buildDefinitionVJP(op.getOperation(), builder, cotangents, operandCotangents,
                            [&](OpBuilder &builder) { return op.decompose(builder); });
}

LogicalResult buildDefinitionVJP(Operation *op, OpBuilder &builder, ValueRange cotangents,
                                 SmallVectorImpl<Value> &operandCotangents,
                                 function_ref<SmallVector<Value>(OpBuilder &)> define) {
  if (llvm::none_of(cotangents, [](Value value) { return value != nullptr; })) {
    operandCotangents.append(op->getNumOperands(), Value());
    return success();
  }
  // What stands between these two iterators is the definition.
  Block *block = builder.getInsertionBlock();
  Block::iterator end = builder.getInsertionPoint();
  Operation *before = end == block->begin() ? nullptr : &*std::prev(end);
  SmallVector<Value> results = define(builder);
  if (results.size() != op->getNumResults())
    return failure();
  SmallVector<Operation *> definition;
  for (auto it = before ? std::next(before->getIterator()) : block->begin(); it != end; ++it)
    definition.push_back(&*it);

  CotangentSums sums(builder, op->getLoc());
  for (auto [result, cotangent] : llvm::zip_equal(results, cotangents))
    sums.add(result, cotangent);
  for (Operation *part : llvm::reverse(definition)) {
    SmallVector<Value> given =
        llvm::map_to_vector(part->getResults(), [&](Value value) { return sums.of(value); });
    auto differentiable = dyn_cast<DifferentiableOpInterface>(part);
    if (!differentiable || llvm::none_of(given, [](Value value) { return value != nullptr; }))
      continue; // Constants, and what makes integers of numbers: no derivative passes.
    SmallVector<Value> computed;
    if (failed(differentiable.buildVJP(builder, given, computed)))
      return failure();
    for (auto [operand, cotangent] : llvm::zip_equal(part->getOperands(), computed))
      sums.add(operand, cotangent);
  }
  for (Value operand : op->getOperands())
    operandCotangents.push_back(sums.of(operand));
  return success();
}

} // namespace gpuc::ir
