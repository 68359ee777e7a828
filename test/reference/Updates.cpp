//===- Updates.cpp - Optimizer updates by their papers' formulas -------------===//

#include "test/reference/OpTable.h"

#include <cmath>

using namespace mlir;

namespace gpuc::reference {

/// A number of an update: what is given in its place, behind all other operands, or the attribute.
template <typename Update>
static double numberOf(Update op, Operands x, StringRef name, const APFloat &attribute) {
  if (std::optional<ArrayAttr> names = op.getGivenNumbers())
    for (auto [index, given] : llvm::enumerate(names->template getAsValueRange<StringAttr>()))
      if (given == name)
        return x[x.size() - names->size() + index].elements[0].real;
  return attribute.convertToDouble();
}

/// The numbers of an update by running means of the gradient; step and rate are the operands from `first` on.
struct Moments {
  template <typename Update>
  Moments(Update op, Operands x, size_t first)
      : step(static_cast<double>(x[first].elements[0].integer)), lr(x[first + 1].elements[0].real),
        decay(numberOf(op, x, "weight_decay", op.getWeightDecay())),
        beta1(numberOf(op, x, "beta1", op.getBeta1())), beta2(numberOf(op, x, "beta2", op.getBeta2())),
        eps(op.getEps().convertToDouble()) {}

  /// The decay is a part of the gradient g or, apart from it, of the step.
  void addDecay(bool isApart, double &w, double &g) const {
    if (isApart)
      w -= lr * decay * w;
    else
      g += decay * w;
  }
  void moveMean(double &m, double g) const { m = beta1 * m + (1 - beta1) * g; }
  void moveSquare(double &v, double g) const { v = beta2 * v + (1 - beta2) * g * g; }
  double correction1() const { return 1 - std::pow(beta1, step); }
  double correction2() const { return 1 - std::pow(beta2, step); }

