#include "runtime/train/trainer.h"

#include <unistd.h>

#include <cinttypes>
#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/tooling/chrome_trace.h"
#include "runtime/tooling/inspect.h"

namespace gpuc {
namespace {

/// Of each stream; 64 bytes each are set aside when the session is made.
constexpr size_t kProfiledCommands = size_t{1} << 18;

/// The seed that was asked for, else that of the run which goes on, else the plan's.
uint64_t chooseSeed(const TrainOptions& options, const std::optional<Checkpoint>& checkpoint,
                    const Plan& plan) {
  if (options.seed) return static_cast<uint64_t>(*options.seed);
  return checkpoint ? checkpoint->position.seed : plan.info().seed;
}

Result<Session> openSession(const Plan& plan, const TrainOptions& options, uint64_t seed) {
  return Session::create(plan, {.device = options.device,
                                .threads = static_cast<int>(options.threads),
                                .seed = seed,
                                .profile_events = options.profile.empty() ? 0 : kProfiledCommands});
}

/// Whether a file can be made at `path`, asked before hours of training rather than after.
Status checkCanWrite(const std::string& path) {
  if (path.empty() || path == "-") return okStatus();
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::string name = folder.empty() ? "." : folder.string();
  std::error_code ignored;
  if (!std::filesystem::is_directory(name, ignored))
    return Status::error("cannot write " + path + ": there is no folder " + name);
  if (std::filesystem::is_directory(path, ignored))
    return Status::error("cannot write " + path + ": it is a folder");
  if (::access(name.c_str(), W_OK) != 0)
    return Status::error("cannot write " + path + ": the folder " + name + " is not writable");
  return okStatus();
}

double secondsBetween(std::chrono::steady_clock::time_point begin,
                      std::chrono::steady_clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

Trainer::Trainer(const TrainOptions& options, Session session)
    : options_(options), session_(std::move(session)), variables_(session_), start_(Clock::now()) {
  if (!options_.log_dir.empty() && options_.metrics.empty())
    options_.metrics = options_.log_dir + "/metrics.jsonl";
}

Result<std::unique_ptr<Trainer>> Trainer::create(const TrainOptions& options) {
  GPUC_ASSIGN_OR_RETURN(Plan plan, Plan::load(options.plan));
  std::optional<Checkpoint> checkpoint;
  if (options.resume) {
    GPUC_ASSIGN_OR_RETURN(checkpoint, findCheckpoint(options.checkpoint_dir));
  }
  uint64_t seed = chooseSeed(options, checkpoint, plan);
  GPUC_ASSIGN_OR_RETURN(Session session, openSession(plan, options, seed));
  std::unique_ptr<Trainer> trainer(new Trainer(options, std::move(session)));
  trainer->facts_ = {.seed = seed,
                     .global_batch = plan.info().global_batch,
                     .samples = 0,
                     .shuffle = options.shuffle,
                     .last_batch = options.last_batch};
  GPUC_RETURN_IF_ERROR(trainer->checkOutputs());
  GPUC_RETURN_IF_ERROR(trainer->findPrograms());
  GPUC_RETURN_IF_ERROR(trainer->openData());
  GPUC_RETURN_IF_ERROR(trainer->setVariables(checkpoint));
  GPUC_RETURN_IF_ERROR(trainer->startFeed());
  GPUC_RETURN_IF_ERROR(trainer->openOutputs());
  trainer->openProgress();
  return trainer;
}

Status Trainer::findPrograms() {
  Result<ProgramId> program = session_.program("train_step");
  if (!program.ok())
    return Status::error(program.message() + "; compile the model with a recipe or with --optimizer");
  train_step_ = *program;
  GPUC_ASSIGN_OR_RETURN(outputs_, TrainOutputs::find(session_, train_step_));
  return okStatus();
}

Status Trainer::openData() {
  GPUC_ASSIGN_OR_RETURN(feed_, Feed::open(plan().programs[train_step_.index], options_.data));
  facts_.samples = feed_->samples();
  if (options_.eval_data.empty()) return okStatus();
  GPUC_ASSIGN_OR_RETURN(evaluator_,
                        Evaluator::create(session_, options_.eval_data,
                                          {.workers = options_.workers, .prefetch = options_.prefetch}));
  return okStatus();
}

Status Trainer::setVariables(const std::optional<Checkpoint>& checkpoint) {
  if (checkpoint) {
    GPUC_RETURN_IF_ERROR(checkFacts(*checkpoint, facts_));
    step_ = saved_step_ = checkpoint->position.step;
    for (const std::string& warning : checkpoint->warnings)
      std::fprintf(stderr, "warning: %s\n", warning.c_str());
    return variables_.restore(checkpoint->file);
  }
  GPUC_RETURN_IF_ERROR(session_.initialize());
  if (options_.variables.empty()) return okStatus();
  GPUC_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(options_.variables));
  return variables_.start(file);
}

Status Trainer::startFeed() {
  SamplerOptions order{.size = facts_.samples,
                       .batch = facts_.global_batch,
                       .seed = facts_.seed,
                       .shuffle = facts_.shuffle,
                       .last_batch = facts_.last_batch};
  GPUC_ASSIGN_OR_RETURN(Sampler sampler, Sampler::create(order));
  steps_per_epoch_ = sampler.stepsPerEpoch();
  last_step_ = options_.steps.value_or(options_.epochs.value_or(1) * steps_per_epoch_);
  return feed_->start(
      order,
      {.workers = options_.workers, .prefetch = options_.prefetch, .start = sampler.positionOf(step_)});
}

Status Trainer::checkOutputs() const {
  for (const std::string* path : {&options_.save_variables, &options_.profile})
    GPUC_RETURN_IF_ERROR(checkCanWrite(*path));
  return options_.log_dir.empty() ? checkCanWrite(options_.metrics) : okStatus();
}

Status Trainer::openOutputs() {
  if (!options_.checkpoint_dir.empty()) {
    GPUC_ASSIGN_OR_RETURN(checkpoints_,
                          CheckpointWriter::open(options_.checkpoint_dir, options_.keep, facts_));
  }
  if (!options_.log_dir.empty()) GPUC_RETURN_IF_ERROR(writeLogFolder());
  if (options_.metrics.empty()) return okStatus();
  Result<MetricsFile> metrics =
      options_.resume ? MetricsFile::resume(options_.metrics, step_) : MetricsFile::create(options_.metrics);
  if (!metrics.ok()) return metrics.status();
  metrics_.emplace(*std::move(metrics));
  return okStatus();
}

/// What is needed to understand a run later: how it was called, and what the plan was.
Status Trainer::writeLogFolder() const {
  std::error_code failed;
  std::filesystem::create_directories(options_.log_dir, failed);
  if (failed) return Status::error("cannot make the folder " + options_.log_dir + ": " + failed.message());
  GPUC_RETURN_IF_ERROR(writeFileAtomically(options_.log_dir + "/command.txt", options_.command_line + "\n"));
  return writeFileAtomically(options_.log_dir + "/plan.json", inspectJson(session_.plan()));
}

void Trainer::openProgress() {
  // Metrics on stdout leave stderr for people.
  ProgressOptions progress =
      ProgressOptions::forDescriptor(options_.metrics == "-" ? STDERR_FILENO : STDOUT_FILENO);
  progress.log_every = options_.log_every;
  progress.first_step = step_;
  progress.last_step = last_step_;
  progress.steps_per_epoch = steps_per_epoch_;
  progress_ = std::make_unique<Progress>(progress);
  for (const std::string& warning : session_.warnings())
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  say(plan().name + " on " + session_.device().name + ": " + std::to_string(facts_.samples) +
      " samples, batch " + std::to_string(facts_.global_batch) + ", " + std::to_string(steps_per_epoch_) +
      " steps an epoch, seed " + std::to_string(facts_.seed));
  if (options_.resume && step_ > 0)
    say("resuming after step " + std::to_string(step_) + " from " + options_.checkpoint_dir);
  if (options_.resume && saved_step_ < 0)
    say("no checkpoint in " + options_.checkpoint_dir + ": starting from scratch");
  if (isDone()) say("nothing is left to train: " + std::to_string(last_step_) + " steps are wanted");
}

void Trainer::say(const std::string& text) { progress_->note(text); }

Result<TrainOutcome> Trainer::run(const std::atomic<bool>& stop) {
  GPUC_RETURN_IF_ERROR(loop(stop));
  if (isDone()) {
    GPUC_RETURN_IF_ERROR(saveCheckpoint());
    GPUC_RETURN_IF_ERROR(writeProfile());
    GPUC_RETURN_IF_ERROR(evaluate(stop));
  }
  bool is_complete = isDone() && (!evaluator_ || evaluated_step_ == step_);
  GPUC_RETURN_IF_ERROR(is_complete ? finish() : stopEarly());
  return is_complete ? TrainOutcome::finished : TrainOutcome::stopped;
}

/// Between steps the checkpoint comes first and the evaluation then: dying in a long evaluation loses
/// nothing. Who resumes at the end of an epoch makes the evaluation again.
Status Trainer::loop(const std::atomic<bool>& stop) {
  if (isEpochDone() && !isDone()) GPUC_RETURN_IF_ERROR(evaluate(stop));
  while (!stop && !isDone()) {
    GPUC_RETURN_IF_ERROR(trainStep());
    GPUC_RETURN_IF_ERROR(saveCheckpointIfDue());
    if (isEpochDone() && !isDone()) GPUC_RETURN_IF_ERROR(evaluate(stop));
  }
  return okStatus();
}

Status Trainer::trainStep() {
  Clock::time_point begin = Clock::now();
  GPUC_ASSIGN_OR_RETURN(FeedBatch batch, feed_->next());
  Clock::time_point ready = Clock::now();
  GPUC_RETURN_IF_ERROR(session_.run(train_step_, batch.inputs, batch.run_rows));
  feed_->release();
  GPUC_RETURN_IF_ERROR(session_.wait());
  Clock::time_point end = Clock::now();
  ++step_;
  double step_s = secondsBetween(begin, end);
  StepEvent event = readStep(batch, 1e6 * secondsBetween(ready, end), step_s);
  rows_trained_ += static_cast<double>(batch.rows);
  seconds_trained_ += step_s;
  last_loss_ = event.loss;
  if (metrics_) GPUC_RETURN_IF_ERROR(metrics_->write(MetricsLine(event)));
  progress_->step(event, step_s, batch.rows);
  return okStatus();
}

StepEvent Trainer::readStep(const FeedBatch& batch, double compute_us, double step_s) {
  StepEvent event;
  event.step = step_;
  event.epoch = epoch();
  std::optional<Number> sum = outputs_.loss_sum.read(session_), count = outputs_.count.read(session_);
  if (sum && count) event.loss = sum->value / count->value;
  event.lr = outputs_.lr.read(session_);
  event.grad_norm = outputs_.grad_norm.read(session_);
  event.loss_scale = outputs_.loss_scale.read(session_).value_or(event.loss_scale);
  event.skipped = outputs_.skipped.read(session_).value_or(Number{}).value != 0;
  event.samples_per_s = static_cast<double>(batch.rows) / step_s;
  event.data_us = batch.wait_us;
  event.compute_us = compute_us;
  return event;
}

Status Trainer::saveCheckpointIfDue() {
  if (!checkpoints_) return okStatus();
  bool is_due = options_.checkpoint_every ? step_ % *options_.checkpoint_every == 0 : isEpochDone();
  return is_due ? saveCheckpoint() : okStatus();
}

/// Metrics first: whoever finds the checkpoint finds the lines up to it too.
Status Trainer::saveCheckpoint() {
  if (!checkpoints_ || saved_step_ == step_) return okStatus();
  if (metrics_) GPUC_RETURN_IF_ERROR(metrics_->flush());
  GPUC_RETURN_IF_ERROR(checkpoints_->save(variables_, step_, feed_->sampler().positionOf(step_)));
  saved_step_ = step_;
  return okStatus();
}

Status Trainer::evaluate(const std::atomic<bool>& stop) {
  if (!evaluator_) return okStatus();
  GPUC_ASSIGN_OR_RETURN(std::optional<Evaluation> evaluation, evaluator_->run(session_, stop));
  if (!evaluation) return okStatus();
  evaluated_step_ = step_;
  last_evaluation_ = *evaluation;
  EvalEvent event{step_, epoch(), evaluation->loss, evaluation->accuracy};
  if (metrics_) GPUC_RETURN_IF_ERROR(metrics_->write(MetricsLine(event)));
  progress_->evaluation(event);
  return okStatus();
}

Status Trainer::finish() {
  EndEvent event{.step = step_,
                 .epoch = epoch(),
                 .steps = step_,
                 .epochs = step_ / steps_per_epoch_,
                 .wall_s = secondsBetween(start_, Clock::now()),
                 .samples_per_s = seconds_trained_ > 0 ? rows_trained_ / seconds_trained_ : 0,
                 .loss = evaluator_ ? last_evaluation_.loss : last_loss_,
                 .accuracy = last_evaluation_.accuracy};
  if (!options_.save_variables.empty()) GPUC_RETURN_IF_ERROR(variables_.save(options_.save_variables));
  if (metrics_) {
    GPUC_RETURN_IF_ERROR(metrics_->write(MetricsLine(event)));
    GPUC_RETURN_IF_ERROR(metrics_->flush());
  }
  progress_->end(event);
  return okStatus();
}

Status Trainer::stopEarly() {
  GPUC_RETURN_IF_ERROR(saveCheckpoint());
  if (metrics_) GPUC_RETURN_IF_ERROR(metrics_->flush());
  std::string text = "stopped after step " + std::to_string(step_) + " of " + std::to_string(last_step_);
  say(text + (checkpoints_ ? ": the same command with --resume goes on from there"
                           : "; nothing was saved (--checkpoint-dir=DIR would let it resume)"));
  return okStatus();
}

Status Trainer::writeProfile() {
  if (options_.profile.empty()) return okStatus();
  return writeFileAtomically(options_.profile, chromeTrace(session_.plan(), session_.profile()));
}

}  // namespace gpuc
