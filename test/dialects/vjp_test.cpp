// Every differentiable op of the round-trip tests builds its VJP: one cotangent of the right type for each
// operand, valid IR, and no value of the forward pass read but the declared residuals.
#include "dialects/gpuc/GpucOps.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

using namespace mlir;
using gpuc::ir::DifferentiableOpInterface;

namespace {

class VjpTest : public testing::TestWithParam<const char *> {
protected:
  VjpTest() { context_.loadDialect<func::FuncDialect, gpuc::ir::GpucDialect>(); }

  OwningOpRef<ModuleOp> parse() {
    return parseSourceFile<ModuleOp>(std::string(GPUC_TEST_SOURCE "/") + GetParam(), &context_);
  }

  MLIRContext context_;
};

/// The batch must be bound where a VJP divides by it, or makes one matrix of all rows.
bool hasBatch(Operation *op) {
  return llvm::any_of(op->getOperandTypes(),
                      [](Type type) { return !cast<RankedTensorType>(type).hasStaticShape(); });
}

/// Ones of the result's type as the cotangent of each floating-point result; null for the others.
SmallVector<Value> makeCotangents(OpBuilder &builder, Operation *op) {
  SmallVector<Value> cotangents;
  for (Type type : op->getResultTypes()) {
    bool isFloat = isa<FloatType>(cast<RankedTensorType>(type).getElementType());
    cotangents.push_back(isFloat ? gpuc::ir::ConstantOp::create(builder, op->getLoc(), type, 1.0) : Value());
  }
  return cotangents;
}

/// What the ops between `op` and the end of its block read, other than what they make themselves.
void expectReadsOnly(Operation *op, ArrayRef<Value> allowed) {
  for (Operation *built = op->getNextNode(); built && !built->hasAttr("end"); built = built->getNextNode())
    for (Value operand : built->getOperands()) {
      Operation *definition = operand.getDefiningOp();
      bool isBuilt = definition && definition != op && op->isBeforeInBlock(definition);
      EXPECT_TRUE(isBuilt || llvm::is_contained(allowed, operand))
          << "the VJP of " << op->getName().getStringRef().str() << " reads a value that is no residual";
    }
}

void checkVjp(DifferentiableOpInterface differentiable) {
  Operation *op = differentiable;
  // What stands between the op and this mark is what the VJP builds.
  auto marker = op->getNextNode();
  marker->setAttr("end", UnitAttr::get(op->getContext()));
  OpBuilder builder(marker);
  SmallVector<Value> cotangents = makeCotangents(builder, op), operandCotangents;
  ASSERT_TRUE(succeeded(differentiable.buildVJP(builder, cotangents, operandCotangents)));
  ASSERT_EQ(operandCotangents.size(), op->getNumOperands());
  for (auto [operand, cotangent] : llvm::zip(op->getOperands(), operandCotangents))
    EXPECT_TRUE(!cotangent || cotangent.getType() == operand.getType()) << op->getName().getStringRef().str();
  SmallVector<Value> allowed = differentiable.getResiduals();
  allowed.append(cotangents);
  expectReadsOnly(op, allowed);
  marker->removeAttr("end");
}

TEST_P(VjpTest, ReadsResidualsAndKeepsTypes) {
  OwningOpRef<ModuleOp> module = parse();
  ASSERT_TRUE(module);
  SmallVector<DifferentiableOpInterface> ops;
  module->walk([&](DifferentiableOpInterface op) { ops.push_back(op); });
  int checked = 0;
  for (DifferentiableOpInterface op : ops)
    if (!isa<gpuc::ir::MeanOp, gpuc::ir::ProdOp, gpuc::ir::BatchNormOp,
             gpuc::ir::LinearCrossEntropyGradientOp>(op) ||
        !hasBatch(op)) {
      checkVjp(op);
      ++checked;
    }
  EXPECT_GT(checked, 3);
  EXPECT_TRUE(succeeded(verify(*module)));
}

/// Without a cotangent of the result, no operand gets one.
TEST_P(VjpTest, ZeroStaysZero) {
  OwningOpRef<ModuleOp> module = parse();
  ASSERT_TRUE(module);
  module->walk([&](DifferentiableOpInterface op) {
    OpBuilder builder(op->getNextNode());
    SmallVector<Value> none(op->getNumResults()), operandCotangents;
    ASSERT_TRUE(succeeded(op.buildVJP(builder, none, operandCotangents)));
    EXPECT_EQ(operandCotangents, SmallVector<Value>(op->getNumOperands()));
  });
}

INSTANTIATE_TEST_SUITE_P(RoundTrips, VjpTest,
                         testing::Values("elementwise.mlir", "structure.mlir", "training.mlir", "norms.mlir",
                                         "attention.mlir", "losses.mlir", "linear-losses.mlir"));

} // namespace
