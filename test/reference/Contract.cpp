//===- Contract.cpp - Matrix products ----------------------------------------===//

#include "test/reference/OpTable.h"

using namespace mlir;

namespace gpuc::reference {

/// result[b…, m, n] = Σ_k lhs[b…, m, k] · rhs[b…, k, n]; a transposed operand has its last two dimensions
/// swapped, and an rhs of rank 2 is the same for all b.
static Tensor matmul(ir::MatmulOp op, Operands x) {
  Tensor result(typeOf(op.getResult()));
  const Tensor &lhs = x[0], &rhs = x[1];
  int64_t inner = lhs.shape().drop_front(lhs.shape().size() - 2)[op.getTransposeLhs() ? 0 : 1];
  auto at = [](const Tensor &tensor, ArrayRef<int64_t> batch, int64_t row, int64_t column, bool transposed) {
    Shape index(batch.take_front(tensor.shape().size() - 2));
    index.append({transposed ? column : row, transposed ? row : column});
    return tensor.elements[positionOf(index, tensor.shape())].real;
  };
  forEachIndex(result.shape(), [&](ArrayRef<int64_t> index) {
    ArrayRef<int64_t> batch = index.drop_back(2);
    int64_t row = index[index.size() - 2], column = index.back();
    double sum = 0;
    for (int64_t k = 0; k < inner; ++k)
      sum += at(lhs, batch, row, k, op.getTransposeLhs()) * at(rhs, batch, k, column, op.getTransposeRhs());
    result.elements[positionOf(index, result.shape())].real = sum;
  });
  return result;
}

void addContractOps(OpTable &table) { table.add<ir::MatmulOp>(matmul); }

} // namespace gpuc::reference
