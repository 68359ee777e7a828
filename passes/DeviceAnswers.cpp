//===- DeviceAnswers.cpp - Whether it would fit, on GPUs that are not there ----===//

#include "passes/DeviceAnswers.h"

#include "passes/MemoryBudget.h"
#include "passes/report/Report.h"
#include "runtime/base/text_table.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace gpuc {

FailureOr<DeviceAnswer> answerFor(const NamedDevice &device, ModuleOp module, StringRef policy) {
  PlanChoices choices(module, std::string("cuda:") + device.architecture, describe(device));
  FailureOr<PlanFigures> kept = choices.tryKeepingAll();
  if (failed(kept))
    return failure();
  DeviceAnswer answer{&device, *kept, std::nullopt, "none", kept->peakBytes};
  if (kept->peakBytes <= arenaBytesOf(device)) {
    answer.in = *kept; // nothing is faster
    return answer;
  }
  if (failed(choices.explore(policy)))
    return failure();
  FailureOr<std::optional<TradeoffPoint>> fits = choices.tradeoff().fastestWithin(arenaBytesOf(device));
  FailureOr<TradeoffPoint> least = choices.tradeoff().least();
  if (failed(fits) || failed(least))
    return failure();
  answer.leastBytes = least->figures.peakBytes;
  if (*fits) {
    answer.in = (*fits)->figures;
    answer.keptBy = (*fits)->name;
  }
  return answer;
}

//===----------------------------------------------------------------------===//
// For people
//===----------------------------------------------------------------------===//

static std::string gibibytes(int64_t bytes) {
  return llvm::formatv("{0:f2} GiB", bytes / double(int64_t(1) << 30)).str();
}

/// Nothing, of what does not train.
static std::string timeOf(const PlanFigures &plan) {
  if (plan.nanoseconds == 0)
    return "";
  const bool isLong = plan.nanoseconds >= 1e9;
  return llvm::formatv("{0:f2} {1}", plan.nanoseconds / (isLong ? 1e9 : 1e6), isLong ? "s" : "ms").str();
}

static Row rowOf(const DeviceAnswer &answer) {
  const bool fits = answer.kept.peakBytes <= arenaBytesOf(*answer.device);
  const std::string within = fits        ? "all of it fits"
                             : answer.in ? gibibytes(answer.in->peakBytes)
                                         : "at least " + gibibytes(answer.leastBytes);
  const std::string time = fits ? "" : answer.in ? timeOf(*answer.in) : "does not fit";
  return {answer.device->name,
          std::string("cuda:") + answer.device->architecture,
          gibibytes(arenaBytesOf(*answer.device)),
          gibibytes(answer.kept.peakBytes),
          timeOf(answer.kept),
          within,
          time,
          std::string("uncalibrated: ") + answer.device->source};
}

std::string tableOf(ArrayRef<DeviceAnswer> answers) {
  std::string text;
  writeTable(
      [&](const AddRow &add) {
        add({"device", "target", "memory", "all kept", "a step", "in its memory", "a step", "rates"});
        for (const DeviceAnswer &answer : answers)
          add(rowOf(answer));
      },
      [&](std::string_view line) { text += line; }, {2, 3, 4, 5, 6});
  return text;
}

//===----------------------------------------------------------------------===//
// For the report
//===----------------------------------------------------------------------===//

static llvm::json::Object describe(const PlanFigures &plan) {
  return llvm::json::Object{{"peak_bytes", plan.peakBytes},
                            {"predicted_step_us", plan.nanoseconds / 1000},
                            {"recompute_flops", plan.recomputeFlops}};
}

llvm::json::Array describe(ArrayRef<DeviceAnswer> answers) {
  llvm::json::Array list;
  for (const DeviceAnswer &answer : answers) {
    const NamedDevice &device = *answer.device;
    llvm::json::Value within = nullptr;
    if (answer.in) {
      llvm::json::Object chosen = describe(*answer.in);
      chosen["kept"] = answer.keptBy;
      within = std::move(chosen);
    }
    list.push_back(llvm::json::Object{{"device", device.name},
                                      {"title", device.title},
                                      {"target", std::string("cuda:") + device.architecture},
                                      {"memory_bytes", arenaBytesOf(device)},
                                      {"fits", answer.kept.peakBytes <= arenaBytesOf(device)},
                                      {"all_kept", describe(answer.kept)},
                                      {"within_memory", std::move(within)},
                                      {"least_bytes", answer.leastBytes},
                                      {"rates", ratesOf(describe(device))},
                                      {"rates_source", device.source},
                                      {"calibration", "uncalibrated"}});
  }
  return list;
}

} // namespace gpuc
