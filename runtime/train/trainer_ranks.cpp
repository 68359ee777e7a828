// What ranks check and share before their first step.
#include <zlib.h>

#include <map>
#include <sstream>

#include "runtime/base/file.h"
#include "runtime/base/warn.h"
#include "runtime/comm/communicator.h"
#include "runtime/train/trainer.h"
#include "runtime/weights/shared_variables.h"
#include "runtime/weights/weights_selection.h"

namespace gpuc {
Status Trainer::checkRanks() const {
  if (worldSize() == 1 || isDataParallel(plan())) return okStatus();
  return Status::error(options_.plan + " was compiled for one rank, and " + std::to_string(worldSize()) +
                       " would each train by themselves: compile it with --data-parallel");
}

/// Ranks that train something else than one another would do so without a word. What each is told to do is
/// gathered as checksums, so that the error says in what they differ.
Status Trainer::agree() const {
  if (!options_.communicator) return okStatus();
  enum { kPlan, kSeed, kData, kOrder, kStep, kWishes };
  static constexpr const char* kNames[kWishes] = {"plan", "seed", "data", "order of the data",
                                                  "step to go on from"};
  GPUC_ASSIGN_OR_RETURN(const std::string file, readFile(options_.plan));
  auto checksum = [](const std::string& text) {
    return ::crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size());
  };
  std::vector<uint64_t> mine(kWishes), all(kWishes * static_cast<size_t>(worldSize()));
  mine[kPlan] = checksum(file);
  mine[kSeed] = facts_.seed;
  mine[kData] = checksum(options_.data) ^ static_cast<uint64_t>(facts_.samples) << 32;
  mine[kOrder] = static_cast<uint64_t>(facts_.shuffle) << 1 | static_cast<uint64_t>(facts_.last_batch);
  mine[kStep] = static_cast<uint64_t>(step_);
  GPUC_RETURN_IF_ERROR(
      options_.communicator->gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all))));
  for (size_t other = 1; other < static_cast<size_t>(worldSize()); ++other)
    for (size_t wish = 0; wish < kWishes; ++wish)
      if (all[wish] != all[other * kWishes + wish])
        return Status::error("ranks 0 and " + std::to_string(other) + " have another " + kNames[wish] +
                             ": give all of them the same");
  return okStatus();
}

/// What another rank alone has warned of, as of a library of its machine: the first one says it.
Status Trainer::passOn(const std::vector<std::string>& warnings) {
  if (!options_.communicator) return okStatus();
  constexpr size_t kMostText = 4096;
  std::string mine;
  for (const std::string& line : warnings) mine += line + "\n";
  mine.resize(kMostText);
  std::string all(kMostText * static_cast<size_t>(worldSize()), '\0');
  GPUC_RETURN_IF_ERROR(
      options_.communicator->gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all))));
  std::map<std::string, std::vector<size_t>> saidBy;
  for (size_t other = 0; other < static_cast<size_t>(worldSize()); ++other) {
    std::istringstream text(all.substr(other * kMostText, kMostText));
    for (std::string line; std::getline(text, line) && line[0] != '\0';) saidBy[line].push_back(other);
  }
  for (const auto& [line, ranks] : saidBy)
    if (ranks[0] != 0)
      warn("rank " + std::to_string(ranks[0]) +
           (ranks.size() > 1 ? " and " + std::to_string(ranks.size() - 1) + " more" : "") + ": " + line);
  return okStatus();
}

Status Trainer::shareVariables() {
  return options_.communicator ? gpuc::shareVariables(session_, *options_.communicator) : okStatus();
}

}  // namespace gpuc
