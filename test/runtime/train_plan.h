// A small plan that really trains (see train_kernels.c), and IDX files to feed it with.
#pragma once

#include <string>

#include "test/runtime/plan_builder.h"
#include "test/runtime/temporary_folder.h"

namespace gpuc::test {

struct TrainPlanOptions {
  int64_t batch = 4;
  bool train_counts_rows = true;
  bool eval_counts_rows = true;
  bool has_eval = true;
  bool has_second = false;  // a parameter of 16 with an optimizer's state, that nothing uses
  bool has_frozen = false;  // a parameter `base` of 16 that nothing uses
};

/// Variables seed, step, weight (trained), weight/momentum; inputs x (B, 16) ui8 and labels (B) i32 in [0,
/// 10).
PlanBuilder trainPlan(const TrainPlanOptions& options = {});

/// Writes PREFIX-images-idx3-ubyte (4x4) and PREFIX-labels-idx1-ubyte of `samples` made-up samples into the
/// folder; gives "idx:…/PREFIX".
std::string writeIdx(const TemporaryFolder& folder, const std::string& prefix, int64_t samples);

}  // namespace gpuc::test
