// What ranks check and share before their first step.
#include <zlib.h>

#include <map>
#include <sstream>

#include "runtime/base/warn.h"
#include "runtime/comm/communicator.h"
#include "runtime/train/trainer.h"
#include "runtime/weights/shared_variables.h"
#include "runtime/weights/weights_selection.h"

namespace gpuc {
namespace {

uint64_t checksumOf(const std::string& text) {
  return ::crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size());
}

/// What all ranks must have alike: a name for each thing, and this rank's.
struct Wish {
  const char* name;
  uint64_t mine;
};

Status agreeOn(Communicator& ranks, const std::vector<Wish>& wishes) {
  std::vector<uint64_t> mine, all(wishes.size() * static_cast<size_t>(ranks.size()));
  for (const Wish& wish : wishes) mine.push_back(wish.mine);
  GPUC_RETURN_IF_ERROR(ranks.gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all))));
  for (size_t other = 1; other < static_cast<size_t>(ranks.size()); ++other)
    for (size_t wish = 0; wish < wishes.size(); ++wish)
      if (all[wish] != all[other * wishes.size() + wish])
        return Status::error("ranks 0 and " + std::to_string(other) + " have another " + wishes[wish].name +
                             ": give all of them the same");
  return okStatus();
}

}  // namespace

Status Trainer::checkRanks() const {
  if (worldSize() == 1 || isDataParallel(plan())) return okStatus();
  return Status::error(options_.plan + " was compiled for one rank, and " + std::to_string(worldSize()) +
                       " would each train by themselves: compile it with --data-parallel");
}

/// Ranks that train something else than one another would do so without a word, or wait for one another where
/// one of them comes to its end. What each is told to do is gathered as numbers, so that the error says in
/// what they differ.
Status Trainer::agree() const {
  if (!options_.communicator) return okStatus();
  GPUC_ASSIGN_OR_RETURN(const uint64_t data, feed_->checksum());
  uint64_t eval_data = 0;
  if (evaluator_) {
    GPUC_ASSIGN_OR_RETURN(eval_data, evaluator_->checksum());
  }
  const auto samples = static_cast<uint64_t>(facts_.samples);
  const auto length = static_cast<uint64_t>(options_.steps.value_or(options_.epochs.value_or(1)));
  return agreeOn(*options_.communicator, {{"plan", facts_.plan_checksum},
                                          {"seed", facts_.seed},
                                          {"data", checksumOf(options_.data) ^ samples << 32},
                                          {"content of --data", data},
                                          {"order of the data", static_cast<uint64_t>(facts_.shuffle) << 1 |
                                                                    static_cast<uint64_t>(facts_.last_batch)},
                                          {"step to go on from", static_cast<uint64_t>(step_)},
                                          {"length of training (--steps, --epochs)",
                                           length << 1 | static_cast<uint64_t>(!!options_.steps)},
                                          {"--eval-data", checksumOf(options_.eval_data)},
                                          {"content of --eval-data", eval_data},
                                          {"wish for checkpoints (--checkpoint-dir, --checkpoint-every)",
                                           static_cast<uint64_t>(options_.checkpoint_every.value_or(0)) << 1 |
                                               static_cast<uint64_t>(!options_.checkpoint_dir.empty())},
                                          {"wish to save (--save-variables, --save-trained)",
                                           static_cast<uint64_t>(!options_.save_variables.empty()) << 1 |
                                               static_cast<uint64_t>(!options_.save_trained.empty())}});
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
