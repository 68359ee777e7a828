//===- RandomGraph.cpp - Valid small graphs from a seed -----------------------===//

#include "test/gradients/RandomGraph.h"

#include <functional>
#include <random>

namespace gpuc::gradients {

using Shape = std::vector<int64_t>;

static std::string textOf(const Shape &shape) {
  std::string text;
  for (int64_t extent : shape)
    text += std::to_string(extent) + "x";
  return text + "$T";
}

static std::string listOf(const Shape &numbers) {
  std::string text;
  for (int64_t number : numbers)
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "[" + text + "]";
}

namespace {

struct Node {
  std::string name;
  Shape shape;
  std::string type() const { return tensor(textOf(shape)); }
};

class Generator {
public:
  explicit Generator(uint64_t seed) : random_(seed) {
    graph_.op = "random.graph";
    graph_.name = "seed_" + std::to_string(seed);
  }

  Case build() {
    for (int64_t inputs = 2 + below(2); inputs > 0; --inputs)
      addInput(randomShape());
    for (int64_t ops = 5 + below(16); ops > 0; --ops)
      addOp();
    finish();
    return graph_;
  }

private:
  // Drawing.
  int64_t below(int64_t bound) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound)); }
  Node pick() { return nodes_[nodes_.size() - 1 - below(std::min<int64_t>(nodes_.size(), 6))]; }
  Node pickOfRank(size_t least) {
    for (int tries = 0; tries < 8; ++tries)
      if (Node node = pick(); node.shape.size() >= least)
        return node;
    return addInput(least == 2 ? Shape{1 + below(5), 1 + below(5)} : Shape{1 + below(7)});
  }
  Shape randomShape() {
    Shape shape(below(4));
    for (int64_t &extent : shape)
      extent = 1 + below(5);
    return shape;
  }

  // Building.
  Node addInput(const Shape &shape) {
    Node node{"%x" + std::to_string(graph_.inputs.size()), shape};
    graph_.inputs.push_back({textOf(shape)});
    nodes_.push_back(node);
    return node;
  }
  /// `%n = gpuc.<text>`, a value of the shape.
  Node emit(const std::string &text, const Shape &shape) {
    Node node{"%n" + std::to_string(count_++), shape};
    graph_.body += node.name + " = gpuc." + text + "\n";
    nodes_.push_back(node);
    return node;
  }
  Node unary(const std::string &op, const Node &x, const std::string &attributes = "") {
    return emit(op + " " + x.name + " " + attributes + " : " + x.type(), x.shape);
  }
  Node binary(const std::string &op, const Node &a, const Node &b) {
    return emit(op + " " + a.name + ", " + b.name + " : " + a.type(), a.shape);
  }
  Node inferred(const std::string &op, const Node &x, const std::string &attributes, const Shape &shape) {
    return emit(op + " " + x.name + " " + attributes + " : (" + x.type() + ") -> " + tensor(textOf(shape)),
                shape);
  }
  Node converted(const std::string &op, const Node &x, const std::string &attributes, const Shape &shape) {
    return emit(op + " " + x.name + " " + attributes + " : " + x.type() + " to " + tensor(textOf(shape)),
                shape);
  }
  /// `%n = gpuc.<text> : (<operands' types>) -> <result's type>`.
  Node typed(const std::string &text, const std::vector<Node> &operands, const Shape &shape) {
    return emit(text + " : (" + typesOf(operands) + ") -> " + tensor(textOf(shape)), shape);
  }
  static std::string typesOf(const std::vector<Node> &nodes) {
    std::string types;
    for (const Node &node : nodes)
      types += (types.empty() ? "" : ", ") + node.type();
    return types;
  }
  /// A value as batch, channels, rows and columns, or a new argument of such; at least two rows and columns.
  Node pictures();
  Node constant(double number, const Shape &shape) {
    return emit("constant " + std::to_string(number) + " : " + tensor(textOf(shape)), shape);
  }

  /// Another value of x's shape: one that there is, one that can be repeated to it, or a new argument.
  Node like(const Node &x) {
    for (int tries = 0; tries < 6; ++tries) {
      Node other = pick();
      if (other.shape == x.shape)
        return other;
      if (other.shape.empty())
        return converted("broadcast", other, "dims []", x.shape);
      if (other.shape.size() == 1 && !x.shape.empty() && other.shape[0] == x.shape.back())
        return converted("broadcast", other, "dims " + listOf({static_cast<int64_t>(x.shape.size()) - 1}),
                         x.shape);
    }
    return addInput(x.shape);
  }
  Node bounded(const Node &x) { return unary("tanh", x); }
  /// x² + 1, safe to divide by and to take logarithms and roots of.
  Node positive(const Node &x) { return binary("add", binary("mul", x, x), constant(1, x.shape)); }

  void addOp();
  void addPointwise();
  void addCompound();
  void addReduction();
  void addMovement();
  void addIndexed();
  void addOrdered();
  void addWindow();
  void addMatmul();
  void addConvolution();
  void addPooling();
  void addNorm();
  Node norm(const Node &x, bool isLayerNorm, int64_t dim);
  void addRows();
  void addAttention();
  void addLoop();
  void finish();

  std::mt19937_64 random_;
  Case graph_;
  std::vector<Node> nodes_;
  int64_t count_ = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Groups of ops
