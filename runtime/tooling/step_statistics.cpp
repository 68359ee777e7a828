#include "runtime/tooling/step_statistics.h"

#include <algorithm>
#include <chrono>

#include "runtime/report/nonfinite.h"

namespace gpuc {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Status runAndWait(Session& session, ProgramId id, std::span<const HostTensorView> inputs) {
  GPUC_RETURN_IF_ERROR(session.run(id, inputs));
  return session.wait();
}

}  // namespace

Result<StepStatistics> measureSteps(Session& session, ProgramId id, std::span<const HostTensorView> inputs,
                                    int64_t warmup, int64_t repeat, AllocationCounter allocations) {
  Nonfinite nonfinite(session, id);
  int64_t step = 0;
  for (int64_t i = 0; i < warmup; ++i) {
    GPUC_RETURN_IF_ERROR(runAndWait(session, id, inputs));
    GPUC_RETURN_IF_ERROR(nonfinite.take(session, ++step));
  }
  StepStatistics statistics{.steps = repeat};
  std::vector<double> times_us(static_cast<size_t>(repeat));
  for (double& time_us : times_us) {
    int64_t allocated = allocations();
    auto begin = std::chrono::steady_clock::now();
    GPUC_RETURN_IF_ERROR(runAndWait(session, id, inputs));
    auto end = std::chrono::steady_clock::now();
    GPUC_RETURN_IF_ERROR(nonfinite.take(session, ++step));
    time_us = std::chrono::duration<double, std::micro>(end - begin).count();
    statistics.allocations_per_step = std::max(statistics.allocations_per_step, allocations() - allocated);
  }
  if (times_us.empty()) return statistics;
  auto [least, most] = std::minmax_element(times_us.begin(), times_us.end());
  statistics.min_us = *least;
  statistics.max_us = *most;
  statistics.median_us = median(times_us);
  return statistics;
}

}  // namespace gpuc
