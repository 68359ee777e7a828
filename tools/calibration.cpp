#include "tools/calibration.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <unordered_map>
#include <vector>

#include "frontend/models/Zoo.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Compiler.h"
#include "passes/plan/CommandGraph.h"
#include "passes/report/KernelReport.h"
#include "passes/report/TraceName.h"
#include "passes/report/Traffic.h"
#include "runtime/gpuc.h"
#include "runtime/plan/operands.h"
#include "runtime/report/command_text.h"
#include "runtime/tooling/program_inputs.h"
#include "tools/cache_probe.h"

namespace gpuc {
namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct ModelToMeasure {
  const char* name;
  std::vector<std::string> settings;
};

/// Each family of commands at several sizes, from those that a core's cache holds to those that the shared
/// one does; but none that takes milliseconds, in which others who use the machine would be measured. The
/// last ones are of weights, activations and scores that no cache holds.
std::vector<ModelToMeasure> modelsToMeasure() {
  return {
      {"linear-regression", {"in=24", "batch=40"}},
      {"mlp", {"hidden=48", "batch=16", "dropout=0.1"}},
      {"mlp", {"hidden=256,96", "batch=48"}},
      {"mlp", {"hidden=1536,1024", "batch=24"}},
      {"mlp", {"hidden=320,64", "batch=1"}},
      {"mlp", {"hidden=1600", "batch=1"}},
      {"convnet", {"size=12", "batch=6"}},
      {"convnet", {"size=20", "batch=7"}},
      {"convnet", {"size=24", "batch=16"}},
      {"rnn-classifier", {"cell=rnn", "steps=10", "width=16", "hidden=40", "dropout=0.1", "batch=20"}},
      {"rnn-classifier", {"cell=gru", "steps=10", "width=16", "hidden=40", "dropout=0.1", "batch=20"}},
      {"rnn-classifier", {"cell=lstm", "steps=12", "width=20", "hidden=96", "batch=48"}},
      {"rnn-classifier", {"cell=rnn", "steps=8", "width=12", "hidden=28", "dropout=0.1", "batch=14"}},
      {"rnn-classifier", {"cell=lstm", "steps=5", "width=10", "hidden=20", "batch=26"}},
      {"lstm-generator", {"embedding=24", "hidden=48", "length=12", "dropout=0.1", "batch=16"}},
      {"lstm-generator", {"embedding=12", "hidden=20", "length=10", "batch=4"}},
      {"lstm-generator", {"embedding=96", "hidden=192", "length=12", "batch=24"}},
      {"transformer",
       {"width=24", "heads=2", "layers=1", "feedforward=40", "src_vocabulary=50", "tgt_vocabulary=60",
        "length=16", "batch=4"}},
      {"transformer",
       {"width=256", "heads=8", "layers=1", "feedforward=640", "src_vocabulary=1000", "tgt_vocabulary=1000",
        "length=28", "batch=6"}},
      {"resnet18", {"size=48", "width=8", "classes=12", "batch=3"}},
      {"resnet18", {"size=80", "width=24", "classes=100", "batch=3"}},
      {"resnet50", {"size=64", "width=8", "classes=20", "batch=3"}},
      {"resnet50", {"size=96", "width=32", "classes=100", "batch=2"}},
      {"gpt2", {"layers=1", "heads=2", "width=24", "length=20", "vocabulary=60", "dropout=0.1", "batch=3"}},
      {"gpt2", {"layers=1", "heads=4", "width=32", "length=40", "vocabulary=60", "batch=2"}},
      {"gpt2", {"layers=1", "heads=4", "width=96", "length=48", "vocabulary=300", "batch=8", "lora=4"}},
      {"gpt2", {"layers=1", "heads=6", "width=384", "length=64", "vocabulary=1200", "batch=2"}},
      {"mlp", {"hidden=1024,1024", "batch=384"}},
      {"mlp", {"hidden=3072,3072", "batch=64"}},
      {"convnet", {"size=56", "batch=64"}},
      {"gpt2", {"layers=1", "heads=2", "width=64", "length=256", "vocabulary=8192", "batch=8"}},
  };
}

/// Of all commands of one name in a step, in the mean.
struct StepCommand {
  Work work;              // with bytes by place
  double executions = 0;  // in a step
  bool in_parallel = false;
  double alone_ns = 0, shared_ns = 0;  // as measured
};

using StepCommands = std::map<std::string, StepCommand>;

struct MeasuredModel {
  StepCommands commands;
  StepSample step;  // on one thread
};

/// Of all loops in a run of `train_step`.
double countIterations(mlir::ModuleOp module) {
  double iterations = 0;
  module.lookupSymbol<plan::ProgramOp>("train_step").walk([&](plan::RepeatOp loop) {
    iterations += static_cast<double>(executionsOf(loop) * loop.getTripCount());
  });
  return iterations;
}

/// What a run of `train_step` does, by the names of its commands.
Result<StepCommands> countStep(mlir::ModuleOp module, const CacheSizes& caches) {
  auto step = module.lookupSymbol<plan::ProgramOp>("train_step");
  auto traffic = trafficOf(step, caches);
  if (mlir::failed(traffic)) return Status::error("the commands of a step have no places");
  StepCommands commands;
  step.walk([&](plan::CommandOpInterface op) {
    const std::string name = traceNameOf(op);
    if (name.empty()) return;
    Work work = workOf(op);
    llvm::copy(traffic->lookup(op), &work[Unit::near]);
    const auto executions = static_cast<double>(executionsOf(op));
    StepCommand& command = commands[name];
    for (size_t unit = 0; unit < kUnitCount; ++unit)
      command.work.amounts[unit] += work.amounts[unit] * executions;
    command.work.family = work.family;
    command.work.parts = std::max(command.work.parts, work.parts);
    command.executions += executions;
    command.in_parallel |= op->getParentOfType<plan::ParallelOp>() != nullptr;
  });
  for (auto& [name, command] : commands)
    for (double& amount : command.work.amounts) amount /= command.executions;
  return commands;
}

double quantile(std::vector<double>& values, double share) {
  auto at = values.begin() + static_cast<ptrdiff_t>(static_cast<double>(values.size()) * share);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

/// The least but for a tenth: what else the machine does makes some executions longer, and none shorter.
double decile(std::vector<double>& values) { return quantile(values, 0.1); }

/// Of a long step, or a command of one. Its least is what no row of them takes: clocks, and others that use
/// the same memory, change within it.
double median(std::vector<double>& values) { return quantile(values, 0.5); }

constexpr double kLongNanoseconds = 1e6;

/// What taking the time takes, which each event has once.
double clockNanoseconds() {
  std::vector<double> gaps(1000);
  for (double& gap : gaps) {
    const auto begin = Clock::now();
    gap = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  }
  return decile(gaps);
}

double clockOnce() {
  static const double clock = clockNanoseconds();
  return clock;
}

/// Nanoseconds of each of some runs of `train_step`.
Result<std::vector<double>> runSteps(Session& session, const Plan& plan, double seconds) {
  constexpr int kLeastSteps = 4, kMostSteps = 400;
  GPUC_ASSIGN_OR_RETURN(ProgramId step, session.program("train_step"));
  GPUC_ASSIGN_OR_RETURN(ProgramInputs inputs,
                        ProgramInputs::gather(plan.info().programs[step.index], {}, /*seed=*/1));
  GPUC_RETURN_IF_ERROR(session.initialize());
  std::vector<double> steps;
  const auto begin = Clock::now();
  for (int i = 0; i < kLeastSteps || (i < kMostSteps && secondsSince(begin) < seconds); ++i) {
    const auto at = Clock::now();
    GPUC_RETURN_IF_ERROR(session.run(step, inputs.views()));
    GPUC_RETURN_IF_ERROR(session.wait());
    steps.push_back(std::chrono::duration<double, std::nano>(Clock::now() - at).count());
  }
  return steps;
}

/// Of a whole step, of which no times are taken on the way: the least of a short one.
Result<double> measureWholeStep(const Plan& plan, int threads) {
  GPUC_ASSIGN_OR_RETURN(Session session, Session::create(plan, {.device = "host", .threads = threads}));
  GPUC_ASSIGN_OR_RETURN(std::vector<double> steps, runSteps(session, plan, /*seconds=*/0.1));
  const double least = *std::min_element(steps.begin(), steps.end());
  return std::max(1.0, (least < kLongNanoseconds ? least : median(steps)) - clockOnce());
}

/// Of values that come so often.
struct Mean {
  double sum = 0, count = 0;

  void add(double value, size_t times) {
    sum += value * static_cast<double>(times);
    count += static_cast<double>(times);
  }
  double value() const { return sum / count; }
};

/// By name, nanoseconds of one execution in the mean of all commands of `train_step` that have it: of those
/// of one shape some may have less to do, as causal attention has.
Result<std::map<std::string, double>> measureStep(const Plan& plan, int threads) {
  constexpr size_t kEvents = size_t{1} << 18;
  GPUC_ASSIGN_OR_RETURN(
      Session session,
      Session::create(plan, {.device = "host", .threads = threads, .profile_events = kEvents}));
  GPUC_ASSIGN_OR_RETURN(ProgramId step, session.program("train_step"));
  GPUC_ASSIGN_OR_RETURN(const std::vector<double> steps, runSteps(session, plan, /*seconds=*/0.4));
  const bool is_long = *std::min_element(steps.begin(), steps.end()) >= kLongNanoseconds;
  std::unordered_map<const fb::Command*, std::vector<double>> times;
  for (const ProfileEvent& event : session.profile())
    if (event.program == step.index)
      times[event.command].push_back(static_cast<double>(event.end_ns - event.begin_ns));
  std::map<std::string, Mean> means;
  for (auto& [command, values] : times)
    means[nameOf(plan.root(), *plan.root().programs()->Get(step.index), *command)].add(
        std::max(1.0, (is_long ? median(values) : decile(values)) - clockOnce()), values.size());
  std::map<std::string, double> measured;
  for (const auto& [name, mean] : means) measured[name] = mean.value();
  return measured;
}

double sharedNanoseconds(const StepCommands& commands) {
  double sum = 0;
  for (const auto& [name, command] : commands) sum += command.executions * command.shared_ns;
  return sum;
}

/// On several threads waiting for one another is part of a step, and lies between its commands or within
/// them: all commands together take what their step takes.
void bringToStep(StepCommands& commands, double whole_ns) {
  const double sum = sharedNanoseconds(commands);
  for (auto& [name, command] : commands) command.shared_ns *= sum > 0 ? whole_ns / sum : 1;
}

/// One model, measured.
Result<MeasuredModel> measure(const ModelToMeasure& what, const CalibrationOptions& options,
                              HostRates& rates) {
  GPUC_ASSIGN_OR_RETURN(nn::Model model, models::buildZooModel(what.name, what.settings));
  Compiler compiler;
  CompilerOptions compile;
  compile.target = "host";
  compile.cacheFolder = options.cache_folder;
  GPUC_ASSIGN_OR_RETURN(auto module, compiler.parse(model.text(), what.name));
  GPUC_RETURN_IF_ERROR(
      compiler.advance(*module, Stage::plan, compile, [](mlir::PassManager&) { return okStatus(); }));
  GPUC_ASSIGN_OR_RETURN(StepCommands commands, countStep(*module, rates.caches));
  GPUC_ASSIGN_OR_RETURN(std::string file, compiler.emit(*module, compile));
  GPUC_ASSIGN_OR_RETURN(Plan plan, Plan::parse(std::move(file)));
  rates.target = plan.info().target_name;
  GPUC_ASSIGN_OR_RETURN(auto alone, measureStep(plan, 1));
  std::map<std::string, double> shared;
  if (options.threads > 1) {
    GPUC_ASSIGN_OR_RETURN(shared, measureStep(plan, options.threads));
  }
  for (auto& [name, command] : commands) {
    if (auto found = alone.find(name); found != alone.end()) command.alone_ns = found->second;
    if (auto found = shared.find(name); found != shared.end()) command.shared_ns = found->second;
  }
  std::erase_if(commands, [](const auto& entry) { return entry.second.alone_ns == 0; });
  GPUC_ASSIGN_OR_RETURN(const double whole, measureWholeStep(plan, 1));
  StepSample step{.nanoseconds = whole, .iterations = countIterations(*module)};
  for (const auto& [name, command] : commands)
    step.commandsNanoseconds += command.executions * command.alone_ns;
  const double part = partUnmeasured(step);
  step.commandsNanoseconds *= part;
  for (auto& [name, command] : commands) command.alone_ns *= part;
  if (options.threads > 1) {
    GPUC_ASSIGN_OR_RETURN(const double whole_shared, measureWholeStep(plan, options.threads));
    bringToStep(commands, whole_shared);
  }
  return MeasuredModel{std::move(commands), step};
}

/// Of half of all steps' time the error is at most this.
double medianError(const std::vector<Sample>& samples, const HostRates& rates) {
  std::vector<std::pair<double, double>> errors;
  double all = 0;
  for (const Sample& sample : samples) {
    errors.emplace_back(std::abs(rates.nanoseconds(sample.work) / sample.nanoseconds - 1), sample.share);
    all += sample.share;
  }
  std::sort(errors.begin(), errors.end());
  double below = 0;
  for (const auto& [error, share] : errors)
    if ((below += share) >= all / 2) return error;
  return 0;
}

}  // namespace

Result<Calibration> calibrate(const CalibrationOptions& options) {
  const auto begin = Clock::now();
  Calibration result;
  result.rates = typicalRates();
  GPUC_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, openDevice("host", TargetKind::host));
  result.rates.cpu = device->info().name;
  result.rates.threads = options.threads;
  result.rates.caches = probeCaches(cachesHere());
  std::vector<Sample> samples;
  std::vector<SharedSample> shared;
  std::vector<StepSample> steps;
  for (const ModelToMeasure& model : modelsToMeasure()) {
    GPUC_ASSIGN_OR_RETURN(const MeasuredModel measured, measure(model, options, result.rates));
    const StepCommands& commands = measured.commands;
    // Of a longer one what else the machine does is the most that is left.
    if (measured.step.nanoseconds < kLongNanoseconds) steps.push_back(measured.step);
    const double shared_step = sharedNanoseconds(commands);
    for (const auto& [name, command] : commands) {
      const double share = command.alone_ns * command.executions / measured.step.commandsNanoseconds;
      samples.push_back({command.work, command.alone_ns, share});
      if (command.shared_ns > 0 && !command.in_parallel)
        shared.push_back(
            {command.alone_ns, command.shared_ns, command.executions / shared_step, command.work.parts});
    }
    ++result.models;
  }
  fitRates(samples, result.rates);
  fitStep(steps, result.rates);
  fitThreads(shared, result.rates);
  result.commands = static_cast<int64_t>(samples.size());
  result.median_error = medianError(samples, result.rates);
  result.seconds = secondsSince(begin);
  return result;
}

}  // namespace gpuc
