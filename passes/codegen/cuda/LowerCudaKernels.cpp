//===- LowerCudaKernels.cpp - GPU kernels to the NVVM dialect ---------------===//
//
// Math ops become LLVM's intrinsics, which NVPTX has instructions for, rather than calls into NVIDIA's
// libdevice: what kernels need beyond those, gpuc computes itself.
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/cuda/CudaKernel.h"
#include "passes/codegen/cuda/CudaMachine.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace gpuc::codegen {

namespace {
/// x < c ? c : x and c < x ? c : x of a number c are one instruction. NaN stays.
struct BoundByNumber : OpRewritePattern<arith::SelectOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::SelectOp op, PatternRewriter &rewriter) const override {
    Value bound = op.getTrueValue(), x = op.getFalseValue();
    auto compare = op.getCondition().getDefiningOp<arith::CmpFOp>();
    APFloat number(0.0f);
    if (!compare || compare.getPredicate() != arith::CmpFPredicate::OLT ||
        !getElementTypeOrSelf(op.getType()).isF32() || !matchPattern(bound, m_ConstantFloat(&number)) ||
        !number.isFiniteNonZero())
      return failure();
    auto isBound = [&](Value value) {
      APFloat other(0.0f);
      return matchPattern(value, m_ConstantFloat(&other)) && other.bitwiseIsEqual(number);
    };
    if (compare.getLhs() == x && isBound(compare.getRhs()))
      rewriter.replaceOpWithNewOp<arith::MaximumFOp>(op, x, bound);
    else if (isBound(compare.getLhs()) && compare.getRhs() == x)
      rewriter.replaceOpWithNewOp<arith::MinimumFOp>(op, x, bound);
    else
      return failure();
    return success();
  }
};
} // namespace

/// Rewrites what is of the dialect, and leaves the rest as it is.
template <typename Dialect> static LogicalResult lower(gpu::GPUModuleOp module, RewritePatternSet patterns) {
  ConversionTarget target(*module.getContext());
  target.addIllegalDialect<Dialect>();
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  return applyPartialConversion(module, target, std::move(patterns));
}

/// The pointer becomes an array of pointers that lies in parameter memory. Nobody writes it, so that no
/// thread needs a copy.
static void passOperandsAsArray(gpu::GPUModuleOp module) {
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    auto operands = dyn_cast_or_null<IntegerAttr>(function->removeAttr(kOperandArrayAttr));
    if (!operands)
      continue;
    auto array = LLVM::LLVMArrayType::get(function.getArgument(0).getType(), operands.getInt());
    function.setArgAttr(0, LLVM::LLVMDialect::getByValAttrName(), TypeAttr::get(array));
    function.setArgAttr(0, NVVM::NVVMDialect::getGridConstantAttrName(), UnitAttr::get(module.getContext()));
  }
}

LogicalResult lowerToNvvm(gpu::GPUModuleOp module) {
  MLIRContext *context = module.getContext();
  RewritePatternSet ofBounds(context);
  ofBounds.add<BoundByNumber>(context);
  walkAndApplyPatterns(module, std::move(ofBounds));
  LLVMTypeConverter types(context);
  RewritePatternSet ofLoops(context), ofMath(context);
  populateSCFToControlFlowConversionPatterns(ofLoops);
  populateMathToLLVMConversionPatterns(types, ofMath);
  // Math by itself and first: the patterns for gpu ops would turn it into calls of libdevice.
  if (failed(lower<scf::SCFDialect>(module, std::move(ofLoops))) ||
      failed(lower<math::MathDialect>(module, std::move(ofMath))))
    return failure();
  configureGpuToNVVMTypeConverter(types);
  RewritePatternSet patterns(context);
  arith::populateArithToLLVMConversionPatterns(types, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
  populateVectorToLLVMConversionPatterns(types, patterns);
  populateGpuToNVVMConversionPatterns(types, patterns);
  LLVMConversionTarget target(*context);
  target.addLegalDialect<NVVM::NVVMDialect>();
  target.addLegalOp<gpu::GPUModuleOp>();
  if (failed(applyFullConversion(module, target, std::move(patterns))))
    return failure();
  passOperandsAsArray(module);
  return success();
}

} // namespace gpuc::codegen
