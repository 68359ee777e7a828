// All that a run checks, loads and opens before its first step.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "runtime/base/exceptions.h"
#include "runtime/base/file.h"
#include "runtime/base/output_files.h"
#include "runtime/base/quote.h"
#include "runtime/base/warn.h"
#include "runtime/report/inspect.h"
#include "runtime/train/trainer.h"

namespace gpuc {
namespace {

/// Of each stream; 64 bytes each are set aside when the session is made.
constexpr size_t kProfiledCommands = size_t{1} << 18;

constexpr const char *kMetricsName = "metrics.jsonl", *kCommandName = "command.txt", *kPlanName = "plan.json";
constexpr const char* kLatestName = "latest";

/// All that a run reads.
Result<std::vector<std::string>> inputPaths(const TrainOptions& options) {
  std::vector<std::string> paths = options.variables;
  paths.push_back(options.plan);
  for (const std::string& data : {options.data, options.eval_data}) {
    if (data.empty()) continue;
    GPUC_ASSIGN_OR_RETURN(DataSpec spec, parseDataSpec(data));
    for (std::string& path : pathsOf(spec)) paths.push_back(std::move(path));
  }
  return paths;
}

/// A checkpoint is not written over by anything else.
Status checkNoCheckpoint(const std::string& output, const TrainOptions& options) {
  std::filesystem::path path(output);
  std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::error_code ignored;
  if (options.checkpoint_dir.empty() || !isCheckpointName(path.filename().string()) ||
      !std::filesystem::equivalent(folder, options.checkpoint_dir, ignored))
    return okStatus();
  return Status::error("cannot write " + output + ": checkpoints have such names there; give it another");
}

/// The seed that was asked for, else that of the run which goes on, else the plan's.
uint64_t chooseSeed(const TrainOptions& options, const std::optional<Checkpoint>& checkpoint,
                    const Plan& plan) {
  if (options.seed) return static_cast<uint64_t>(*options.seed);
  return checkpoint ? checkpoint->position.seed : plan.info().seed;
}

/// Classes are numbered by their names in order: with other names a label means something else.
Status checkClasses(std::span<const std::string> trained, std::span<const std::string> evaluated) {
  if (trained.empty() || evaluated.empty()) return okStatus();
  auto nameOf = [](std::span<const std::string> classes, size_t label) {
    return label < classes.size() ? inQuotes(classes[label]) : "none";
  };
  for (size_t label = 0; label < std::max(trained.size(), evaluated.size()); ++label) {
    const std::string ours = nameOf(trained, label), theirs = nameOf(evaluated, label);
    if (ours != theirs)
      return Status::error(
          "--eval-data: class " + std::to_string(label) + " is " + theirs + ", but " + ours +
          " in --data: classes are numbered by their folders' names, which must be the same");
  }
  return okStatus();
}

Result<Session> openSession(const Plan& plan, const TrainOptions& options, uint64_t seed) {
  SessionOptions session_options{.device = options.device,
                                 .threads = static_cast<int>(options.threads),
                                 .seed = seed,
                                 .strict = options.strict,
                                 .profile_events = options.profile.empty() ? 0 : kProfiledCommands,
                                 .communicator = options.communicator};
  if (options.delay_seed) session_options.delay_seed = static_cast<uint64_t>(*options.delay_seed);
  return Session::create(plan, session_options);
}

}  // namespace

Trainer::Trainer(const TrainOptions& options, Session session)
    : options_(options),
      session_(std::move(session)),
      variables_(session_),
      stops_(static_cast<size_t>(worldSize())),
      start_(Clock::now()) {
  if (!isFirst()) options_.metrics = options_.log_dir = options_.profile = "";
  if (!options_.log_dir.empty() && options_.metrics.empty())
    options_.metrics = options_.log_dir + "/" + kMetricsName;
}

Result<std::unique_ptr<Trainer>> Trainer::create(const TrainOptions& options) {
  return withoutExceptions("cannot begin to train", [&] { return open(options); });
}

Result<std::unique_ptr<Trainer>> Trainer::open(const TrainOptions& options) {
  const KeptWarnings warnings;
  GPUC_RETURN_IF_ERROR(checkOptions(options));
  GPUC_ASSIGN_OR_RETURN(Plan plan, Plan::load(options.plan));
  std::optional<FolderLock> lock;
  const bool is_first = !options.communicator || options.communicator->rank() == 0;
  if (!options.checkpoint_dir.empty() && is_first) {
    GPUC_ASSIGN_OR_RETURN(lock, claimFolder(options.checkpoint_dir, options.resume));
  }
  std::optional<Checkpoint> checkpoint;
  if (options.resume) {
    GPUC_ASSIGN_OR_RETURN(checkpoint, findCheckpoint(options.checkpoint_dir));
  }
  uint64_t seed = chooseSeed(options, checkpoint, plan);
  GPUC_ASSIGN_OR_RETURN(Session session, openSession(plan, options, seed));
  std::unique_ptr<Trainer> trainer(new Trainer(options, std::move(session)));
  trainer->folder_lock_ = std::move(lock);
  trainer->facts_ = {.seed = seed,
                     .global_batch = plan.info().global_batch * trainer->worldSize(),
                     .samples = 0,
                     .data_checksum = 0,
                     .shuffle = options.shuffle,
                     .last_batch = options.last_batch,
                     .plan_checksum = plan.checksum(),
                     .training_digest = plan.info().training_digest,
                     .ranks = trainer->worldSize()};
  if (is_first) GPUC_RETURN_IF_ERROR(trainer->checkOutputs());
  GPUC_RETURN_IF_ERROR(trainer->findPrograms());
  GPUC_RETURN_IF_ERROR(trainer->checkRanks());
  GPUC_RETURN_IF_ERROR(trainer->openData());
  GPUC_RETURN_IF_ERROR(trainer->setVariables(checkpoint));
  GPUC_RETURN_IF_ERROR(trainer->agree());
  GPUC_RETURN_IF_ERROR(trainer->shareVariables());
  GPUC_RETURN_IF_ERROR(trainer->startFeed());
  if (is_first) GPUC_RETURN_IF_ERROR(trainer->openOutputs());
  trainer->openProgress();
  GPUC_RETURN_IF_ERROR(trainer->passOn(warnings.lines()));
  return trainer;
}

Status Trainer::findPrograms() {
  Result<ProgramId> program = session_.program("train_step");
  if (!program.ok())
    return Status::error(program.message() + "; compile the model with a recipe or with --optimizer");
  train_step_ = *program;
  if (plan().global_batch < 1)
    return Status::error(
        "the plan does not say how many rows a batch has: compile with --batch=N, or with a recipe that has "
        "`batch = N`");
  GPUC_ASSIGN_OR_RETURN(outputs_, TrainOutputs::find(session_, train_step_));
  nonfinite_.emplace(session_, train_step_);
  return okStatus();
}

Status Trainer::openData() {
  GPUC_ASSIGN_OR_RETURN(feed_, Feed::open(plan().programs[train_step_.index], options_.data));
  facts_.samples = feed_->samples();
  if (!options_.checkpoint_dir.empty()) {
    GPUC_ASSIGN_OR_RETURN(facts_.data_checksum, feed_->checksum());
  }
  if (options_.eval_data.empty()) return okStatus();
  GPUC_ASSIGN_OR_RETURN(
      evaluator_,
      Evaluator::create(session_, options_.eval_data,
                        {.workers = options_.workers, .prefetch = options_.prefetch}, options_.communicator));
  return checkClasses(feed_->classes(), evaluator_->classes());
}

Status Trainer::setVariables(const std::optional<Checkpoint>& checkpoint) {
  if (checkpoint) {
    GPUC_RETURN_IF_ERROR(checkFacts(*checkpoint, facts_));
    step_ = saved_step_ = checkpoint->position.step;
    for (const std::string& warning : checkpoint->warnings) warn(warning);
    if (!options_.variables.empty())
      warn("--variables is not read: training goes on from " + checkpoint->file.name());
    GPUC_RETURN_IF_ERROR(variables_.restore(checkpoint->file));
    if (std::optional<std::string> warning = warningOf(*checkpoint, facts_)) warn(*warning);
    return okStatus();
  }
  return options_.variables.empty() ? session_.initialize() : variables_.startFrom(options_.variables);
}

Status Trainer::startFeed() {
  SamplerOptions order{.size = facts_.samples,
                       .batch = plan().global_batch,
                       .rank = rank(),
                       .world_size = worldSize(),
                       .seed = facts_.seed,
                       .shuffle = facts_.shuffle,
                       .last_batch = facts_.last_batch};
  GPUC_ASSIGN_OR_RETURN(Sampler sampler, Sampler::create(order));
  steps_per_epoch_ = sampler.stepsPerEpoch();
  int64_t steps = 0;  // of so many epochs; more than can be counted is until somebody stops it
  if (__builtin_mul_overflow(options_.epochs.value_or(1), steps_per_epoch_, &steps))
    steps = std::numeric_limits<int64_t>::max();
  last_step_ = options_.steps.value_or(steps);
  return feed_->start(
      order,
      {.workers = options_.workers, .prefetch = options_.prefetch, .start = sampler.positionOf(step_)});
}

Status Trainer::checkOutputs() const {
  GPUC_ASSIGN_OR_RETURN(std::vector<std::string> inputs, inputPaths(options_));
  // The folder of logs need not be there yet, and metrics may lie in it.
  bool in_log = !options_.log_dir.empty() && options_.metrics == options_.log_dir + "/" + kMetricsName;
  const std::string places[] = {options_.save_variables, options_.save_trained, options_.profile,
                                in_log ? "" : options_.metrics};
  GPUC_RETURN_IF_ERROR(checkOutputFiles(places, inputs));
  std::vector<std::string> outputs(std::begin(places), std::end(places));
  for (const std::string& output : outputs) GPUC_RETURN_IF_ERROR(checkNoCheckpoint(output, options_));
  if (!options_.checkpoint_dir.empty()) outputs.push_back(options_.checkpoint_dir + "/" + kLatestName);
  if (in_log) outputs.push_back(options_.metrics);
  if (!options_.log_dir.empty())
    for (const char* name : {kCommandName, kPlanName}) outputs.push_back(options_.log_dir + "/" + name);
  GPUC_RETURN_IF_ERROR(checkOutputsApart(outputs, inputs));
  return lastMetricsStep(options_.metrics).status();
}

Status Trainer::openOutputs() {
  GPUC_RETURN_IF_ERROR(openCheckpoints());
  if (step_ == 0) warnOfFormerRun();
  if (!options_.log_dir.empty()) GPUC_RETURN_IF_ERROR(writeLogFolder());
  return openMetrics();
}

Status Trainer::openCheckpoints() {
  if (options_.checkpoint_dir.empty()) return okStatus();
  GPUC_ASSIGN_OR_RETURN(checkpoints_,
                        CheckpointWriter::open(options_.checkpoint_dir, options_.keep.value_or(3), facts_));
  if (!folder_lock_) {  // the folder was not there before
    GPUC_ASSIGN_OR_RETURN(folder_lock_, claimFolder(options_.checkpoint_dir, options_.resume));
  }
  if (folder_lock_ && folder_lock_->warning().empty())
    checkpoints_->removeStrays();
  else if (folder_lock_)
    warn(folder_lock_->warning());
  return okStatus();
}

Status Trainer::openMetrics() {
  if (options_.metrics.empty()) return okStatus();
  GPUC_ASSIGN_OR_RETURN(int64_t last, lastMetricsStep(options_.metrics));
  if (options_.resume && last > 0 && last < step_)
    warn(options_.metrics + " ends with step " + std::to_string(last) + ", and training goes on after step " +
         std::to_string(step_) + ": the lines between are missing");
  Result<MetricsFile> metrics =
      options_.resume ? MetricsFile::resume(options_.metrics, step_) : MetricsFile::create(options_.metrics);
  if (!metrics.ok()) return metrics.status();
  metrics_.emplace(*std::move(metrics));
  return okStatus();
}

/// Logs of a run can be made again, other than its weights: what replaces them says so.
void Trainer::warnOfFormerRun() const {
  std::error_code ignored;
  if (!options_.log_dir.empty() && std::filesystem::exists(options_.log_dir + "/" + kCommandName, ignored))
    return warn(options_.log_dir +
                " holds the logs of another run, which this one replaces; another --log-dir keeps both");
  Result<int64_t> last = lastMetricsStep(options_.metrics);
  if (last.ok() && *last > 0)
    warn(options_.metrics + " holds the metrics of another run, up to step " + std::to_string(*last) +
         ", which this one replaces; another --metrics keeps both");
}

/// What is needed to understand a run later: how it was called, and what the plan was.
Status Trainer::writeLogFolder() const {
  GPUC_RETURN_IF_ERROR(makeFolder(options_.log_dir));
  // A run that goes on was called more than once.
  const std::string command = options_.log_dir + "/" + kCommandName;
  std::error_code ignored;
  std::string former;
  if (options_.resume && step_ > 0 && std::filesystem::exists(command, ignored)) {
    GPUC_ASSIGN_OR_RETURN(former, readFile(command));
  }
  GPUC_RETURN_IF_ERROR(writeFileAtomically(command, former + options_.command_line + "\n"));
  return writeFileAtomically(options_.log_dir + "/" + kPlanName, inspectJson(session_.plan()));
}

void Trainer::openProgress() {
  // Metrics on stdout leave stderr for people.
  ProgressOptions progress =
      ProgressOptions::forDescriptor(options_.metrics == "-" ? STDERR_FILENO : STDOUT_FILENO);
  progress.is_terminal &= options_.bar;
  progress.log_every = options_.log_every;
  progress.first_step = step_;
  progress.last_step = last_step_;
  progress.steps_per_epoch = steps_per_epoch_;
  progress.workers = options_.workers;
  progress_ = std::make_unique<Progress>(progress);
  for (const std::string& warning : session_.warnings()) warn(warning);
  say(plan().name + " on " + session_.device().name + ": " + std::to_string(facts_.samples) +
      " samples, batch " + std::to_string(facts_.global_batch) + ", " + std::to_string(steps_per_epoch_) +
      " steps an epoch, seed " + std::to_string(facts_.seed));
  if (options_.resume && step_ > 0)
    say("resuming after step " + std::to_string(step_) + " from " + options_.checkpoint_dir);
  if (options_.resume && saved_step_ < 0)
    warn("no checkpoint in " + options_.checkpoint_dir + ": starting from scratch");
  if (isDone()) say("nothing is left to train: " + std::to_string(last_step_) + " steps are wanted");
}

}  // namespace gpuc
