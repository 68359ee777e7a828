//===- CudaSegments.cpp - Several kernels as one grid ------------------------===//
//
// Each segment has blocks of its own, and each block a run of its segment's tiles. A block finds its segment
// by a binary search, and in a table of the code what there is to know of it: its tiles, where the list of
// its operands begins, and which of the bodies in the kernel is its own. Updates of tensors of any size share
// a body; what differs by more than that has one for each shape.
//
// The pointers are one parameter, an array, for a parameter may be indexed by a register and a list of them
// may not. To whoever launches the kernel the two are the same: parameters lie one after another.
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/cuda/CudaKernel.h"

#include "dialects/gpuc/GpucOps.h"
#include "passes/codegen/KernelText.h"
#include "passes/codegen/Pointwise.h"
#include "passes/codegen/Segments.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gpuc::ir;

namespace gpuc::codegen {
namespace {

bool isOneElement(Value value) { return elementCount(value.getType()) == 1; }

/// Whether the kernel computes each element by itself from its like and from scalars, so that its shape does
/// not matter.
bool isFlat(Block &body) {
  return llvm::all_of(body.without_terminator(), [](Operation &op) {
    auto constant = dyn_cast<ConstantOp>(op);
    return isPointwise(&op) || (constant && constant.getSplat()) ||
           (isa<BroadcastOp>(op) && isOneElement(op.getOperand(0)));
  });
}

/// A segment's loops, and which blocks run them.
struct Part {
  Segment segment;
  CudaLoops loops;
  int64_t tilesPerBlock, blocks;

  explicit Part(Segment found)
      : segment(std::move(found)), loops(Kernel(*segment.body), /*mayWiden=*/false),
        tilesPerBlock(std::max<int64_t>(1, llvm::divideCeil(loops.tiles(), kMostBlocks))),
        blocks(llvm::divideCeil(loops.tiles(), tilesPerBlock)) {}
};

std::vector<Part> partsOf(Block &body) {
  std::vector<Part> parts;
  for (const Segment &segment : segmentsOf(body))
    parts.emplace_back(segment);
  return parts;
}

/// The columns of the table.
enum Column { FirstBlock, TilesPerBlock, Tiles, Outputs, FirstOperand, Body, columns };

class SegmentsEmitter {
public:
  SegmentsEmitter(gpu::GPUModuleOp module, StringRef symbol, ArrayRef<Part> parts, size_t operands)
      : function_(createCudaFunction(module, symbol, 1, parts.front().loops.block())),
        builder_(function_.getLoc(), function_.getContext()), parts_(parts),
        pointer_(LLVM::LLVMPointerType::get(function_.getContext())), integer_(builder_.getI64Type()) {
    function_->setAttr(kOperandArrayAttr, builder_.getI64IntegerAttr(operands));
    builder_.setInsertionPointToStart(&function_.getBody().front());
    fillTables();
    OpBuilder globals = OpBuilder::atBlockBegin(module.getBody());
    firstsTable_ = emitNumbers(builder_, globals, (symbol + ".first_blocks").str(), firsts_);
    rowsTable_ = emitNumbers(builder_, globals, (symbol + ".segments").str(), rows_);
    operandsTable_ = emitNumbers(builder_, globals, (symbol + ".operands").str(), operands_);
  }

  void run() {
    Value block = asI64(builder_, gpu::BlockIdOp::create(builder_, gpu::Dimension::x));
    row_ = times(find(block), number(columns));
    Value own = minus(block, column(FirstBlock));
    Value perBlock = column(TilesPerBlock), tiles = column(Tiles);
    Value first = times(own, perBlock);
    Value end = arith::MinUIOp::create(builder_, plus(first, perBlock), tiles);
    emitBodies(first, end);
    gpu::ReturnOp::create(builder_);
  }

private:
  /// The segment with the most outputs stands for all of its body: its counts need the widest registers.
  void fillTables() {
    llvm::StringMap<size_t> known;
    int64_t block = 0;
    for (const Part &part : parts_) {
      Block &body = *part.segment.body;
      auto [entry, isNew] =
          known.try_emplace(isFlat(body) ? textWithoutShapes(body) : textOfBody(body), bodies_.size());
      if (isNew)
        bodies_.push_back(&part);
      const Part *&chosen = bodies_[entry->second];
      if (part.loops.outputs > chosen->loops.outputs)
        chosen = &part;
      firsts_.push_back(block);
      rows_.append({block, part.tilesPerBlock, part.loops.tiles(), part.loops.outputs,
                    static_cast<int64_t>(operands_.size()), static_cast<int64_t>(entry->second)});
      llvm::append_range(operands_, part.segment.operands);
      block += part.blocks;
    }
    firsts_.resize(llvm::PowerOf2Ceil(firsts_.size()), INT64_MAX);
  }

