//===- Updates.cpp - Launches that make new values of variables -------------===//

#include "passes/updates/Updates.h"

#include "passes/base/ConvShapes.h"
#include "passes/base/MatmulShapes.h"
#include "runtime/workspace/conv_tiles.h"
#include "runtime/workspace/matmul_plan.h"

using namespace mlir;

namespace gpuc {

/// The name of the variable behind a buffer, if one is.
static StringAttr variableOf(Value buffer) {
  auto use = dyn_cast<plan::UseOp>(*plan::bufferOf(buffer));
  return use ? use.getSymbolAttr().getAttr() : StringAttr();
}

bool isUpdate(plan::LaunchOp launch, Block &body) {
  bool readsOwn = false;
  for (Value output : launch.getOutputs()) {
    StringAttr variable = variableOf(output);
    if (!variable)
      return false;
    readsOwn |= llvm::any_of(launch.getInputs(), [&](Value input) { return variableOf(input) == variable; });
  }
  return readsOwn && llvm::all_of(body.without_terminator(), [](Operation &op) { return isInlinable(&op); });
}

static std::optional<ProductTiles> tilesOf(plan::MatmulOp product) {
  const std::optional<MatmulPlan> plan = planMatmulOfUpdate(matmulShapeOf(product));
  if (!plan)
    return std::nullopt;
  return ProductTiles{plan->problem.m, plan->problem.n, plan->tile_m, plan->tile_n, plan->sumStride()};
}

static std::optional<ProductTiles> tilesOf(plan::ConvOp product) {
  const std::optional<GradientTiles> tiles = convGradientTiles(convShapeOf(product));
  if (!tiles)
    return std::nullopt;
  return ProductTiles{tiles->rows, tiles->columns, tiles->tile_rows, tiles->tile_columns, tiles->stride};
}

std::optional<ProductTiles> tilesForUpdate(plan::ProductOpInterface product) {
  if (auto matmul = dyn_cast<plan::MatmulOp>(*product))
    return tilesOf(matmul);
  return tilesOf(cast<plan::ConvOp>(*product));
}

/// Whether the result is all that the product makes, not an addend of what lies there.
static bool isWhole(plan::ProductOpInterface product) {
  auto matmul = dyn_cast<plan::MatmulOp>(*product);
  return !matmul || !matmul.getAccumulate();
}

bool canUpdateInProduct(plan::ProductOpInterface product) {
  auto target = product->getParentOfType<ModuleOp>()->getAttrOfType<plan::TargetAttr>(plan::kTargetAttr);
  return !(target && target.getKind() == plan::TargetKind::cuda) && product.getResult() && isWhole(product) &&
         plan::rangeOf(product.getResult()).size >= kLeastGradientBytes && tilesForUpdate(product);
}

} // namespace gpuc
