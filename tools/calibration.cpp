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
      {"mlp", {"hidden=2048,2048", "batch=128"}},
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

/// Nanoseconds of all runs of `train_step` on some threads, of whatever round.
struct StepTimes {
  std::vector<double> whole;     // of which no times are taken on the way
  std::vector<double> profiled;  // of which those of commands are:
  std::unordered_map<const fb::Command*, std::vector<double>> commands;
};

struct ModelUnderTest {
  Plan plan;
  StepCommands commands;
  double iterations = 0;  // of all loops in a step
  StepTimes alone, shared;
};

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
  WorkTable works(module);
  auto traffic = trafficOf(step, caches, works);
  if (mlir::failed(traffic)) return Status::error("the commands of a step have no places");
  StepCommands commands;
  step.walk([&](plan::CommandOpInterface op) {
    const std::string name = traceNameOf(op);
    if (name.empty()) return;
    Work work = works[op];
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

/// Runs `train_step` for a moment. The first run, which meets memory that nobody has touched yet, warms up.
class StepRunner {
 public:
  static Result<StepRunner> create(const Plan& plan, int threads, size_t profile_events) {
    GPUC_ASSIGN_OR_RETURN(
        Session session,
        Session::create(plan, {.device = "host", .threads = threads, .profile_events = profile_events}));
    GPUC_ASSIGN_OR_RETURN(ProgramId step, session.program("train_step"));
    GPUC_ASSIGN_OR_RETURN(ProgramInputs inputs,
                          ProgramInputs::gather(plan.info().programs[step.index], {}, /*seed=*/1));
    StepRunner runner(std::move(session), step, std::move(inputs));
    GPUC_RETURN_IF_ERROR(runner.session_.initialize());
    GPUC_RETURN_IF_ERROR(runner.runOnce().status());
    for (const ProfileEvent& event : runner.session_.profile())
      runner.warm_ns_ = std::max(runner.warm_ns_, event.end_ns);
    return runner;
  }

  /// Adds nanoseconds of each run.
  Status run(double seconds, std::vector<double>& steps) {
    constexpr int kLeastSteps = 2, kMostSteps = 2000;
    const auto begin = Clock::now();
    for (int i = 0; i < kLeastSteps || (i < kMostSteps && secondsSince(begin) < seconds); ++i) {
      GPUC_ASSIGN_OR_RETURN(const double nanoseconds, runOnce());
      steps.push_back(nanoseconds);
    }
    return okStatus();
  }

  /// Adds those of each command.
  void takeCommands(std::unordered_map<const fb::Command*, std::vector<double>>& commands) const {
    for (const ProfileEvent& event : session_.profile())
      if (event.program == step_.index && event.begin_ns >= warm_ns_)
        commands[event.command].push_back(static_cast<double>(event.end_ns - event.begin_ns));
  }

 private:
  StepRunner(Session session, ProgramId step, ProgramInputs inputs)
      : session_(std::move(session)), step_(step), inputs_(std::move(inputs)) {}

  Result<double> runOnce() {
    const auto begin = Clock::now();
    GPUC_RETURN_IF_ERROR(session_.run(step_, inputs_.views()));
    GPUC_RETURN_IF_ERROR(session_.wait());
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  }

  Session session_;
  ProgramId step_;
  ProgramInputs inputs_;
  decltype(ProfileEvent::end_ns) warm_ns_ = 0;
};

/// Of values that come so often.
struct Mean {
  double sum = 0, count = 0;

  void add(double value, size_t times) {
    sum += value * static_cast<double>(times);
    count += static_cast<double>(times);
  }
  double value() const { return sum / count; }
};

/// Some steps as they are, and some whose commands are timed.
Status runRound(const Plan& plan, int threads, StepTimes& times) {
  constexpr size_t kEvents = size_t{1} << 17;
  GPUC_ASSIGN_OR_RETURN(StepRunner plain, StepRunner::create(plan, threads, /*profile_events=*/0));
  GPUC_RETURN_IF_ERROR(plain.run(/*seconds=*/0.05, times.whole));
  GPUC_ASSIGN_OR_RETURN(StepRunner timed, StepRunner::create(plan, threads, kEvents));
  GPUC_RETURN_IF_ERROR(timed.run(/*seconds=*/0.15, times.profiled));
  timed.takeCommands(times.commands);
  return okStatus();
}

/// The least of a short one.
double wholeStep(StepTimes& times) {
  const double least = *std::min_element(times.whole.begin(), times.whole.end());
  return std::max(1.0, (least < kLongNanoseconds ? least : median(times.whole)) - clockOnce());
}

const fb::Program& stepOf(const Plan& plan) {
  for (const fb::Program* program : *plan.root().programs())
    if (program->name()->string_view() == "train_step") return *program;
  llvm_unreachable("models of the zoo train");
}

/// By name, nanoseconds of one execution in the mean of all commands of `train_step` that have it: of those
/// of one shape some may have less to do, as causal attention has.
std::map<std::string, double> commandsByName(const Plan& plan, StepTimes& times) {
  const bool is_long = *std::min_element(times.profiled.begin(), times.profiled.end()) >= kLongNanoseconds;
  std::map<std::string, Mean> means;
  for (auto& [command, values] : times.commands)
    means[nameOf(plan.root(), stepOf(plan), *command)].add(
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

Result<ModelUnderTest> compileModel(const ModelToMeasure& what, const CalibrationOptions& options,
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
  return ModelUnderTest{std::move(plan), std::move(commands), countIterations(*module), {}, {}};
}

/// What came of all rounds.
MeasuredModel conclude(ModelUnderTest model) {
  const std::map<std::string, double> alone = commandsByName(model.plan, model.alone);
  std::map<std::string, double> shared;
  const bool is_shared = !model.shared.whole.empty();
  if (is_shared) shared = commandsByName(model.plan, model.shared);
  for (auto& [name, command] : model.commands) {
    if (auto found = alone.find(name); found != alone.end()) command.alone_ns = found->second;
    if (auto found = shared.find(name); found != shared.end()) command.shared_ns = found->second;
  }
  std::erase_if(model.commands, [](const auto& entry) { return entry.second.alone_ns == 0; });
  StepSample step{.nanoseconds = wholeStep(model.alone), .iterations = model.iterations};
  for (const auto& [name, command] : model.commands)
    step.commandsNanoseconds += command.executions * command.alone_ns;
  const double part = partUnmeasured(step);
  step.commandsNanoseconds *= part;
  for (auto& [name, command] : model.commands) command.alone_ns *= part;
  if (is_shared) bringToStep(model.commands, wholeStep(model.shared));
  return {std::move(model.commands), step};
}

/// All models, in turn: a core's speed changes within seconds, and models that are measured only once, each
/// at another speed, would not go together.
Status measureInTurn(std::vector<ModelUnderTest>& models, int threads) {
  constexpr int kRounds = 3;
  for (int round = 0; round < kRounds; ++round)
    for (ModelUnderTest& model : models) {
      GPUC_RETURN_IF_ERROR(runRound(model.plan, 1, model.alone));
      if (threads > 1) GPUC_RETURN_IF_ERROR(runRound(model.plan, threads, model.shared));
    }
  return okStatus();
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
  std::vector<ModelUnderTest> models;
  for (const ModelToMeasure& model : modelsToMeasure()) {
    GPUC_ASSIGN_OR_RETURN(ModelUnderTest compiled, compileModel(model, options, result.rates));
    models.push_back(std::move(compiled));
  }
  GPUC_RETURN_IF_ERROR(measureInTurn(models, options.threads));
  std::vector<Sample> samples;
  std::vector<SharedSample> shared;
  std::vector<StepSample> steps;
  for (ModelUnderTest& model : models) {
    const MeasuredModel measured = conclude(std::move(model));
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