  double step, lr, decay, beta1, beta2, eps;
};

/// torch.optim.SGD, as its documentation writes it.
static Results sgdUpdate(ir::SgdUpdateOp op, Operands x) {
  bool hasBuffer = static_cast<bool>(op.getMomentumBuffer());
  Tensor weight = x[0], buffer = hasBuffer ? x[2] : Tensor();
  const Tensor &gradient = x[1];
  int64_t step = x[hasBuffer ? 3 : 2].elements[0].integer;
  double lr = x[hasBuffer ? 4 : 3].elements[0].real;
  double momentum = numberOf(op, x, "momentum", op.getMomentum());
  double dampening = op.getDampening().convertToDouble();
  double decay = numberOf(op, x, "weight_decay", op.getWeightDecay());
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
  bool hasMax = static_cast<bool>(op.getMaxExpAvgSq());
  Tensor weight = x[0], average = x[2], averageSquare = x[3], largest = hasMax ? x[4] : Tensor();
  const Moments by(op, x, hasMax ? 5 : 4);
  for (int64_t i = 0; i < weight.size(); ++i) {
    double &w = weight.elements[i].real, &m = average.elements[i].real, &v = averageSquare.elements[i].real;
    double g = x[1].elements[i].real;
    by.addDecay(op.getDecoupled(), w, g);
    by.moveMean(m, g);
    by.moveSquare(v, g);
    double square = v;
    if (hasMax)
      square = largest.elements[i].real = std::max(largest.elements[i].real, v);
    double mHat = m / by.correction1(), vHat = square / by.correction2();
    w -= by.lr * mHat / (std::sqrt(vHat) + by.eps);
  }
  Results results = {weight, average, averageSquare};
  if (hasMax)
    results.push_back(largest);
  return results;
}

/// torch.optim.RMSprop, as its documentation writes it, but for a variance that rounding leaves below 0.
static Results rmspropUpdate(ir::RmspropUpdateOp op, Operands x) {
  bool hasBuffer = static_cast<bool>(op.getMomentumBuffer()), isCentered = static_cast<bool>(op.getGradAvg());
  Tensor weight = x[0], square = x[2], buffer = hasBuffer ? x[3] : Tensor();
  Tensor mean = isCentered ? x[hasBuffer ? 4 : 3] : Tensor();
  double lr = x[(isCentered ? 4 : 3) + hasBuffer].elements[0].real, alpha = op.getAlpha().convertToDouble();
  double decay = numberOf(op, x, "weight_decay", op.getWeightDecay());
  double momentum = numberOf(op, x, "momentum", op.getMomentum());
  for (int64_t i = 0; i < weight.size(); ++i) {
    double &w = weight.elements[i].real, &v = square.elements[i].real;
    double g = x[1].elements[i].real + decay * w;
    v = alpha * v + (1 - alpha) * g * g;
    double variance = v;
    if (isCentered) {
      double &a = mean.elements[i].real;
      a = alpha * a + (1 - alpha) * g;
      variance = std::max(variance - a * a, 0.0);
    }
    double direction = g / (std::sqrt(variance) + op.getEps().convertToDouble());
    if (hasBuffer) {
      double &b = buffer.elements[i].real;
      direction = b = momentum * b + direction;
    }
    w -= lr * direction;
  }
  Results results = {weight, square};
  if (hasBuffer)
    results.push_back(buffer);
  if (isCentered)
    results.push_back(mean);
  return results;
}

/// torch.optim.Adagrad, as its documentation writes it.
static Results adagradUpdate(ir::AdagradUpdateOp op, Operands x) {
  Tensor weight = x[0], sum = x[2];
  auto step = static_cast<double>(x[3].elements[0].integer);
  double lr = x[4].elements[0].real / (1 + (step - 1) * op.getLrDecay().convertToDouble());
  double decay = numberOf(op, x, "weight_decay", op.getWeightDecay());
  for (int64_t i = 0; i < weight.size(); ++i) {
    double &w = weight.elements[i].real, &s = sum.elements[i].real;
    double g = x[1].elements[i].real + decay * w;
    s += g * g;
    w -= lr * g / (std::sqrt(s) + op.getEps().convertToDouble());
  }
  return {weight, sum};
}

/// torch.optim.Adadelta, as its documentation writes it.
static Results adadeltaUpdate(ir::AdadeltaUpdateOp op, Operands x) {
  Tensor weight = x[0], square = x[2], deltas = x[3];
  double lr = x[4].elements[0].real, rho = op.getRho().convertToDouble();
  double eps = op.getEps().convertToDouble(), decay = numberOf(op, x, "weight_decay", op.getWeightDecay());
  for (int64_t i = 0; i < weight.size(); ++i) {
    double &w = weight.elements[i].real, &v = square.elements[i].real, &a = deltas.elements[i].real;
    double g = x[1].elements[i].real + decay * w;
    v = rho * v + (1 - rho) * g * g;
    double u = std::sqrt(a + eps) / std::sqrt(v + eps) * g;
    a = rho * a + (1 - rho) * u * u;
    w -= lr * u;
  }
  return {weight, square, deltas};
}

/// torch.optim.Adamax, as its documentation writes it.
static Results adamaxUpdate(ir::AdamaxUpdateOp op, Operands x) {
  Tensor weight = x[0], average = x[2], norm = x[3];
  const Moments by(op, x, 4);
  for (int64_t i = 0; i < weight.size(); ++i) {
    double &w = weight.elements[i].real, &m = average.elements[i].real, &u = norm.elements[i].real;
    double g = x[1].elements[i].real + by.decay * w;
    by.moveMean(m, g);
    u = std::max(by.beta2 * u, std::abs(g) + by.eps);
    w -= by.lr / by.correction1() * m / u;
  }
  return {weight, average, norm};
}

/// torch.optim.NAdam, as its documentation writes it.
static Results nadamUpdate(ir::NadamUpdateOp op, Operands x) {
  Tensor weight = x[0], average = x[2], averageSquare = x[3], product = x[4];
  const Moments by(op, x, 5);
  double forgets = op.getMomentumDecay().convertToDouble();
  double mu = by.beta1 * (1 - std::pow(0.96, by.step * forgets) / 2);
  double next = by.beta1 * (1 - std::pow(0.96, (by.step + 1) * forgets) / 2);
  double &p = product.elements[0].real;
  p *= mu;
  for (int64_t i = 0; i < weight.size(); ++i) {
    double &w = weight.elements[i].real, &m = average.elements[i].real, &v = averageSquare.elements[i].real;
    double g = x[1].elements[i].real;
    by.addDecay(op.getDecoupled(), w, g);
    by.moveMean(m, g);
    by.moveSquare(v, g);
    double size = std::sqrt(v / by.correction2()) + by.eps;
    w -= by.lr * ((1 - mu) / (1 - p) * g + next / (1 - p * next) * m) / size;
  }
  return {weight, average, averageSquare, product};
}

/// torch.optim.RAdam, as its documentation writes it.
static Results radamUpdate(ir::RadamUpdateOp op, Operands x) {
  Tensor weight = x[0], average = x[2], averageSquare = x[3];
  const Moments by(op, x, 4);
  double longest = 2 / (1 - by.beta2) - 1;
  double length = longest - 2 * by.step * std::pow(by.beta2, by.step) / by.correction2();
  double variance = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length);
  for (int64_t i = 0; i < weight.size(); ++i) {
    double &w = weight.elements[i].real, &m = average.elements[i].real, &v = averageSquare.elements[i].real;
    double g = x[1].elements[i].real;
    by.addDecay(op.getDecoupled(), w, g);
    by.moveMean(m, g);
    by.moveSquare(v, g);
    double scale = std::sqrt(variance) * std::sqrt(by.correction2()) / (std::sqrt(v) + by.eps);
    w -= by.lr * m / by.correction1() * (length > 5 ? scale : 1);
  }
  return {weight, average, averageSquare};
}

