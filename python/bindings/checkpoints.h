// A folder of checkpoints that Python writes to: gpuc-train's files, by gpuc-train's rules.
#pragma once

#include <optional>
#include <string>

#include "runtime/gpuc.h"
#include "runtime/state/checkpoint.h"
#include "runtime/state/folder_lock.h"
#include "runtime/weights/variable_store.h"

namespace gpuc {

/// Holds the folder against other runs, and copies of a session's variables while they are written.
class Checkpoints {
 public:
  /// Makes the folder if it is not there. Errors: another run holds it. Who does not write, as all ranks but
  /// the first, does not hold it.
  static Result<Checkpoints> open(const std::string& folder, int64_t keep, bool writes) {
    GPUC_ASSIGN_OR_RETURN(CheckpointFolder opened, CheckpointFolder::open(folder, keep));
    if (!writes) return Checkpoints(std::move(opened), std::nullopt, writes);
    GPUC_ASSIGN_OR_RETURN(FolderLock lock,
                          FolderLock::take(folder, "wait for it to end, or give another checkpoint_dir"));
    return Checkpoints(std::move(opened), std::move(lock), writes);
  }

  std::string warning() const { return lock_ ? lock_->warning() : ""; }
  Result<std::optional<int64_t>> lastStep() const { return folder_.lastStep(); }
  Result<std::optional<Checkpoint>> loadNewest() const { return folder_.loadNewest(); }

  /// Of variables that ranks share out a collective, in which one of them writes.
  Status save(Session& session, const TrainingPosition& position, const Metadata& metadata) {
    if (!variables_) variables_.emplace(session);
    GPUC_ASSIGN_OR_RETURN(std::vector<TensorView> tensors, variables_->read());
    if (!writes_) return okStatus();
    return folder_.save(position, std::move(tensors), metadata);
  }

  /// Others may have the folder.
  void close() { lock_.reset(); }

 private:
  Checkpoints(CheckpointFolder folder, std::optional<FolderLock> lock, bool writes)
      : folder_(std::move(folder)), lock_(std::move(lock)), writes_(writes) {}

  CheckpointFolder folder_;
  std::optional<FolderLock> lock_;
  bool writes_;
  std::optional<VariableStore> variables_;  // of the session that is saved, which is always the same
};

}  // namespace gpuc
