// What happens between the first step and the last; trainer_setup.cpp is what happens before.
#include "runtime/train/trainer.h"

#include <algorithm>

#include "runtime/base/file.h"
#include "runtime/report/chrome_trace.h"

namespace gpuc {
namespace {

double secondsBetween(std::chrono::steady_clock::time_point begin,
                      std::chrono::steady_clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

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
  GPUC_RETURN_IF_ERROR(progress_->status());
  return is_complete ? TrainOutcome::finished : TrainOutcome::stopped;
}

/// Between steps the checkpoint comes first and the evaluation then: dying in a long evaluation loses
/// nothing. Who resumes at the end of an epoch makes the evaluation again.
Status Trainer::loop(const std::atomic<bool>& stop) {
  if (isEpochDone() && !isDone()) GPUC_RETURN_IF_ERROR(evaluate(stop));
  while (!isDone()) {
    GPUC_ASSIGN_OR_RETURN(const bool is_wanted, isStopWanted(stop));
    if (is_wanted) break;
    GPUC_RETURN_IF_ERROR(trainStep());
    GPUC_RETURN_IF_ERROR(saveCheckpointIfDue());
    if (isEpochDone() && !isDone()) GPUC_RETURN_IF_ERROR(evaluate(stop));
  }
  return okStatus();
}

/// Where another rank is lost, one wants to know when.
Status Trainer::ofThisStep(const Status& status) const {
  if (status.ok() || !options_.communicator) return status;
  return Status::error("step " + std::to_string(step_ + 1) + ": " + status.message());
}

/// All ranks stop behind the same step, whichever has been asked to: of several machines one may have to end.
Result<bool> Trainer::isStopWanted(const std::atomic<bool>& stop) {
  const auto is_wanted = static_cast<std::byte>(stop.load());
  if (!options_.communicator) return is_wanted != std::byte{0};
  GPUC_RETURN_IF_ERROR(ofThisStep(options_.communicator->gather({&is_wanted, 1}, stops_)));
  return std::find(stops_.begin(), stops_.end(), std::byte{1}) != stops_.end();
}

Status Trainer::trainStep() {
  Clock::time_point begin = Clock::now();
  GPUC_ASSIGN_OR_RETURN(FeedBatch batch, feed_->next());
  Clock::time_point ready = Clock::now();
  GPUC_RETURN_IF_ERROR(ofThisStep(session_.run(train_step_, batch.inputs, batch.run_rows)));
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
  return checkFinite(event.skipped);
}

/// NaN and infinities end training where the plan looks for them, unless they cost an update and nothing
/// more.
Status Trainer::checkFinite(bool skipped) {
  Status status = nonfinite_->take(session_, step_, skipped);
  if (!status.ok()) sayNonfinite();
  return status;
}

void Trainer::sayNonfinite() {
  for (const std::string& line : nonfinite_->table()) say(line);
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
  if (options_.checkpoint_dir.empty()) return okStatus();
  bool is_due = options_.checkpoint_every ? step_ % *options_.checkpoint_every == 0 : isEpochDone();
  return is_due ? saveCheckpoint() : okStatus();
}

/// Metrics first: whoever finds the checkpoint finds the lines up to it too.
Status Trainer::saveCheckpoint() {
  if (options_.checkpoint_dir.empty() || saved_step_ == step_) return okStatus();
  if (!checkpoints_) {
    saved_step_ = step_;
    return helpToSave(Saved::all);
  }
  if (metrics_) GPUC_RETURN_IF_ERROR(metrics_->flush());
  GPUC_RETURN_IF_ERROR(checkpoints_->save(variables_, step_, feed_->sampler().positionOf(step_)));
  saved_step_ = step_;
  return okStatus();
}

Status Trainer::saveVariables(const std::string& path, Saved saved) {
  if (path.empty()) return okStatus();
  return isFirst() ? variables_.save(path, saved) : helpToSave(saved);
}

/// The first rank saves; what ranks share out all of them read for it.
Status Trainer::helpToSave(Saved saved) {
  return plan().world_size > 1 && !isFirst() ? variables_.read(saved).status() : okStatus();
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
  GPUC_RETURN_IF_ERROR(saveVariables(options_.save_variables, Saved::all));
  GPUC_RETURN_IF_ERROR(saveVariables(options_.save_trained, Saved::trained));
  if (metrics_) {
    GPUC_RETURN_IF_ERROR(metrics_->write(MetricsLine(event)));
    GPUC_RETURN_IF_ERROR(metrics_->flush());
  }
  progress_->end(event);
  sayNonfinite();
  return okStatus();
}

Status Trainer::stopEarly() {
  GPUC_RETURN_IF_ERROR(saveCheckpoint());
  if (metrics_) GPUC_RETURN_IF_ERROR(metrics_->flush());
  std::string text = "stopped after step " + std::to_string(step_) + " of " + std::to_string(last_step_);
  say(text + (checkpoints_ ? ": the same command with --resume goes on from there"
                           : "; nothing was saved (--checkpoint-dir=DIR would let it resume)"));
  sayNonfinite();
  return okStatus();
}

Status Trainer::writeProfile() {
  if (options_.profile.empty()) return okStatus();
  return writeFileAtomically(options_.profile, chromeTrace(session_.plan(), session_.profile()));
}

}  // namespace gpuc
