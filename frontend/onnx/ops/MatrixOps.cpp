//===- MatrixOps.cpp - Matrix products --------------------------------------===//

#include "frontend/onnx/ops/OpTable.h"

#include <algorithm>

namespace gpuc::onnx {
namespace {

/// gpuc.matmul is of floating point; integers are multiplied and summed.
Tensor product(const Tensor &lhs, const Tensor &rhs) {
  if (lhs.isFloat())
    return matmul(lhs, rhs);
  Tensor terms = unsqueeze(lhs, {-1}) * unsqueeze(rhs, {-3});
  return reduce("sum", terms, {terms.rank() - 2}, /*keep=*/false);
}

/// One matrix for all rows of lhs, whose leading dimensions then are rows of one product.
Tensor productOfRows(const Tensor &lhs, const Tensor &rhs) {
  if (lhs.isFloat())
    return matmul(lhs, rhs);
  Shape shape = lhs.shape();
  Tensor result = product(reshape(lhs, {countOf(shape, 0, shape.size() - 1), shape.back()}), rhs);
  shape.back() = result.extent(1);
  return reshape(result, shape);
}

/// As numpy.matmul: one dimension counts as a row or column, leading dimensions are broadcast.
void lowerMatMul(NodeScope &node) {
  Tensor lhs = node.input(0), rhs = node.input(1);
  const bool row = lhs.rank() == 1, column = rhs.rank() == 1;
  if (!lhs || !rhs)
    return;
  if (lhs.rank() == 0 || rhs.rank() == 0)
    return void(node.fail("MatMul of shapes " + toString(lhs.shape()) + " and " + toString(rhs.shape())));
  if (row)
    lhs = unsqueeze(lhs, {0});
  if (column)
    rhs = unsqueeze(rhs, {1});
  if (!lhs || !rhs)
    return;
  Tensor result;
  if (rhs.rank() == 2 && lhs.rank() > 2 && (lhs.isFloat() || !lhs.hasBatch())) {
    result = productOfRows(lhs, rhs);
  } else {
    auto leading = [](const Tensor &x) {
      Shape shape = x.shape();
      return Shape(shape.begin(), shape.end() - 2);
    };
    std::optional<Shape> batch = broadcastShapes(node.emitter, leading(lhs), leading(rhs));
    if (!batch)
      return;
    auto whole = [&](const Tensor &x) {
      Shape shape = *batch;
      shape.push_back(x.extent(x.rank() - 2));
      shape.push_back(x.extent(x.rank() - 1));
      return broadcastTo(x, shape);
    };
    result = product(whole(lhs), whole(rhs));
  }
  Shape shape = result.shape();
  if (column && !shape.empty())
    shape.pop_back();
  if (row && !shape.empty())
    shape.erase(shape.end() - (column ? 1 : 2));
  node.output(reshape(result, shape));
}

void lowerGemm(NodeScope &node) {
  Tensor a = node.input(0), b = node.input(1);
  double alpha = node.number("alpha", 1), beta = node.number("beta", 1);
  bool transposeA = node.integer("transA", 0), transposeB = node.integer("transB", 0);
  if (a && b && (a.rank() != 2 || b.rank() != 2))
    return void(node.fail("Gemm of shapes " + toString(a.shape()) + " and " + toString(b.shape())));
  Tensor result;
  if (a.isFloat())
    result = matmul(a, b, transposeA, transposeB);
  else
    result = product(transposeA ? transpose(a, {1, 0}) : a, transposeB ? transpose(b, {1, 0}) : b);
  if (alpha != 1)
    result = result * alpha;
  if (node.has(2)) {
    Tensor c = node.input(2);
    if (beta != 1)
      c = c * beta;
    result = result + broadcastTo(c, result.shape());
  }
  node.output(result);
}

//===----------------------------------------------------------------------===//
// Einsum
//===----------------------------------------------------------------------===//

/// "ij,jk->ik" with each "..." spelled out as upper-case letters from 'A' on.
struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};

std::optional<Equation> parseEquation(NodeScope &node, std::vector<Tensor> &operands) {
  std::string text = node.text("equation", "");
  std::erase(text, ' ');
  size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  Equation equation;
  for (size_t begin = 0; begin <= left.size();) {
    size_t end = std::min(left.find(',', begin), left.size());
    equation.inputs.push_back(left.substr(begin, end - begin));
    begin = end + 1;
  }
  if (equation.inputs.size() != operands.size())
    return node.fail("equation '" + text + "' has not one term for each input");
  std::string dots;
  for (size_t i = 0; i < operands.size(); ++i) {
    std::string &term = equation.inputs[i];
    size_t at = term.find("...");
    int64_t hidden = operands[i].rank() - static_cast<int64_t>(term.size()) + 3;
    if (at != std::string::npos && hidden >= 0 && hidden < 26) {
      std::string letters;
      for (int64_t k = hidden; k > 0; --k)
        letters += static_cast<char>('A' + k - 1); // The last has 'A' in all terms.
      term.replace(at, 3, letters);
      dots = letters.size() > dots.size() ? letters : dots;
    }
    if (static_cast<int64_t>(term.size()) != operands[i].rank() ||
        term.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != std::string::npos)
      return node.fail("equation '" + text + "' does not suit an input of shape " +
                       toString(operands[i].shape()));
  }
  if (arrow != std::string::npos) {
    equation.output = text.substr(arrow + 2);
    if (size_t at = equation.output.find("..."); at != std::string::npos)
      equation.output.replace(at, 3, dots);
    return equation;
  }
  // Without "->": "..." first, then the letters that come once, in alphabetical order.
  std::string all;
  for (const std::string &term : equation.inputs)
    all += term;
  std::sort(all.begin(), all.end());
  equation.output = dots;
  for (char letter : all)
    if (std::count(all.begin(), all.end(), letter) == 1 && dots.find(letter) == std::string::npos)
      equation.output += letter;
  return equation;
}

/// x with dimensions `term`, as one with dimensions `letters`: those that it lacks have extent 1, those that
/// letters lack are summed over. A letter that comes twice takes the diagonal.
Tensor arrange(Tensor x, std::string term, const std::string &letters) {
  for (size_t i = 0; i < term.size(); ++i)
    if (size_t twin = term.find(term[i], i + 1); twin != std::string::npos && x) {
      Tensor along = iota(*x.emitter(), x.shape(), DataType::i64, i);
      Tensor across = iota(*x.emitter(), x.shape(), DataType::i64, twin);
      x = reduce("sum", select(compare("eq", along, across), x, like(x, 0)), {static_cast<int64_t>(twin)},
                 false);
      term.erase(twin, 1);
      i = static_cast<size_t>(-1); // From the start: it may come a third time.
    }
  Shape summed;
  std::string kept;
  for (size_t i = 0; i < term.size(); ++i)
    if (letters.find(term[i]) == std::string::npos)
      summed.push_back(i);
    else
      kept += term[i];
  x = reduce("sum", x, summed, /*keep=*/false);
  Shape permutation, missing;
  for (size_t i = 0; i < letters.size(); ++i)
    if (size_t at = kept.find(letters[i]); at != std::string::npos)
      permutation.push_back(at);
    else
      missing.push_back(i);
  return unsqueeze(transpose(x, permutation), missing);
}

/// Products are taken over all letters at once and then summed, but for two operands that make a matrix
/// product.
void lowerEinsum(NodeScope &node) {
  std::vector<Tensor> operands = node.allInputs();
  if (node.failed() || operands.empty())
    return;
  std::optional<Equation> equation = parseEquation(node, operands);
  if (!equation)
    return;
  std::string all = equation->output;
  for (char letter : all)
    if (std::none_of(equation->inputs.begin(), equation->inputs.end(),
                     [&](const std::string &term) { return term.find(letter) != std::string::npos; }))
      return void(node.fail(std::string("equation: the output has '") + letter + "', which no input has"));
  // What only one input has and the output has not is summed away in that input.
  std::string summed;
  for (const std::string &term : equation->inputs)
    for (char letter : term) {
      int uses = 0;
      for (const std::string &other : equation->inputs)
        uses += other.find(letter) != std::string::npos;
      if (uses > 1 && (all + summed).find(letter) == std::string::npos)
        summed += letter;
    }
  if (operands.size() == 2 && !summed.empty() && operands[0].isFloat()) {
    std::string batch, rows, columns;
    for (char letter : all) {
      bool left = equation->inputs[0].find(letter) != std::string::npos;
      bool right = equation->inputs[1].find(letter) != std::string::npos;
      (left && right ? batch : left ? rows : columns) += letter;
    }
    Tensor a = arrange(operands[0], equation->inputs[0], batch + rows + summed);
    Tensor b = arrange(operands[1], equation->inputs[1], batch + summed + columns);
    Shape lead = a.shape(), tail = b.shape();
    lead.resize(batch.size());
    auto count = [](const Tensor &x, size_t from, size_t number) {
      return countOf(x.shape(), from, from + number);
    };
    Shape left = lead, right = lead, result = lead;
    left.insert(left.end(),
                {count(a, batch.size(), rows.size()), count(a, batch.size() + rows.size(), summed.size())});
    right.insert(right.end(), {count(b, batch.size(), summed.size()),
                               count(b, batch.size() + summed.size(), columns.size())});
    for (size_t i = 0; i < rows.size(); ++i)
      result.push_back(a.extent(batch.size() + i));
    for (size_t i = 0; i < columns.size(); ++i)
      result.push_back(b.extent(batch.size() + summed.size() + i));
    Tensor flat = matmul(reshape(a, left), reshape(b, right));
    node.output(arrange(reshape(flat, result), batch + rows + columns, all));
    return;
  }
  Tensor result;
  for (size_t i = 0; i < operands.size(); ++i) {
    Tensor factor = arrange(operands[i], equation->inputs[i], all + summed);
    result = i == 0 ? factor : result * factor;
  }
  node.output(arrange(result, all + summed, all));
}

} // namespace

void addMatrixOps(OpTable &table) {
  table["MatMul"] = {lowerMatMul, {}};
  table["Gemm"] = {lowerGemm, {"alpha", "beta", "transA", "transB"}};
  table["Einsum"] = {lowerEinsum, {"equation"}};
}

} // namespace gpuc::onnx
