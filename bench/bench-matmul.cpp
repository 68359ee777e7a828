// Times the host's matmul on the shapes of an MLP, of a GPT-like model and of attention, with one and two
// threads.
//   bench-matmul [f32|f64|f16|bf16] [--methods]
// --methods compares the ways in which a plan may compute each shape, from which planMatmul's thresholds
// come.
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/operands.h"
#include "runtime/base/thread_pool.h"
#include "runtime/host/matmul.h"

namespace {

using namespace gpuc;

double nowUs() {
  auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(since).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Case {
  const char* name;
  MatmulShape shape;
};

std::vector<Case> allCases(DataType type) {
  std::vector<Case> cases;
  auto add = [&](const char* name, int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b,
                 int64_t batch = 1) {
    MatmulShape shape{.type = type, .batch = batch, .m = m, .n = n, .k = k};
    shape.transpose_a = transpose_a, shape.transpose_b = transpose_b;
    if (batch > 1) shape.batch_stride_a = m * k, shape.batch_stride_b = n * k;
    cases.push_back({name, shape});
  };
  auto addLayer = [&](int64_t rows, int64_t in, int64_t out) {
    add("forward", rows, out, in, false, true);
    add("input gradient", rows, in, out, false, false);
    add("weight gradient", out, in, rows, true, false);
    add("added gradient", out, in, rows, true, false);
    cases.back().shape.accumulate = true;
  };
  addLayer(1, 8, 8);
  for (int64_t rows : {1, 32, 64, 256}) {
    addLayer(rows, 784, 128);
    addLayer(rows, 128, 128);
    addLayer(rows, 128, 10);
  }
  for (int64_t rows : {8, 12, 16, 24, 32, 48, 64, 96, 128}) {
    addLayer(rows, 64, 256);
    addLayer(rows, 784, 128);
    addLayer(rows, 768, 768);
    addLayer(rows, 128, 65);
  }
  for (int64_t out : {128, 384, 512}) addLayer(768, 128, out);
  for (int64_t out : {768, 2304, 3072}) addLayer(1024, 768, out);
  for (int64_t in : {784, 1024}) addLayer(128, in, 1024);
  for (int64_t out : {768, 2304, 3072}) addLayer(256, 768, out);
  addLayer(256, 3072, 768);
  for (int64_t side : {256, 1024}) add("square", side, side, side, false, false);
  add("query key^T", 64, 64, 32, false, true, 12);
  add("scores value", 64, 32, 64, false, false, 12);
  add("scores^T dvalue", 64, 32, 64, true, false, 12);
  return cases;
}

double operationsOf(const MatmulShape& s) { return 2.0 * s.batch * s.m * s.n * s.k; }

std::string describe(const Case& c) {
  const MatmulShape& s = c.shape;
  char text[120];
  std::snprintf(text, sizeof text, "%-16s %2" PRId64 "x %4" PRId64 " x %4" PRId64 " x %4" PRId64 " %c%c",
                c.name, s.batch, s.m, s.n, s.k, s.transpose_a ? 'T' : 'N', s.transpose_b ? 'T' : 'N');
  return text;
}

constexpr int kRounds = 9;

/// Microseconds of one call of each: the median of kRounds rounds, in each of which every one has its turn.
std::vector<double> timeInterleaved(const std::vector<std::function<void()>>& calls, double operations) {
  const int repeats = std::clamp(static_cast<int>(2e7 / operations), 1, 5000);
  std::vector<std::vector<double>> times(calls.size());
  for (int round = 0; round <= kRounds; ++round)
    for (size_t i = 0; i < calls.size(); ++i) {
      const double start = nowUs();
      for (int r = 0; r < repeats; ++r) calls[i]();
      if (round > 0) times[i].push_back((nowUs() - start) / repeats);  // round 0 warms up
    }
  std::vector<double> medians;
  for (auto& t : times) medians.push_back(median(t));
  return medians;
}

void printThreads(const std::vector<Case>& cases, const MatmulOperands& operands) {
  ThreadPool pool(2);
  std::printf("%-42s %9s %10s %9s %10s\n", "batch x m x n x k, transposes", "1 thread", "GFLOP/s",
              "2 threads", "GFLOP/s");
  for (const Case& c : cases) {
    Result<MatmulKernel> kernel = MatmulKernel::create(c.shape, matmulWorkspaceBytes(c.shape));
    if (!kernel.ok()) {
      std::fprintf(stderr, "error: %s\n", kernel.message().c_str());
      continue;
    }
    const int64_t tiles = kernel->tiles(0);
    // As a step does: in two where both parts are worth it.
    const bool pays = tiles >= 2 && static_cast<double>(tiles) * kernel->tileNs(0) >= 2500;
    const std::function<void(int64_t, int64_t)> part = [&](int64_t begin, int64_t end) {
      kernel->run(0, operands, begin, end);
    };
    auto run = [](const void* context, int64_t begin, int64_t end) {
      (*static_cast<const std::function<void(int64_t, int64_t)>*>(context))(begin, end);
    };
    const std::function<void()> whole = [&] { part(0, tiles); };
    const std::function<void()> both = [&] { pool.parallelFor(tiles, pays ? 1 : tiles, {run, &part}); };
    const double operations = operationsOf(c.shape);
    const std::vector<double> us = timeInterleaved({whole, both}, operations);
    std::printf("%-42s %9.2f %10.1f %9.2f %10.1f\n", describe(c).c_str(), us[0], operations / us[0] / 1e3,
                us[1], operations / us[1] / 1e3);
  }
}

struct Method {
  std::string name;
  MatmulPlan plan;
};

std::vector<Method> methodsFor(const MatmulShape& shape) {
  const MatmulPlan folded = foldMatmul(shape);
  const bool transpose_a = folded.problem.transpose_a, transpose_b = folded.problem.transpose_b;
  std::vector<Method> methods = {{"chosen", planMatmul(shape)}};
  if (transpose_b && !transpose_a) methods.push_back({"dot", planDot(folded)});
  if (canTranspose(folded)) methods.push_back({"transposed", planTransposed(folded)});
  if (!transpose_b) methods.push_back({"few rows", planFewRows(folded)});
  if (!transpose_b) methods.push_back({"unpacked", planTiled(folded, false, false)});
  methods.push_back({"pack b", planTiled(folded, false, true)});
  if (transpose_a && !transpose_b) methods.push_back({"downward", planDownward(folded)});
  if (transpose_a && !transpose_b) methods.push_back({"pack a", planTiled(folded, true, false)});
  if (transpose_a) methods.push_back({"pack a, b", planTiled(folded, true, true)});
  return methods;
}

void printMethods(const std::vector<Case>& cases, const MatmulOperands& operands) {
  for (const Case& c : cases) {
    std::printf("%-42s", describe(c).c_str());
    std::vector<MatmulKernel> kernels;
    std::vector<std::string> names;
    for (const Method& method : methodsFor(c.shape))
      if (Result<MatmulKernel> kernel = MatmulKernel::createFromPlan(method.plan); kernel.ok()) {
        names.push_back(method.name);
        kernels.push_back(*kernel);
      }
    std::vector<std::function<void()>> calls;
    for (const MatmulKernel& kernel : kernels)
      calls.push_back([&operands, &kernel] { kernel.run(0, operands, 0, kernel.tiles(0)); });
    const std::vector<double> us = timeInterleaved(calls, operationsOf(c.shape));
    for (size_t i = 0; i < us.size(); ++i) std::printf("  %s %.2f us", names[i].c_str(), us[i]);
    std::printf("\n");
  }
}

/// What loading a plan pays: the machine code of each matmul.
void printLoadTimes(const std::vector<Case>& cases) {
  std::vector<double> times;
  for (const Case& c : cases) {
    const double start = nowUs();
    Result<MatmulKernel> kernel = MatmulKernel::create(c.shape, matmulWorkspaceBytes(c.shape));
    if (kernel.ok()) times.push_back(nowUs() - start);
  }
  if (times.size() < 2) return;
  const double first = times.front();
  times.erase(times.begin());
  std::printf("create: %.0f us for the first matmul of the process, then %.0f us (median of %zu)\n", first,
              median(times), times.size());
}

}  // namespace

int main(int argc, char** argv) {
  DataType type = DataType::f32;
  bool methods = false;
  for (int i = 1; i < argc; ++i) {
    const std::optional<DataType> named = parseDataType(argv[i]);
    if (named && isFloat(*named)) {
      type = *named;
    } else if (!std::strcmp(argv[i], "--methods")) {
      methods = true;
    } else {
      std::fprintf(stderr, "error: unknown argument '%s'; bench-matmul [f32|f64|f16|bf16] [--methods]\n",
                   argv[i]);
      return 2;
    }
  }
  const std::vector<Case> cases = allCases(type);
  printLoadTimes(cases);
  // For the largest case.
  const RandomBuffers buffers(type, 3, 3072 * 1024 * sizeOf(type));
  const MatmulOperands operands = {buffers[0], buffers[1], buffers[2]};
  methods ? printMethods(cases, operands) : printThreads(cases, operands);
  return 0;
}