/// torch.optim.ASGD, as its documentation writes it.
static Results asgdUpdate(ir::AsgdUpdateOp op, Operands x) {
  Tensor weight = x[0], mean = x[2], eta = x[3], mu = x[4];
  auto step = static_cast<double>(x[5].elements[0].integer);
  double lr = x[6].elements[0].real, lambd = op.getLambd().convertToDouble();
  double decay = numberOf(op, x, "weight_decay", op.getWeightDecay());
  double rate = step == 1 ? lr : eta.elements[0].real, share = mu.elements[0].real;
  for (int64_t i = 0; i < weight.size(); ++i) {
    double &w = weight.elements[i].real, &a = mean.elements[i].real;
    double g = x[1].elements[i].real + decay * w;
    w -= rate * (g + lambd * w);
    a += share * (w - a);
  }
  eta.elements[0].real = lr * std::pow(1 + lambd * lr * step, -op.getAlpha().convertToDouble());
  mu.elements[0].real = std::min(1.0, 1 / std::max(1.0, step - op.getT0().convertToDouble()));
  return {weight, mean, eta, mu};
}

/// torch.optim.Rprop, as its documentation writes it.
static Results rpropUpdate(ir::RpropUpdateOp op, Operands x) {
  Tensor weight = x[0], previous = x[2], sizes = x[3];
  bool isFirst = x[4].elements[0].integer == 1;
  double decay = numberOf(op, x, "weight_decay", op.getWeightDecay());
  double least = op.getStepSizeMin().convertToDouble(), most = op.getStepSizeMax().convertToDouble();
  for (int64_t i = 0; i < weight.size(); ++i) {
    double &w = weight.elements[i].real, &p = previous.elements[i].real, &s = sizes.elements[i].real;
    double g = x[1].elements[i].real + decay * w;
    if (isFirst)
      s = x[5].elements[0].real;
    if (g * p > 0)
      s = std::min(s * op.getEtaPlus().convertToDouble(), most);
    else if (g * p < 0)
      s = std::max(s * op.getEtaMinus().convertToDouble(), least);
    s = std::min(std::max(s, least), most);
    p = g * p < 0 ? 0 : g;
    w -= p > 0 ? s : p < 0 ? -s : 0;
  }
  return {weight, previous, sizes};
}

