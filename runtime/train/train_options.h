// What a run of training is asked for, by gpuc-train's flags or by a program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/comm/communicator.h"
#include "runtime/data/sampler.h"

namespace gpuc {

constexpr int64_t kMostTrainThreads = 4096;

/// What gpuc-train was asked to do.
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
  std::optional<int64_t> keep;              // checkpoints that stay; none: 3
  bool resume = false;
  std::string log_dir;               // empty: no log folder
  std::optional<int64_t> log_every;  // steps between lines; none: 100, or the bar alone on a terminal
  std::string metrics;               // a file of JSON lines, "-" is stdout; empty: none, or the log folder's
  std::string profile;               // a Chrome trace; empty: none
  std::string device = "auto";
  std::optional<int64_t> seed;        // instead of the plan's
  std::optional<int64_t> delay_seed;  // sleep at random before commands
  int64_t threads = 0;                // that compute; 0: one for each core
  int64_t workers = 1;                // loader threads
  int64_t prefetch = 4;               // batches
  bool strict = false;                // refuse libraries of another minor version, whose bits may differ
  LastBatch last_batch = LastBatch::drop;
  bool shuffle = true;
  bool bar = true;           // of progress, where stdout is a terminal
  std::string command_line;  // for the log folder
  // To the other ranks, which train with the same options; null: none. Only the first one says and writes
  // anything.
  Communicator* communicator = nullptr;
};

/// What is wrong with options together, which gpuc-train says by the same words: two ends of training, wishes
/// for checkpoints without a folder for them.
Status checkOptionsTogether(const TrainOptions& options);

/// That, and numbers outside of the ranges that gpuc-train's flags have. Those of the loader it checks
/// itself.
Status checkOptions(const TrainOptions& options);

}  // namespace gpuc
