// The training loop: batches into train_step, metrics out, checkpoints and evaluation in between.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/report/nonfinite.h"
#include "runtime/train/evaluator.h"
#include "runtime/train/feed.h"
#include "runtime/train/metrics_file.h"
#include "runtime/train/progress.h"
#include "runtime/train/step_outputs.h"
#include "runtime/train/train_options.h"
#include "runtime/train/training_state.h"
#include "runtime/weights/variable_store.h"

namespace gpuc {

enum class TrainOutcome { finished, stopped };

/// One run of training. Which values it computes depends on plan, data, seed and options alone: not on
/// threads, workers, checkpoints, or on having been stopped and resumed.
class Trainer {
 public:
  /// Loads and checks everything, gives the variables their values, and only then makes or cuts files.
  /// Errors: those of checkOptions(), of plan, data, weights and checkpoint, one line each.
  static Result<std::unique_ptr<Trainer>> create(const TrainOptions& options);

  /// Trains to the end, or until `stop` is true: then the step under way is finished and a checkpoint
  /// written. In the loop nothing allocates, but for checkpoints.
  Result<TrainOutcome> run(const std::atomic<bool>& stop);

  int64_t step() const { return step_; }
  Session& session() { return session_; }

 private:
  using Clock = std::chrono::steady_clock;

  Trainer(const TrainOptions& options, Session session);

  // create(), in this order.
  static Result<std::unique_ptr<Trainer>> open(const TrainOptions& options);
  Status checkOutputs() const;
  Status findPrograms();
  Status openData();
  Status checkRanks() const;
  Status shareVariables();
  Status agree() const;
  Status setVariables(const std::optional<Checkpoint>& checkpoint);
  Status startFeed();
  Status openOutputs();
  Status openCheckpoints();
  Status openMetrics();
  void warnOfFormerRun() const;
  Status writeLogFolder() const;
  void openProgress();
  Status passOn(const std::vector<std::string>& warnings);

  // run()
  Status loop(const std::atomic<bool>& stop);
  Status ofThisStep(const Status& status) const;
  Result<bool> isStopWanted(const std::atomic<bool>& stop);
  Status trainStep();
  StepEvent readStep(const FeedBatch& batch, double compute_us, double step_s);
  Status saveCheckpointIfDue();
  Status saveCheckpoint();
  Status saveVariables(const std::string& path, Saved saved);
  Status helpToSave(Saved saved);
  Status evaluate(const std::atomic<bool>& stop);
  Status finish();
  Status stopEarly();
  Status writeProfile();
  Status checkFinite(bool skipped);
  void sayNonfinite();

  bool isEpochDone() const { return step_ > 0 && step_ % steps_per_epoch_ == 0; }
  bool isDone() const { return step_ >= last_step_; }
  /// Of the last step that was done, from 1.
  int64_t epoch() const { return step_ == 0 ? 1 : (step_ - 1) / steps_per_epoch_ + 1; }
  const PlanInfo& plan() const { return session_.plan().info(); }
  int64_t rank() const { return options_.communicator ? options_.communicator->rank() : 0; }
  int64_t worldSize() const { return options_.communicator ? options_.communicator->size() : 1; }
  bool isFirst() const { return rank() == 0; }
  void say(const std::string& text);

  TrainOptions options_;
  Session session_;
  ProgramId train_step_;
  TrainOutputs outputs_;
  std::optional<Nonfinite> nonfinite_;
  VariableStore variables_;
  TrainingFacts facts_;
  std::optional<Feed> feed_;
  std::optional<Evaluator> evaluator_;
  std::optional<FolderLock> folder_lock_;  // of the checkpoints
  std::optional<CheckpointWriter> checkpoints_;
  std::optional<MetricsFile> metrics_;
  std::unique_ptr<Progress> progress_;
  std::vector<std::byte> stops_;  // which rank has been asked to stop

  int64_t step_ = 0;  // updates done
  int64_t last_step_ = 0;
  int64_t steps_per_epoch_ = 1;
  int64_t saved_step_ = -1;      // of the newest checkpoint
  int64_t evaluated_step_ = -1;  // at which the evaluation was complete
  std::optional<double> last_loss_;
  Evaluation last_evaluation_;
  double rows_trained_ = 0;  // by this process
  double seconds_trained_ = 0;
  Clock::time_point start_;
};

}  // namespace gpuc