/// Algorithm 2 of Chen et al. 2023: the decay is part of the step, by the old weight.
static Results lionUpdate(ir::LionUpdateOp op, Operands x) {
  Tensor weight = x[0], average = x[2];
  double lr = x[3].elements[0].real, decay = op.getWeightDecay().convertToDouble();
  double beta1 = op.getBeta1().convertToDouble(), beta2 = op.getBeta2().convertToDouble();
  for (int64_t i = 0; i < weight.size(); ++i) {
    double &w = weight.elements[i].real, &m = average.elements[i].real, g = x[1].elements[i].real;
    double c = beta1 * m + (1 - beta1) * g;
    double sign = c > 0 ? 1 : c < 0 ? -1 : c; // 0 and NaN are themselves
    w -= lr * (sign + decay * w);
    m = beta2 * m + (1 - beta2) * g;
  }
  return {weight, average};
}

static double rootMeanSquare(const Tensor &x) {
  double sum = 0;
  for (const Element &element : x.elements)
    sum += element.real * element.real;
  return std::sqrt(sum / static_cast<double>(x.size()));
}

/// The second moment of each element's gradient by the rank-1 estimate of Shazeer and Stern 2018, section 3;
/// `row` and `column` are the running means, moved by `rate` first.
static std::vector<double> factoredMoments(const Tensor &gradient, Tensor &row, Tensor &column, double rate,
                                           double eps1) {
  int64_t columns = gradient.shape().back(), rows = gradient.shape()[gradient.shape().size() - 2];
  std::vector<double> moments(gradient.size());
  for (int64_t matrix = 0; matrix < gradient.size() / (rows * columns); ++matrix) {
    auto square = [&](int64_t i, int64_t j) {
      double g = gradient.elements[(matrix * rows + i) * columns + j].real;
      return g * g;
    };
    double mean = 0;
    for (int64_t i = 0; i < rows; ++i) {
      double sum = 0, &r = row.elements[matrix * rows + i].real;
      for (int64_t j = 0; j < columns; ++j)
        sum += square(i, j);
      r = (1 - rate) * r + rate * sum / static_cast<double>(columns);
      mean += r / static_cast<double>(rows);
    }
    for (int64_t j = 0; j < columns; ++j) {
      double sum = 0, &c = column.elements[matrix * columns + j].real;
      for (int64_t i = 0; i < rows; ++i)
        sum += square(i, j);
      c = (1 - rate) * c + rate * sum / static_cast<double>(rows);
      for (int64_t i = 0; i < rows; ++i)
        moments[(matrix * rows + i) * columns + j] =
            row.elements[matrix * rows + i].real * c / std::max(mean, eps1);
    }
  }
  return moments;
}

/// torch.optim.Adafactor of PyTorch 2.5, as its documentation writes it.
static Results adafactorUpdate(ir::AdafactorUpdateOp op, Operands x) {
  bool isFactored = op.getVariances().size() == 2;
  Results results = {x[0], x[2]};
  if (isFactored)
    results.push_back(x[3]);
  Tensor direction = x[1];
  auto step = static_cast<double>(x[isFactored ? 4 : 3].elements[0].integer);
  double lr = x.back().elements[0].real, rate = std::pow(step, op.getBeta2Decay().convertToDouble());
  double eps1 = op.getEps1().convertToDouble();

  std::vector<double> moments(direction.size());
  if (isFactored)
    moments = factoredMoments(x[1], results[1], results[2], rate, eps1);
  for (int64_t i = 0; i < direction.size(); ++i) {
    double &g = direction.elements[i].real;
    if (!isFactored) {
      double &v = results[1].elements[i].real;
      moments[i] = v = (1 - rate) * v + rate * g * g;
    }
    g /= std::sqrt(std::max(moments[i], eps1 * eps1));
  }
  double size = std::max(op.getEps2().convertToDouble(), rootMeanSquare(x[0]));
  double stepSize = size * std::min(lr, 1 / std::sqrt(step)) /
                    std::max(1.0, rootMeanSquare(direction) / op.getD().convertToDouble());
  for (int64_t i = 0; i < direction.size(); ++i) {
    double &w = results[0].elements[i].real;
    w -= lr * op.getWeightDecay().convertToDouble() * w + stepSize * direction.elements[i].real;
  }
  return results;
}

