//===- Loss.cpp - A loss and a recipe for an imported model -----------------===//

#include "frontend/onnx/Loss.h"

#include "frontend/onnx/reader/HostTensor.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace gpuc::onnx {
namespace {

RankedTensorType resultType(func::FuncOp function, unsigned index) {
  return cast<RankedTensorType>(function.getResultTypes()[index]);
}

std::string resultName(func::FuncOp function, unsigned index) {
  return function.getResultAttrOfType<StringAttr>(index, "gpuc.name").str();
}

std::string quoted(const std::string &text) { return "'" + text + "'"; }

//===----------------------------------------------------------------------===//
// Which dimension holds the classes
//===----------------------------------------------------------------------===//

/// Whether a reshape only leaves out, or puts in, extents of 1.
bool keepsDimensions(ir::ReshapeOp reshape) {
  auto extents = [](Value value) {
    SmallVector<int64_t> shape(cast<RankedTensorType>(value.getType()).getShape());
    llvm::erase(shape, 1);
    return shape;
  };
  return extents(reshape.getOperand()) == extents(reshape.getResult());
}

/// What made the value, behind ops that leave dimensions where they are.
Operation *makerOf(Value value) {
  Operation *op = value.getDefiningOp();
  auto isPassed = [](Operation *op) {
    auto reshape = dyn_cast<ir::ReshapeOp>(op);
    return op->hasTrait<ir::Pointwise>() || isa<ir::LogSoftmaxOp>(op) ||
           (reshape && keepsDimensions(reshape));
  };
  while (op && op->getNumOperands() > 0 && isPassed(op)) {
    // Of a sum with a bias, what is not repeated.
    Value next;
    for (Value operand : op->getOperands())
      if (!operand.getDefiningOp<ir::BroadcastOp>() && !operand.getDefiningOp<ir::ConstantOp>() && !next)
        next = operand;
    op = next ? next.getDefiningOp() : nullptr;
  }
  return op;
}

/// As PyTorch has it, dimension 1: for images, and for what a convolution has made. Three dimensions else are
/// a language model's [batch, length, classes].
int64_t guessClassDim(Value scores, RankedTensorType type) {
  if (type.getRank() != 3)
    return 1;
  Operation *maker = makerOf(scores);
  return maker && isa<ir::Conv2dOp, ir::Conv2dInputGradientOp>(maker) ? 1 : 2;
}

//===----------------------------------------------------------------------===//
// Losses over an output and a target
//===----------------------------------------------------------------------===//

class LossBuilder {
public:
  LossBuilder(Emitter &e, func::FuncOp predict, const LossSpec &spec, std::vector<std::string> &notes)
      : e_(e), builder_(e.builder), predict_(predict), spec_(spec), notes_(notes) {}

  Status run() {
    GPUC_ASSIGN_OR_RETURN(output_, findOutput(predict_, spec_));
    scores_ = resultType(predict_, output_);
    if (!isa<FloatType>(scores_.getElementType()) || scores_.getRank() < 1)
      return Status::error("the output " + quoted(resultName(predict_, output_)) +
                           " is no tensor of floating-point rows" + cureOfScalar());
    GPUC_RETURN_IF_ERROR(chooseTarget());
    GPUC_RETURN_IF_ERROR(checkWeight());
    addMetric("loss", {"loss_sum", "count"},
              [&](const Tensor &scores, const Tensor &target) { return makeLoss(scores, target); });
    if (spec_.isOfClasses() && !e_.failed())
      addMetric("accuracy", {"correct", "correct_count"}, [&](const Tensor &scores, const Tensor &target) {
        return e_.emit("accuracy", {scores, target}, ignored());
      });
    if (e_.failed())
      return Status::error(e_.takeError());
    addNote();
    return okStatus();
  }

private:
  std::string cureOfScalar() const {
    return scores_.hasStaticShape() && scores_.getNumElements() == 1
               ? ": if it is a loss, say --loss=output:" + resultName(predict_, output_)
               : "; --loss=" + spec_.name + ":output=NAME takes another one";
  }

  //===--------------------------------------------------------------------===//
  // Checks
  //===--------------------------------------------------------------------===//

  Status chooseTarget() {
    targetName_ = spec_.isOfClasses() ? "labels" : "target";
    for (unsigned i = 0; i < predict_.getNumArguments(); ++i)
      if (predict_.getArgAttrOfType<StringAttr>(i, "gpuc.name").getValue() == targetName_)
        return Status::error("the model has an input " + quoted(targetName_) +
                             " of its own; if it computes its loss by it, say --loss=output:NAME, else write "
                             "@loss by hand");
    target_ = scores_;
    if (spec_.name == "bce_with_logits")
      return refuseProbabilities();
    if (!spec_.isOfClasses())
      return okStatus();
    const int64_t rank = scores_.getRank();
    if (rank < 2)
      return Status::error("logits are [batch, …, classes], but the first output is " +
                           toString(scores_.getShape()));
    classDim_ = spec_.dim ? *spec_.dim + (*spec_.dim < 0 ? rank : 0) : guessClassDim(returned(), scores_);
    if (classDim_ < 1 || classDim_ >= rank)
      return Status::error("dim=" + std::to_string(*spec_.dim) + ": the classes of " +
                           toString(scores_.getShape()) + " are in one of the dimensions 1 to " +
                           std::to_string(rank - 1));
    SmallVector<int64_t> rows(scores_.getShape());
    rows.erase(rows.begin() + classDim_);
    target_ = RankedTensorType::get(rows, builder_.getI32Type());
    return refuseProbabilities();
  }

