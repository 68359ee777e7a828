// Training that can be stopped at any moment: a folder of checkpoints of which the last one written in full
// is always there.
//   DIR/step-00001000.safetensors   all variables and optimizer state, and the position as metadata
//   DIR/latest                      the name of the newest, for people and scripts
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/state/safetensors.h"

namespace gpuc {

/// Where training stands, beyond the tensors. Knows nothing of the plan, so that a recompiled plan continues.
struct TrainingPosition {
  int64_t step = 0;           // optimizer updates done, skipped ones included
  int64_t epoch = 0;          // of the next batch, from 0
  int64_t step_in_epoch = 0;  // of the next batch, from 0
  uint64_t seed = 0;
  int64_t global_batch = 0;  // rows of all ranks and microbatches in one step
  int64_t samples = 0;       // in the training data
  bool operator==(const TrainingPosition&) const = default;
};

/// A checkpoint as it was read.
struct Checkpoint {
  SafetensorsFile file;
  TrainingPosition position;
  Metadata metadata;                  // what the caller of save() added
  std::vector<std::string> warnings;  // newer checkpoints that were passed over, and why; a line each
};

class CheckpointFolder {
 public:
  /// Makes the folder if it is not there. `keep` is how many checkpoints stay, at least 1.
  static Result<CheckpointFolder> open(const std::string& path, int64_t keep);

  /// Writes position.step's checkpoint, then `latest`, then removes the oldest beyond `keep` and what killed
  /// writers left. Each file appears in full or not at all: whenever the process or the machine dies, the
  /// former checkpoint is whole. Checkpoints of later steps, left by another run, are never removed. Names in
  /// `metadata` must not begin with "gpuc.". Errors: what the system says, naming the file.
  Status save(const TrainingPosition& position, std::vector<TensorView> tensors,
              const Metadata& metadata = {}) const;

  /// The checkpoint that `latest` names if it is whole (format, lengths, the checksums of tensors and
  /// metadata, the step that its name says), else the next older one that is, with a warning for each passed
  /// over. None if the folder holds no checkpoint; an error if it holds some and none is whole.
  Result<std::optional<Checkpoint>> loadNewest() const;

  /// The largest step of which there is a checkpoint, whole or not; none if there is none.
  Result<std::optional<int64_t>> lastStep() const;

  /// Removes what killed writers left. Only for who alone writes to the folder.
  void removeStrays() const;

  /// Reads and verifies one file.
  static Result<Checkpoint> load(const std::string& path);

  const std::string& path() const { return path_; }

 private:
  CheckpointFolder(std::string path, int64_t keep) : path_(std::move(path)), keep_(keep) {}
  Result<std::vector<int64_t>> steps() const;
  void removeOld(int64_t newest_step) const;
  std::vector<int64_t> stepsByPreference(std::vector<int64_t> steps) const;

  std::string path_;
  int64_t keep_;
};

/// "step-00001000.safetensors".
std::string checkpointName(int64_t step);

/// Whether files of this name in a folder of checkpoints are gpuc's to write and to remove.
bool isCheckpointName(const std::string& name);

}  // namespace gpuc