/// A matrix of the interpreter's own, row-major.
using Matrix = std::vector<double>;

/// `rows` × `inner` by `inner` × `columns`.
static Matrix product(const Matrix &a, const Matrix &b, int64_t rows, int64_t inner, int64_t columns) {
  Matrix c(rows * columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t k = 0; k < inner; ++k)
        c[i * columns + j] += a[i * inner + k] * b[k * columns + j];
  return c;
}

static Matrix transposed(const Matrix &a, int64_t rows, int64_t columns) {
  Matrix b(a.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      b[j * rows + i] = a[i * columns + j];
  return b;
}

/// x ← a · x + (b · x xᵀ + c · (x xᵀ)²) · x, of a matrix with no more rows than columns, as the author writes
/// it.
static Matrix newtonSchulz(Matrix x, int64_t rows, int64_t columns, int64_t steps) {
  if (rows > columns)
    return transposed(newtonSchulz(transposed(x, rows, columns), columns, rows, steps), columns, rows);
  double norm = 0;
  for (double element : x)
    norm += element * element;
  for (double &element : x)
    element /= std::sqrt(norm) + 1e-7;
  for (int64_t step = 0; step < steps; ++step) {
    Matrix gram = product(x, transposed(x, rows, columns), rows, columns, rows);
    Matrix square = product(gram, gram, rows, rows, rows);
    for (size_t i = 0; i < gram.size(); ++i)
      gram[i] = -4.7750 * gram[i] + 2.0315 * square[i];
    Matrix moved = product(gram, x, rows, rows, columns);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = 3.4445 * x[i] + moved[i];
  }
  return x;
}

/// Muon, by the program of Jordan et al. 2024.
static Results muonUpdate(ir::MuonUpdateOp op, Operands x) {
  Tensor weight = x[0], buffer = x[2];
  double lr = x[3].elements[0].real, momentum = op.getMomentum().convertToDouble();
  Matrix direction(weight.size());
  for (int64_t i = 0; i < weight.size(); ++i) {
    double &b = buffer.elements[i].real, g = x[1].elements[i].real;
    b += (1 - momentum) * (g - b);
    direction[i] = op.getNesterov() ? g + momentum * (b - g) : b;
  }
  int64_t rows = weight.shape().front(), columns = weight.size() / rows;
  direction = newtonSchulz(direction, rows, columns, static_cast<int64_t>(op.getNsSteps()));
  double scale = std::sqrt(std::max(1.0, double(rows) / double(columns)));
  for (int64_t i = 0; i < weight.size(); ++i) {
    double &w = weight.elements[i].real;
    w -= lr * op.getWeightDecay().convertToDouble() * w;
    w -= lr * scale * direction[i];
  }
  return {weight, buffer};
}

void addUpdateOps(OpTable &table) {
  table.add<ir::SgdUpdateOp>(sgdUpdate);
  table.add<ir::AdamUpdateOp>(adamUpdate);
  table.add<ir::RmspropUpdateOp>(rmspropUpdate);
  table.add<ir::AdagradUpdateOp>(adagradUpdate);
  table.add<ir::AdadeltaUpdateOp>(adadeltaUpdate);
  table.add<ir::AdamaxUpdateOp>(adamaxUpdate);
  table.add<ir::NadamUpdateOp>(nadamUpdate);
  table.add<ir::RadamUpdateOp>(radamUpdate);
  table.add<ir::AsgdUpdateOp>(asgdUpdate);
  table.add<ir::RpropUpdateOp>(rpropUpdate);
  table.add<ir::LionUpdateOp>(lionUpdate);
  table.add<ir::AdafactorUpdateOp>(adafactorUpdate);
  table.add<ir::MuonUpdateOp>(muonUpdate);
}

} // namespace gpuc::reference