//===----------------------------------------------------------------------===//

void Generator::addPointwise() {
  static const std::vector<std::string> unaries = {"neg",  "abs",     "sin",  "cos",  "atan",
                                                   "tanh", "sigmoid", "erf",  "relu", "leaky_relu",
                                                   "gelu", "silu",    "round"};
  static const std::vector<std::string> binaries = {"add", "sub", "mul", "max", "min"};
  if (below(2))
    return void(unary(unaries[below(unaries.size())], pick()));
  Node x = pick(), y = like(x);
  const std::string &op = binaries[below(binaries.size())];
  Node result = binary(op, x, y);
  if (op == "mul")
    bounded(result);
}

void Generator::addCompound() {
  Node x = pick();
  switch (below(7)) {
  case 0:
    return void(unary("exp", bounded(x)));
  case 1:
    return void(unary("log", positive(x)));
  case 2:
    return void(unary("rsqrt", positive(x)));
  case 3: {
    Node y = like(x);
    return void(binary("div", x, positive(y)));
  }
  case 4: {
    Node y = like(x), flags{"%c" + std::to_string(count_++), x.shape};
    graph_.body += flags.name + " = gpuc.compare lt " + x.name + ", " + y.name + " : " + x.type() + "\n";
    std::string type = x.type();
    std::string flagType = type.substr(0, type.size() - 3) + "i1>"; // "$T>" away
    return void(emit("select " + flags.name + ", " + y.name + ", " + x.name + " : " + flagType + ", " + type,
                     x.shape));
  }
  case 5:
    return void(unary("clamp", x, "low -0.5 high 0.75"));
  default:
    return void(unary("dropout", x, "p 0.25 id " + std::to_string(count_)));
  }
}

void Generator::addReduction() {
  static const std::vector<std::string> ops = {"sum",     "mean",        "reduce_max", "reduce_min",
                                               "softmax", "log_softmax", "cumsum"};
  const std::string &op = ops[below(ops.size())];
  Node x = pickOfRank(1);
  int64_t dim = below(x.shape.size());
  if (op == "softmax" || op == "log_softmax" || op == "cumsum")
    return void(bounded(unary(op, x, "dim " + std::to_string(dim))));
  Shape kept, dims;
  for (int64_t i = 0; i < static_cast<int64_t>(x.shape.size()); ++i)
    if (i == dim || below(4) == 0)
      dims.push_back(i);
    else
      kept.push_back(x.shape[i]);
  inferred(op, x, "dims " + listOf(dims), kept);
}

void Generator::addMovement() {
  Node x = pickOfRank(1);
  int64_t rank = x.shape.size(), dim = below(rank);
  Shape zeros(rank, 0), ones(rank, 1), shape = x.shape;
  switch (below(6)) {
  case 0: { // dimensions rotate
    Shape permutation, rotated;
    for (int64_t i = 0; i < rank; ++i) {
      permutation.push_back((i + dim) % rank);
      rotated.push_back(x.shape[permutation.back()]);
    }
    return void(inferred("transpose", x, "permutation " + listOf(permutation), rotated));
  }
  case 1: {
    int64_t elements = 1;
    for (int64_t extent : x.shape)
      elements *= extent;
    return void(converted("reshape", x, "", {elements}));
  }
  case 2: {
    Shape starts = zeros, limits = x.shape;
    starts[dim] = below(x.shape[dim]);
    shape[dim] -= starts[dim];
    return void(inferred(
        "slice", x, "starts " + listOf(starts) + " limits " + listOf(limits) + " strides " + listOf(ones),
        shape));
  }
  case 3: {
    Shape low = zeros, interior = zeros;
    low[dim] = below(2);
    interior[dim] = below(2);
    shape[dim] += low[dim] + (shape[dim] - 1) * interior[dim];
    return void(inferred(
        "pad", x, "low " + listOf(low) + " high " + listOf(zeros) + " interior " + listOf(interior), shape));
  }
  case 4:
    return void(unary("reverse", x, "dims " + listOf({dim})));
  default: {
    Node y = like(x);
    shape[dim] *= 2;
    return void(emit("concat " + x.name + ", " + y.name + " dim " + std::to_string(dim) + " : (" + x.type() +
                         ", " + y.type() + ") -> " + tensor(textOf(shape)),
                     shape));
  }
  }
}

