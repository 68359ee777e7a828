#include "dialects/gpuc/GpucOps.h"
using namespace mlir;
namespace gpuc::ir {
LogicalResult AbsOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> AbsOp::getResiduals() { return {}; }
SmallVector<Value> AccuracyOp::decompose(OpBuilder &) { return {}; }
SmallVector<Value> AdamUpdateOp::decompose(OpBuilder &) { return {}; }
LogicalResult AddOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> AddOp::getResiduals() { return {}; }
LogicalResult AtanOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> AtanOp::getResiduals() { return {}; }
LogicalResult BroadcastOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> BroadcastOp::getResiduals() { return {}; }
LogicalResult CastOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> CastOp::getResiduals() { return {}; }
LogicalResult CeilOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> CeilOp::getResiduals() { return {}; }
LogicalResult ClampOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> ClampOp::getResiduals() { return {}; }
LogicalResult ConcatOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> ConcatOp::getResiduals() { return {}; }
LogicalResult CosOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> CosOp::getResiduals() { return {}; }
LogicalResult CrossEntropyOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> CrossEntropyOp::getResiduals() { return {}; }
SmallVector<Value> CrossEntropyOp::decompose(OpBuilder &) { return {}; }
LogicalResult CumsumOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> CumsumOp::getResiduals() { return {}; }
LogicalResult DivOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> DivOp::getResiduals() { return {}; }
LogicalResult DropoutOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> DropoutOp::getResiduals() { return {}; }
SmallVector<Value> DropoutOp::decompose(OpBuilder &) { return {}; }
SmallVector<Value> DropoutOp::buildInference(OpBuilder &) { return {}; }
LogicalResult DynamicSliceOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> DynamicSliceOp::getResiduals() { return {}; }
LogicalResult DynamicUpdateSliceOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> DynamicUpdateSliceOp::getResiduals() { return {}; }
LogicalResult ErfOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> ErfOp::getResiduals() { return {}; }
LogicalResult ExpOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> ExpOp::getResiduals() { return {}; }
LogicalResult Expm1Op::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> Expm1Op::getResiduals() { return {}; }
LogicalResult FloorOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> FloorOp::getResiduals() { return {}; }
LogicalResult FmaOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> FmaOp::getResiduals() { return {}; }
LogicalResult GatherOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> GatherOp::getResiduals() { return {}; }
LogicalResult GeluOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> GeluOp::getResiduals() { return {}; }
SmallVector<Value> GeluOp::decompose(OpBuilder &) { return {}; }
LogicalResult LeakyReluOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> LeakyReluOp::getResiduals() { return {}; }
SmallVector<Value> LeakyReluOp::decompose(OpBuilder &) { return {}; }
LogicalResult Log1pOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> Log1pOp::getResiduals() { return {}; }
LogicalResult LogOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> LogOp::getResiduals() { return {}; }
LogicalResult LogSoftmaxOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> LogSoftmaxOp::getResiduals() { return {}; }
SmallVector<Value> LogSoftmaxOp::decompose(OpBuilder &) { return {}; }
LogicalResult MatmulOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> MatmulOp::getResiduals() { return {}; }
LogicalResult MaxOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> MaxOp::getResiduals() { return {}; }
LogicalResult MeanOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> MeanOp::getResiduals() { return {}; }
SmallVector<Value> MeanOp::decompose(OpBuilder &) { return {}; }
LogicalResult MinOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> MinOp::getResiduals() { return {}; }
LogicalResult MseOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> MseOp::getResiduals() { return {}; }
SmallVector<Value> MseOp::decompose(OpBuilder &) { return {}; }
LogicalResult MulOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> MulOp::getResiduals() { return {}; }
LogicalResult NegOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> NegOp::getResiduals() { return {}; }
LogicalResult PadOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> PadOp::getResiduals() { return {}; }
LogicalResult PowOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> PowOp::getResiduals() { return {}; }
LogicalResult ProdOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> ProdOp::getResiduals() { return {}; }
SmallVector<Value> RandomNormalOp::decompose(OpBuilder &) { return {}; }
SmallVector<Value> RandomUniformOp::decompose(OpBuilder &) { return {}; }
LogicalResult ReduceMaxOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> ReduceMaxOp::getResiduals() { return {}; }
LogicalResult ReduceMinOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> ReduceMinOp::getResiduals() { return {}; }
LogicalResult ReluOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> ReluOp::getResiduals() { return {}; }
LogicalResult RemOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> RemOp::getResiduals() { return {}; }
LogicalResult ReshapeOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> ReshapeOp::getResiduals() { return {}; }
LogicalResult ReverseOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> ReverseOp::getResiduals() { return {}; }
LogicalResult RoundOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> RoundOp::getResiduals() { return {}; }
LogicalResult RsqrtOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> RsqrtOp::getResiduals() { return {}; }
LogicalResult ScatterAddOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> ScatterAddOp::getResiduals() { return {}; }
LogicalResult SelectOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> SelectOp::getResiduals() { return {}; }
SmallVector<Value> SgdUpdateOp::decompose(OpBuilder &) { return {}; }
LogicalResult SigmoidOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> SigmoidOp::getResiduals() { return {}; }
LogicalResult SignOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> SignOp::getResiduals() { return {}; }
LogicalResult SiluOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> SiluOp::getResiduals() { return {}; }
SmallVector<Value> SiluOp::decompose(OpBuilder &) { return {}; }
LogicalResult SinOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> SinOp::getResiduals() { return {}; }
LogicalResult SliceOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> SliceOp::getResiduals() { return {}; }
LogicalResult SoftmaxOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> SoftmaxOp::getResiduals() { return {}; }
SmallVector<Value> SoftmaxOp::decompose(OpBuilder &) { return {}; }
LogicalResult SqrtOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> SqrtOp::getResiduals() { return {}; }
LogicalResult StopGradientOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> StopGradientOp::getResiduals() { return {}; }
LogicalResult SubOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> SubOp::getResiduals() { return {}; }
LogicalResult SumOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> SumOp::getResiduals() { return {}; }
LogicalResult TanOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> TanOp::getResiduals() { return {}; }
LogicalResult TanhOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> TanhOp::getResiduals() { return {}; }
LogicalResult TransposeOp::buildVJP(OpBuilder &, ValueRange, SmallVectorImpl<Value> &) {
  return emitOpError("no VJP");
}
SmallVector<Value> TransposeOp::getResiduals() { return {}; }
} // namespace gpuc::ir
