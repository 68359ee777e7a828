//===- Work.h - What a command does, counted ----------------------------------===//
//
// What a command's time hangs on, in units of which rates say what one takes (CostModel.h). The same is
// counted of a command of a plan and of an op that will become one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/plan/PlanOps.h"

#include "mlir/IR/SymbolTable.h"

#include <array>

namespace gpuc {

/// Commands that have rates of their own.
enum class Family : uint8_t {
  kernel,
  matmul,          ///< Of operands as they lie.
  matmulByRows,    ///< Of a transposed right operand.
  matmulByColumns, ///< Of a transposed left operand.
  matmulOfRows,    ///< Of few rows, or few columns, with rows (runtime/workspace/matmul_plan.h: dot).
  matmulOfFewRows, ///< Of at most 16 rows with operands as they lie.
  conv,            ///< By a matrix of patches (runtime/workspace/conv_method.h).
  convInputGradient,
  convFilterGradient,
  directConv, ///< By taps.
  directConvInputGradient,
  directConvFilterGradient,          ///< Lanes run along rows,
  directConvFilterGradientByOutputs, ///< or along the outputs.
  winogradConv,                      ///< Of forward and the input's gradient.
  winogradConvFilterGradient,
  attention,
  attentionGradient,
  other, ///< Copies and the like.
};
inline constexpr size_t kFamilyCount = static_cast<size_t>(Family::other) + 1;
llvm::StringRef nameOf(Family family);

/// What is counted. Elements are those of four bytes, in whole vectors; wider ones count twice.
enum class Unit : uint8_t {
  command,     ///< One.
  row,         ///< That is folded to one element, where its elements lie side by side; or packed.
  chain,       ///< Such a row with whose element the same kernel goes on: it has to wait for it.
  simple,      ///< Elements of an addition, say.
  root,        ///< Of a division or a root.
  exponential, ///< Of exp, log, tanh and the like.
  special,     ///< Of erf, sin, pow.
  draw,        ///< Of random numbers.
  fold,        ///< That are folded.
  gather,      ///< That are read at places which the data say.
  scatter,     ///< That are added at such places.
  transpose,   ///< That are read across rows.
  window,      ///< Of the windows of a pooling, as often as they are read.
  comparison,  ///< Of a sort.
  flop,        ///< Of products, as if their columns filled vectors.
  packed,      ///< Elements of operands that are copied before they are multiplied.
  strided,     ///< The same, one by one, as a stride takes them.
  stored,      ///< Elements of a product's result, as often as they are added to.
  near,        ///< Bytes that lie in a core's own cache,
  far,         ///< in the one that cores share,
  memory,      ///< or in neither.
  writeback,   ///< Bytes that are written and touched again only after caches have handed them on to memory.
};
inline constexpr size_t kUnitCount = static_cast<size_t>(Unit::writeback) + 1;
llvm::StringRef nameOf(Unit unit);

/// Bytes by where they lie: Unit::near, far and memory.
using BytesByPlace = std::array<double, 3>;

/// Amounts of the units from Unit::near on.
using Traffic = std::array<double, kUnitCount - static_cast<size_t>(Unit::near)>;

/// What a product's elements are; `full` of what is no product. halfAttention: of 16 bits, too, but by
/// generated code that does more than to multiply.
enum class ProductPrecision : uint8_t { full, half, tf32, halfAttention };

/// What one execution does.
struct Work {
  Family family = Family::other;
  ProductPrecision precision = ProductPrecision::full;
  int64_t flops = 0;     ///< As the report counts them.
  int64_t bytesRead = 0; ///< Of a table no more than what is gathered from it.
  int64_t bytesWritten = 0;
  int64_t parts = 0; ///< That threads can share; 0: enough.
  std::array<double, kUnitCount> amounts{};

  double &operator[](Unit unit) { return amounts[static_cast<size_t>(unit)]; }
  double operator[](Unit unit) const { return amounts[static_cast<size_t>(unit)]; }
  int64_t bytes() const { return bytesRead + bytesWritten; }
};

/// Of a command; nothing is done by a loop, whose commands count for themselves. Where its bytes lie is known
/// of a whole program alone (report/Traffic.h), and is left out.
Work workOf(plan::CommandOpInterface command);

/// What the commands of a module do, each counted once. That of one command alone takes a look through all of
/// the module's symbols, for its kernel, so that of all of them would take as many looks as there are
/// commands.
class WorkTable {
public:
  explicit WorkTable(mlir::ModuleOp module) : symbols_(module) {}

  const Work &operator[](plan::CommandOpInterface command);
  /// What a command launches, or the update that takes its result; null if there is none.
  plan::KernelOp kernelOf(plan::CommandOpInterface command) const;

private:
  mlir::SymbolTable symbols_;
  llvm::DenseMap<mlir::Operation *, Work> works_;
};

/// Of an op that becomes one command, not a loop of them. Where its bytes lie is left out as well.
Work workOf(mlir::Operation *op);

/// Counts what a kernel's body does.
void countKernel(mlir::Block &body, Work &work);

} // namespace gpuc