  Status refuseProbabilities() {
    Value scores = returned();
    const bool softmax = scores.getDefiningOp<ir::SoftmaxOp>(),
               sigmoid = scores.getDefiningOp<ir::SigmoidOp>();
    if (!softmax && !(sigmoid && !spec_.isOfClasses()))
      return okStatus();
    const std::string what =
        std::string("the first output is probabilities (") + (softmax ? "Softmax" : "Sigmoid") + ")";
    if (spec_.name == "nll")
      return Status::error(what + ", nll takes their logarithms: export log_softmax");
    return Status::error(what + ": export the logits, of which " + spec_.name + " takes the " +
                         (softmax ? "softmax" : "sigmoid") + " itself");
  }

  Status checkWeight() {
    const int64_t given = static_cast<int64_t>(spec_.weight.size());
    const int64_t wanted = scores_.getDimSize(spec_.isOfClasses() ? classDim_ : scores_.getRank() - 1);
    if (given == 0 || given == wanted || (given == 1 && !spec_.isOfClasses()))
      return okStatus();
    return Status::error(std::string(spec_.isOfClasses() ? "weight" : "pos_weight") + " has " +
                         std::to_string(given) + " numbers, but " + toString(scores_.getShape()) + " has " +
                         std::to_string(wanted) +
                         (spec_.isOfClasses() ? " classes" : " in its last dimension"));
  }

  Value returned() {
    return cast<func::ReturnOp>(predict_.getBody().front().getTerminator()).getOperand(output_);
  }

  //===--------------------------------------------------------------------===//
  // The ops
  //===--------------------------------------------------------------------===//

  using Pair = std::vector<Tensor>;

  SmallVector<NamedAttribute> ignored() {
    if (!spec_.ignoreIndex)
      return {};
    return {e_.attribute("ignore_index", *spec_.ignoreIndex)};
  }

  /// The numbers of weight or pos_weight.
  Tensor weight() {
    int64_t count = static_cast<int64_t>(spec_.weight.size());
    return e_.constant(*fromNumbers(Tensor(&e_, returned()).type(), {count}, spec_.weight));
  }

  Pair makeLoss(const Tensor &scores, const Tensor &target) {
    Pair pair = makeMean(scores, target);
    if (e_.failed() || pair.size() != 2)
      return {};
    if (spec_.name == "smooth_l1") // Over beta it is huber.
      pair[0] = pair[0] / spec_.threshold;
    if (spec_.sums)
      pair[1] = like(pair[1], 1);
    return pair;
  }

  Pair makeMean(const Tensor &scores, const Tensor &target) {
    std::vector<Tensor> operands = {scores, target};
    const bool weighted = !spec_.weight.empty();
    if (weighted)
      operands.push_back(weight());
    const bool isHuber = spec_.name == "huber" || spec_.name == "smooth_l1";
    SmallVector<NamedAttribute> attributes = ignored();
    if (spec_.isOfClasses() || spec_.name == "bce_with_logits")
      attributes.push_back(e_.segments({1, 1, weighted, 0}));
    if (spec_.smoothing != 0)
      attributes.push_back(e_.attribute("smoothing", spec_.smoothing));
    if (isHuber)
      attributes.push_back(e_.attribute("delta", spec_.threshold));
    return e_.emit(isHuber ? "huber" : spec_.name, operands, attributes);
  }

  /// The classes last, as the dialect has them.
  Tensor classesLast(const Tensor &scores) {
    if (!spec_.isOfClasses() || classDim_ == scores.rank() - 1)
      return scores;
    Shape permutation = dimsFrom(0, scores.rank());
    permutation.erase(permutation.begin() + classDim_);
    permutation.push_back(classDim_);
    return transpose(scores, permutation);
  }

  /// A function of the arguments of `predict` and the target, of what `make` makes of the scores and the
  /// target.
  void addMetric(StringRef entry, ArrayRef<StringRef> results,
                 function_ref<Pair(const Tensor &, const Tensor &)> make) {
    builder_.setInsertionPointToEnd(predict_->getBlock());
    auto name = [&](StringRef text) { return builder_.getStringAttr(text); };
    e_.location = NameLoc::get(name(entry));
    SmallVector<Type> types(predict_.getArgumentTypes());
    types.push_back(target_);
    auto function = func::FuncOp::create(builder_, e_.location, entry, builder_.getFunctionType(types, {}));
    Block *body = function.addEntryBlock();
    builder_.setInsertionPointToStart(body);
    auto call = func::CallOp::create(builder_, NameLoc::get(name("predict")), predict_,
                                     body->getArguments().drop_back());
    Pair pair =
        make(classesLast(Tensor(&e_, call.getResult(output_))), Tensor(&e_, body->getArguments().back()));
    if (e_.failed())
      return;
    SmallVector<Value> values;
    for (const Tensor &value : pair)
      values.push_back(value.value());
    func::ReturnOp::create(builder_, e_.location, values);
    function.setType(builder_.getFunctionType(types, TypeRange(ValueRange(values))));
    nameArguments(function);
    for (auto [i, result] : llvm::enumerate(results))
      function.setResultAttr(i, "gpuc.name", name(result));
  }

