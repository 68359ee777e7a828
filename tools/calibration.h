// Measures the machine at hand by training models of the zoo for a moment.
#pragma once

#include <string>

#include "passes/cost/Rates.h"

namespace gpuc {

/// What came of it.
struct Calibration {
  HostRates rates;
  int64_t models = 0, commands = 0;  // that were measured
  double median_error = 0;           // of a command that was measured, as predicted: 0.1 is 10%
  double seconds = 0;
};

struct CalibrationOptions {
  int threads = 1;           // that plans will run on
  std::string cache_folder;  // of compiled kernels; empty: none
};

/// Takes about a minute the first time, half of it to compile. Errors: what is wrong with the machine.
Result<Calibration> calibrate(const CalibrationOptions& options);

}  // namespace gpuc