/// The values alone: indices jump where values meet.
void Generator::addOrdered() {
  Node x = pickOfRank(1), y{"%n" + std::to_string(count_++), x.shape};
  int64_t dim = below(x.shape.size()), k = 1 + below(x.shape[dim]);
  bool whole = below(2), other = below(2);
  y.shape[dim] = whole ? x.shape[dim] : k;
  std::string indices = tensor(textOf(y.shape));
  indices.replace(indices.find("$T"), 2, "i64");
  graph_.body += y.name + ", " + y.name + "_indices = gpuc." +
                 (whole ? "sort " + x.name : "top_k " + x.name + " k " + std::to_string(k)) + " dim " +
                 std::to_string(dim) +
                 (!other  ? ""
                  : whole ? " descending"
                          : " smallest") +
                 " : (" + x.type() + ") -> (" + y.type() + ", " + indices + ")\n";
  nodes_.push_back(y);
}

/// A window that begins anywhere, out of range on both sides included; of some dimensions the whole extent.
void Generator::addWindow() {
  Node x = pickOfRank(1);
  const size_t rank = x.shape.size();
  const std::string start = "%x" + std::to_string(graph_.inputs.size()), type = std::to_string(rank) + "xi64";
  graph_.inputs.push_back({type, -2, 6});
  Shape sizes, window;
  for (int64_t extent : x.shape) {
    sizes.push_back(below(2) ? -1 : 1 + below(extent));
    window.push_back(sizes.back() < 0 ? extent : sizes.back());
  }
  const std::string types = x.type() + ", " + tensor(type);
  Node y = emit("dynamic_slice " + x.name + ", " + start + " sizes " + listOf(sizes) + " : (" + types +
                    ") -> " + tensor(textOf(window)),
                window);
  if (below(2))
    emit("dynamic_update_slice " + x.name + ", " + y.name + ", " + start + " : (" + x.type() + ", " +
             y.type() + ", " + tensor(type) + ") -> " + x.type(),
         x.shape);
}

void Generator::addIndexed() {
  if (below(3) == 0)
    return addOrdered();
  if (below(3) == 0)
    return addWindow();
  Node x = pickOfRank(1);
  int64_t dim = below(x.shape.size()), count = 1 + below(4);
  Shape shape = x.shape;
  shape[dim] = count;
  // One beyond the end on both sides: such an index gives zeros.
  std::string indices = "%x" + std::to_string(graph_.inputs.size()), type = std::to_string(count) + "xi32";
  graph_.inputs.push_back({type, -1, static_cast<double>(x.shape[dim])});
  std::string types = x.type() + ", " + tensor(type), along = " dim " + std::to_string(dim);
  Node chosen = emit(
      "gather " + x.name + ", " + indices + along + " : (" + types + ") -> " + tensor(textOf(shape)), shape);
  if (below(2))
    emit("scatter_add " + x.name + ", " + indices + ", " + chosen.name + along + " : (" + types + ", " +
             chosen.type() + ") -> " + x.type(),
         x.shape);
}

void Generator::addMatmul() {
  Node x = pickOfRank(2);
  bool transposeLhs = below(2), transposeRhs = below(2);
  size_t rank = x.shape.size();
  int64_t rows = x.shape[rank - (transposeLhs ? 1 : 2)], inner = x.shape[rank - (transposeLhs ? 2 : 1)],
          columns = 1 + below(5);
  Shape right = x.shape, result = x.shape;
  right[rank - 2] = transposeRhs ? columns : inner;
  right[rank - 1] = transposeRhs ? inner : columns;
  result[rank - 2] = rows;
  result[rank - 1] = columns;
  Node y = addInput(right);
  bounded(emit(std::string("matmul ") + (transposeLhs ? "transpose " : "") + x.name + ", " +
                   (transposeRhs ? "transpose " : "") + y.name + " : (" + x.type() + ", " + y.type() +
                   ") -> " + tensor(textOf(result)),
               result));
}