  void nameArguments(func::FuncOp function) {
    const unsigned target = predict_.getNumArguments();
    for (unsigned i = 0; i < target; ++i) {
      function.setArgAttrs(i, predict_.getArgAttrDict(i));
      function.getArgument(i).setLoc(predict_.getArgument(i).getLoc());
    }
    StringAttr name = builder_.getStringAttr(targetName_);
    function.setArgAttr(target, "gpuc.name", name);
    function.getArgument(target).setLoc(NameLoc::get(name));
    if (!spec_.isOfClasses())
      return;
    const int64_t classes = scores_.getDimSize(classDim_);
    function.setArgAttr(target, "gpuc.range", builder_.getI64IntegerAttr(classes));
    // One of the classes is in the range as it is.
    if (spec_.ignoreIndex && (*spec_.ignoreIndex < 0 || *spec_.ignoreIndex >= classes))
      function.setArgAttr(target, "gpuc.ignored", builder_.getI64IntegerAttr(*spec_.ignoreIndex));
  }

  void addNote() {
    std::string note = "loss: " + spec_.name;
    if (spec_.isOfClasses())
      note += " over dimension " + std::to_string(classDim_) + " (" +
              std::to_string(scores_.getDimSize(classDim_)) + " classes)";
    note += " of output " + quoted(resultName(predict_, output_)) + " " + toString(scores_.getShape()) +
            ", with an input " + quoted(targetName_) + " " + toString(target_.getShape());
    if (spec_.isOfClasses() && scores_.getRank() > 2 && !spec_.dim)
      note += "; --loss=" + spec_.name + ":dim=N takes another dimension for the classes";
    notes_.push_back(note);
  }

  Emitter &e_;
  OpBuilder &builder_;
  func::FuncOp predict_;
  const LossSpec &spec_;
  std::vector<std::string> &notes_;
  unsigned output_ = 0;
  RankedTensorType scores_, target_;
  std::string targetName_;
  int64_t classDim_ = 0;
};

//===----------------------------------------------------------------------===//
// The recipe
//===----------------------------------------------------------------------===//

/// 64 rows if the batch is open, else as many as there are.
int64_t batchOf(func::FuncOp loss) {
  for (Type type : loss.getArgumentTypes())
    if (auto tensor = cast<RankedTensorType>(type); tensor.getRank() > 0)
      return tensor.isDynamicDim(0) ? 64 : tensor.getDimSize(0);
  return 1;
}

void addRecipe(Emitter &e, func::FuncOp predict, bool hasAccuracy) {
  OpBuilder &builder = e.builder;
  auto module = predict->getParentOfType<ModuleOp>();
  builder.setInsertionPointToEnd(module.getBody());
  auto symbol = [&](StringRef name) { return FlatSymbolRefAttr::get(builder.getContext(), name); };
  auto recipe = ir::RecipeOp::create(builder, NameLoc::get(builder.getStringAttr("recipe")), symbol("loss"),
                                     hasAccuracy ? symbol("accuracy") : FlatSymbolRefAttr());
  recipe.setBatch(batchOf(module.lookupSymbol<func::FuncOp>("loss")));
  recipe.setOptimizerAttr(
      ir::SpecAttr::get(builder.getContext(), "adam", builder.getDictionaryAttr(e.attribute("lr", 1e-3))));
}

} // namespace

Result<unsigned> findOutput(func::FuncOp predict, const LossSpec &spec) {
  std::vector<std::string> names;
  for (unsigned i = 0; i < predict.getNumResults(); ++i)
    names.push_back(resultName(predict, i));
  auto named = llvm::find(names, spec.output);
  if (spec.output.empty() || named != names.end())
    return static_cast<unsigned>(spec.output.empty() ? 0 : named - names.begin());
  return Status::error("the model has no output " + quoted(spec.output) + "; it has '" +
                       llvm::join(names, "', '") + "'");
}

Status addLoss(Emitter &e, func::FuncOp predict, const LossSpec &spec, std::vector<std::string> &notes) {
  GPUC_RETURN_IF_ERROR(spec.isModels() ? addModelsLoss(e, predict, spec, notes)
                                       : LossBuilder(e, predict, spec, notes).run());
  addRecipe(e, predict, spec.isOfClasses());
  return okStatus();
}

} // namespace gpuc::onnx
