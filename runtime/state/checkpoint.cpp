#include "runtime/state/checkpoint.h"

#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/base/parse.h"
#include "runtime/base/quote.h"

namespace gpuc {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-", kSuffix = ".safetensors", kLatest = "latest";
constexpr std::string_view kTemporaryMark = ".tmp.";  // of writeFileAtomically
constexpr std::string_view kOwnKeys = "gpuc.";
constexpr const char* kChecksumKey = "gpuc.data_crc32";
constexpr const char* kMetadataChecksumKey = "gpuc.metadata_crc32";
constexpr int64_t kMostSteps = 1'000'000'000'000'000;  // or of anything else that a position counts
constexpr uint32_t kNoBytes = 0;                       // the CRC-32 of nothing

/// The step in a checkpoint's name, or none for any other name.
std::optional<int64_t> stepOf(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  std::string_view digits = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
  Result<int64_t> step = parseInt64(digits);
  if (!step.ok() || *step < 0 || checkpointName(*step) != name) return std::nullopt;
  return *step;
}

uint32_t checksumOf(std::string_view bytes, uint32_t checksum) {
  return static_cast<uint32_t>(
      ::crc32_z(checksum, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

/// The tensors' bytes one after the other, by name. Lengths need no checksum: the header's are checked
/// against the file's.
uint32_t checksumOf(const SafetensorsFile& file) {
  uint32_t checksum = kNoBytes;
  for (const SafetensorsFile::Entry& entry : file.tensors()) checksum = checksumOf(entry.data, checksum);
  return checksum;
}

uint32_t checksumOf(std::vector<TensorView> tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorView& a, const TensorView& b) { return a.spec.name < b.spec.name; });
  uint32_t checksum = kNoBytes;
  for (const TensorView& tensor : tensors)
    checksum = checksumOf(
        {static_cast<const char*>(tensor.data), static_cast<size_t>(tensor.spec.sizeBytes())}, checksum);
  return checksum;
}

/// The names and values but for this checksum's own.
uint32_t checksumOf(const Metadata& metadata) {
  uint32_t checksum = kNoBytes;
  for (const auto& [key, value] : metadata)
    if (key != kMetadataChecksumKey) checksum = checksumOf(key + '\0' + value + '\0', checksum);
  return checksum;
}

/// That the file holds what was written: an error says "its `what` have …".
Status checkChecksum(const Metadata& metadata, const char* key, uint32_t checksum, const char* what) {
  const std::string found = std::to_string(checksum), &stated = metadata.at(key);
  if (stated == found) return okStatus();
  return Status::error(std::string("its ") + what + " the checksum " + found + ", expected " + stated);
}

/// Calls visit(key, value) for each number of a position.
template <typename Position, typename Visit>
void visitPosition(Position& position, Visit visit) {
  visit("gpuc.step", position.step);
  visit("gpuc.epoch", position.epoch);
  visit("gpuc.step_in_epoch", position.step_in_epoch);
  visit("gpuc.seed", position.seed);
  visit("gpuc.global_batch", position.global_batch);
  visit("gpuc.samples", position.samples);
}

/// All of `text` as an integer from 0 up that fits into `value`. (parseInt64 would refuse a seed of 64 bits.)
template <typename Integer>
bool parseNumber(const std::string& text, Integer& value) {
  const char* end = text.data() + text.size();
  auto [stop, code] = std::from_chars(text.data(), end, value);
  const bool fits = std::is_unsigned_v<Integer> || static_cast<int64_t>(value) <= kMostSteps;
  return code == std::errc() && stop == end && value >= 0 && fits;
}

/// Takes the gpuc.* entries out of `metadata`.
Result<TrainingPosition> takePosition(Metadata& metadata) {
  TrainingPosition position;
  Status status;
  visitPosition(position, [&](const char* key, auto& value) {
    auto entry = metadata.find(key);
    if (!status.ok()) return;
    if (entry == metadata.end()) {
      status = Status::error(std::string("is no checkpoint of training: it has no ") + key);
      return;
    }
    if (!parseNumber(entry->second, value))
      status = Status::error(std::string(key) + " is " + inQuotes(entry->second) +
                             ", expected an integer from 0 to 10^15");
  });
  if (!status.ok()) return status;
  std::erase_if(metadata, [](const auto& entry) { return entry.first.starts_with(kOwnKeys); });
  return position;
}

Result<std::vector<std::string>> namesIn(const std::string& folder) {
  std::error_code code;
  std::vector<std::string> names;
  fs::directory_iterator iterator(folder, code), end;
  for (; !code && iterator != end; iterator.increment(code))
    names.push_back(iterator->path().filename().string());
  if (code) return Status::error("cannot list " + folder + ": " + code.message());
  return names;
}

}  // namespace

std::string checkpointName(int64_t step) {
  char name[64];
  std::snprintf(name, sizeof(name), "step-%08lld.safetensors", static_cast<long long>(step));
  return name;
}

bool isCheckpointName(const std::string& name) { return name == kLatest || stepOf(name); }

Result<CheckpointFolder> CheckpointFolder::open(const std::string& path, int64_t keep) {
  if (keep < 1)
    return errorf("cannot keep %lld checkpoints, expected at least 1", static_cast<long long>(keep));
  GPUC_RETURN_IF_ERROR(makeFolder(path));
  return CheckpointFolder(path, keep);
}

Status CheckpointFolder::save(const TrainingPosition& position, std::vector<TensorView> tensors,
                              const Metadata& metadata) const {
  Metadata all = metadata;
  for (const auto& [key, value] : metadata)
    if (key.starts_with(kOwnKeys)) return Status::error("metadata " + key + ": gpuc. names are gpuc's own");
  visitPosition(position, [&](const char* key, auto value) { all[key] = std::to_string(value); });
  all[kChecksumKey] = std::to_string(checksumOf(tensors));
  all[kMetadataChecksumKey] = std::to_string(checksumOf(all));
  removeStrays();  // first: they may be what filled the disk
  std::string name = checkpointName(position.step);
  GPUC_RETURN_IF_ERROR(writeSafetensors(path_ + "/" + name, std::move(tensors), all));
  GPUC_RETURN_IF_ERROR(writeFileAtomically(path_ + "/" + std::string(kLatest), name + "\n"));
  removeOld(position.step);
  return okStatus();
}

void CheckpointFolder::removeOld(int64_t newest_step) const {
  Result<std::vector<int64_t>> all = steps();
  if (!all.ok()) return;  // the new checkpoint is safe; the next save tries again
  int64_t kept = 0;
  for (int64_t step : *all) {
    if (step > newest_step || ++kept <= keep_) continue;
    std::error_code ignored;
    fs::remove(path_ + "/" + checkpointName(step), ignored);
  }
}

/// Temporaries of checkpoints and of `latest` only: the folder may hold other things of the user's.
void CheckpointFolder::removeStrays() const {
  Result<std::vector<std::string>> names = namesIn(path_);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    std::string_view target = std::string_view(name).substr(0, name.find(kTemporaryMark));
    if (target.size() == name.size() || (target != kLatest && !stepOf(target))) continue;
    std::error_code ignored;
    fs::remove(path_ + "/" + name, ignored);
  }
}

