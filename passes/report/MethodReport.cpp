//===- MethodReport.cpp - How the host computes a product, and why, as JSON ---===//

#include "passes/report/MethodReport.h"

#include "passes/base/ConvShapes.h"
#include "passes/base/MatmulShapes.h"
#include "passes/base/Target.h"
#include "runtime/workspace/conv_method.h"
#include "runtime/workspace/matmul_plan.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace gpuc {
namespace {

constexpr double kPicosecondsOfUs = 1e6;

bool isOnHost(plan::CommandOpInterface command) {
  auto target = command->getParentOfType<ModuleOp>()->getAttrOfType<plan::TargetAttr>(plan::kTargetAttr);
  return target && target.getKind() == plan::TargetKind::host;
}

/// Of what the loops have room for, the share that is none of the result.
double wastedOf(double products, double room) { return room > 0 ? std::max(0.0, 1 - products / room) : 0; }

/// What it was compared with, the least first.
std::string whyOf(const ConvShape &shape, ConvMethod chosen) {
  if (chosen == ConvMethod::depthwise)
    return "kernels for filters of this size, of which each meets one channel";
  if (!isCountable(shape))
    return "too large to be counted";
  SmallVector<std::pair<int64_t, ConvMethod>> costs;
  for (ConvMethod method : kConvMethods)
    if (method != ConvMethod::depthwise && fitsMethod(shape, method))
      costs.push_back({convCost(shape, method), method});
  llvm::sort(costs);
  std::string why = "least by count, us of a core:";
  for (auto [cost, method] : costs)
    why += llvm::formatv(" {0} {1:F1},", nameOf(method), static_cast<double>(cost) / kPicosecondsOfUs).str();
  why.pop_back();
  return why;
}

void describeConv(const ConvShape &given, llvm::json::Object &entry) {
  const ConvMethod method = convMethod(given);
  std::string name = nameOf(method);
  ConvShape shape = given;
  ConvMethod of = method;
  if (method == ConvMethod::subsampled) {
    shape = subsampledShape(given), of = convMethod(shape);
    name += std::string(", then ") + nameOf(of);
  }
  entry["method"] = name;
  entry["why"] = whyOf(given, method);
  if (of == ConvMethod::depthwise || !isCountable(shape)) // several planes may share a vector
    entry["wasted"] = nullptr;
  else
    entry["wasted"] = wastedOf(
        static_cast<double>(of == ConvMethod::winograd ? winogradProducts(shape) : channelsProducts(shape)),
        static_cast<double>(convWork(shape, of).steps) * static_cast<double>(vectorLanes(shape)));
}

void describeMatmul(const MatmulShape &shape, llvm::json::Object &entry) {
  const MatmulPlan plan = planMatmul(shape);
  const int64_t lanes = 64 / sizeOf(plan.problem.type);
  const bool isDot = plan.method == MatmulMethod::dot;
  const int64_t along = isDot ? plan.problem.k : plan.problem.n;
  entry["method"] = isDot ? "rows by rows" : "tiles";
  entry["wasted"] = wastedOf(static_cast<double>(along), static_cast<double>(llvm::divideCeil(along, lanes)) *
                                                             static_cast<double>(lanes));
}

} // namespace

void describeMethod(plan::CommandOpInterface command, llvm::json::Object &entry) {
  if (!isOnHost(command))
    return;
  if (auto conv = dyn_cast<plan::ConvOp>(*command))
    describeConv(convShapeOf(conv), entry);
  if (auto matmul = dyn_cast<plan::MatmulOp>(*command))
    describeMatmul(matmulShapeOf(matmul), entry);
}

} // namespace gpuc
