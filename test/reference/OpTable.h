//===- OpTable.h - How each group of ops adds its cases ----------------------===//
//
// Internal to the reference interpreter.
//
#pragma once

#include "dialects/gpuc/GpucOps.h"
#include "test/reference/Interpreter.h"

#include "llvm/ADT/StringMap.h"

namespace gpuc::reference {

using Operands = llvm::ArrayRef<Tensor>;
using Results = std::vector<Tensor>;

/// From an op's name to what it computes.
class OpTable {
public:
  using Case = std::function<Results(mlir::Operation *, Operands, const Interpreter &)>;

  /// The case of an op with one result, or of one that needs neither state nor several results.
  template <typename Op, typename Function> void add(Function function) {
    cases_[Op::getOperationName()] = [function](mlir::Operation *op, Operands operands,
                                                const Interpreter &state) {
      if constexpr (std::is_invocable_v<Function, Op, Operands, const Interpreter &>)
        return asResults(function(llvm::cast<Op>(op), operands, state));
      else
        return asResults(function(llvm::cast<Op>(op), operands));
    };
  }

  const Case *find(llvm::StringRef name) const {
    auto found = cases_.find(name);
    return found == cases_.end() ? nullptr : &found->second;
  }

private:
  static Results asResults(Tensor tensor) { return {std::move(tensor)}; }
  static Results asResults(Results results) { return results; }

  llvm::StringMap<Case> cases_;
};

/// log softmax along `dim`.
Tensor logSoftmax(const Tensor &x, int64_t dim);

/// Whether the op `dropout` with this id and p keeps an element.
bool isKept(const Interpreter &state, uint64_t id, double p, int64_t element);

void addElementwiseOps(OpTable &table);
void addLogicOps(OpTable &table);
void addShapeOps(OpTable &table);
void addIndexedOps(OpTable &table);
void addReduceOps(OpTable &table);
void addSortOps(OpTable &table);
void addContractOps(OpTable &table);
void addConvOps(OpTable &table);
void addNetworkOps(OpTable &table);
void addNormOps(OpTable &table);
void addAttentionOps(OpTable &table);
void addLossOps(OpTable &table);
void addLinearLossOps(OpTable &table);
void addRandomOps(OpTable &table);
void addUpdateOps(OpTable &table);

} // namespace gpuc::reference