/// Newest first.
Result<std::vector<int64_t>> CheckpointFolder::steps() const {
  GPUC_ASSIGN_OR_RETURN(std::vector<std::string> names, namesIn(path_));
  std::vector<int64_t> steps;
  for (const std::string& name : names)
    if (std::optional<int64_t> step = stepOf(name)) steps.push_back(*step);
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

Result<std::optional<int64_t>> CheckpointFolder::lastStep() const {
  GPUC_ASSIGN_OR_RETURN(std::vector<int64_t> all, steps());
  return all.empty() ? std::nullopt : std::optional(all.front());
}

/// What `latest` names and what is older, then the rest: a later step that `latest` does not know of was
/// left by another run.
std::vector<int64_t> CheckpointFolder::stepsByPreference(std::vector<int64_t> steps) const {
  Result<std::string> latest = readFile(path_ + "/" + std::string(kLatest));
  if (!latest.ok()) return steps;
  std::optional<int64_t> newest = stepOf(latest->substr(0, latest->find('\n')));
  if (!newest) return steps;
  std::sort(steps.begin(), steps.end(), [&](int64_t a, int64_t b) {
    bool a_is_foreign = a > *newest, b_is_foreign = b > *newest;
    return a_is_foreign != b_is_foreign ? b_is_foreign : a > b;
  });
  return steps;
}

Result<std::optional<Checkpoint>> CheckpointFolder::loadNewest() const {
  GPUC_ASSIGN_OR_RETURN(std::vector<int64_t> all, steps());
  std::vector<std::string> warnings;
  for (int64_t step : stepsByPreference(all)) {
    Result<Checkpoint> checkpoint = load(path_ + "/" + checkpointName(step));
    if (checkpoint.ok() && checkpoint->position.step != step)
      checkpoint = errorf("%s/%s: is of step %lld, which its name does not say", path_.c_str(),
                          checkpointName(step).c_str(), static_cast<long long>(checkpoint->position.step));
    if (!checkpoint.ok()) {
      warnings.push_back("passing over a damaged checkpoint: " + checkpoint.message());
      continue;
    }
    checkpoint->warnings = std::move(warnings);
    return std::optional<Checkpoint>(*std::move(checkpoint));
  }
  if (warnings.empty()) return std::optional<Checkpoint>();
  return errorf("no checkpoint in %s is whole (%zu tried); the newest: %s", path_.c_str(), warnings.size(),
                warnings.front().c_str());
}

Result<Checkpoint> CheckpointFolder::load(const std::string& path) {
  GPUC_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(path));
  Metadata metadata = file.metadata();
  if (!metadata.contains(kChecksumKey))
    return Status::error(path + ": is no checkpoint of training: it has no " + kChecksumKey);
  Status whole = checkChecksum(metadata, kChecksumKey, checksumOf(file), "data have");
  // Versions before this checksum did not write it.
  if (whole.ok() && metadata.contains(kMetadataChecksumKey))
    whole = checkChecksum(metadata, kMetadataChecksumKey, checksumOf(metadata), "metadata have");
  if (!whole.ok()) return Status::error(path + ": " + whole.message());
  Result<TrainingPosition> position = takePosition(metadata);
  if (!position.ok()) return Status::error(path + ": " + position.message());
  return Checkpoint{std::move(file), *position, std::move(metadata), {}};
}

}  // namespace gpuc
