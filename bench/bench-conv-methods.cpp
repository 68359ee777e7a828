// Times the host's convolutions by every method that can compute them, on one thread and on two, and counts
// what each does: what bench/conv_methods.py fits the rates of runtime/workspace/conv_method.h to.
//   bench-conv-methods < SHAPES
// A line of SHAPES: kind (0 forward, 1 input's gradient, 2 filter's), bytes of an element (4 or 8), batch,
// input and output channels, groups, and of both axes, height first: extents, kernels, strides, padding on
// either side, dilations. Printed as a line of JSON each.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "runtime/base/worker.h"
#include "runtime/host/conv.h"

namespace {

using namespace gpuc;

constexpr int64_t kMostBytes = int64_t{1} << 30;  // of an operand
constexpr int kRounds = 9, kLeastRounds = 4;
constexpr double kMostUs = 60'000;  // for all methods of a shape, rounds beyond the least aside

/// Operands that all shapes share, in huge pages as an arena is.
class Operands {
 public:
  Operands() {
    for (std::byte*& operand : operands_) {
      void* memory = mmap(nullptr, kMostBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory == MAP_FAILED) {
        std::perror("error: bench-conv-methods: mmap");
        std::exit(1);
      }
      madvise(memory, kMostBytes, MADV_HUGEPAGE);
      operand = static_cast<std::byte*>(memory);
    }
  }

  /// Numbers in [-1, 1] in those that are read.
  void fill(DataType type, int64_t bytes) {
    if (type != type_) filled_ = 0;
    type_ = type;
    for (int64_t at = filled_; at < bytes; at += sizeOf(type)) {
      const double value = uniform_(random_);
      for (int operand : {0, 1})
        if (type == DataType::f64)
          *reinterpret_cast<double*>(operands_[operand] + at) = value;
        else
          *reinterpret_cast<float*>(operands_[operand] + at) = static_cast<float>(value);
    }
    filled_ = std::max(filled_, bytes);
  }

  ConvOperands get() const { return {operands_[0], operands_[1], operands_[2], nullptr, operands_[3]}; }

 private:
  std::byte* operands_[4];
  DataType type_ = DataType::f32;
  int64_t filled_ = 0;
  std::minstd_rand random_;
  std::uniform_real_distribution<double> uniform_{-1, 1};
};

/// Calls run(begin, end) for the halves of a range in two threads, or for all of it.
template <typename Run>
void share(Worker& worker, int threads, int64_t range, Run run) {
  if (threads == 1) return run(int64_t{0}, range);
  worker.start({[](const void* context, int64_t begin, int64_t end) {
                  (*static_cast<const Run*>(context))(begin, end);
                },
                &run},
               range / 2, range);
  run(int64_t{0}, range / 2);
  worker.join();
}

double nowUs() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Candidate {
  ConvMethod method;
  ConvKernel kernel;
  std::vector<double> us[2] = {};  // by threads

  /// Whoever reads a line first has it: operands that stay in the caches are where the threads that use them
  /// left them.
  double time(Worker& worker, int threads, const ConvOperands& operands, int64_t a_bytes,
              int64_t b_bytes) const {
    constexpr int64_t kLine = 64;
    for (auto [operand, bytes] : {std::pair(operands.a, a_bytes), std::pair(operands.b, b_bytes)})
      share(worker, threads, bytes / kLine, [&](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line)
          static_cast<const volatile char*>(operand)[line * kLine];
      });
    const double begin = nowUs();
    for (int phase = 0; phase < kernel.phaseCount(); ++phase)
      share(worker, threads, kernel.tiles(phase),
            [&](int64_t first, int64_t end) { kernel.run(phase, operands, first, end); });
    return nowUs() - begin;
  }
};

double firstQuartile(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 4];
}

std::string workOf(const ConvShape& shape, ConvMethod method) {
  const ConvWork w = convWork(shape, method);
  std::string text = "[";
  for (int64_t count : {w.steps, w.blocks, w.sums, w.runs, w.vectors, w.strided, w.squares})
    text += std::to_string(count) + ", ";
  return text + std::to_string(w.tiles) + "]";
}

/// What is left of a subsampled one, by each method.
std::string leftOf(const ConvShape& shape) {
  std::string text;
  for (ConvMethod method : kConvMethods)
    if (fitsMethod(shape, method))
      text += (text.empty() ? "\"" : ", \"") + std::string(nameOf(method)) + "\": " + workOf(shape, method);
  return "{" + text + "}";
}

