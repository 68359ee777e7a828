//===- Scan.h - Loops over time in a model that is being built --------------===//
#pragma once

#include "frontend/builder/Tensor.h"

#include <functional>

namespace gpuc::nn {

/// What one step of a loop hands to the next, and its slice of each output; of the whole loop: what the last
/// step carries out, and the outputs with all steps.
struct ScanValues {
  std::vector<Tensor> carried;
  std::vector<Tensor> outputs;
};

/// One step: slices of the inputs, what the step before has carried, the captures. It uses nothing but these:
/// parameters are read outside and given as captures.
using ScanBody =
    std::function<ScanValues(const std::vector<Tensor> &slices, const std::vector<Tensor> &carried,
                             const std::vector<Tensor> &captures)>;

/// Which way a loop goes, and where its inputs and outputs have time.
struct ScanOptions {
  bool batchFirst = true; ///< [batch, time, …], else [time, …].
  bool reverse = false;   ///< From the last step to the first; slices stay where they are.
};

/// Executes `body` for each step of the inputs, of which there is at least one; never unrolled. `inits` are
/// what the first step finds carried.
ScanValues scan(const std::vector<Tensor> &inputs, const std::vector<Tensor> &inits,
                const std::vector<Tensor> &captures, const ScanBody &body, ScanOptions options = {});

} // namespace gpuc::nn
