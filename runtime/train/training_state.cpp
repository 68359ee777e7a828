#include "runtime/train/training_state.h"

#include <filesystem>

namespace gpuc {
namespace {

constexpr const char* kShuffleKey = "shuffle";
constexpr const char* kLastBatchKey = "last_batch";
constexpr const char* kDataKey = "data_crc32_of_some";
constexpr const char* kPlanKey = "plan_checksum";
constexpr const char* kTrainingKey = "training_digest";
constexpr const char* kRanksKey = "ranks";

std::string textOf(bool value) { return value ? "true" : "false"; }

/// One fact as the checkpoint and this run have it, and how to make them agree.
struct Comparison {
  const char* what;
  std::string stored;
  std::string present;
  std::string cure;
};

Status compare(const Checkpoint& checkpoint, const Comparison& fact) {
  if (fact.stored == fact.present) return okStatus();
  return Status::error(checkpoint.file.name() + " was trained with " + fact.what + " " + fact.stored +
                       ", this run has " + fact.present + ": " + fact.cure +
                       ", or start anew in another --checkpoint-dir");
}

std::string metadataOf(const Checkpoint& checkpoint, const char* key) {
  auto entry = checkpoint.metadata.find(key);
  return entry == checkpoint.metadata.end() ? "unknown" : entry->second;
}

}  // namespace

const char* nameOf(LastBatch last_batch) { return last_batch == LastBatch::drop ? "drop" : "pad"; }

Result<std::optional<FolderLock>> claimFolder(const std::string& folder, bool resumes) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) return std::optional<FolderLock>();
  Result<FolderLock> lock = FolderLock::take(folder, "wait for it to end, or give another --checkpoint-dir");
  if (!lock.ok()) return lock.status();
  GPUC_ASSIGN_OR_RETURN(CheckpointFolder opened, CheckpointFolder::open(folder, 1));
  GPUC_ASSIGN_OR_RETURN(std::optional<int64_t> last, opened.lastStep());
  if (last && !resumes)
    return Status::error(folder + " holds checkpoints of another run, up to step " + std::to_string(*last) +
                         ": pass --resume to go on from there, or another --checkpoint-dir to begin anew");
  return std::optional<FolderLock>(*std::move(lock));
}

Result<std::optional<Checkpoint>> findCheckpoint(const std::string& folder) {
  std::error_code ignored;
  if (!std::filesystem::exists(folder, ignored)) return std::optional<Checkpoint>();
  GPUC_ASSIGN_OR_RETURN(CheckpointFolder opened, CheckpointFolder::open(folder, 1));
  return opened.loadNewest();
}

Status checkFacts(const Checkpoint& checkpoint, const TrainingFacts& facts) {
  const TrainingPosition& stored = checkpoint.position;
  std::string shuffle = metadataOf(checkpoint, kShuffleKey), last = metadataOf(checkpoint, kLastBatchKey);
  std::string data = std::to_string(facts.data_checksum);
  // Checkpoints of earlier versions do not say.
  std::string stored_data = checkpoint.metadata.contains(kDataKey) ? metadataOf(checkpoint, kDataKey) : data;
  const Comparison comparisons[] = {
      {"seed", std::to_string(stored.seed), std::to_string(facts.seed),
       "pass --seed=" + std::to_string(stored.seed)},
      {"a global batch of", std::to_string(stored.global_batch), std::to_string(facts.global_batch),
       "compile a plan of that batch"},
      {"this many samples:", std::to_string(stored.samples), std::to_string(facts.samples),
       "pass the same --data"},
      {"data of the checksum", stored_data, data, "pass the same --data"},
      {"shuffling", shuffle, textOf(facts.shuffle),
       shuffle == "true" ? "leave out --no-shuffle" : "pass --no-shuffle"},
      {"--last-batch", last, nameOf(facts.last_batch), "pass --last-batch=" + last}};
  for (const Comparison& fact : comparisons) GPUC_RETURN_IF_ERROR(compare(checkpoint, fact));
  return okStatus();
}

std::optional<std::string> warningOf(const Checkpoint& checkpoint, const TrainingFacts& facts) {
  // Checkpoints and plans of earlier versions do not say what is trained; then plans are compared, which are
  // others for other numbers of ranks.
  if (facts.training_digest != 0 && checkpoint.metadata.contains(kTrainingKey)) {
    if (metadataOf(checkpoint, kTrainingKey) == std::to_string(facts.training_digest)) return std::nullopt;
  } else if (!checkpoint.metadata.contains(kPlanKey) ||
             metadataOf(checkpoint, kRanksKey) != std::to_string(facts.ranks) ||
             metadataOf(checkpoint, kPlanKey) == std::to_string(facts.plan_checksum)) {
    return std::nullopt;
  }
  return checkpoint.file.name() +
         " was trained by another plan, whose variables have the same names and shapes, but whose model, "
         "loss, optimizer, schedule or precision may be another one: if that is not meant, start anew in "
         "another --checkpoint-dir";
}

Result<CheckpointWriter> CheckpointWriter::open(const std::string& folder, int64_t keep,
                                                const TrainingFacts& facts) {
  GPUC_ASSIGN_OR_RETURN(CheckpointFolder opened, CheckpointFolder::open(folder, keep));
  return CheckpointWriter(std::move(opened), facts);
}

Status CheckpointWriter::save(VariableStore& variables, int64_t step, LoaderPosition next) const {
  GPUC_ASSIGN_OR_RETURN(std::vector<TensorView> tensors, variables.read());
  TrainingPosition position{.step = step,
                            .epoch = next.epoch,
                            .step_in_epoch = next.step,
                            .seed = facts_.seed,
                            .global_batch = facts_.global_batch,
                            .samples = facts_.samples};
  Metadata facts = {{kShuffleKey, textOf(facts_.shuffle)},
                    {kLastBatchKey, nameOf(facts_.last_batch)},
                    {kDataKey, std::to_string(facts_.data_checksum)},
                    {kPlanKey, std::to_string(facts_.plan_checksum)},
                    {kRanksKey, std::to_string(facts_.ranks)}};
  if (facts_.training_digest != 0)
    facts.insert_or_assign(kTrainingKey, std::to_string(facts_.training_digest));
  return folder_.save(position, std::move(tensors), facts);
}

}  // namespace gpuc
