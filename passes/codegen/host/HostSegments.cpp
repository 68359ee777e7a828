//===- HostSegments.cpp - Several kernels as one function --------------------===//
//
// A loop over a table: a row for each part of a segment holds where its tiles begin, which function computes
// it and where the list of its operands begins. A deep model's updates have a few functions among hundreds of
// segments, and the code does not grow with these.
//
// First comes the first part of each segment, then the second of each, and so on. So threads that share the
// launch equally share each segment equally, and find the halves or quarters of it that they have written
// themselves.
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/host/HostKernel.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace gpuc::codegen {
namespace {

/// The columns of the table. The next row says where this part's tiles end.
enum Column { FirstTile, OwnFirstTile, FirstOperand, EndOfOperands, Callee, columns };

constexpr int64_t partsOfSegment = 4;

class SegmentsEmitter {
public:
  SegmentsEmitter(ModuleOp module, StringRef symbol, ArrayRef<HostSegment> segments)
      : builder_(module.getLoc(), module.getContext()), segments_(segments),
        pointer_(LLVM::LLVMPointerType::get(module.getContext())), integer_(builder_.getI64Type()) {
    OpBuilder globals = OpBuilder::atBlockEnd(module.getBody());
    auto type = builder_.getFunctionType({pointer_, integer_, integer_}, {});
    fillTables();
    for (const auto &[callee, number] : callees_)
      func::FuncOp::create(globals, module.getLoc(), callee, type).setPrivate();
    function_ = func::FuncOp::create(globals, module.getLoc(), symbol, type);
    builder_.setInsertionPointToStart(function_.addEntryBlock());
    rowsTable_ = emitNumbers(builder_, globals, (symbol + ".segments").str(), rows_);
    operandsTable_ = emitNumbers(builder_, globals, (symbol + ".operands").str(), operands_);
  }

  void run() {
    own_ = LLVM::AllocaOp::create(builder_, pointer_, pointer_, number(mostOperands_));
    Value one = number(1);
    emitLoop(builder_, number(0), number(parts_), one, {}, [&](Value part, const State &) {
      emitPart(part);
      return State();
    });
    func::ReturnOp::create(builder_);
  }

private:
  void fillTables() {
    SmallVector<int64_t> firstOperands;
    for (const HostSegment &segment : segments_) {
      callees_.insert({segment.symbol, callees_.size()});
      firstOperands.push_back(operands_.size());
      llvm::append_range(operands_, segment.operands);
      mostOperands_ = std::max<int64_t>(mostOperands_, segment.operands.size());
    }
    firstOperands.push_back(operands_.size());
    int64_t tile = 0;
    for (int64_t part = 0; part < partsOfSegment; ++part)
      for (auto [number, segment] : llvm::enumerate(segments_)) {
        int64_t first = segment.tiles * part / partsOfSegment;
        int64_t end = segment.tiles * (part + 1) / partsOfSegment;
        if (first == end)
          continue;
        rows_.append({tile, first, firstOperands[number], firstOperands[number + 1],
                      static_cast<int64_t>(callees_.lookup(segment.symbol))});
        tile += end - first;
      }
    parts_ = rows_.size() / columns;
    rows_.append({tile, 0, 0, 0, 0});
  }

  void emitPart(Value part) {
    Value row = times(part, columns);
    Value first = entry(rowsTable_, plus(row, FirstTile)),
          next = entry(rowsTable_, plus(row, columns + FirstTile));
    Value low = arith::MaxSIOp::create(builder_, function_.getArgument(1), first);
    Value high = arith::MinSIOp::create(builder_, function_.getArgument(2), next);
    Value any = arith::CmpIOp::create(builder_, arith::CmpIPredicate::slt, low, high);
    ifHolds(builder_, any, [&] {
      copyOperands(row);
      Value before = arith::SubIOp::create(builder_, first, entry(rowsTable_, plus(row, OwnFirstTile)));
      Value ownLow = arith::SubIOp::create(builder_, low, before),
            ownHigh = arith::SubIOp::create(builder_, high, before);
      callOneOf(entry(rowsTable_, plus(row, Callee)), {own_, ownLow, ownHigh});
    });
  }

  /// Gathers the segment's operands, as its function takes them.
  void copyOperands(Value row) {
    Value from = entry(rowsTable_, plus(row, FirstOperand)), to = entry(rowsTable_, plus(row, EndOfOperands));
    emitLoop(builder_, from, to, number(1), {}, [&](Value at, const State &) {
      Value which = entry(operandsTable_, at);
      Value operand =
          LLVM::LoadOp::create(builder_, pointer_, address(function_.getArgument(0), pointer_, which));
      Value place = arith::SubIOp::create(builder_, at, from);
      LLVM::StoreOp::create(builder_, operand, address(own_, pointer_, place));
      return State();
    });
  }

  void callOneOf(Value callee, ArrayRef<Value> arguments) {
    Value which = arith::IndexCastOp::create(builder_, builder_.getIndexType(), callee);
    SmallVector<int64_t> cases;
    for (size_t number = 1; number < callees_.size(); ++number)
      cases.push_back(number);
    auto choice = scf::IndexSwitchOp::create(builder_, TypeRange(), which, cases, cases.size());
    for (const auto &[symbol, number] : callees_) {
      Region &region = number == 0 ? choice.getDefaultRegion() : choice.getCaseRegions()[number - 1];
      builder_.setInsertionPointToStart(&region.emplaceBlock());
      func::CallOp::create(builder_, symbol, TypeRange(), arguments);
      scf::YieldOp::create(builder_);
    }
  }

  Value number(int64_t value) { return constantInt(builder_, integer_, value).value(); }
  Value plus(Value a, int64_t b) { return arith::AddIOp::create(builder_, a, number(b)); }
  Value times(Value a, int64_t b) { return arith::MulIOp::create(builder_, a, number(b)); }
  Value address(Value base, Type element, Value at) {
    return LLVM::GEPOp::create(builder_, pointer_, element, base, ArrayRef<LLVM::GEPArg>{at});
  }
  Value entry(Value table, Value at) {
    return LLVM::LoadOp::create(builder_, integer_, address(table, integer_, at));
  }

  ImplicitLocOpBuilder builder_;
  ArrayRef<HostSegment> segments_;
  Type pointer_, integer_;
  llvm::MapVector<StringRef, size_t> callees_;
  SmallVector<int64_t> rows_, operands_;
  int64_t mostOperands_ = 0, parts_ = 0;
  func::FuncOp function_;
  Value rowsTable_, operandsTable_, own_;
};

} // namespace

void emitHostSegments(ModuleOp module, StringRef symbol, ArrayRef<HostSegment> segments) {
  SegmentsEmitter(module, symbol, segments).run();
}

} // namespace gpuc::codegen
