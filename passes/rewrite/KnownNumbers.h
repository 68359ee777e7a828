//===- KnownNumbers.h - Tensors whose elements the compiler can tell --------===//
//
// Masks are often written as formulas of constants: an index that is compared with another, ones of which a
// triangle is taken. Folders leave those to the machine; whoever must know what such a mask hides asks here.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"

#include <memory>
#include <optional>
#include <vector>

namespace gpuc {

/// Whether the value is a cast between floating-point types.
bool isRounded(mlir::Value value);

/// The numbers of tensors, kept for who asks again.
class KnownNumbers {
public:
  /// Larger tensors are taken for unknown: 2,048 squared, 32 MiB of doubles.
  static constexpr int64_t kMost = int64_t(1) << 22;

  /// In row-major order; null if they hang on anything but constants, or if an f64 might not hold them.
  const std::vector<double> *of(mlir::Value value);

  /// The one number that fills the tensor, as it was before casts to other floating-point types, or none.
  /// Asks for no elements.
  static std::optional<double> splatOf(mlir::Value value);

private:
  using Numbers = std::unique_ptr<std::vector<double>>; // null: unknown

  Numbers compute(mlir::Value value);
  Numbers numbersOf(ir::ConstantOp op);
  Numbers numbersOf(ir::IotaOp op);
  Numbers repeat(ir::BroadcastOp op);
  Numbers choose(ir::SelectOp op);
  Numbers convert(ir::CastOp op);
  template <typename Function> Numbers map(mlir::Value value, Function function);
  template <typename Function> Numbers combine(mlir::Operation *op, Function function);

  llvm::DenseMap<mlir::Value, Numbers> numbers_;
};

} // namespace gpuc