Node Generator::pictures() {
  Node x = pick();
  if (x.shape.size() == 4 && x.shape[2] > 1 && x.shape[3] > 1)
    return x;
  if (x.shape.size() == 3 && x.shape[1] > 1 && x.shape[2] > 1)
    return converted("reshape", x, "", {1, x.shape[0], x.shape[1], x.shape[2]});
  return addInput({1 + below(2), 1 + below(3), 2 + below(4), 2 + below(4)});
}

void Generator::addConvolution() {
  Node x = pictures();
  int64_t out = 1 + below(3), kernel = 1 + below(2), stride = 1 + below(2);
  Node filter = addInput({out, x.shape[1], kernel, kernel});
  auto windows = [&](int64_t extent) { return (extent + 1 - kernel) / stride + 1; };
  bounded(typed("conv2d " + x.name + ", " + filter.name + " strides " + listOf({stride, stride}) +
                    " padding [1, 0, 0, 1]",
                {x, filter}, {x.shape[0], out, windows(x.shape[2]), windows(x.shape[3])}));
}

void Generator::addPooling() {
  Node x = pictures();
  Shape pooled = {x.shape[0], x.shape[1], x.shape[2] - 1, x.shape[3] - 1};
  const std::string window = x.name + " window [2, 2]";
  if (below(2))
    return void(typed("avg_pool2d " + window, {x}, pooled));
  Node y{"%n" + std::to_string(count_++), pooled};
  std::string indices = tensor(textOf(pooled));
  indices.replace(indices.find("$T"), 2, "i64");
  graph_.body += y.name + ", " + y.name + "_indices = gpuc.max_pool2d " + window + " : (" + x.type() +
                 ") -> (" + y.type() + ", " + indices + ")\n";
  nodes_.push_back(y);
}

/// A large eps, for rows may be constant: what they are divided by must not come near zero.
Node Generator::norm(const Node &x, bool isLayerNorm, int64_t dim) {
  Shape rows(x.shape.begin(), x.shape.begin() + dim), row(x.shape.begin() + dim, x.shape.end());
  Node y{"%n" + std::to_string(count_++), x.shape}, statistic{"", rows};
  Node weight = addInput(row);
  std::string text = x.name + " dim " + std::to_string(dim) + " weight " + weight.name,
              types = typesOf({x, weight});
  if (isLayerNorm) {
    Node bias = addInput(row);
    text += " bias " + bias.name;
    types += ", " + bias.type();
  }
  std::vector<Node> results(isLayerNorm ? 3 : 2, statistic);
  results[0] = y;
  graph_.body += y.name + ":" + std::to_string(results.size()) + " = gpuc." +
                 (isLayerNorm ? "layer_norm " : "rms_norm ") + text + " {eps = 0.5 : f64} : (" + types +
                 ") -> (" + typesOf(results) + ")\n";
  y.name += "#0";
  nodes_.push_back(y);
  return y;
}

void Generator::addNorm() {
  Node x = pickOfRank(1);
  const bool isLayerNorm = below(2);
  norm(x, isLayerNorm, below(x.shape.size()));
}

/// A softmax or norm of rows as long as vectors are, nearly, or longer. What is long is seen through a sum
/// alone: of a thousand elements some come near any kink that follows.
void Generator::addRows() {
  static const Shape lengths = {1, 7, 8, 9, 17, 33, 1000};
  const int64_t length = lengths[below(lengths.size())], count = 1 + below(6);
  const size_t known = nodes_.size();
  const bool isNorm = below(2), isFirst = !isNorm && below(3) == 0; // norms lie along the last dimension
  Shape shape = isFirst ? Shape{length, count} : Shape{count, length};
  const int64_t dim = isFirst ? 0 : 1;
  Node x = addInput(shape);
  Node y = isNorm ? norm(x, below(2), 1)
                  : unary(below(2) ? "softmax" : "log_softmax", x, "dim " + std::to_string(dim));
  Node weighted = binary("mul", y, addInput(shape));
  Node sums = inferred("sum", weighted, "dims " + listOf({dim}), {count});
  if (length > 100)
    nodes_.erase(nodes_.begin() + known, nodes_.end());
  nodes_.push_back(bounded(sums));
}