void printShape(const ConvShape& shape, const std::vector<Candidate>& candidates) {
  std::printf("{\"chosen\": \"%s\", \"pointwise\": %s, \"methods\": {", nameOf(convMethod(shape)),
              shape.isPointwise() ? "true" : "false");
  for (const Candidate& c : candidates)
    std::printf("%s\"%s\": {\"us\": [%.1f, %.1f], \"work\": %s}", &c == candidates.data() ? "" : ", ",
                nameOf(c.method), firstQuartile(c.us[0]), firstQuartile(c.us[1]),
                workOf(shape, c.method).c_str());
  std::printf("}");
  if (fitsMethod(shape, ConvMethod::subsampled))
    std::printf(", \"left\": %s", leftOf(subsampledShape(shape)).c_str());
  std::printf("}\n");
  std::fflush(stdout);
}

/// False with a word where a method has no kernel.
bool timeShape(const ConvShape& shape, Operands& operands, Worker& worker) {
  std::vector<Candidate> candidates;
  const int64_t x = shape.inputElements(), w = shape.filterElements();
  const int64_t y = shape.batch * shape.out_channels * shape.outputPixels();
  int64_t bytes = std::max({x, w, y}) * sizeOf(shape.type);
  for (ConvMethod method : kConvMethods) {
    if (!fitsMethod(shape, method)) continue;
    const int64_t workspace = convWorkspaceBytes(shape, method);
    bytes = std::max(bytes, workspace);
    Result<ConvKernel> kernel = ConvKernel::create(shape, method, workspace);
    if (!kernel.ok()) {
      std::fprintf(stderr, "error: %s\n", kernel.message().c_str());
      return false;
    }
    candidates.push_back({method, *std::move(kernel)});
  }
  if (bytes > kMostBytes) {
    std::fprintf(stderr, "error: a shape needs %ld bytes, at most %ld are timed\n", long{bytes},
                 long{kMostBytes});
    return false;
  }
  operands.fill(shape.type, bytes);
  const int64_t a = shape.kind == ConvKind::forward ? x : y,
                b = shape.kind == ConvKind::filter_gradient ? x : w;
  double spent = 0;
  for (int round = 0; round < kRounds && (round < kLeastRounds || spent < kMostUs); ++round)
    for (Candidate& candidate : candidates)
      for (int threads : {1, 2}) {
        const double us =
            candidate.time(worker, threads, operands.get(), a * sizeOf(shape.type), b * sizeOf(shape.type));
        candidate.us[threads - 1].push_back(us);
        spent += us;
      }
  printShape(shape, candidates);
  return true;
}

/// Of a line's numbers.
ConvShape shapeOf(const long* n) {
  ConvShape s;
  s.kind = static_cast<ConvKind>(n[0]);
  s.type = n[1] == 8 ? DataType::f64 : DataType::f32;
  s.batch = n[2], s.in_channels = n[3], s.out_channels = n[4], s.groups = n[5];
  for (int i = 0; i < 2; ++i) {
    ConvAxis& axis = i == 0 ? s.height : s.width;
    axis = {.input = n[6 + i],
            .kernel = n[8 + i],
            .stride = n[10 + i],
            .low = n[12 + i],
            .high = n[12 + i],
            .dilation = n[14 + i]};
    axis.output = (axis.input + 2 * axis.low - (axis.kernel - 1) * axis.dilation - 1) / axis.stride + 1;
  }
  return s;
}

}  // namespace

int main() {
  Operands operands;
  Worker worker(SpinPolicy::forThreads(2));
  constexpr int kNumbers = 16;
  for (long line = 1;; ++line) {
    long numbers[kNumbers];
    int read = 0;
    while (read < kNumbers && std::scanf("%ld", &numbers[read]) == 1) ++read;
    if (read == 0 && std::feof(stdin)) return 0;
    const bool has_kind = read == kNumbers && numbers[0] >= 0 && numbers[0] <= 2;
    if (!has_kind || *std::min_element(numbers + 1, numbers + 12) < 1) {
      std::fprintf(stderr, "error: line %ld is no shape of %d numbers\n", line, kNumbers);
      return 2;
    }
    if (!timeShape(shapeOf(numbers), operands, worker)) return 1;
  }
}
