// Checkpoints of a training run, and going on from one.
#pragma once

#include <optional>
#include <string>

#include "runtime/data/sampler.h"
#include "runtime/state/checkpoint.h"
#include "runtime/state/folder_lock.h"
#include "runtime/weights/variable_store.h"

namespace gpuc {

/// What must be the same for training to go on as if it had never stopped, beyond the variables.
struct TrainingFacts {
  uint64_t seed = 0;
  int64_t global_batch = 0;
  int64_t samples = 0;
  uint32_t data_checksum = 0;  // of some of the samples, see sampleChecksum
  bool shuffle = true;
  LastBatch last_batch = LastBatch::drop;
  uint64_t plan_checksum = 0;    // of its file
  uint64_t training_digest = 0;  // what the plan says that it trains; 0: it does not say
  int64_t ranks = 1;             // each of other numbers has another plan
};

const char* nameOf(LastBatch last_batch);

/// Holds `folder` against other runs, as long as the lock lives. None if there is no such folder. Errors:
/// another run holds it; it has checkpoints, and this run does not resume.
Result<std::optional<FolderLock>> claimFolder(const std::string& folder, bool resumes);

/// The newest whole checkpoint of `folder`, or none if there is none, or no such folder. Nothing is made.
Result<std::optional<Checkpoint>> findCheckpoint(const std::string& folder);

/// Whether a run with these facts can go on from the checkpoint. The error names what differs, both values
/// and the cure.
Status checkFacts(const Checkpoint& checkpoint, const TrainingFacts& facts);

/// What such a run is to be told: nothing keeps it from going on, and it may train something else.
std::optional<std::string> warningOf(const Checkpoint& checkpoint, const TrainingFacts& facts);

/// Writes the checkpoints of one run.
class CheckpointWriter {
 public:
  /// Makes the folder if it is not there.
  static Result<CheckpointWriter> open(const std::string& folder, int64_t keep, const TrainingFacts& facts);

  /// What killed writers left in the folder; only for who holds it.
  void removeStrays() const { folder_.removeStrays(); }

  /// Saves all variables as they are after `step` updates; `next` is the place of the next batch.
  Status save(VariableStore& variables, int64_t step, LoaderPosition next) const;

 private:
  CheckpointWriter(CheckpointFolder folder, const TrainingFacts& facts)
      : folder_(std::move(folder)), facts_(facts) {}

  CheckpointFolder folder_;
  TrainingFacts facts_;
};

}  // namespace gpuc
