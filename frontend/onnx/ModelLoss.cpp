//===- ModelLoss.cpp - A loss that the model computes itself ----------------===//
//
// An output of one number becomes @loss: (value, 1), a batch counting as one. Nothing is known of how its
// rows make up that number, so that padding cannot be left out: no loss in it may be masked, and the trainer
// takes full batches only. It is otherwise where the number is a loss of the dialect's divided by its count,
// which LossOps.cpp makes where rows are samples: then @loss is that pair.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/Loss.h"

#include "dialects/gpuc/CountsRows.h"

using namespace mlir;

namespace gpuc::onnx {
namespace {

Operation *terminatorOf(func::FuncOp function) { return function.getBody().front().getTerminator(); }

bool isOneNumber(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return isa<FloatType>(tensor.getElementType()) && tensor.hasStaticShape() && tensor.getNumElements() == 1;
}

/// The first output of one number, if none is named.
Result<unsigned> findLoss(func::FuncOp predict, const LossSpec &spec) {
  GPUC_ASSIGN_OR_RETURN(unsigned named, findOutput(predict, spec));
  if (isOneNumber(predict.getResultTypes()[named]))
    return named;
  auto types = predict.getResultTypes();
  const auto *first = llvm::find_if(types, isOneNumber);
  if (spec.output.empty() && first != types.end())
    return static_cast<unsigned>(first - types.begin());
  if (spec.output.empty())
    return Status::error("the model has no output of one floating-point number, which a loss is");
  return Status::error("output '" + spec.output + "' has shape " +
                       toString(cast<RankedTensorType>(types[named]).getShape()) +
                       ": a loss is one floating-point number");
}

/// Behind reshapes and changes of precision.
Value strip(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<ir::ReshapeOp, ir::CastOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// The loss whose sum this is, and, if it is divided, whose count it is divided by; or null.
ir::LossOpInterface lossOf(Value value, bool &divided) {
  value = strip(value);
  auto quotient = value.getDefiningOp<ir::DivOp>();
  divided = quotient != nullptr;
  Value sum = quotient ? strip(quotient.getLhs()) : value;
  auto loss = sum.getDefiningOp<ir::LossOpInterface>();
  if (!loss || sum != loss->getResult(0) || (quotient && strip(quotient.getRhs()) != loss->getResult(1)))
    return {};
  return loss;
}

/// Losses that are not all there is of the number must not be masked: the rest of it would not be.
void maskNothing(Emitter &e, func::FuncOp function) {
  function.walk([&](ir::LossOpInterface loss) {
    e.builder.setInsertionPoint(loss);
    if (Tensor all = e.constant({loss.getRows()}, DataType::i1, 1))
      loss.setRowMask(all.value());
  });
}

} // namespace

SmallVector<Value> lossPair(Emitter &e, func::FuncOp function, Value value, bool *padded) {
  bool divided = false;
  ir::LossOpInterface loss = lossOf(value, divided);
  unsigned losses = 0;
  function.walk([&](ir::LossOpInterface) { ++losses; });
  const bool isWhole = loss && losses == 1;
  if (padded)
    *padded = isWhole;
  if (!isWhole)
    maskNothing(e, function);
  e.builder.setInsertionPoint(terminatorOf(function));
  if (isWhole) {
    Tensor sum(&e, loss->getResult(0)), count(&e, loss->getResult(1));
    return {sum.value(), divided ? count.value() : like(sum, 1).value()};
  }
  Tensor number = reshape(Tensor(&e, value), {});
  if (number.type() != DataType::f64)
    number = cast(number, DataType::f32);
  return {number.value(), like(number, 1).value()};
}

void countOnce(func::FuncOp function, Value count, bool padded) {
  if (padded && !count.getDefiningOp<ir::LossOpInterface>())
    function.setResultAttr(1, kCountsOnceAttr, UnitAttr::get(function.getContext()));
}

namespace {

/// Takes the loss out of what is predicted, and the inputs that nothing else hangs on.
void dropFromPredict(func::FuncOp predict, unsigned index) {
  BitVector usedBefore(predict.getNumArguments()), unused(predict.getNumArguments()),
      result(predict.getNumResults());
  for (BlockArgument argument : predict.getArguments())
    usedBefore[argument.getArgNumber()] = !argument.use_empty();
  terminatorOf(predict)->eraseOperand(index);
  result.set(index);
  (void)predict.eraseResults(result);
  eraseUnused(predict.getBody().front());
  for (BlockArgument argument : predict.getArguments())
    unused[argument.getArgNumber()] = argument.use_empty() && usedBefore[argument.getArgNumber()];
  (void)predict.eraseArguments(unused);
}

std::string noteOf(const std::string &name, bool padded, bool alone) {
  std::string note = "loss: the model's own output '" + name + "'";
  note +=
      padded
          ? "; rows that are padding are left out"
          : ", in which rows that are padding cannot be left out: gpuc-train takes whole batches only, and "
            "each counts as one";
  return note + (alone ? "; predict gives nothing but it" : "");
}

} // namespace

Status addModelsLoss(Emitter &e, func::FuncOp predict, const LossSpec &spec,
                     std::vector<std::string> &notes) {
  GPUC_ASSIGN_OR_RETURN(unsigned index, findLoss(predict, spec));
  const std::string name = predict.getResultAttrOfType<StringAttr>(index, "gpuc.name").str();
  e.builder.setInsertionPointAfter(predict);
  e.location = NameLoc::get(e.builder.getStringAttr("loss"));
  auto loss = cast<func::FuncOp>(e.builder.clone(*predict));
  loss.setName("loss");
  loss->setLoc(e.location);
  bool padded = false;
  SmallVector<Value> values = lossPair(e, loss, terminatorOf(loss)->getOperand(index), &padded);
  if (e.failed())
    return Status::error(e.takeError());
  terminatorOf(loss)->setOperands(values);
  SmallVector<Attribute> names;
  for (StringRef result : {"loss_sum", "count"})
    names.push_back(
        e.builder.getDictionaryAttr(e.builder.getNamedAttr("gpuc.name", e.builder.getStringAttr(result))));
  loss.setType(e.builder.getFunctionType(loss.getArgumentTypes(), TypeRange(ValueRange(values))));
  loss.setResAttrsAttr(e.builder.getArrayAttr(names));
  countOnce(loss, values[1], padded);
  eraseUnused(loss.getBody().front());
  const bool alone = predict.getNumResults() == 1;
  if (!alone)
    dropFromPredict(predict, index);
  notes.push_back(noteOf(name, padded, alone));
  return okStatus();
}

} // namespace gpuc::onnx
