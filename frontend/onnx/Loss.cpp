//===- Loss.cpp - A loss and a recipe for an imported model -----------------===//

#include "frontend/onnx/Importer.h"

using namespace mlir;

namespace gpuc::onnx {
namespace {

/// @loss or @accuracy: the arguments of `predict`, then the target; what `op` makes of its first output and
/// the target.
void addMetric(Emitter &e, func::FuncOp predict, StringRef entry, StringRef op, RankedTensorType target,
               StringRef targetName, int64_t range, ArrayRef<StringRef> results) {
  OpBuilder &builder = e.builder;
  builder.setInsertionPointToEnd(predict->getBlock());
  auto name = [&](StringRef text) { return builder.getStringAttr(text); };
  e.location = NameLoc::get(name(entry));
  SmallVector<Type> types(predict.getArgumentTypes());
  types.push_back(target);
  Type scalar =
      RankedTensorType::get({}, cast<RankedTensorType>(predict.getResultTypes()[0]).getElementType());
  auto function =
      func::FuncOp::create(builder, e.location, entry, builder.getFunctionType(types, {scalar, scalar}));
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToStart(body);
  auto call =
      func::CallOp::create(builder, NameLoc::get(name("predict")), predict, body->getArguments().drop_back());
  // cross_entropy may have class weights and a mask as well; here it has neither.
  SmallVector<NamedAttribute> attributes;
  if (op == "cross_entropy")
    attributes.push_back(e.segments({1, 1, 0, 0}));
  std::vector<Tensor> pair =
      e.emit(op, {Tensor(&e, call.getResult(0)), Tensor(&e, body->getArguments().back())}, attributes);
  SmallVector<Value> values;
  for (const Tensor &value : pair)
    values.push_back(value.value());
  func::ReturnOp::create(builder, e.location, values);
  for (unsigned i = 0; i < predict.getNumArguments(); ++i)
    function.setArgAttrs(i, predict.getArgAttrDict(i));
  function.setArgAttr(types.size() - 1, "gpuc.name", name(targetName));
  if (range > 0)
    function.setArgAttr(types.size() - 1, "gpuc.range", builder.getI64IntegerAttr(range));
  for (auto [i, result] : llvm::enumerate(results))
    function.setResultAttr(i, "gpuc.name", name(result));
  for (unsigned i = 0; i < predict.getNumArguments(); ++i)
    body->getArgument(i).setLoc(predict.getArgument(i).getLoc());
  body->getArguments().back().setLoc(NameLoc::get(name(targetName)));
}

} // namespace

Status addLoss(Emitter &e, func::FuncOp predict, const std::string &loss) {
  auto output = cast<RankedTensorType>(predict.getResultTypes()[0]);
  auto floats = dyn_cast<FloatType>(output.getElementType());
  if (!floats || output.getRank() < 1)
    return Status::error("the first output is no tensor of floating-point rows");
  const bool classes = loss == "cross_entropy";
  for (unsigned i = 0; i < predict.getNumArguments(); ++i)
    if (predict.getArgAttrOfType<StringAttr>(i, "gpuc.name").getValue() == (classes ? "labels" : "target"))
      return Status::error(std::string("the model has an input '") + (classes ? "labels" : "target") +
                           "' of its own; write @loss by hand");
  if (classes) {
    if (output.getRank() < 2)
      return Status::error("logits are [batch, …, classes], but the first output is " +
                           toString(output.getShape()));
    auto returned = cast<func::ReturnOp>(predict.getBody().front().getTerminator());
    if (returned.getOperand(0).getDefiningOp<ir::SoftmaxOp>())
      return Status::error("the first output is probabilities (Softmax): export the logits, of which "
                           "cross_entropy takes the softmax itself");
    auto labels = RankedTensorType::get(output.getShape().drop_back(), e.builder.getI32Type());
    int64_t range = output.getShape().back();
    addMetric(e, predict, "loss", "cross_entropy", labels, "labels", range, {"loss_sum", "count"});
    if (!e.failed())
      addMetric(e, predict, "accuracy", "accuracy", labels, "labels", range, {"correct", "correct_count"});
  } else {
    addMetric(e, predict, "loss", "mse", output, "target", 0, {"loss_sum", "count"});
  }
  if (e.failed())
    return Status::error(e.takeError());

  OpBuilder &builder = e.builder;
  builder.setInsertionPointToEnd(predict->getBlock());
  int64_t batch = output.isDynamicDim(0) ? 64 : output.getDimSize(0);
  auto adam =
      ir::SpecAttr::get(builder.getContext(), "adam", builder.getDictionaryAttr(e.attribute("lr", 1e-3)));
  auto recipe = ir::RecipeOp::create(builder, NameLoc::get(builder.getStringAttr("recipe")),
                                     FlatSymbolRefAttr::get(builder.getContext(), "loss"),
                                     classes ? FlatSymbolRefAttr::get(builder.getContext(), "accuracy")
                                             : FlatSymbolRefAttr());
  recipe.setBatch(batch);
  recipe.setOptimizerAttr(adam);
  return okStatus();
}

} // namespace gpuc::onnx