  /// The last segment whose first block is not after `block`.
  Value find(Value block) {
    Value found = number(0);
    for (size_t step = firsts_.size() / 2; step > 0; step /= 2) {
      Value next = plus(found, number(step));
      Value reached =
          arith::CmpIOp::create(builder_, arith::CmpIPredicate::sle, entry(firstsTable_, next), block);
      found = arith::SelectOp::create(builder_, reached, next, found);
    }
    return found;
  }

  void emitBodies(Value first, Value end) {
    Value which = arith::IndexCastOp::create(builder_, builder_.getIndexType(), column(Body));
    Value outputs = column(Outputs), operands = column(FirstOperand);
    SmallVector<int64_t> cases;
    for (size_t body = 1; body < bodies_.size(); ++body)
      cases.push_back(body);
    auto choice = scf::IndexSwitchOp::create(builder_, TypeRange(), which, cases, cases.size());
    for (auto [body, part] : llvm::enumerate(bodies_)) {
      Region &region = body == 0 ? choice.getDefaultRegion() : choice.getCaseRegions()[body - 1];
      builder_.setInsertionPointToStart(&region.emplaceBlock());
      Kernel kernel(*part->segment.body);
      CudaTiles tiles{first, end, /*step=*/1, outputs, part->tilesPerBlock > 1};
      shared_.beginAnew(); // a block has one of the bodies
      CudaKernelEmitter(function_, shared_, builder_, kernel, part->loops,
                        loadPointers(operands, part->segment.operands.size()), tiles)
          .run();
      scf::YieldOp::create(builder_);
    }
    builder_.setInsertionPointAfter(choice);
  }

  SmallVector<Value> loadPointers(Value firstOperand, size_t count) {
    SmallVector<Value> pointers;
    for (size_t operand = 0; operand < count; ++operand) {
      Value which = entry(operandsTable_, plus(firstOperand, number(operand)));
      pointers.push_back(LLVM::LoadOp::create(builder_, pointer_,
                                              address(function_.getBody().getArgument(0), pointer_, which)));
    }
    return pointers;
  }

  Value number(int64_t value) { return constantInt(builder_, integer_, value).value(); }
  Value plus(Value a, Value b) { return arith::AddIOp::create(builder_, a, b); }
  Value minus(Value a, Value b) { return arith::SubIOp::create(builder_, a, b); }
  Value times(Value a, Value b) { return arith::MulIOp::create(builder_, a, b); }
  Value address(Value base, Type element, Value at) {
    return LLVM::GEPOp::create(builder_, pointer_, element, base, ArrayRef<LLVM::GEPArg>{at});
  }
  Value entry(Value table, Value at) {
    return LLVM::LoadOp::create(builder_, integer_, address(table, integer_, at));
  }
  Value column(Column column) { return entry(rowsTable_, plus(row_, number(column))); }

  gpu::GPUFuncOp function_;
  SharedArrays shared_{function_};
  ImplicitLocOpBuilder builder_;
  ArrayRef<Part> parts_;
  Type pointer_, integer_;
  SmallVector<const Part *> bodies_;
  SmallVector<int64_t> firsts_, rows_, operands_;
  Value firstsTable_, rowsTable_, operandsTable_, row_;
};

} // namespace

void emitCudaSegments(gpu::GPUModuleOp module, StringRef symbol, Block &body) {
  std::vector<Part> parts = partsOf(body);
  SegmentsEmitter(module, symbol, parts, body.getNumArguments() + body.getTerminator()->getNumOperands())
      .run();
}

CudaSchedule scheduleCudaSegments(Block &body) {
  CudaSchedule schedule{0, 0};
  for (const Part &part : partsOf(body)) {
    schedule.grid += part.blocks;
    schedule.block = part.loops.block();
  }
  schedule.grid = std::max<uint32_t>(1, schedule.grid);
  return schedule;
}

} // namespace gpuc::codegen
