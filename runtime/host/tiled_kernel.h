// What kernels of one shape have in common, whose work falls into tiles.
#pragma once

#include <cinttypes>
#include <cstdint>
#include <utility>

#include "runtime/base/status.h"

namespace gpuc {

/// Tiles that may be computed in any order.
template <typename Problem, typename Operands>
struct TilePhase {
  using Compute = void (*)(const Problem& problem, const Operands& operands, int64_t tile);

  Compute compute;
  int64_t tiles;
  double tile_ns;     // what one takes, by estimate
  int64_t first = 0;  // the number of its first tile, as compute has them
};

/// A problem of one shape, with its machine code. Immutable: any number of threads may run it at once.
///
/// A run is phaseCount() phases; between two phases the caller places a barrier. The tiles of a phase may be
/// split among threads in any way: each tile writes its own part of the results (or of the workspace), adds
/// up in an order that the shape and the kind of CPU fix, and so leaves the same bits whoever computes it.
template <typename Problem, typename Operands>
class TiledKernel {
 public:
  TiledKernel() = default;
  explicit TiledKernel(Problem problem) : problem_(std::move(problem)) {}

  int phaseCount() const { return static_cast<int>(problem_.phases.size()); }

  /// Tiles in a phase.
  int64_t tiles(int phase) const { return problem_.phases[static_cast<size_t>(phase)].tiles; }

  /// What a tile takes, by estimate.
  double tileNs(int phase) const { return problem_.phases[static_cast<size_t>(phase)].tile_ns; }

  /// Computes tiles [begin, end) of a phase. Allocates nothing.
  void run(int phase, const Operands& operands, int64_t begin, int64_t end) const {
    const auto& [compute, tiles, tile_ns, first] = problem_.phases[static_cast<size_t>(phase)];
    for (int64_t tile = begin; tile < end; ++tile) compute(problem_, operands, first + tile);
  }

 protected:
  Problem problem_;
};

/// Of `what` a plan gives as much as is needed, unless another version compiled it.
inline Status checkWorkspace(const char* what, int64_t given_bytes, int64_t needed_bytes) {
  if (given_bytes >= needed_bytes) return okStatus();
  return errorf("%s: the plan gives %" PRId64 " bytes of workspace, %" PRId64
                " are needed; compile the plan again with this version of gpuc",
                what, given_bytes, needed_bytes);
}

}  // namespace gpuc
