//===- Peak.cpp - What lies in the arena when it is fullest ------------------===//

#include "passes/report/Peak.h"

#include "dialects/plan/PlanOps.h"
#include "passes/base/Locations.h"
#include "passes/base/StableSort.h"

#include <map>

using namespace mlir;

namespace gpuc {

constexpr StringLiteral kCategories[] = {"parameter",  "gradient",  "optimizer",
                                         "activation", "workspace", "input"};

/// Constants are listed with the parameters: both are there from the first step to the last.
static StringRef categoryName(plan::Category category) {
  return plan::stringifyCategory(category == plan::Category::constant ? plan::Category::parameter : category);
}

/// A variable's, an optimizer's slot's too: `fc1` of `fc1.weight/exp_avg`.
static std::string layerOfVariable(StringRef name) {
  auto [layer, last] = name.split('/').first.rsplit('.');
  return last.empty() ? "" : layer.str();
}

static std::vector<Peak::Tensor> lastingTensors(ModuleOp module) {
  std::vector<Peak::Tensor> tensors;
  for (auto variable : module.getOps<plan::VariableOp>()) {
    auto type = cast<RankedTensorType>(variable.getType());
    tensors.push_back({variable.getName().str(), layerOfVariable(variable.getName()),
                       filePlace(variable.getLoc()), type,
                       variable.getKind() == "optimizer" ? "optimizer" : "parameter",
                       static_cast<int64_t>(ir::sizeInBytes(type))});
  }
  for (auto constant : module.getOps<plan::ConstantOp>()) {
    auto type = cast<RankedTensorType>(constant.getValue().getType());
    tensors.push_back({constant.getName().str(), layerName(constant.getLoc()), filePlace(constant.getLoc()),
                       type, "parameter", static_cast<int64_t>(ir::sizeInBytes(type))});
  }
  return tensors;
}

placement::LiveBytes liveBytes(const Lifetimes &lifetimes, int64_t positions) {
  std::map<int64_t, SmallVector<std::pair<Lifetime, int64_t>>> places;
  for (auto [buffer, lifetime] : lifetimes)
    places[*buffer.getPlace()].push_back({lifetime, ir::sizeInBytes(buffer.getType())});
  placement::LiveBytes live(positions);
  for (auto &[place, buffers] : places) {
    stableSort(buffers, [](auto &a, auto &b) { return a.first.lower < b.first.lower; });
    int64_t end = 0;
    for (auto [lifetime, bytes] : buffers) {
      live.add(bytes, std::max(end, lifetime.lower), lifetime.upper);
      end = std::max(end, lifetime.upper);
    }
  }
  return live;
}

/// What is live there, beside what lasts.
static FailureOr<std::vector<Peak::Tensor>> tensorsAtPeak(plan::ProgramOp program, int64_t slots) {
  FailureOr<Lifetimes> lifetimes = computeLifetimes(program);
  if (failed(lifetimes))
    return failure();
  std::vector<Peak::Tensor> tensors;
  for (auto input : program.getBody().getOps<plan::InputOp>()) {
    auto type = cast<RankedTensorType>(input.getType());
    tensors.push_back({input.getName().str(), layerName(input.getLoc()), filePlace(input.getLoc()), type,
                       "input", slots * static_cast<int64_t>(ir::sizeInBytes(type))});
  }
  const int64_t position = liveBytes(*lifetimes, positionsOf(program) + 1).peakTime();
  DenseSet<int64_t> counted;
  for (auto &[buffer, lifetime] : *lifetimes)
    if (lifetime.lower <= position && position < lifetime.upper &&
        counted.insert(*buffer.getPlace()).second) {
      auto type = cast<RankedTensorType>(buffer.getType());
      tensors.push_back({buffer.getName().str(), layerName(buffer.getLoc()), filePlace(buffer.getLoc()), type,
                         categoryName(buffer.getCategory()), static_cast<int64_t>(ir::sizeInBytes(type))});
    }
  return tensors;
}

static int64_t sumOf(ArrayRef<Peak::Tensor> tensors) {
  int64_t bytes = 0;
  for (const Peak::Tensor &tensor : tensors)
    bytes += tensor.bytes;
  return bytes;
}

FailureOr<Peak> findPeak(ModuleOp module) {
  plan::ArenaOp arena = *module.getOps<plan::ArenaOp>().begin();
  Peak peak;
  peak.arenaBytes = arena.getBytes();
  std::vector<Peak::Tensor> fullest;
  for (auto program : module.getOps<plan::ProgramOp>()) {
    FailureOr<std::vector<Peak::Tensor>> tensors = tensorsAtPeak(program, arena.getSlots());
    if (failed(tensors))
      return failure();
    if (sumOf(*tensors) <= sumOf(fullest))
      continue;
    fullest = std::move(*tensors);
    peak.program = program.getName().str();
  }
  peak.tensors = lastingTensors(module);
  peak.tensors.insert(peak.tensors.end(), fullest.begin(), fullest.end());
  stableSort(peak.tensors, [](auto &a, auto &b) { return a.bytes > b.bytes; });
  return peak;
}

llvm::json::Object byCategory(const Peak &peak) {
  std::map<StringRef, int64_t> bytes;
  for (const Peak::Tensor &tensor : peak.tensors)
    bytes[tensor.category] += tensor.bytes;
  llvm::json::Object categories;
  for (StringRef category : kCategories)
    categories[category] = bytes[category];
  categories["alignment_and_gaps"] = peak.arenaBytes - sumOf(peak.tensors);
  return categories;
}

std::string shapeText(RankedTensorType type) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (int64_t extent : type.getShape())
    stream << extent << 'x';
  stream << type.getElementType();
  return text;
}

llvm::json::Object describe(const Peak &peak) {
  llvm::json::Array tensors, layers;
  std::map<StringRef, int64_t> bytesOfLayer;
  for (const Peak::Tensor &tensor : peak.tensors) {
    bytesOfLayer[tensor.layer] += tensor.bytes;
    tensors.push_back(llvm::json::Object{{"name", tensor.name},
                                         {"shape", shapeText(tensor.type)},
                                         {"bytes", tensor.bytes},
                                         {"category", tensor.category},
                                         {"layer", tensor.layer},
                                         {"source", tensor.place}});
  }
  std::vector<std::pair<StringRef, int64_t>> byBytes(bytesOfLayer.begin(), bytesOfLayer.end());
  stableSort(byBytes, [](auto &a, auto &b) { return a.second > b.second; });
  for (auto [layer, bytes] : byBytes)
    layers.push_back(llvm::json::Object{{"layer", layer.str()}, {"bytes", bytes}});
  return llvm::json::Object{
      {"program", peak.program}, {"by_layer", std::move(layers)}, {"tensors", std::move(tensors)}};
}

} // namespace gpuc
