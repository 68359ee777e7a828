//===- Training.cpp - Optimizer updates by PyTorch's formulas ----------------===//

#include "test/reference/OpTable.h"

#include <cmath>

using namespace mlir;

namespace gpuc::reference {

/// torch.optim.SGD, as its documentation writes it.
static Results sgdUpdate(ir::SgdUpdateOp op, Operands x) {
  bool hasBuffer = static_cast<bool>(op.getMomentumBuffer());
  Tensor weight = x[0], buffer = hasBuffer ? x[2] : Tensor();
  const Tensor &gradient = x[1];
  int64_t step = x[hasBuffer ? 3 : 2].elements[0].integer;
  double lr = x[hasBuffer ? 4 : 3].elements[0].real;
  double momentum = op.getMomentum().convertToDouble(), dampening = op.getDampening().convertToDouble();
  double decay = op.getWeightDecay().convertToDouble();
  for (int64_t i = 0; i < weight.size(); ++i) {
    double &w = weight.elements[i].real;
    double g = gradient.elements[i].real + decay * w;
    if (hasBuffer) {
      double &b = buffer.elements[i].real;
      b = step == 1 ? g : momentum * b + (1 - dampening) * g;
      g = op.getNesterov() ? g + momentum * b : b;
    }
    w -= lr * g;
  }
  return hasBuffer ? Results{weight, buffer} : Results{weight};
}

/// torch.optim.Adam and, with decoupled weight decay, AdamW, as their documentation writes them.
static Results adamUpdate(ir::AdamUpdateOp op, Operands x) {
  Tensor weight = x[0], average = x[2], averageSquare = x[3];
  auto step = static_cast<double>(x[4].elements[0].integer);
  double lr = x[5].elements[0].real, decay = op.getWeightDecay().convertToDouble();
  double beta1 = op.getBeta1().convertToDouble(), beta2 = op.getBeta2().convertToDouble();
  double correction1 = 1 - std::pow(beta1, step), correction2 = 1 - std::pow(beta2, step);
  for (int64_t i = 0; i < weight.size(); ++i) {
    double &w = weight.elements[i].real, &m = average.elements[i].real, &v = averageSquare.elements[i].real;
    double g = x[1].elements[i].real;
    if (op.getDecoupled())
      w -= lr * decay * w;
    else
      g += decay * w;
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    double mHat = m / correction1, vHat = v / correction2;
    w -= lr * mHat / (std::sqrt(vHat) + op.getEps().convertToDouble());
  }
  return {weight, average, averageSquare};
}

void addTrainingOps(OpTable &table) {
  table.add<ir::SgdUpdateOp>(sgdUpdate);
  table.add<ir::AdamUpdateOp>(adamUpdate);
}

} // namespace gpuc::reference
