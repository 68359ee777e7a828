//===- MatmulShapes.cpp - Shapes that both sides of the plan file speak of ---===//

#include "passes/base/MatmulShapes.h"

namespace gpuc {

MatmulShape matmulShapeOf(ir::MatmulOp op) {
  const ir::ProductExtents extents = op.getExtents();
  return {.type = plan::dataTypeOf(op.getType().getElementType()),
          .batch = extents.batch,
          .m = extents.m,
          .n = extents.n,
          .k = extents.k,
          .transpose_a = op.getTransposeLhs(),
          .transpose_b = op.getTransposeRhs()};
}

MatmulShape matmulShapeOf(plan::MatmulOp op) {
  return {.type = plan::dataTypeOf(op.getElement()),
          .batch = static_cast<int64_t>(op.getBatch()),
          .m = static_cast<int64_t>(op.getM()),
          .n = static_cast<int64_t>(op.getN()),
          .k = static_cast<int64_t>(op.getK()),
          .transpose_a = op.getTransposeLhs(),
          .transpose_b = op.getTransposeRhs()};
}

} // namespace gpuc
