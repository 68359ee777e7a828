#include "runtime/train/train_options.h"

#include <cinttypes>
#include <utility>

namespace gpuc {

Status checkOptionsTogether(const TrainOptions& options) {
  if (options.epochs && options.steps)
    return Status::error("--epochs and --steps are both given: which of them ends training?");
  for (auto [name, given] : {std::pair("--resume", options.resume),
                             {"--checkpoint-every", options.checkpoint_every.has_value()},
                             {"--keep", options.keep.has_value()}})
    if (given && options.checkpoint_dir.empty())
      return Status::error(std::string(name) + " needs --checkpoint-dir=DIR: where are the checkpoints?");
  return okStatus();
}

Status checkOptions(const TrainOptions& options) {
  struct Number {
    const char* name;
    std::optional<int64_t> value;
    int64_t least, most;
  };
  for (const Number& number : {Number{"epochs", options.epochs, 1, INT64_MAX},
                               {"steps", options.steps, 1, INT64_MAX},
                               {"checkpoint_every", options.checkpoint_every, 1, INT64_MAX},
                               {"keep", options.keep, 1, INT64_MAX},
                               {"log_every", options.log_every, 0, INT64_MAX},
                               {"seed", options.seed, 0, INT64_MAX},
                               {"delay_seed", options.delay_seed, 0, INT64_MAX},
                               {"threads", options.threads, 0, kMostTrainThreads}}) {
    if (!number.value || (*number.value >= number.least && *number.value <= number.most)) continue;
    const bool is_small = *number.value < number.least;
    return errorf("TrainOptions.%s is %" PRId64 ", but must be at %s %" PRId64, number.name, *number.value,
                  is_small ? "least" : "most", is_small ? number.least : number.most);
  }
  return checkOptionsTogether(options);
}

}  // namespace gpuc
