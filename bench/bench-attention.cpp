// Times the host's attention and its gradient in one thread, on heads as a projection leaves them; in time of
// the processor, so that other processes disturb it less.
//   bench-attention [f32|f64]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "bench/operands.h"
#include "runtime/host/attention.h"

namespace {

using namespace gpuc;

struct Case {
  const char* name;
  int64_t batch, heads, groups, queries, keys, width;
  bool causal;
  double dropout;
};

constexpr Case kCases[] = {
    {"gpt2 nano", 12, 4, 4, 64, 64, 32, true, 0},   {"gpt2 nano, dropout", 12, 4, 4, 64, 64, 32, true, 0.1},
    {"transformer", 4, 8, 8, 32, 32, 64, false, 0}, {"gpt2 124M", 1, 12, 12, 1024, 1024, 64, true, 0},
    {"cross", 2, 8, 8, 100, 200, 64, false, 0},     {"grouped", 1, 16, 4, 512, 512, 64, true, 0},
    {"wide", 1, 4, 4, 512, 512, 256, true, 0},
};

AttentionShape shapeOf(const Case& c, DataType type) {
  AttentionShape s;
  s.type = type;
  s.batch = c.batch, s.heads = c.heads, s.groups = c.groups;
  s.queries = c.queries, s.keys = c.keys;
  s.width = s.value_width = c.width;
  s.scale = 1 / std::sqrt(static_cast<double>(c.width));
  s.causal = c.causal, s.dropout = c.dropout;
  // Query, key and value beside one another; the result and the cotangents by themselves.
  const int64_t row = (c.heads + 2 * c.groups) * c.width;
  s.query = {c.queries * row, c.width, row};
  s.key = s.value = {c.keys * row, c.width, row};
  const int64_t result = c.heads * c.width, keys = c.groups * c.width;
  s.result = s.cotangent = s.query_cotangent = {c.queries * result, c.width, result};
  s.key_cotangent = s.value_cotangent = {c.keys * keys, c.width, keys};
  return s;
}

/// The bytes of each of eight operands: the three projections together, or the workspace, or less.
int64_t mostBytes(const AttentionShape& s) {
  const int64_t rows = s.batch * std::max(s.queries, s.keys);
  return std::max(rows * (s.heads + 2 * s.groups) * s.width * sizeOf(s.type), attentionWorkspaceBytes(s));
}

AttentionOperands operandsOf(const AttentionShape& s, const RandomBuffers& buffers) {
  static constexpr int64_t kCounter = 7;
  const int64_t head_bytes = s.width * sizeOf(s.type);
  return {.query = buffers[0],
          .key = buffers[0] + s.heads * head_bytes,
          .value = buffers[0] + (s.heads + s.groups) * head_bytes,
          .result = buffers[1],
          .log_sum_exp = buffers[2],
          .seed = &kCounter,
          .step = &kCounter,
          .cotangent = buffers[3],
          .query_cotangent = buffers[4],
          .key_cotangent = buffers[5],
          .value_cotangent = buffers[6],
          .workspace = buffers[7]};
}

void bench(const Case& c, DataType type) {
  AttentionShape shape = shapeOf(c, type);
  // A causal block above the diagonal is never computed: half of the scores count.
  const double scores = static_cast<double>(c.batch * c.heads * c.queries * c.keys) * (c.causal ? 0.5 : 1);
  const double product_flops = 2 * scores * static_cast<double>(c.width);
  shape.kind = AttentionKind::gradient;  // which wants the more
  const RandomBuffers buffers(type, 8, mostBytes(shape));
  const AttentionOperands operands = operandsOf(shape, buffers);
  std::printf("%-20s", c.name);
  for (AttentionKind kind : {AttentionKind::forward, AttentionKind::gradient}) {
    shape.kind = kind;
    Result<AttentionKernel> kernel = AttentionKernel::create(shape, attentionWorkspaceBytes(shape));
    if (!kernel.ok()) return static_cast<void>(std::printf("%s\n", kernel.message().c_str()));
    const double us = leastUs(*kernel, operands);
    const double flops = product_flops * (kind == AttentionKind::forward ? 2 : 5);
    std::printf("  %9.1f us %6.1f GFLOP/s", us, flops / us / 1e3);
  }
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  const DataType type = argc > 1 && std::strcmp(argv[1], "f64") == 0 ? DataType::f64 : DataType::f32;
  std::printf("%-20s  %-27s  %s\n", nameOf(type), "forward", "gradient");
  for (const Case& c : kCases) bench(c, type);
}
