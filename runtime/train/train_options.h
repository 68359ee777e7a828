// What gpuc-train was asked to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/data/sampler.h"

namespace gpuc {

struct TrainOptions {
  std::string plan;
  std::string data;                         // a specification, see data_spec.h
  std::string eval_data;                    // empty: no evaluation
  std::optional<int64_t> epochs;            // at most one of these two; neither: one epoch
  std::optional<int64_t> steps;             // counted from the very start, over all resumed runs
  std::vector<std::string> variables;       // safetensors to start from; none: `init` runs
  std::string save_variables;               // all of them; empty: variables are not saved
  std::string save_trained;                 // those that are not frozen; empty: not
  std::string checkpoint_dir;               // empty: no checkpoints
  std::optional<int64_t> checkpoint_every;  // steps; none: after each epoch
  int64_t keep = 3;
  bool resume = false;
  std::string log_dir;               // empty: no log folder
  std::optional<int64_t> log_every;  // steps between lines; none: 100, or the bar alone on a terminal
  std::string metrics;               // a file of JSON lines, "-" is stdout; empty: none, or the log folder's
  std::string profile;               // a Chrome trace; empty: none
  std::string device = "auto";
  std::optional<int64_t> seed;  // instead of the plan's
  int64_t threads = 0;          // that compute; 0: one for each core
  int64_t workers = 1;          // loader threads
  int64_t prefetch = 4;         // batches
  bool strict = false;          // refuse libraries of another minor version, whose bits may differ
  LastBatch last_batch = LastBatch::drop;
  bool shuffle = true;
  std::string command_line;  // for the log folder
};

}  // namespace gpuc
