#include <algorithm>
#include <cmath>

#include "runtime/host/attention.h"

namespace gpuc {
namespace {

/// At 100 GFLOP/s in f32 and half of that in f64, and 1 ns for each score.
double tileNs(double flops, double scores, DataType type) {
  return flops * static_cast<double>(sizeOf(type)) / 400 + scores + 20;
}

void planForward(AttentionProblem& problem) {
  const AttentionShape& s = problem.shape;
  const double scores = static_cast<double>(problem.cut.block_queries) * static_cast<double>(s.keys);
  problem.phases.push_back(
      {.compute = attentionTile(s.type),
       .tiles = s.batch * s.heads * problem.cut.query_blocks,
       .tile_ns = tileNs(2 * scores * static_cast<double>(s.width + s.value_width), scores, s.type)});
}

void planGradient(AttentionProblem& problem) {
  const AttentionShape& s = problem.shape;
  const AttentionCut& cut = problem.cut;
  const double keys = static_cast<double>(std::min(s.keys, cut.blocks_per_part * cut.block_keys));
  const double scores = keys * static_cast<double>(s.queries) * static_cast<double>(s.headsPerGroup());
  const double flops = 2 * scores * static_cast<double>(3 * s.width + 2 * s.value_width);
  problem.phases.push_back({.compute = attentionGradientTile(s.type),
                            .tiles = s.batch * s.groups * cut.parts,
                            .tile_ns = tileNs(flops, scores, s.type)});
  const double block = static_cast<double>(cut.block_queries);
  if (problem.summed())
    problem.phases.push_back(
        {.compute = sumQueryCotangentTile(s.type),
         .tiles = s.batch * s.heads * cut.query_blocks,
         .tile_ns = tileNs(0, block * static_cast<double>(s.width * cut.parts) / 4, s.type)});
  if (s.mask_gradient) {
    const int64_t tiles = maskGradientTiles(problem);
    const double all = static_cast<double>(s.batch * s.heads) * static_cast<double>(s.queries) *
                       static_cast<double>(s.keys) / static_cast<double>(tiles);
    problem.phases.push_back(
        {.compute = maskGradientTile(s.type),
         .tiles = tiles,
         .tile_ns = tileNs(2 * all * static_cast<double>(s.width + s.value_width), all, s.type)});
  }
}

/// Generates the micro-kernels of one block size.
Status makeBlockKernels(AttentionProblem& problem, bool queries_cut, bool keys_cut, int64_t queries,
                        int64_t keys) {
  const AttentionShape& s = problem.shape;
  AttentionMicroKernels& kernels = problem.micro_kernels;
  const int64_t stride = problem.strideOf(queries);
  auto make = [&](MicroKernel(&table)[2][2][2], int64_t m, int64_t n, int64_t k, int64_t ldb, int64_t ldc,
                  bool transpose) -> Status {
    for (bool accumulate : {false, true}) {
      GPUC_ASSIGN_OR_RETURN(table[queries_cut][keys_cut][accumulate],
                            makeMicroKernel({s.type, m, n, k, stride, ldb, ldc, transpose, accumulate}));
    }
    return okStatus();
  };
  GPUC_ASSIGN_OR_RETURN(
      kernels.scores[queries_cut][keys_cut],
      makeMicroKernel({s.type, keys, stride, s.width, s.key.row, stride, stride, false, false}));
  if (s.kind == AttentionKind::forward)
    return make(kernels.result, queries, s.value_width, keys, s.value.row, s.result.row, true);
  GPUC_ASSIGN_OR_RETURN(
      kernels.slopes[queries_cut][keys_cut],
      makeMicroKernel({s.type, keys, stride, s.value_width, s.value.row, stride, stride, false, false}));
  GPUC_RETURN_IF_ERROR(make(kernels.value_cotangent, keys, s.value_width, queries, s.cotangent.row,
                            s.value_cotangent.row, false));
  GPUC_RETURN_IF_ERROR(
      make(kernels.key_cotangent, keys, s.width, queries, s.query.row, s.key_cotangent.row, false));
  return make(kernels.query_cotangent, queries, s.width, keys, s.key.row, problem.partial.row, true);
}

/// For whole blocks and for those cut short.
Status makeMicroKernels(AttentionProblem& problem) {
  const AttentionShape& s = problem.shape;
  problem.micro_kernels.after = afterMicroKernels();
  auto extent = [](int64_t all, int64_t block, bool cut) { return cut ? all % block : block; };
  for (bool queries_cut : {false, true})
    for (bool keys_cut : {false, true}) {
      const int64_t queries = extent(s.queries, problem.cut.block_queries, queries_cut);
      const int64_t keys = extent(s.keys, problem.cut.block_keys, keys_cut);
      if (queries == 0 || keys == 0) continue;
      GPUC_RETURN_IF_ERROR(makeBlockKernels(problem, queries_cut, keys_cut, queries, keys));
    }
  return okStatus();
}

/// An error that names what is wrong with the shape, or success.
Status checkAttentionShape(const AttentionShape& s) {
  if (s.type != DataType::f32 && s.type != DataType::f64)
    return errorf("attention: element type %s is not supported on the host, only f32 and f64 are",
                  nameOf(s.type));
  constexpr int64_t kMost = INT32_MAX;
  for (int64_t extent : {s.batch, s.heads, s.groups, s.queries, s.keys, s.width, s.value_width})
    if (extent < 1 || extent > kMost) return errorf("attention: an extent of %" PRId64, extent);
  if (s.heads % s.groups != 0)
    return errorf("attention: %" PRId64 " groups do not divide %" PRId64 " heads", s.groups, s.heads);
  if (s.width > kMostAttentionWidth || s.value_width > kMostAttentionWidth)
    return errorf("attention: heads of %" PRId64 " and %" PRId64 " elements, at most %" PRId64
                  " are supported on the host",
                  s.width, s.value_width, kMostAttentionWidth);
  return okStatus();
}

}  // namespace

Result<AttentionKernel> AttentionKernel::create(const AttentionShape& shape, int64_t workspace_bytes) {
  GPUC_RETURN_IF_ERROR(checkAttentionShape(shape));
  GPUC_RETURN_IF_ERROR(checkWorkspace("attention", workspace_bytes, attentionWorkspaceBytes(shape)));
  AttentionProblem problem;
  problem.shape = shape;
  problem.cut = cutAttention(shape);
  const int vector_bytes = microKernelVectorBytes();
  problem.score_kernels = kernelsFor<ScoreKernelTable>(vector_bytes);
  problem.vector_kernels = kernelsFor<VectorKernelTable>(vector_bytes);
  problem.lanes = kernelVectorBytes(vector_bytes) / sizeOf(shape.type);
  problem.partial = problem.summed() ? denseAttentionLayout(shape.heads, shape.queries, shape.width)
                                     : shape.query_cotangent;
  // Elements are kept whose uniform number in f32, a multiple of 2^-24, is at least p.
  problem.drop_threshold =
      static_cast<uint32_t>(std::ceil(std::ldexp(static_cast<float>(shape.dropout), 24)));
  if (shape.kind == AttentionKind::forward)
    planForward(problem);
  else
    planGradient(problem);
  GPUC_RETURN_IF_ERROR(makeMicroKernels(problem));
  return AttentionKernel(std::move(problem));
}

}  // namespace gpuc
