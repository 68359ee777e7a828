//===- LowerKernels.cpp - Kernels to the LLVM dialect -----------------------===//

#include "passes/codegen/Element.h"
#include "passes/codegen/host/HostMachine.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;

namespace gpuc::codegen {

static bool roundsToBfloat16(arith::TruncFOp op) { return getElementTypeOrSelf(op.getType()).isBF16(); }
static bool isRelu(arith::MaximumFOp op) { return matchPattern(op.getRhs(), m_PosZeroFloat()); }

namespace {
/// The CPU's own instruction flushes denormal numbers, and most CPUs have none.
struct RoundToBfloat16 : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    if (!roundsToBfloat16(op))
      return failure();
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    Expr bits = bitsOfBfloat16({builder, op.getIn()});
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), bits.value());
    return success();
  }
};

/// The CPU's maximum of zeros is the second operand, and so is that of NaN: whichever zero is, LLVM mends the
/// other case by two instructions more. A comparison and what it chooses are two in all, with the same bits.
struct ReluByComparison : OpRewritePattern<arith::MaximumFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::MaximumFOp op, PatternRewriter &rewriter) const override {
    if (!isRelu(op))
      return failure();
    Value x = op.getLhs(), zero = op.getRhs();
    Value isKept = arith::CmpFOp::create(rewriter, op.getLoc(), arith::CmpFPredicate::UGT, x, zero); // NaN is
    rewriter.replaceOpWithNewOp<arith::SelectOp>(op, isKept, x, zero);
    return success();
  }
};
} // namespace

static RewritePatternSet loopPatterns(MLIRContext *context) {
  RewritePatternSet patterns(context);
  patterns.add<RoundToBfloat16, ReluByComparison>(context);
  populateSCFToControlFlowConversionPatterns(patterns);
  return patterns;
}

static RewritePatternSet otherPatterns(LLVMTypeConverter &types) {
  RewritePatternSet patterns(&types.getContext());
  arith::populateArithToLLVMConversionPatterns(types, patterns);
  populateMathToLLVMConversionPatterns(types, patterns);
  vector::populateVectorExtractStridedSliceToExtractInsertChainPatterns(
      patterns, [](vector::ExtractStridedSliceOp) { return false; });
  vector::populateVectorInsertExtractStridedSliceTransforms(
      patterns); // slices of one dimension become shuffles
  populateVectorToLLVMConversionPatterns(types, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
  populateFuncToLLVMConversionPatterns(types, patterns);
  return patterns;
}

KernelLowering::KernelLowering(MLIRContext *context)
    : types_(context, LowerToLLVMOptions(context)), loops_(loopPatterns(context)),
      rest_(otherPatterns(types_)) {}

LogicalResult KernelLowering::run(ModuleOp module) const {
  ConversionTarget noLoops(*module.getContext());
  noLoops.addIllegalDialect<scf::SCFDialect>();
  noLoops.addDynamicallyLegalOp<arith::TruncFOp>([](arith::TruncFOp op) { return !roundsToBfloat16(op); });
  noLoops.addDynamicallyLegalOp<arith::MaximumFOp>([](arith::MaximumFOp op) { return !isRelu(op); });
  noLoops.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  if (failed(applyPartialConversion(module, noLoops, loops_)))
    return failure();
  LLVMConversionTarget target(*module.getContext());
  target.addLegalOp<ModuleOp>();
  return applyFullConversion(module, target, rest_);
}

} // namespace gpuc::codegen
