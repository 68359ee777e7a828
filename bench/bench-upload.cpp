// What of a batch's way to a GPU a step does not hide, for plans whose inputs weigh little or much beside
// what they compute:
//   bench-upload PLAN…
// Of each, medians in µs: the copy of the inputs from pinned memory, alone; the host's part of a run, in
// which the inputs are copied into pinned memory; a step that is waited for; a step in a row of steps that
// are not. What the GPU computes is the step that is waited for, less both copies. The ratio is a step in a
// row ÷ the longer of computation and copy: 1 hides all.
#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include "runtime/base/tool_main.h"
#include "runtime/cuda/driver.h"
#include "runtime/gpuc.h"
#include "runtime/tooling/program_inputs.h"

using namespace gpuc;

namespace {

constexpr int kRounds = 7;
constexpr int kRow = 20;    // steps in a row
constexpr int kWarmup = 4;  // the second run makes graphs

using Clock = std::chrono::steady_clock;

double microsecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

/// µs for `bytes` from pinned memory, with nothing else on the GPU. The session's context is current.
Result<double> copyAlone(const cuda::Driver& driver, size_t bytes) {
  void* from = nullptr;
  CUdeviceptr to = 0;
  GPUC_RETURN_IF_ERROR(driver.check(driver.cuMemHostAlloc(&from, bytes, 0), "cuMemHostAlloc"));
  cuda::PinnedMemory pinned(from, driver.cuMemFreeHost);
  GPUC_RETURN_IF_ERROR(driver.check(driver.cuMemAlloc(&to, bytes), "cuMemAlloc"));
  cuda::DeviceMemory memory(to, driver.cuMemFree);
  GPUC_ASSIGN_OR_RETURN(cuda::Stream stream, cuda::createStream(driver));
  std::vector<double> times;
  for (int round = 0; round <= kRounds; ++round) {
    Clock::time_point start = Clock::now();
    for (int i = 0; i < kRow; ++i)
      GPUC_RETURN_IF_ERROR(
          driver.check(driver.cuMemcpyHtoDAsync(to, from, bytes, stream.get()), "cuMemcpyHtoDAsync"));
    GPUC_RETURN_IF_ERROR(driver.check(driver.cuStreamSynchronize(stream.get()), "cuStreamSynchronize"));
    if (round > 0) times.push_back(microsecondsSince(start) / kRow);
  }
  return median(times);
}

struct Steps {
  std::vector<double> host, waited, in_a_row;
};

Status timeRound(Session& session, ProgramId step, const ProgramInputs& inputs, Steps& out) {
  Clock::time_point start = Clock::now();
  GPUC_RETURN_IF_ERROR(session.run(step, inputs.views()));
  out.host.push_back(microsecondsSince(start));
  GPUC_RETURN_IF_ERROR(session.wait());
  out.waited.push_back(microsecondsSince(start));
  start = Clock::now();
  for (int i = 0; i < kRow; ++i) GPUC_RETURN_IF_ERROR(session.run(step, inputs.views()));
  GPUC_RETURN_IF_ERROR(session.wait());
  out.in_a_row.push_back(microsecondsSince(start) / kRow);
  return okStatus();
}

void printHead() {
  std::printf("%-32s %12s %9s %9s %9s %9s %9s %6s %6s\n", "plan", "bytes", "copy", "host", "waited",
              "computed", "in a row", "copy/c", "ratio");
}

Status timePlan(const cuda::Driver& driver, const char* path, bool isFirst) {
  GPUC_ASSIGN_OR_RETURN(Plan plan, Plan::load(path));
  GPUC_ASSIGN_OR_RETURN(Session session, Session::create(plan, {.device = "cuda"}));
  GPUC_RETURN_IF_ERROR(session.initialize());
  GPUC_ASSIGN_OR_RETURN(ProgramId step, session.program("train_step"));
  GPUC_ASSIGN_OR_RETURN(ProgramInputs inputs, ProgramInputs::gather(plan.info().programs[step.index], {}, 1));
  size_t bytes = 0;
  for (const HostTensorView& view : inputs.views()) bytes += view.sizeBytes();
  for (int i = 0; i < kWarmup; ++i) {
    GPUC_RETURN_IF_ERROR(session.run(step, inputs.views()));
    GPUC_RETURN_IF_ERROR(session.wait());
  }
  Steps steps;
  for (int round = 0; round < kRounds; ++round) GPUC_RETURN_IF_ERROR(timeRound(session, step, inputs, steps));
  GPUC_ASSIGN_OR_RETURN(double copy, copyAlone(driver, bytes));
  double host = median(steps.host), waited = median(steps.waited), in_a_row = median(steps.in_a_row);
  double computed = std::max(0.0, waited - host - copy);
  if (isFirst) printHead();
  std::printf("%-32s %12zu %9.1f %9.1f %9.1f %9.1f %9.1f %6.2f %6.3f\n", path, bytes, copy, host, waited,
              computed, in_a_row, copy / computed, in_a_row / std::max(computed, copy));
  return okStatus();
}

int run(int argc, char** argv) {
  if (argc < 2) return exitStatus(errorf("usage: bench-upload PLAN…"));
  Result<cuda::Driver> driver = cuda::Driver::load();
  if (!driver.ok()) return exitStatus(driver.status());
  for (int i = 1; i < argc; ++i)
    if (Status status = timePlan(*driver, argv[i], i == 1); !status.ok()) return exitStatus(status);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return runTool(argc, argv, run); }
