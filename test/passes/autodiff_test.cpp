// What gpuc-autodiff asks of an op's derivative. Every op of the dialect keeps to it, so that accuracy, which
// has none, is given false ones here.
#include "dialects/gpuc/GpucOps.h"
#include "passes/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

namespace gpuc {
namespace {

using namespace mlir;

using VJP = LogicalResult (*)(Operation *, OpBuilder &, ValueRange, SmallVectorImpl<Value> &);

/// The derivative of accuracy by its logits, as `vjp` builds it; it declares no residuals.
template <VJP vjp>
struct FalseDerivative : ir::DifferentiableOpInterface::ExternalModel<FalseDerivative<vjp>, ir::AccuracyOp> {
  LogicalResult buildVJP(Operation *op, OpBuilder &builder, ValueRange cotangents,
                         SmallVectorImpl<Value> &operandCotangents) const {
    return vjp(op, builder, cotangents, operandCotangents);
  }
  SmallVector<Value> getResiduals(Operation *op) const { return {}; }
};

constexpr const char *kSource = R"(
  func.func @f(%x: tensor<4x2xf32>, %labels: tensor<4xi32>) -> tensor<f32> {
    %sum, %count = gpuc.accuracy %x, %labels : (tensor<4x2xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<f32>)
    return %sum : tensor<f32>
  }
  func.func @g(%x: tensor<4x2xf32>, %labels: tensor<4xi32>) -> tensor<4x2xf32> {
    %y, %dx = gpuc.gradient @f(%x, %labels) wrt arguments [0]
        : (tensor<4x2xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4x2xf32>)
    return %dx : tensor<4x2xf32>
  }
)";

/// Runs gpuc-autodiff with this derivative and returns what it says; "" if it succeeds.
template <VJP vjp> std::string differentiate() {
  DialectRegistry registry;
  registry.insert<ir::GpucDialect, func::FuncDialect>();
  registry.addExtension(+[](MLIRContext *context, ir::GpucDialect *) {
    ir::AccuracyOp::attachInterface<FalseDerivative<vjp>>(*context);
  });
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  std::string said;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { said += diagnostic.str(); });
  auto module = parseSourceString<ModuleOp>(kSource, &context);
  PassManager passes(&context);
  passes.addPass(createAutodiffPass());
  bool ok = module && succeeded(passes.run(*module));
  EXPECT_EQ(ok, said.empty()) << said;
  return said;
}

Value broadcast(OpBuilder &builder, Operation *op, Value cotangent) {
  return ir::BroadcastOp::create(builder, op->getLoc(), op->getOperand(0).getType(), cotangent,
                                 builder.getDenseI64ArrayAttr({}));
}

TEST(AutodiffTest, ADerivativeThatReadsWhatItIsGivenIsTaken) {
  EXPECT_EQ(differentiate<+[](Operation *op, OpBuilder &builder, ValueRange cotangents,
                              SmallVectorImpl<Value> &result) {
              result.append({broadcast(builder, op, cotangents[0]), Value()});
              return success();
            }>(),
            "");
}

TEST(AutodiffTest, AResidualThatIsNotDeclaredIsAnErrorAtTheOp) {
  EXPECT_EQ(
      differentiate<+[](Operation *op, OpBuilder &builder, ValueRange cotangents,
                        SmallVectorImpl<Value> &result) {
        Value wide = broadcast(builder, op, cotangents[0]);
        result.append(
            {ir::MulOp::create(builder, op->getLoc(), wide.getType(), wide, op->getOperand(0)), Value()});
        return success();
      }>(),
      "'gpuc.accuracy' op reads, in its backward op gpuc.mul, a value of the forward pass that it does not "
      "declare as "
      "residual, of type 'tensor<4x2xf32>'");
}

TEST(AutodiffTest, ACotangentMustHaveItsOperandsType) {
  EXPECT_EQ(
      differentiate<+[](Operation *op, OpBuilder &, ValueRange cotangents, SmallVectorImpl<Value> &result) {
        result.append({cotangents[0], Value()});
        return success();
      }>(),
      "'gpuc.accuracy' op gives operand 0 of type 'tensor<4x2xf32>' a cotangent of type 'tensor<f32>'");
}

TEST(AutodiffTest, EveryOperandHasACotangent) {
  EXPECT_EQ(differentiate<+[](Operation *op, OpBuilder &builder, ValueRange cotangents,
                              SmallVectorImpl<Value> &result) {
              result.push_back(broadcast(builder, op, cotangents[0]));
              return success();
            }>(),
            "'gpuc.accuracy' op gives 1 cotangents for 2 operands");
}

TEST(AutodiffTest, AnOpMaySayThatItCannotBeDifferentiated) {
  EXPECT_EQ(differentiate<+[](Operation *, OpBuilder &, ValueRange,
                              SmallVectorImpl<Value> &) -> LogicalResult { return failure(); }>(),
            "'gpuc.accuracy' op has no derivative for these operands");
}

} // namespace
} // namespace gpuc
