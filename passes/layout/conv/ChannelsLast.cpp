//===- ChannelsLast.cpp - Images transposed ---------------------------------===//
//
// Every op of the groups is built anew beside the old one, from operands in the new order. Old ops are taken
// away in the end; by then what still reads their results stands outside of the groups.
//
//===----------------------------------------------------------------------===//

#include "passes/layout/conv/Channels.h"

#include "dialects/gpuc/Windows.h"
#include "passes/codegen/Codegen.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace gpuc {
namespace {

/// Where dimension `dim` of (N, C, H, W) lies in (N, H, W, C).
int64_t lastOf(int64_t dim) { return ir::kToChannelsFirst[dim]; }

SmallVector<int64_t> numbersInOrder(ArrayRef<int64_t> numbers) {
  return llvm::map_to_vector(ir::kToChannelsLast, [&](int64_t dim) { return numbers[dim]; });
}

/// The dimensions `dims` in the new order of the image, which need not increase.
SmallVector<int64_t> dimsInOrder(ArrayRef<int64_t> dims) { return llvm::map_to_vector(dims, lastOf); }

class Transposing {
public:
  Transposing(Block &block, ArrayRef<LayoutGroup> groups) : block_(block), builder_(block.getParentOp()) {
    for (const LayoutGroup &group : groups) {
      images_.insert_range(group.images);
      ops_.insert_range(group.ops);
    }
  }

  void run() {
    SmallVector<Operation *> old;
    for (Operation &op : llvm::make_early_inc_range(block_)) {
      builder_.setInsertionPoint(&op);
      if (ops_.contains(&op)) {
        rebuild(&op);
        old.push_back(&op);
      } else if (isReduction(&op) && images_.contains(op.getOperand(0))) {
        op.getResult(0).replaceAllUsesWith(reduce(&op));
        op.erase();
      }
    }
    for (Operation *op : llvm::reverse(old)) {
      for (Value result : op->getResults())
        if (!result.use_empty())
          result.replaceAllUsesWith(transpose(last_.lookup(result), ir::kToChannelsFirst));
      op->erase();
    }
  }

private:
  /// Behind what makes the value.
  Value transpose(Value value, ArrayRef<int64_t> permutation) {
    OpBuilder::InsertionGuard guard(builder_);
    builder_.setInsertionPointAfterValue(value);
    return ir::TransposeOp::create(builder_, value.getLoc(), value, permutation);
  }

  /// The image in the new order.
  Value last(Value image) {
    Value &found = last_[image];
    if (!found)
      found = isMadeAnew(image) ? madeAnew(image) : transpose(image, ir::kToChannelsLast);
    return found;
  }

  Value madeAnew(Value image) {
    OpBuilder::InsertionGuard guard(builder_);
    builder_.setInsertionPoint(image.getDefiningOp());
    return gpuc::madeAnew(builder_, image, ir::kToChannelsLast);
  }

  void rebuild(Operation *op) {
    IRMapping mapping;
    for (Value operand : op->getOperands())
      mapping.map(operand, last(operand));
    Operation *made = builder_.clone(*op, mapping);
    for (auto [before, after] : llvm::zip_equal(op->getResults(), made->getResults())) {
      after.setType(ir::permuted(ir::tensorType(before), ir::kToChannelsLast));
      last_[before] = after;
    }
    permuteNumbers(made);
  }

  /// What the op says of single dimensions.
  static void permuteNumbers(Operation *op) {
    TypeSwitch<Operation *>(op)
        .Case<ir::Conv2dOp, ir::Conv2dInputGradientOp, ir::Conv2dFilterGradientOp, ir::MaxPool2dOp,
              ir::MaxPool2dGradientOp, ir::MaxPool2dGatherOp, ir::AvgPool2dOp, ir::AvgPool2dGradientOp>(
            [](auto windowed) { windowed.setChannelsLast(true); })
        .Case([](ir::SliceOp slice) {
          slice.setStarts(numbersInOrder(slice.getStarts()));
          slice.setLimits(numbersInOrder(slice.getLimits()));
          slice.setStrides(numbersInOrder(slice.getStrides()));
        })
        .Case([](ir::PadOp pad) {
          pad.setLow(numbersInOrder(pad.getLow()));
          pad.setHigh(numbersInOrder(pad.getHigh()));
          pad.setInterior(numbersInOrder(pad.getInterior()));
        })
        .Case([](ir::ConcatOp concat) { concat.setDim(lastOf(concat.getDim())); })
        .Case([](ir::ReverseOp reverse) {
          SmallVector<int64_t> dims = dimsInOrder(reverse.getDims());
          llvm::sort(dims);
          reverse.setDims(dims);
        });
  }

  /// The reduction of an image, in the order that it had.
  Value reduce(Operation *op) {
    Value image = last(op->getOperand(0));
    if (foldsAllButChannels(op)) // else a few blocks of threads would do it all
      return fold(builder_, op, fold(builder_, op, image, {1, 2}), {0});
    return foldPermuted(builder_, op, image, ir::kToChannelsLast);
  }

  Block &block_;
  OpBuilder builder_;
  DenseSet<Value> images_;
  DenseSet<Operation *> ops_;
  DenseMap<Value, Value> last_;
};

} // namespace

bool foldsAllButChannels(Operation *reduction) {
  return !isa<ir::ArgmaxOp>(reduction) && foldedDims(reduction) == ArrayRef<int64_t>{0, 2, 3};
}

void transposeToChannelsLast(Block &block, ArrayRef<LayoutGroup> groups) { Transposing(block, groups).run(); }

} // namespace gpuc
