// What takes the place of a weight's gradient: generated code, which is handed each tile of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/workspace/matmul_workspace.h"

namespace gpuc {

/// It is called with the tile's number as soon as the tile's sums are made, and with its operands: the tile
/// first, as if the whole began there whose rows lie as far apart as those of the tile.
struct TileUpdate {
  void (*compute)(void* const* operands, int64_t begin, int64_t end) = nullptr;
  size_t operands = 0;  // with the tile, kMostUpdateOperands at most
  double tile_ns = 0;   // what it adds to a tile, by estimate

  /// `before`: elements of the whole before the tile. `others`: the operands but for the tile. The call
  /// reaches generated code, which carries no type for a sanitizer to look at.
  template <typename T>
  __attribute__((no_sanitize("undefined"))) void handOn(int64_t tile, T* sums, int64_t before,
                                                        void* const* others) const {
    std::array<void*, kMostUpdateOperands> all;
    std::copy_n(others, operands - 1, all.data() + 1);
    const auto bytes = static_cast<uintptr_t>(before) * sizeof(T);
    all[0] = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(sums) - bytes);
    compute(all.data(), tile, tile + 1);
  }
};

}  // namespace gpuc
