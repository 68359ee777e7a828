// What gpuc-run does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace gpuc {

struct RunOptions {
  std::string plan;
  std::string entry;
  std::vector<std::string> inputs;     // "name=FILE.npy"
  std::vector<std::string> variables;  // safetensors files; none: `init` runs
  std::string output_dir;              // empty: outputs are not written
  std::string save_variables;          // empty: they are not saved
  std::string json;                    // empty: no report; "-": on stdout instead of the text
  std::string profile;                 // empty: no profile
  std::string device = "auto";
  std::optional<int64_t> seed;
  int64_t repeat = 1;
  int64_t warmup = 0;
  int64_t threads = 0;
  std::optional<int64_t> delay_seed;  // sleep at random before commands
  bool check_memory = false;
  bool strict = false;
};

/// Counts allocations of the whole process so far.
using AllocationCounter = int64_t (*)();

/// Loads the plan, gives its variables values, runs the entry, writes what was asked for.
Status runPlan(const RunOptions& options, AllocationCounter allocations);

/// The devices that this build can use, as lines for people or as JSON.
std::string deviceList(bool json);

}  // namespace gpuc
