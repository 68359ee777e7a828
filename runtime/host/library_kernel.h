// What the runtime brings along for commands that no generated kernel computes. The rest of the host knows
// them by this alone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "runtime/base/status.h"
#include "runtime/host/code.h"
#include "runtime/host/matmul.h"
#include "runtime/plan/access.h"

namespace gpuc {

/// A kernel of one shape, with its machine code. Immutable: any number of threads may run it at once.
///
/// A run is phaseCount() phases; between two phases the caller places a barrier. The tiles of a phase may be
/// split among threads in any way, and leave the same bits whoever computes them.
class LibraryKernel {
 public:
  virtual ~LibraryKernel() = default;

  virtual int phaseCount() const = 0;

  /// Tiles in a phase.
  virtual int64_t tiles(int phase) const = 0;

  /// What a tile takes, by estimate.
  virtual double tileNs(int phase) const = 0;

  /// Computes tiles [begin, end) of a phase. `operands` are in the order of the command's kind
  /// (runtime/plan/roles.h), null where the command has none. Allocates nothing.
  virtual void run(int phase, void* const* operands, int64_t begin, int64_t end) const = 0;

  /// Whether the parts of an operand that threads take in a run lie one behind the other.
  virtual bool isCutInOrder(uint32_t operand) const = 0;
};

std::unique_ptr<LibraryKernel> asLibraryKernel(MatmulKernel kernel);

/// The kernel for a command, or for one of `parts` equal parts of its rows; null for a kind that needs none.
/// `generated`: the plan's kernels, of which a product's update is one. Errors: what the host has no kernel
/// for.
Result<std::unique_ptr<LibraryKernel>> makeLibraryKernel(const fb::Command& command,
                                                         std::span<const KernelFunction> generated,
                                                         int64_t parts = 1);

MatmulShape shapeOf(const fb::Matmul& matmul);

}  // namespace gpuc