/// Of new keys and values, by a value or a new argument.
void Generator::addAttention() {
  Node query = pick();
  if (query.shape.size() != 4)
    query = addInput({1 + below(2), 2, 1 + below(4), 1 + below(3)});
  const Shape &q = query.shape;
  int64_t keys = 1 + below(4), width = 1 + below(3), heads = q[1] % 2 == 0 && below(2) ? q[1] / 2 : q[1];
  Node key = addInput({q[0], heads, keys, q[3]}), value = addInput({q[0], heads, keys, width});
  Shape rows = {q[0], q[1], q[2]}, shape = {q[0], q[1], q[2], width};
  Node y{"%n" + std::to_string(count_++), shape};
  graph_.body += y.name + ":2 = gpuc.attention " + query.name + ", " + key.name + ", " + value.name +
                 (below(2) ? " causal" : "") + " : (" + typesOf({query, key, value}) + ") -> (" + y.type() +
                 ", " + tensor(textOf(rows)) + ")\n";
  y.name += "#0";
  nodes_.push_back(y);
}

/// h ← tanh(x_t · w + h) or tanh(x_t ∘ h) over x's first dimension; all steps, or the last.
void Generator::addLoop() {
  Node x = pickOfRank(2);
  const bool isProduct = below(2);
  Shape slice(x.shape.begin() + 1, x.shape.end()), carried = slice;
  Node w = isProduct ? addInput({slice.back(), 1 + below(3)}) : Node{};
  if (isProduct && slice.size() == 1)
    return addMatmul(); // a product takes matrices
  if (isProduct)
    carried.back() = w.shape[1];
  Node h = addInput(carried);
  Shape all = carried;
  all.insert(all.begin(), x.shape[0]);
  const std::string n = "%n" + std::to_string(count_++), inner = tensor(textOf(carried));
  Node last{n + "#0", carried}, each{n + "#1", all};
  std::vector<Node> operands = {x, h};
  std::string inside = "%x: " + tensor(textOf(slice)) + ", %h: " + inner, body;
  if (isProduct) {
    operands.push_back(w);
    inside += ", %w: " + w.type();
    body = "%a = gpuc.matmul %x, %w : (" + tensor(textOf(slice)) + ", " + w.type() + ") -> " + inner +
           "\n%b = gpuc.add %a, %h : " + inner + "\n";
  } else {
    body = "%b = gpuc.mul %x, %h : " + inner + "\n";
  }
  graph_.body += n + ":2 = gpuc.scan over(" + x.name + ") carry(" + h.name + ")" +
                 (isProduct ? " captures(" + w.name + ")" : "") + (below(2) ? " reverse" : "") + " : (" +
                 typesOf(operands) + ") -> (" + typesOf({last, each}) + ") {\n^bb0(" + inside + "):\n" +
                 body + "%next = gpuc.tanh %b : " + inner + "\ngpuc.yield %next, %next : " + inner + ", " +
                 inner + "\n}\n";
  nodes_.push_back(below(2) ? last : each);
}

void Generator::addOp() {
  switch (below(14)) {
  case 0:
    return addReduction();
  case 1:
    return addMovement();
  case 2:
    return addIndexed();
  case 3:
    return addMatmul();
  case 4:
    return addCompound();
  case 5:
    return addConvolution();
  case 6:
    return addPooling();
  case 7:
    return addNorm();
  case 8:
    return addAttention();
  case 9:
    return addLoop();
  case 10:
    return addRows();
  default:
    return addPointwise();
  }
}

/// The last values, bounded and summed, are the scalar; the last itself is returned too.
void Generator::finish() {
  std::vector<Node> last(nodes_.end() - std::min<size_t>(nodes_.size(), 4), nodes_.end());
  Node total = constant(0, {});
  for (const Node &node : last) {
    Node part = bounded(node);
    Shape dims;
    for (size_t dim = 0; dim < node.shape.size(); ++dim)
      dims.push_back(static_cast<int64_t>(dim));
    total = binary("add", total, inferred("sum", part, "dims " + listOf(dims), {}));
  }
  graph_.outputs = {{total.name, "$T"}, {last.back().name, textOf(last.back().shape)}};
}

Case randomGraph(uint64_t seed) { return Generator(seed).build(); }

} // namespace gpuc::gradients
