// gpuc-calibrate: measures this machine, so that gpuc-compile can predict what a step takes on it.
#include <cinttypes>
#include <cstdio>
#include <thread>

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "passes/CacheFolder.h"
#include "runtime/base/file.h"
#include "runtime/base/flags.h"
#include "runtime/base/output_files.h"
#include "runtime/base/tool_main.h"
#include "runtime/exec/devices.h"
#include "tools/calibration.h"
#include "tools/llvm_errors.h"

namespace {

/// Cores that this process may use.
int coresHere() {
  for (const gpuc::DeviceInfo& device : gpuc::listDevices())
    if (device.kind == gpuc::TargetKind::host && device.threads > 0) return device.threads;
  return 1;
}

std::string reportJson(const gpuc::Calibration& calibration, const std::string& output) {
  llvm::json::Object report{{"rates", output},
                            {"cpu", calibration.rates.cpu},
                            {"target", calibration.rates.target},
                            {"threads", calibration.rates.threads},
                            {"models", calibration.models},
                            {"commands", calibration.commands},
                            {"median_error", calibration.median_error},
                            {"seconds", calibration.seconds}};
  return llvm::formatv("{0:2}\n", llvm::json::Value(std::move(report))).str();
}

void print(const gpuc::Calibration& calibration, const std::string& output) {
  std::printf("%s, %d thread%s: %" PRId64 " commands of %" PRId64 " models in %.1f s\n",
              calibration.rates.cpu.c_str(), calibration.rates.threads,
              calibration.rates.threads == 1 ? "" : "s", calibration.commands, calibration.models,
              calibration.seconds);
  std::printf("half of them are predicted within %.0f%%; %s\n", 100 * calibration.median_error,
              output.c_str());
}

gpuc::Status run(const gpuc::CalibrationOptions& options, const std::string& output,
                 const std::string& json) {
  std::string outputs[] = {output, json};
  GPUC_RETURN_IF_ERROR(gpuc::checkOutputFiles(outputs, {}));
  GPUC_ASSIGN_OR_RETURN(gpuc::Calibration calibration, gpuc::calibrate(options));
  GPUC_RETURN_IF_ERROR(gpuc::writeFileAtomically(output, gpuc::printRates(calibration.rates)));
  if (json != "-" && output != "-") print(calibration, output);
  return json.empty() ? gpuc::okStatus() : gpuc::writeFileAtomically(json, reportJson(calibration, output));
}

}  // namespace

static int tool(int argc, char** argv) {
  gpuc::endInOneLineOnLlvmErrors();
  int64_t threads = 0;
  std::optional<std::string> output;
  std::string json;
  gpuc::CommandLine cli("gpuc-calibrate",
                        "Measures this machine, so that gpuc-compile can predict what a step takes on it.");
  cli.addString(
         "output", &output, "FILE",
         "where the rates go; - is stdout (default: gpuc/rates.json in $XDG_CACHE_HOME or ~/.cache, where "
         "gpuc-compile finds them)")
      .shortName('o');
  cli.addInt("threads", &threads, "N", "threads that plans will run on; 0 is one for each core")
      .range(0, 4096);
  cli.addString("json", &json, "FILE", "write what was done as JSON; - is stdout").impliedValue("-");
  if (std::optional<int> exitCode = cli.parse(argc, argv)) return *exitCode;

  const std::string folder = gpuc::defaultCacheFolder();
  if (!output && folder.empty())
    return cli.usageError("neither XDG_CACHE_HOME nor HOME says where the rates go: name a file with -o");
  const bool isDefault = !output;
  if (isDefault) output = folder + "/" + gpuc::kRatesFile;
  if (*output == "-" && json == "-") return cli.usageError("-o and --json both want stdout");
  gpuc::CalibrationOptions options;
  options.threads = threads == 0 ? coresHere() : static_cast<int>(threads);
  options.cache_folder = gpuc::defaultKernelsFolder();
  if (isDefault)
    if (gpuc::Status made = gpuc::makeFolder(folder); !made.ok()) return gpuc::exitStatus(made);
  return gpuc::exitStatus(run(options, *output, json));
}

int main(int argc, char** argv) { return gpuc::runTool(argc, argv, tool); }
