//===- MaskPadding.cpp - Rows that hold no sample count nothing --------------===//
//
// Contract: the last batch of a data set may be padded with rows that hold no sample. Each function that the
// recipe names gets an argument `rows : tensor<i32>`, how many rows hold one, and each loss in it
// (LossOpInterface) that has no mask of its own gets the mask iota < rows. A function without losses is left
// alone: padding it is for the runtime to refuse.
//
// So do functions that ask for it (`gpuc.counts_rows`), and functions whose gradient such a function takes,
// if there are losses in them. Batch norms that are synchronised over ranks count these rows alone: how many
// a rank has hangs on where the batch ends.
//
// A loss over more rows than the batch (the tokens of a batch of sentences) is taken to hold each sample's
// rows together.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/CountsRows.h"
#include "dialects/gpuc/Expr.h"
#include "passes/Passes.h"
#include "passes/base/Entries.h"
#include "passes/base/Inline.h"

namespace gpuc {
#define GEN_PASS_DEF_MASKPADDINGPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

class MaskPaddingPass : public impl::MaskPaddingPassBase<MaskPaddingPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto batch = module->getAttrOfType<IntegerAttr>("gpuc.batch");
    if (!batch)
      return; // Nothing says how many rows a sample has.
    for (auto recipe : module.getOps<ir::RecipeOp>())
      for (StringRef key : {"loss", "accuracy"})
        if (auto symbol = recipe->getAttrOfType<FlatSymbolRefAttr>(key))
          if (failed(maskFunction(recipe, key, symbol, batch.getInt())))
            return signalPassFailure();
    for (auto function : module.getOps<func::FuncOp>())
      if (function->removeAttr(kCountsRowsAttr) && failed(maskLosses(function, batch.getInt())))
        return signalPassFailure();
    // What gpuc-slice-batch has made of the loss.
    for (auto function : module.getOps<func::FuncOp>())
      if (auto partition = function->getAttrOfType<ir::PartitionAttr>(ir::kPartitionAttr))
        if (failed(maskLosses(function, partition.getRows())))
          return signalPassFailure();
  }

  /// Masks the losses of the function under `key` of the recipe. Others may use that function, by calls or
  /// gradients, so that it is a copy which gets the argument; it takes the place of a function that nobody
  /// else uses.
  static LogicalResult maskFunction(ir::RecipeOp recipe, StringRef key, FlatSymbolRefAttr symbol,
                                    int64_t batch) {
    auto function = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(recipe, symbol);
    if (!function || function.isExternal())
      return recipe.emitOpError("names @") << symbol.getValue() << ", which has no body in this module";
    if (argumentOfRole(function, kRowsRole))
      return success();
    OpBuilder builder(function);
    builder.setInsertionPointAfter(function);
    auto copy = cast<func::FuncOp>(builder.clone(*function));
    copy.setName((symbol.getValue() + "_of_rows").str());
    copy.setPrivate();
    if (failed(inlineCalls(copy)))
      return failure();
    if (unmaskedLosses(copy).empty()) {
      copy.erase();
      return success();
    }
    recipe->setAttr(key, FlatSymbolRefAttr::get(copy.getSymNameAttr()));
    function->removeAttr(ir::kPartitionAttr); // It is the copy that is the loss now.
    if (SymbolTable::symbolKnownUseEmpty(function, function->getParentOp())) {
      function.erase();
      copy.setName(symbol.getValue());
      recipe->setAttr(key, symbol);
    }
    auto partition = copy->getAttrOfType<ir::PartitionAttr>(ir::kPartitionAttr);
    return maskLosses(copy, partition ? partition.getRows() : batch);
  }

  static SmallVector<ir::LossOpInterface> unmaskedLosses(func::FuncOp function) {
    SmallVector<ir::LossOpInterface> losses;
    function.walk([&](ir::LossOpInterface loss) {
      if (!loss.getRowMask())
        losses.push_back(loss);
    });
    return losses;
  }

  /// Whether there are losses without a mask in the function, or in those that it uses.
  static bool countsRows(func::FuncOp function) {
    llvm::SetVector<func::FuncOp> functions;
    functions.insert(function);
    for (size_t next = 0; next < functions.size(); ++next) {
      if (!unmaskedLosses(functions[next]).empty())
        return true;
      functions.insert_range(functionsIn(functions[next]));
    }
    return false;
  }

  /// Adds the argument, if there are losses for it.
  static LogicalResult maskLosses(func::FuncOp function, int64_t batch) {
    SmallVector<ir::LossOpInterface> losses = unmaskedLosses(function);
    if (!countsRows(function) || argumentOfRole(function, kRowsRole))
      return success();
    Builder attributes(function.getContext());
    auto count = RankedTensorType::get({}, attributes.getI32Type());
    NamedAttribute named[] = {attributes.getNamedAttr(kNameAttr, attributes.getStringAttr(kRowsRole)),
                              attributes.getNamedAttr(kRoleAttr, attributes.getStringAttr(kRowsRole))};
    unsigned end = function.getNumArguments();
    if (failed(function.insertArgument(end, count, attributes.getDictionaryAttr(named), function.getLoc())))
      return failure();
    for (ir::LossOpInterface loss : losses) {
      if (loss->getBlock() != &function.getBody().front())
        return loss->emitOpError("stands in a loop: give it a mask for rows that are padding, or compute it "
                                 "behind the loop, of what the loop stacks");
      if (loss.getRows() % batch != 0)
        return loss->emitOpError("is over ") << loss.getRows() << " rows, not a multiple of the batch of "
                                             << batch << ": give it a mask for rows that are padding";
      loss.setRowMask(buildMask(loss, function.getArgument(end), batch));
    }
    if (failed(countRows(function, function.getArgument(end), batch)))
      return failure();
    SmallVector<ir::GradientOp> gradients;
    function.walk([&](ir::GradientOp gradient) { gradients.push_back(gradient); });
    for (ir::GradientOp gradient : gradients)
      if (failed(maskGradient(gradient, function.getArgument(end), batch)))
        return failure();
    return success();
  }

  /// Has the gradient be taken of a copy of its function that is told the rows.
  static LogicalResult maskGradient(ir::GradientOp gradient, Value rows, int64_t batch) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(gradient, gradient.getCalleeAttr());
    if (!countsRows(callee) || argumentOfRole(callee, kRowsRole))
      return success();
    func::FuncOp copy = callee.clone();
    copy.setPrivate();
    copy.setName((callee.getName() + "_of_rows").str());
    SymbolTable(callee->getParentOfType<ModuleOp>()).insert(copy); // under a name of its own
    if (failed(inlineCalls(copy)) || failed(maskLosses(copy, batch)))
      return failure();
    if (gradient->getBlock() != &gradient->getParentOfType<func::FuncOp>().getBody().front())
      return gradient.emitOpError(
          "stands in a loop, and is of losses: give these a mask for rows that are padding");
    gradient.setCallee(copy.getName());
    gradient.getInputsMutable().append(rows);
    return success();
  }

  static LogicalResult countRows(func::FuncOp function, Value rows, int64_t batch) {
    for (auto norm : function.getOps<ir::BatchNormOp>()) {
      const int64_t all = ir::tensorType(norm.getOperand()).getDimSize(0);
      if (!norm.getSync() || norm.getRows())
        continue;
      if (all % batch != 0)
        return norm.emitOpError("is over ")
               << all << " rows, not a multiple of the batch of " << batch
               << ": leave out sync_batch_norm, or have it normalise the whole batch";
      OpBuilder builder(norm);
      norm.getRowsMutable().assign(rowsOf(builder, norm.getLoc(), rows, all / batch));
    }
    return success();
  }

  /// Of which a sample has `each`.
  static ir::Expr rowsOf(OpBuilder &builder, Location location, Value rows, int64_t each) {
    ir::Expr limit(builder, location, rows);
    return each == 1 ? limit : limit * static_cast<double>(each);
  }

  /// iota < rows · (rows of the loss / batch), as tensor<rows of the loss x i1>.
  static Value buildMask(ir::LossOpInterface loss, Value rows, int64_t batch) {
    OpBuilder builder(loss);
    ir::Expr limit = rowsOf(builder, loss->getLoc(), rows, loss.getRows() / batch);
    auto type = RankedTensorType::get({loss.getRows()}, builder.getI32Type());
    ir::Expr index = limit.make<ir::IotaOp>(type, 0);
    return index < broadcastScalar(limit, index.shape());
  }
};

} // namespace
} // namespace gpuc
