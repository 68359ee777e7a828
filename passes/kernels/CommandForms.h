//===- CommandForms.h - What stands outside of kernels, and what becomes of it ===//
#pragma once

#include "mlir/IR/Operation.h"

#include <optional>

namespace gpuc {

/// What gpuc-to-plan makes of an op.
enum class CommandForm {
  launch,     ///< Of a kernel; or a product with what follows it, a library's call.
  product,    ///< A library's call.
  attention,  ///< The host's, or its gradient.
  collective, ///< Of all ranks.
  repeat,     ///< Of a scan's region.
  none, ///< A value's buffer is known without one: state, another shape, what attention reads by strides.
};

/// Of an op in an entry or in a scan's region; nothing if no command does what the op does.
std::optional<CommandForm> commandFormOf(mlir::Operation *op);

} // namespace gpuc
