#include "runtime/tooling/run_plan.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/base/file.h"
#include "runtime/base/output_files.h"
#include "runtime/base/warn.h"
#include "runtime/plan/contents.h"
#include "runtime/report/chrome_trace.h"
#include "runtime/report/nonfinite.h"
#include "runtime/state/npy.h"
#include "runtime/tooling/program_inputs.h"
#include "runtime/weights/variable_store.h"

namespace gpuc {
namespace {

using Json = nlohmann::ordered_json;

/// How long steps took, and what they allocated.
struct StepStatistics {
  int64_t steps = 0;
  double median_us = 0;
  double min_us = 0;
  double max_us = 0;
  int64_t allocations_per_step = 0;  // by all threads, of the step that made the most
};

/// Of each stream; 64 bytes each are set aside when the session is made.
constexpr size_t kProfiledCommands = size_t{1} << 18;

Result<Session> openSession(const Plan& plan, const RunOptions& options) {
  SessionOptions session_options{.device = options.device,
                                 .threads = static_cast<int>(options.threads),
                                 .strict = options.strict,
                                 .check_memory = options.check_memory,
                                 .profile_events = options.profile.empty() ? 0 : kProfiledCommands};
  if (options.seed) session_options.seed = static_cast<uint64_t>(*options.seed);
  if (options.delay_seed) session_options.delay_seed = static_cast<uint64_t>(*options.delay_seed);
  return Session::create(plan, session_options);
}

/// What the poison would only show as a NaN somewhere behind has a name in the plan.
Status checkMemory(const Plan& plan, const Session& session) {
  GPUC_ASSIGN_OR_RETURN(bool is_whole, checkContents(plan.root()));
  if (!is_whole)
    warn(
        "the plan repeats too much to be played: --check-memory poisons dead bytes, but names no command "
        "that reads "
        "some");
  if (session.device().kind != TargetKind::host)
    warn("on a GPU --check-memory poisons the arena once, not between commands");
  return okStatus();
}

/// Values for all variables, from files or from `init`. A seed that was asked for wins over the files'.
Status prepareVariables(Session& session, const RunOptions& options) {
  if (options.variables.empty()) return options.entry == "init" ? okStatus() : session.initialize();
  return VariableStore(session).startFrom(options.variables,
                                          options.seed ? SeedFrom::session : SeedFrom::file);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Status runAndWait(Session& session, ProgramId id, std::span<const HostTensorView> inputs) {
  GPUC_RETURN_IF_ERROR(session.run(id, inputs));
  return session.wait();
}

/// Runs a program `warmup` times unmeasured, then `repeat` times; each is waited for. Errors: a step made NaN
/// or infinities, of a plan that checks for them.
Result<StepStatistics> measureSteps(Session& session, ProgramId id, std::span<const HostTensorView> inputs,
                                    int64_t warmup, int64_t repeat, AllocationCounter allocations) {
  Nonfinite nonfinite(session, id);
  int64_t step = 0;
  for (int64_t i = 0; i < warmup; ++i) {
    GPUC_RETURN_IF_ERROR(runAndWait(session, id, inputs));
    GPUC_RETURN_IF_ERROR(nonfinite.take(session, ++step));
  }
  StepStatistics statistics{.steps = repeat};
  std::vector<double> times_us(static_cast<size_t>(repeat));
  for (double& time_us : times_us) {
    int64_t allocated = allocations();
    auto begin = std::chrono::steady_clock::now();
    GPUC_RETURN_IF_ERROR(runAndWait(session, id, inputs));
    auto end = std::chrono::steady_clock::now();
    GPUC_RETURN_IF_ERROR(nonfinite.take(session, ++step));
    time_us = std::chrono::duration<double, std::micro>(end - begin).count();
    statistics.allocations_per_step = std::max(statistics.allocations_per_step, allocations() - allocated);
  }
  if (times_us.empty()) return statistics;
  auto [least, most] = std::minmax_element(times_us.begin(), times_us.end());
  statistics.min_us = *least;
  statistics.max_us = *most;
  statistics.median_us = median(times_us);
  return statistics;
}

/// Names are the plan's: none of them leads out of the folder.
std::string outputPath(const std::string& folder, const TensorSpec& output) {
  std::string name = output.name;
  std::replace(name.begin(), name.end(), '/', '_');
  return folder + "/" + name + ".npy";
}

Status writeOutputs(Session& session, ProgramId id, const std::string& folder) {
  GPUC_RETURN_IF_ERROR(makeFolder(folder));
  const ProgramInfo& program = session.plan().info().programs[id.index];
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const TensorSpec& output = program.outputs[i];
    GPUC_RETURN_IF_ERROR(writeNpy(outputPath(folder, output), output, session.output(id, i).data));
  }
  return okStatus();
}

Json byCategory(const MemoryByCategory& memory) {
  return {{"activation", memory.activation}, {"alignment_and_gaps", memory.alignment_and_gaps},
          {"gradient", memory.gradient},     {"input", memory.input},
          {"optimizer", memory.optimizer},   {"parameter", memory.parameter},
          {"workspace", memory.workspace}};
}

std::string reportJson(const Session& session, const RunOptions& options, const StepStatistics& statistics) {
  MemoryUse memory = session.memory();
  Json report = {
      {"plan", session.plan().info().name},
      {"entry", options.entry},
      {"device", nameOf(session.device().kind)},
      {"arena_bytes", memory.arena_bytes},
      {"arena_allocations", memory.arena_allocations},
      {"by_category", byCategory(memory.by_category)},
      {"staging_bytes", memory.staging_bytes},
      {"code_bytes", memory.code_bytes},
      {"library_bytes", memory.library_bytes},
      {"graph_bytes", memory.graph_bytes},
      {"allocations_per_step", statistics.allocations_per_step},
      {"steps", statistics.steps},
      {"step_us",
       {{"median", statistics.median_us}, {"min", statistics.min_us}, {"max", statistics.max_us}}}};
  if (options.check_memory) report["touched_bytes"] = memory.touched_bytes;
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void printReport(const Session& session, const RunOptions& options, const StepStatistics& statistics) {
  MemoryUse memory = session.memory();
  std::printf("%s on %s\n", options.entry.c_str(), session.device().name.c_str());
  std::printf("arena      %" PRIu64 " bytes in %" PRIu64 " allocation\n", memory.arena_bytes,
              memory.arena_allocations);
  if (options.check_memory) std::printf("touched    %" PRIu64 " bytes\n", memory.touched_bytes);
  if (statistics.steps == 0) return;
  std::printf("step       %.1f us median, %.1f min, %.1f max of %" PRId64 "\n", statistics.median_us,
              statistics.min_us, statistics.max_us, statistics.steps);
  std::printf("allocated  %" PRId64 " times in a step\n", statistics.allocations_per_step);
}

Status writeResults(Session& session, ProgramId id, const RunOptions& options,
                    const StepStatistics& statistics) {
  if (!options.output_dir.empty()) GPUC_RETURN_IF_ERROR(writeOutputs(session, id, options.output_dir));
  if (!options.save_variables.empty())
    GPUC_RETURN_IF_ERROR(VariableStore(session).save(options.save_variables));
  if (!options.profile.empty())
    GPUC_RETURN_IF_ERROR(
        writeFileAtomically(options.profile, chromeTrace(session.plan(), session.profile())));
  if (options.json != "-") printReport(session, options, statistics);
  if (options.json.empty()) return okStatus();
  return writeFileAtomically(options.json, reportJson(session, options, statistics));
}

/// All that a run reads.
std::vector<std::string> pathsRead(const RunOptions& options) {
  std::vector<std::string> paths = inputPaths(options.inputs);
  paths.push_back(options.plan);
  paths.insert(paths.end(), options.variables.begin(), options.variables.end());
  return paths;
}

Status checkOutputs(const RunOptions& options) {
  std::string outputs[] = {options.json, options.profile, options.save_variables};
  GPUC_RETURN_IF_ERROR(checkOutputFiles(outputs, pathsRead(options)));
  if (options.output_dir.empty()) return okStatus();
  std::error_code ignored;
  if (std::filesystem::exists(options.output_dir, ignored) &&
      !std::filesystem::is_directory(options.output_dir, ignored))
    return Status::error("cannot write to " + options.output_dir + ": it is not a folder");
  return okStatus();
}

/// What is known only with the plan: the files of the program's outputs.
Status checkOutputs(const ProgramInfo& program, const RunOptions& options) {
  if (options.output_dir.empty()) return okStatus();
  std::vector<std::string> outputs = {options.json, options.profile, options.save_variables};
  for (const TensorSpec& output : program.outputs) outputs.push_back(outputPath(options.output_dir, output));
  return checkOutputsApart(outputs, pathsRead(options));
}

}  // namespace

Status runPlan(const RunOptions& options, AllocationCounter allocations) {
  GPUC_RETURN_IF_ERROR(checkOutputs(options));
  GPUC_ASSIGN_OR_RETURN(Plan plan, Plan::load(options.plan));
  GPUC_ASSIGN_OR_RETURN(Session session, openSession(plan, options));
  for (const std::string& warning : session.warnings()) warn(warning);
  if (options.check_memory) GPUC_RETURN_IF_ERROR(checkMemory(plan, session));
  GPUC_ASSIGN_OR_RETURN(ProgramId id, session.program(options.entry));
  GPUC_RETURN_IF_ERROR(checkOutputs(plan.info().programs[id.index], options));
  uint64_t seed = options.seed ? static_cast<uint64_t>(*options.seed) : plan.info().seed;
  GPUC_ASSIGN_OR_RETURN(ProgramInputs inputs,
                        ProgramInputs::gather(plan.info().programs[id.index], options.inputs, seed));
  GPUC_RETURN_IF_ERROR(prepareVariables(session, options));
  GPUC_ASSIGN_OR_RETURN(StepStatistics statistics, measureSteps(session, id, inputs.views(), options.warmup,
                                                                options.repeat, allocations));
  return writeResults(session, id, options, statistics);
}

std::string deviceList(bool json) {
  Json list = Json::array();
  std::string text;
  for (const DeviceInfo& device : listDevices()) {
    std::string name = device.kind == TargetKind::host ? "host" : "cuda:" + std::to_string(device.index);
    list.push_back({{"device", name},
                    {"name", device.name},
                    {"architecture", device.architecture},
                    {"memory_bytes", device.memory_bytes},
                    {"threads", device.threads}});
    text += name + "  " + device.name + "  " + device.architecture + "  " +
            std::to_string(device.memory_bytes >> 20) + " MiB";
    text += device.threads > 0 ? "  " + std::to_string(device.threads) + " threads\n" : "\n";
  }
  return json ? list.dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : text;
}

}  // namespace gpuc
