//===- ElementMemory.cpp - Loads and stores of the element emitter ----------===//
//
// How an address moves along the lanes decides the load: not at all, one scalar load in the outermost loop
// that knows the address; by one, a vector load; by a few, as many vector loads, from which the lanes are
// picked; otherwise one load for each lane.
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/ElementEmitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace gpuc::ir;

namespace gpuc::codegen {

Value ElementEmitter::elementPointer(Value pointer, ElementKind kind, Expr offset) {
  Type element = memoryType(builder_.getContext(), kind, 1);
  Type type = LLVM::LLVMPointerType::get(builder_.getContext());
  if (offset.lanes() > 1)
    type = VectorType::get({offset.lanes()}, type);
  const bool splits = splitsAddresses_ && lanes_ > 1 && offset.lanes() == 1;
  auto sum = splits ? offset.value().getDefiningOp<arith::AddIOp>() : nullptr;
  if (sum && sum.getRhs() == coordinates_[laneGroup_].first.expr.value()) {
    pointer = elementPointer(pointer, kind, Expr(builder_, sum.getLhs()));
    offset = Expr(builder_, sum.getRhs());
  }
  return LLVM::GEPOp::create(builder_, type, element, pointer, ArrayRef<LLVM::GEPArg>{offset.value()});
}

int64_t ElementEmitter::vectorAlignment(ElementKind kind) const {
  const int64_t element = bytesOf(kind);
  return std::clamp(alignment_, element, element * lanes_);
}

static Expr allLanes(ImplicitLocOpBuilder &builder, int64_t lanes) {
  return constantInt(builder, VectorType::get({lanes}, builder.getI1Type()), 1);
}

bool ElementEmitter::isInside(const Index &index, ArrayRef<int64_t> shape) const {
  return llvm::all_of_zip(index, shape, [&](const Affine &position, int64_t extent) {
    return whereIs(position, extent) == Where::Inside;
  });
}

Known ElementEmitter::loadAt(Value pointer, ElementKind kind, ArrayRef<int64_t> shape, const Index &index,
                             const Guard &given) {
  // What a guard keeps out of an image may be read all the same of what has no image: a channel's factor is
  // one number, not a gather under a mask.
  const Guard guard = isInside(index, shape) ? Guard() : given;
  int64_t laneStride;
  Known offset = staticPart(linearAddress(index, shape, kernel_.space()), laneStride);
  for (auto [entry, stride] : llvm::zip_equal(index, rowMajorStrides(shape)))
    if (entry.isDynamic) {
      int64_t scale = stride * entry.dynamicScale;
      Known dynamic{Expr(builder_, entry.dynamic), entry.dynamicLevel};
      offset =
          combine({offset, dynamic}, [&](ArrayRef<Expr> x) { return x[0] + x[1] * x[1].integer(scale); });
    }
  int where = std::max(offset.level, guard.expr ? guard.level : 0);
  bool perLane = offset.isVector() || (guard.expr && guard.isVector()) || laneStride != 0;
  if (!perLane)
    return loadScalar(pointer, kind, offset.expr, guard, where);
  return loadVector(pointer, kind, offset.expr, laneStride, guard, std::max(where, tailMask_ ? level() : 0));
}

Known ElementEmitter::loadScalar(Value pointer, ElementKind kind, Expr offset, const Guard &guard,
                                 int where) {
  Type type = memoryType(builder_.getContext(), kind, 1);
  auto load = [&] {
    Value address = elementPointer(pointer, kind, offset);
    return Expr(builder_, LLVM::LoadOp::create(builder_, type, address, bytesOf(kind)));
  };
  if (!guard.expr)
    return at(where, [&] { return fromMemory(load(), kind); });
  return at(where, [&] {
    auto choice = scf::IfOp::create(builder_, TypeRange{type}, guard.expr.value(), /*withElseRegion=*/true);
    OpBuilder::InsertionGuard insertion(builder_);
    builder_.setInsertionPointToStart(&choice.getThenRegion().front());
    scf::YieldOp::create(builder_, load().value());
    builder_.setInsertionPointToStart(&choice.getElseRegion().front());
    scf::YieldOp::create(builder_, constant(builder_, type, 0).value());
    builder_.setInsertionPointAfter(choice);
    return fromMemory(Expr(builder_, choice.getResult(0)), kind);
  });
}

/// Processors gather lane by lane: a pooling of 3x3 by strides of 2 takes 8 times as long so.
constexpr int64_t mostLoadsApart = 4;

/// Lanes that lie `stride` elements apart, from as many loads one behind the other: nothing is read behind
/// the last lane's element, and under a mask nothing that no lane of it wants.
Expr ElementEmitter::loadApart(Value pointer, ElementKind kind, Expr offset, int64_t stride, Expr mask) {
  Type type = memoryType(builder_.getContext(), kind, lanes_);
  const int64_t bytes = bytesOf(kind);
  Value zeros = constant(builder_, type, 0).value(), picked = zeros;
  for (int64_t load = 0; load < stride; ++load) {
    const int64_t begin = load * (lanes_ - 1); // so that the last one ends with the last lane's element
    SmallVector<int32_t> lanes, wanting(lanes_, static_cast<int32_t>(lanes_));
    for (int64_t lane = 0; lane < lanes_; ++lane) {
      const int64_t place = lane * stride - begin;
      const bool isHere = place >= 0 && place < lanes_;
      lanes.push_back(static_cast<int32_t>(isHere ? lanes_ + place : lane));
      if (isHere)
        wanting[place] = static_cast<int32_t>(lane);
    }
    Value address = elementPointer(pointer, kind, offset + offset.integer(begin));
    Value loaded;
    if (mask) {
      Value none = constantInt(builder_, mask.type(), 0).value();
      Value wanted = LLVM::ShuffleVectorOp::create(builder_, mask.value(), none, wanting);
      loaded = LLVM::MaskedLoadOp::create(builder_, type, address, wanted, zeros, bytes, false).getRes();
    } else {
      loaded = LLVM::LoadOp::create(builder_, type, address, bytes);
    }
    picked = LLVM::ShuffleVectorOp::create(builder_, picked, loaded, lanes);
  }
  return Expr(builder_, picked);
}

Known ElementEmitter::loadVector(Value pointer, ElementKind kind, Expr offset, int64_t laneStride,
                                 const Guard &guard, int where) {
  Type type = memoryType(builder_.getContext(), kind, lanes_);
  int64_t bytes = bytesOf(kind);
  return at(where, [&] {
    Expr mask = tailMask_;
    if (guard.expr) {
      Expr allowed = splat(guard.expr, lanes_);
      mask = mask ? mask & allowed : allowed;
    }
    Value loaded;
    bool contiguous = laneStride == 1 && offset.lanes() == 1;
    if (contiguous) {
      Value address = elementPointer(pointer, kind, offset);
      Value zeros = constant(builder_, type, 0).value();
      loaded = mask ? LLVM::MaskedLoadOp::create(builder_, type, address, mask.value(), zeros, bytes, false)
                          .getRes()
                    : LLVM::LoadOp::create(builder_, type, address, vectorAlignment(kind)).getRes();
      return fromMemory(Expr(builder_, loaded), kind);
    }
    if (offset.lanes() == 1 && laneStride > 1 && laneStride <= mostLoadsApart)
      return fromMemory(loadApart(pointer, kind, offset, laneStride, mask), kind);
    Expr offsets = splat(offset, lanes_);
    if (laneStride != 0)
      offsets = offsets + laneNumbers() * offsets.integer(laneStride);
    mask = mask ? mask : allLanes(builder_, lanes_);
    Value addresses = elementPointer(pointer, kind, offsets);
    Value zeros = constant(builder_, type, 0).value();
    loaded = LLVM::masked_gather::create(builder_, type, addresses, mask.value(), zeros,
                                         builder_.getI32IntegerAttr(bytes))
                 .getRes();
    return fromMemory(Expr(builder_, loaded), kind);
  });
}

Expr ElementEmitter::load(Value pointer, ElementKind kind, const Affine &address) {
  int64_t laneStride;
  Known offset = staticPart(address, laneStride);
  Known loaded = laneStride == 0 ? loadScalar(pointer, kind, offset.expr, {}, level())
                                 : loadVector(pointer, kind, offset.expr, laneStride, {}, level());
  return loaded.expr;
}

void ElementEmitter::store(Expr value, Value pointer, ElementKind kind, const Affine &address) {
  int64_t laneStride;
  Expr offset = staticPart(address, laneStride).expr;
  assert((lanes_ == 1 || laneStride == 1) && "results are written in row-major order");
  Expr memory = toMemory(value, kind);
  Value target = elementPointer(pointer, kind, offset);
  if (tailMask_ && tailCount_ == 1) // LLVM 22 writes 32 bits for one lane of a narrowing masked store
    LLVM::StoreOp::create(builder_, vector::ExtractOp::create(builder_, memory.value(), 0), target,
                          bytesOf(kind));
  else if (tailMask_)
    LLVM::MaskedStoreOp::create(builder_, memory.value(), target, tailMask_.value(),
                                builder_.getI32IntegerAttr(bytesOf(kind)));
  else
    LLVM::StoreOp::create(builder_, memory.value(), target, vectorAlignment(kind));
}

Known ElementEmitter::emitOp(ConstantOp constant, const Index &index, const Guard &guard) {
  ElementKind kind = elementKind(constant.getResult().getType());
  if (Value number = numbers_.lookup(constant))
    return {Expr(builder_, number), 0};
  if (TypedAttr splat = constant.getSplat()) {
    return at(0, [&] {
      if (auto real = dyn_cast<FloatAttr>(splat))
        return numberIn(builder_, kind, 1, real.getValueAsDouble());
      return constantInt(builder_, registerType(builder_.getContext(), kind, 1),
                         cast<IntegerAttr>(splat).getValue().getSExtValue());
    });
  }
  return loadAt(tables_.lookup(constant), kind, shapeOf(constant.getResult()), index, guard);
}

} // namespace gpuc::codegen
