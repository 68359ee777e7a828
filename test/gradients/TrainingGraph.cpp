//===- TrainingGraph.cpp - Valid small models with a recipe, from a seed ------===//

#include "test/gradients/TrainingGraph.h"

#include "test/gradients/RandomGraph.h"
#include "test/gradients/TrainingRecipe.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace gpuc::gradients {

using Shape = std::vector<int64_t>;

static std::string extents(const Shape &shape) {
  std::string text;
  for (int64_t extent : shape)
    text += std::to_string(extent) + "x";
  return text;
}

static std::string listOf(const Shape &numbers) {
  std::string text;
  for (int64_t number : numbers)
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "[" + text + "]";
}

static std::string typeOf(const Shape &shape) { return tensor(extents(shape) + "$T"); }

namespace {

/// A value with a row for each sample: `shape` is that of a row.
struct Rows {
  std::string name;
  Shape shape;
  std::string type(const std::string &element = "$T") const {
    return tensor("?x" + extents(shape) + element);
  }
};

class Generator {
public:
  explicit Generator(uint64_t seed) : seed_(seed), random_(seed ^ 0x7261696e) {}

  std::string build();

private:
  int64_t below(int64_t bound) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound)); }
  bool chance(int64_t of) { return below(of) == 0; }

  // Variables.
  std::string variable(const Shape &shape, const std::string &initial, const std::string &kind = "");
  std::string read(const Shape &shape, const std::string &initial = "uniform(bound = 0.5)");
  std::string weight(const Shape &shape, const std::string &initial);

  // Values.
  std::string next() { return "%n" + std::to_string(count_++); }
  Rows emit(const std::string &text, const Shape &shape);
  Rows unary(const std::string &op, const Rows &x, const std::string &attributes = "");
  Rows binary(const std::string &op, const Rows &a, const Rows &b);
  Rows converted(const std::string &op, const Rows &x, const Shape &shape);
  Rows inferred(const std::string &op, const Rows &x, const std::string &attributes, const Shape &shape);
  Rows along(const std::string &value, const Shape &shape, const Rows &x, const Shape &dims);
  Rows constant(const std::string &number, const Rows &like);
  Rows bounded(const Rows &x) { return unary("tanh", x); }

  // Layers: from rows to rows.
  Rows start();
  Rows layer(const Rows &x);
  Rows linear(const Rows &x, int64_t width);
  Rows activation(const Rows &x);
  Rows norm(const Rows &x);
  Rows batchNorm(const Rows &x);
  Rows convolution(const Rows &x);
  Rows pooling(const Rows &x);
  Rows attention(const Rows &x);
  Rows recurrent(const Rows &x);
  Rows movement(const Rows &x);
  Rows choice(const Rows &x);
  Rows mixed(const Rows &x);
  Rows reduced(const Rows &x);
  Rows flat(const Rows &x);

  // Layers that gpuc computes otherwise than they are written.
  Rows written(const Rows &x);
  Rows writtenAttention(const Rows &x);
  Rows masked(const Rows &scores, const Rows &sequence, bool isOnly);
  Rows hidden(const Rows &scores, const std::string &flags, const std::string &type, const Shape &dims);
  Rows framedConvolution(const Rows &x);
  Rows transposedConvolution(const Rows &x);
  Rows biased(const Rows &x);
  Rows cut(const Rows &x);
  Rows maxima(const Rows &x);
  Rows normAcross(const Rows &x);
  Rows logProbabilities(const Rows &y);

  // The module.
  std::string loss(const Rows &y);
  std::string extra(std::string &sum);

  uint64_t seed_;
  std::mt19937_64 random_;
  std::string variables_, body_, functions_;
  std::string input_; // the arguments of @predict
  int64_t count_ = 0, variableCount_ = 0;
  std::vector<std::pair<std::string, Shape>> weights_; // what may be tied to
  bool mayFreeze_ = true;
};

} // namespace

//===----------------------------------------------------------------------===//
// Pieces of text
//===----------------------------------------------------------------------===//

std::string Generator::variable(const Shape &shape, const std::string &initial, const std::string &kind) {
  std::string name = "@v" + std::to_string(variableCount_++);
  variables_ += "gpuc.variable " + name + " " + kind + " : " + typeOf(shape) + " init " + initial + "\n";
  return name;
}

std::string Generator::read(const Shape &shape, const std::string &initial) {
  std::string value = next();
  body_ += value + " = gpuc.read " + variable(shape, initial) + " : " + typeOf(shape) + "\n";
  return value;
}

/// A matrix, perhaps one that another layer has, or one of which some elements are dropped.
std::string Generator::weight(const Shape &shape, const std::string &initial) {
  const std::string type = typeOf(shape);
  std::string name, value = next();
  for (const auto &[other, extents] : weights_)
    if (extents == shape && below(2))
      name = other;
  if (name.empty()) {
    const bool isFrozen = mayFreeze_ && chance(12);
    name = variable(shape, initial, isFrozen ? "frozen" : "");
    if (!isFrozen)
      weights_.push_back({name, shape});
  }
  body_ += value + " = gpuc.read " + name + " : " + type + "\n";
  if (!chance(10))
    return value;
  const std::string dropped = next();
  body_ += dropped + " = gpuc.dropout " + value + " p 0.25 id " + std::to_string(1000 + count_) + " : " +
           type + "\n";
  return dropped;
}

/// `%n = gpuc.<text>`, rows of the shape.
Rows Generator::emit(const std::string &text, const Shape &shape) {
  Rows rows{next(), shape};
  body_ += rows.name + " = gpuc." + text + "\n";
  return rows;
}

Rows Generator::unary(const std::string &op, const Rows &x, const std::string &attributes) {
  return emit(op + " " + x.name + " " + attributes + " : " + x.type(), x.shape);
}

Rows Generator::binary(const std::string &op, const Rows &a, const Rows &b) {
  return emit(op + " " + a.name + ", " + b.name + " : " + a.type(), a.shape);
}

Rows Generator::converted(const std::string &op, const Rows &x, const Shape &shape) {
  return emit(op + " " + x.name + " : " + x.type() + " to " + Rows{"", shape}.type(), shape);
}

Rows Generator::inferred(const std::string &op, const Rows &x, const std::string &attributes,
                         const Shape &shape) {
  return emit(op + " " + x.name + " " + attributes + " : (" + x.type() + ") -> " + Rows{"", shape}.type(),
              shape);
}

/// A static value repeated to x's shape: `dims` are where its dimensions go, the batch being dimension 0.
Rows Generator::along(const std::string &value, const Shape &shape, const Rows &x, const Shape &dims) {
  return emit("broadcast " + value + " dims " + listOf(dims) + " : " + typeOf(shape) + " to " + x.type(),
              x.shape);
}

Rows Generator::constant(const std::string &number, const Rows &like) {
  return emit("constant " + number + " : " + like.type(), like.shape);
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

/// What comes in: features, a sequence of them, tokens, or pictures of bytes.
Rows Generator::start() {
  switch (below(4)) {
  case 0: {
    Rows x{"%x", {3 + below(12)}};
    input_ = "%x: " + x.type() + " {gpuc.name = \"x\"}";
    return x;
  }
  case 1: {
    Rows x{"%x", {2 + below(4), 2 * (1 + below(4))}};
    input_ = "%x: " + x.type() + " {gpuc.name = \"x\"}";
    return x;
  }
  case 2: {
    Rows x{"%x", {2 + below(4)}};
    const int64_t words = 5 + below(6);
    input_ = "%x: " + x.type("i32") + " {gpuc.name = \"x\", gpuc.range = " + std::to_string(words) + "}";
    const Shape table = {words, 2 * (1 + below(4))}, shape = {x.shape[0], table[1]};
    std::string embedding = weight(table, "normal(mean = 0.0, std = 1.0)");
    return emit("gather " + embedding + ", %x dim 0 : (" + typeOf(table) + ", " + x.type("i32") + ") -> " +
                    Rows{"", shape}.type(),
                shape);
  }
  default: {
    Rows x{"%x", {1 + below(3), 4 + below(4), 4 + below(4)}};
    input_ = "%x: " + x.type("ui8") + " {gpuc.name = \"x\"}";
    Rows numbers = emit("cast %x : " + x.type("ui8") + " to " + x.type(), x.shape);
    return binary("mul", numbers, constant("0.00390625", x));
  }
  }
}

Rows Generator::linear(const Rows &x, int64_t width) {
  const int64_t features = x.shape.back();
  const bool isTransposed = below(2);
  const Shape matrix = isTransposed ? Shape{width, features} : Shape{features, width};
  Shape shape = x.shape;
  shape.back() = width;
  std::string numbers = weight(matrix, "kaiming_uniform(fan_in = " + std::to_string(features) + ")");
  Rows y = emit("matmul " + x.name + (isTransposed ? ", transpose " : ", ") + numbers + " : (" + x.type() +
                    ", " + typeOf(matrix) + ") -> " + Rows{"", shape}.type(),
                shape);
  if (chance(4))
    return y;
  const int64_t last = static_cast<int64_t>(shape.size());
  return binary("add", y, along(read({width}), {width}, y, {last}));
}

Rows Generator::activation(const Rows &x) {
  static const std::vector<std::string> functions = {"relu", "gelu", "silu",       "tanh", "sigmoid", "sin",
                                                     "atan", "erf",  "leaky_relu", "cos",  "abs"};
  switch (below(6)) {
  case 0:
    return unary("exp", bounded(x));
  case 1:
    return unary(below(2) ? "softmax" : "log_softmax", x, "dim " + std::to_string(1 + below(x.shape.size())));
  case 2:
    return unary("dropout", x, "p 0.25 id " + std::to_string(1000 + count_));
  default:
    return unary(functions[below(functions.size())], x);
  }
}

/// A large eps, for rows may be constant: what they are divided by must not come near zero.
Rows Generator::norm(const Rows &x) {
  const bool isLayerNorm = below(2);
  const int64_t dim = static_cast<int64_t>(x.shape.size());
  const Shape row = {x.shape.back()};
  Rows y{next(), x.shape}, statistic{"", Shape(x.shape.begin(), x.shape.end() - 1)};
  std::string weight = read(row, "ones"), bias = isLayerNorm ? read(row) : "";
  body_ += y.name + (isLayerNorm ? ":3 = gpuc.layer_norm " : ":2 = gpuc.rms_norm ") + x.name + " dim " +
           std::to_string(dim) + " weight " + weight + (isLayerNorm ? " bias " + bias : "") +
           " {eps = 0.125 : f64} : (" + x.type() + ", " + typeOf(row) +
           (isLayerNorm ? ", " + typeOf(row) : "") + ") -> (" + y.type() + ", " + statistic.type() +
           (isLayerNorm ? ", " + statistic.type() : "") + ")\n";
  y.name += "#0";
  return y;
}

Rows Generator::batchNorm(const Rows &x) {
  const Shape channels = {x.shape[0]};
  const std::string type = typeOf(channels);
  std::string mean = variable(channels, "zeros", "kind statistic"),
              variance = variable(channels, "ones", "kind statistic"), weight = read(channels, "ones"),
              bias = read(channels), m = next(), v = next();
  body_ +=
      m + " = gpuc.read " + mean + " : " + type + "\n" + v + " = gpuc.read " + variance + " : " + type + "\n";
  Rows y{next(), x.shape};
  body_ += y.name + ":5 = gpuc.batch_norm " + x.name + " running " + m + ", " + v + " weight " + weight +
           " bias " + bias + " {eps = 0.125 : f64, momentum = 0.25 : f64} : (" + x.type() + ", " + type +
           ", " + type + ", " + type + ", " + type + ") -> (" + x.type() + ", " + type + ", " + type + ", " +
           type + ", " + type + ")\n";
  body_ += "gpuc.assign " + mean + ", " + y.name + "#1 : " + type + "\n";
  body_ += "gpuc.assign " + variance + ", " + y.name + "#2 : " + type + "\n";
  y.name += "#0";
  return y;
}

Rows Generator::convolution(const Rows &x) {
  const int64_t channels = x.shape[0], out = 1 + below(5), kernel = 1 + below(3), stride = 1 + below(2);
  const Shape filter = {out, channels, kernel, kernel};
  auto windows = [&](int64_t extent) { return (extent + 2 - kernel) / stride + 1; };
  const Shape shape = {out, windows(x.shape[1]), windows(x.shape[2])};
  std::string weight =
      read(filter, "kaiming_uniform(fan_in = " + std::to_string(channels * kernel * kernel) + ")");
  Rows y = emit("conv2d " + x.name + ", " + weight + " strides " + listOf({stride, stride}) +
                    " padding [1, 1, 1, 1] : (" + x.type() + ", " + typeOf(filter) + ") -> " +
                    Rows{"", shape}.type(),
                shape);
  if (below(2))
    y = binary("add", y, along(read({out}), {out}, y, {1}));
  return below(2) ? unary("relu", y) : y;
}

Rows Generator::pooling(const Rows &x) {
  const Shape shape = {x.shape[0], x.shape[1] / 2, x.shape[2] / 2};
  const std::string window = x.name + " window [2, 2] strides [2, 2]";
  if (below(2))
    return inferred("avg_pool2d", x, "window [2, 2] strides [2, 2]", shape);
  Rows y{next(), shape};
  body_ += y.name + ":2 = gpuc.max_pool2d " + window + " : (" + x.type() + ") -> (" + y.type() + ", " +
           y.type("i64") + ")\n";
  y.name += "#0";
  return y;
}

/// Heads of a sequence of even width, and back.
Rows Generator::attention(const Rows &x) {
  const int64_t length = x.shape[0], width = x.shape[1], heads = 1 + below(2);
  const Shape split = {length, heads, width / heads}, headed = {heads, length, width / heads};
  auto heard = [&](const Rows &rows) {
    return inferred("transpose", converted("reshape", rows, split), "permutation [0, 2, 1, 3]", headed);
  };
  Rows query = heard(linear(x, width)), key = heard(linear(x, width)), value = heard(linear(x, width));
  Rows y{next(), headed}, sums{"", {heads, length}};
  body_ += y.name + ":2 = gpuc.attention " + query.name + ", " + key.name + ", " + value.name +
           (below(2) ? " causal" : "") + " : (" + y.type() + ", " + y.type() + ", " + y.type() + ") -> (" +
           y.type() + ", " + sums.type() + ")\n";
  y.name += "#0";
  return converted("reshape", inferred("transpose", y, "permutation [0, 2, 1, 3]", split), x.shape);
}

/// h ← tanh(x_t · w + h · u) over the sequence; all steps, or the last.
Rows Generator::recurrent(const Rows &x) {
  const int64_t features = x.shape[1], width = 1 + below(6);
  const Shape w = {features, width}, u = {width, width}, inner = {width};
  std::string input = read(w), hidden = read(u);
  Rows first = constant("0.0", {"", inner}), slice{"%a", {features}}, carried{"%h", inner};
  Rows last{next(), inner}, all{last.name, {x.shape[0], width}};
  const std::string typeOfInput = typeOf(w), typeOfHidden = typeOf(u), type = carried.type();
  body_ += last.name + ":2 = gpuc.scan over(" + x.name + ") carry(" + first.name + ") captures(" + input +
           ", " + hidden + ") batch_first" + (below(2) ? " reverse" : "") + " : (" + x.type() + ", " + type +
           ", " + typeOfInput + ", " + typeOfHidden + ") -> (" + type + ", " + all.type() +
           ") {\n^bb0(%a: " + slice.type() + ", %h: " + type + ", %w: " + typeOfInput +
           ", %u: " + typeOfHidden + "):\n" + "%p = gpuc.matmul %a, %w : (" + slice.type() + ", " +
           typeOfInput + ") -> " + type + "\n%q = gpuc.matmul %h, %u : (" + type + ", " + typeOfHidden +
           ") -> " + type + "\n%s = gpuc.add %p, %q : " + type + "\n%t = gpuc.tanh %s : " + type +
           "\ngpuc.yield %t, %t : " + type + ", " + type + "\n}\n";
  const bool isLast = below(2);
  Rows y = isLast ? last : all;
  y.name += isLast ? "#0" : "#1";
  return y;
}

/// Within a row, which stays a row.
Rows Generator::movement(const Rows &x) {
  const int64_t rank = static_cast<int64_t>(x.shape.size()), dim = below(rank);
  Shape shape = x.shape, zeros(rank + 1, 0), ones(rank + 1, 1);
  switch (below(6)) {
  case 0: {
    Shape permutation = {0};
    for (int64_t i = 0; i < rank; ++i) {
      permutation.push_back(1 + (i + dim) % rank);
      shape[i] = x.shape[permutation.back() - 1];
    }
    return inferred("transpose", x, "permutation " + listOf(permutation), shape);
  }
  case 1: {
    Shape starts = zeros, limits(rank + 1, -1);
    for (int64_t i = 0; i < rank; ++i)
      limits[i + 1] = x.shape[i];
    starts[dim + 1] = below(x.shape[dim]);
    shape[dim] -= starts[dim + 1];
    return inferred("slice", x,
                    "starts " + listOf(starts) + " limits " + listOf(limits) + " strides " + listOf(ones),
                    shape);
  }
  case 2:
    return unary("reverse", x, "dims " + listOf({dim + 1}));
  case 3: { // of the batch, and of what is left out, all: wherever the window begins
    Shape sizes(rank + 1, -1);
    sizes[dim + 1] = 1 + below(x.shape[dim]);
    shape[dim] = sizes[dim + 1];
    const std::string start = next(), type = tensor(std::to_string(rank + 1) + "xi32");
    body_ += start + " = gpuc.constant " + std::to_string(below(5) - 1) + " : " + type + "\n";
    return emit("dynamic_slice " + x.name + ", " + start + " sizes " + listOf(sizes) + " : (" + x.type() +
                    ", " + type + ") -> " + Rows{"", shape}.type(),
                shape);
  }
  case 4: { // sums of it need to know where they are
    Shape low = zeros, high = zeros, interior = zeros;
    low[dim + 1] = below(3);
    high[dim + 1] = below(2);
    interior[dim + 1] = below(2);
    shape[dim] += low[dim + 1] + high[dim + 1] + (x.shape[dim] - 1) * interior[dim + 1];
    return inferred("pad", x,
                    "low " + listOf(low) + " high " + listOf(high) + " interior " + listOf(interior), shape);
  }
  default: {
    Rows y = bounded(x);
    shape[dim] *= 2;
    return emit("concat " + x.name + ", " + y.name + " dim " + std::to_string(dim + 1) + " : (" + x.type() +
                    ", " + y.type() + ") -> " + Rows{"", shape}.type(),
                shape);
  }
  }
}

Rows Generator::choice(const Rows &x) {
  Shape dims(x.shape.size());
  std::iota(dims.begin(), dims.end(), 1);
  Rows y = along(read(x.shape), x.shape, x, dims);
  switch (below(4)) {
  case 0:
    return unary("clamp", x, "low -0.5 high 0.75");
  case 1:
    return binary(below(2) ? "max" : "min", x, y);
  case 2: {
    std::string flags = next();
    body_ += flags + " = gpuc.compare lt " + x.name + ", " + y.name + " : " + x.type() + "\n";
    return emit("select " + flags + ", " + y.name + ", " + x.name + " : " + x.type("i1") + ", " + x.type(),
                x.shape);
  }
  default: // y² + 1 does not come near zero
    return binary("div", x, binary("add", binary("mul", y, y), constant("1.0", y)));
  }
}

/// A residual connection, or a gate.
Rows Generator::mixed(const Rows &x) {
  Rows inner = activation(below(2) ? linear(x, x.shape.back()) : norm(x));
  return below(3) ? binary("add", x, inner) : binary("mul", bounded(x), unary("sigmoid", inner));
}

Rows Generator::reduced(const Rows &x) {
  static const std::vector<std::string> ops = {"sum", "mean", "reduce_max", "reduce_min"};
  const int64_t dim = below(x.shape.size());
  Shape shape = x.shape;
  shape.erase(shape.begin() + dim);
  return bounded(inferred(ops[below(ops.size())], x, "dims " + listOf({dim + 1}), shape));
}

Rows Generator::flat(const Rows &x) {
  const int64_t features =
      std::accumulate(x.shape.begin(), x.shape.end(), int64_t{1}, std::multiplies<int64_t>());
  return x.shape.size() == 1 ? x : converted("reshape", x, {features});
}

Rows Generator::layer(const Rows &x) {
  const size_t rank = x.shape.size();
  if (rank > 1 && chance(3))
    return written(x);
  if (rank == 3 && below(2))
    return x.shape[1] > 2 && x.shape[2] > 2 && below(3) == 0 ? pooling(x) : convolution(x);
  if (rank == 2 && x.shape[1] % 2 == 0 && chance(4))
    return attention(x);
  if (rank == 2 && chance(5))
    return recurrent(x);
  switch (below(9)) {
  case 0:
    return norm(x);
  case 1:
    return batchNorm(x);
  case 2:
    return movement(x);
  case 3:
    return choice(x);
  case 4:
    return mixed(x);
  case 5:
    return rank > 1 ? reduced(x) : linear(x, 1 + below(9));
  case 6:
    return activation(x);
  default:
    return activation(linear(x, 2 * (1 + below(5))));
  }
}

//===----------------------------------------------------------------------===//
// Layers that gpuc computes otherwise than they are written
//===----------------------------------------------------------------------===//

/// Scores that count where the flags say so, or where they do not: by select or by a sum.
Rows Generator::hidden(const Rows &scores, const std::string &flags, const std::string &type,
                       const Shape &dims) {
  static const std::vector<std::string> fills = {"-inf", "-1.0e9", "-2.5e10"};
  const std::string fill = dims.size() == 2 && dims.front() != 0 ? fills[below(3)] : "-inf";
  const std::string flagTypes = tensor(type + "i1");
  if (below(2)) {
    Rows spread =
        emit("broadcast " + flags + " dims " + listOf(dims) + " : " + flagTypes + " to " + scores.type("i1"),
             scores.shape);
    Rows nothing = constant(fill, scores);
    return emit("select " + spread.name + ", " + scores.name + ", " + nothing.name + " : " +
                    scores.type("i1") + ", " + scores.type(),
                scores.shape);
  }
  const std::string numbers = tensor(type + "$T"), zero = next(), far = next(), mask = next();
  body_ += zero + " = gpuc.constant 0.0 : " + numbers + "\n" + far + " = gpuc.constant " + fill + " : " +
           numbers + "\n" + mask + " = gpuc.select " + flags + ", " + zero + ", " + far + " : " + flagTypes +
           ", " + numbers + "\n";
  Rows spread = emit("broadcast " + mask + " dims " + listOf(dims) + " : " + numbers + " to " + scores.type(),
                     scores.shape);
  return below(2) ? binary("add", scores, spread) : binary("add", spread, scores);
}

/// Scores with a mask, or a bias, or neither; each query has its first key at least.
Rows Generator::masked(const Rows &scores, const Rows &sequence, bool isOnly) {
  const int64_t length = scores.shape.back(), last = static_cast<int64_t>(scores.shape.size());
  const std::string plane = extents({length, length});
  auto line = [&](const std::string &text) {
    std::string value = next();
    body_ += value + " = gpuc." + text + "\n";
    return value;
  };
  switch (below(5)) {
  case 0:   // no key that comes later
  case 1: { // nor, if no other mask hides what is left, one that is far away
    const std::string type = tensor(plane + "i32"), query = line("iota dim 0 : " + type),
                      key = line("iota dim 1 : " + type);
    std::string seen = line("compare ge " + query + ", " + key + " : " + type);
    if (isOnly && below(2)) {
      const std::string one = line("constant 1 : " + type),
                        ahead = line("add " + key + ", " + one + " : " + type);
      const std::string near = line("compare le " + query + ", " + ahead + " : " + type);
      seen = line("and " + seen + ", " + near + " : " + tensor(plane + "i1"));
    }
    return hidden(scores, seen, plane, {last - 1, last});
  }
  case 2: { // keys that data choose
    Rows sums = inferred("sum", sequence, "dims [2]", {length});
    Rows zero = constant("0.0", sums);
    Rows flags = emit("compare gt " + sums.name + ", " + zero.name + " : " + sums.type(), {length});
    Rows places = emit("iota dim 1 : " + sums.type("i32"), {length}),
         first = emit("constant 0 : " + sums.type("i32"), {length});
    Rows isFirst = emit("compare eq " + places.name + ", " + first.name + " : " + sums.type("i32"), {length});
    Rows seen = emit("or " + flags.name + ", " + isFirst.name + " : " + sums.type("i1"), {length});
    return hidden(scores, seen.name, "?x" + extents({length}), {0, last});
  }
  case 3: {
    const Shape shape = below(2) ? Shape{length, length} : Shape{length};
    const Shape dims = shape.size() == 2 ? Shape{last - 1, last} : Shape{last};
    return binary("add", scores, along(read(shape), shape, scores, dims));
  }
  default:
    return scores;
  }
}

/// softmax(scale · query · keyᵀ + mask) · value, with dropout or without.
Rows Generator::writtenAttention(const Rows &x) {
  const int64_t length = x.shape[0], width = x.shape[1], heads = width % 2 == 0 ? 1 + below(2) : 1;
  const bool isFlat = chance(3); // one head, of which there is no dimension
  const Shape split = {length, heads, width / heads},
              headed = isFlat ? x.shape : Shape{heads, length, width / heads};
  auto heard = [&](const Rows &rows) {
    return isFlat
               ? rows
               : inferred("transpose", converted("reshape", rows, split), "permutation [0, 2, 1, 3]", headed);
  };
  Rows query = heard(linear(x, width)), key = heard(linear(x, width)), value = heard(linear(x, width));
  Shape square = headed, turned = headed;
  square.back() = length;
  std::swap(turned.back(), turned[turned.size() - 2]);
  if (chance(4))
    query = binary("mul", query, constant("0.5", query));
  const bool isTurned = below(2);
  if (isTurned)
    key = inferred("transpose", key, isFlat ? "permutation [0, 2, 1]" : "permutation [0, 1, 3, 2]", turned);
  Rows scores = emit("matmul " + query.name + (isTurned ? ", " : ", transpose ") + key.name + " : (" +
                         query.type() + ", " + key.type() + ") -> " + Rows{"", square}.type(),
                     square);
  if (below(2))
    scores = binary(below(2) ? "mul" : "div", scores, constant("0.75", scores));
  const int64_t masks = below(3);
  for (int64_t mask = 0; mask < masks; ++mask)
    scores = masked(scores, x, masks == 1);
  Rows weights = unary("softmax", scores, "dim " + std::to_string(square.size()));
  if (below(2))
    weights = unary("dropout", weights, "p 0.25 id " + std::to_string(1000 + count_));
  Rows y = emit("matmul " + weights.name + ", " + value.name + " : (" + weights.type() + ", " + value.type() +
                    ") -> " + value.type(),
                headed);
  if (isFlat)
    return y;
  return converted("reshape", inferred("transpose", y, "permutation [0, 2, 1, 3]", split), x.shape);
}

Rows Generator::biased(const Rows &x) {
  if (below(2))
    return x;
  Rows y = binary("add", x, along(read({x.shape[0]}), {x.shape[0]}, x, {1}));
  return below(2) ? unary("relu", y) : y;
}

/// Some rows or columns of an image.
Rows Generator::cut(const Rows &x) {
  if (below(2))
    return x;
  Shape starts(4, 0), limits(4, -1), shape = x.shape;
  for (int64_t dim : {1, 2}) {
    starts[dim + 1] = below(std::min<int64_t>(3, x.shape[dim]));
    shape[dim] = 1 + below(x.shape[dim] - starts[dim + 1]);
    if (below(2))
      shape[dim] = x.shape[dim] - starts[dim + 1];
    limits[dim + 1] = starts[dim + 1] + shape[dim];
  }
  limits[1] = x.shape[0];
  return inferred("slice", x,
                  "starts " + listOf(starts) + " limits " + listOf(limits) + " strides [1, 1, 1, 1]", shape);
}

/// Zeros around an image, a convolution with numbers of all kinds, and some of its result.
Rows Generator::framedConvolution(const Rows &x) {
  Rows framed = x;
  if (below(2)) {
    const Shape low = {0, 0, below(3), below(3)}, high = {0, 0, below(3), below(3)};
    framed = inferred("pad", x, "low " + listOf(low) + " high " + listOf(high) + " interior [0, 0, 0, 0]",
                      {x.shape[0], x.shape[1] + low[2] + high[2], x.shape[2] + low[3] + high[3]});
  }
  const int64_t channels = x.shape[0], groups = below(2) ? channels : 1, out = groups * (1 + below(3));
  Shape kernel, strides, dilation, padding, shape = {out};
  for (int64_t dim : {1, 2}) {
    const int64_t extent = framed.shape[dim], low = below(3), high = below(2), stride = 1 + below(2);
    const int64_t size = std::min(1 + below(3), extent), spacing = 2 * size - 1 <= extent ? 1 + below(2) : 1;
    kernel.push_back(size);
    strides.push_back(stride);
    dilation.push_back(spacing);
    padding.insert(padding.end(), {low, high});
    shape.push_back((extent + low + high - (size - 1) * spacing - 1) / stride + 1);
  }
  const Shape filter = {out, channels / groups, kernel[0], kernel[1]};
  Rows y = emit("conv2d " + framed.name + ", " + read(filter) + " strides " + listOf(strides) + " padding " +
                    listOf(padding) + " dilation " + listOf(dilation) + " groups " + std::to_string(groups) +
                    " : (" + framed.type() + ", " + typeOf(filter) + ") -> " + Rows{"", shape}.type(),
                shape);
  return cut(biased(y));
}

Rows Generator::transposedConvolution(const Rows &x) {
  const int64_t out = 1 + below(3);
  Shape kernel, strides, padding, shape = {out};
  for (int64_t dim : {1, 2}) {
    const int64_t stride = 1 + below(2), size = stride + below(2), low = below(size), high = below(2);
    kernel.push_back(size);
    strides.push_back(stride);
    const int64_t whole = (x.shape[dim] - 1) * stride + size, left = low + high < whole ? high : 0;
    padding.insert(padding.end(), {low, left});
    shape.push_back(whole - low - left + below(stride));
  }
  const Shape filter = {x.shape[0], out, kernel[0], kernel[1]};
  Rows y = emit("conv2d_input_gradient " + x.name + ", " + read(filter) + " strides " + listOf(strides) +
                    " padding " + listOf(padding) + " : (" + x.type() + ", " + typeOf(filter) + ") -> " +
                    Rows{"", shape}.type(),
                shape);
  return cut(biased(y));
}

/// Of windows that may lie over one another and over the border.
Rows Generator::maxima(const Rows &x) {
  Rows from = below(2) ? unary("relu", x) : x;
  Shape window, strides, padding, shape = {x.shape[0]};
  for (int64_t dim : {1, 2}) {
    const int64_t size = std::min(1 + below(3), x.shape[dim]), stride = 1 + below(2),
                  low = below(size / 2 + 1);
    window.push_back(size);
    strides.push_back(stride);
    padding.insert(padding.end(), {low, 0});
    shape.push_back((x.shape[dim] + low - size) / stride + 1);
  }
  Rows y{next(), shape};
  body_ += y.name + ":2 = gpuc.max_pool2d " + from.name + " window " + listOf(window) + " strides " +
           listOf(strides) + " padding " + listOf(padding) + " : (" + x.type() + ") -> (" + y.type() + ", " +
           y.type("i64") + ")\n";
  Rows values{y.name + "#0", shape};
  if (!chance(4))
    return values;
  Rows places = emit("cast " + y.name + "#1 : " + y.type("i64") + " to " + y.type(), shape);
  return binary("add", values, binary("mul", places, constant("0.0625", places)));
}

/// A norm, or what is computed element by element, between a transpose and the one back; or over groups.
Rows Generator::normAcross(const Rows &x) {
  if (x.shape.size() == 3 && below(2)) { // one group of channels
    Rows groups = converted("reshape", x, {x.shape[0], x.shape[1] * x.shape[2]});
    return converted("reshape", norm(groups), x.shape);
  }
  const bool isImage = x.shape.size() == 3;
  const Shape last = isImage ? Shape{x.shape[1], x.shape[2], x.shape[0]} : Shape{x.shape[1], x.shape[0]};
  Rows turned =
      inferred("transpose", x, isImage ? "permutation [0, 2, 3, 1]" : "permutation [0, 2, 1]", last);
  Rows y = below(2) ? norm(turned) : activation(below(2) ? norm(turned) : turned);
  return inferred("transpose", y, isImage ? "permutation [0, 3, 1, 2]" : "permutation [0, 2, 1]", x.shape);
}

Rows Generator::written(const Rows &x) {
  if (x.shape.size() == 2)
    return chance(4) ? normAcross(x) : writtenAttention(x);
  static constexpr std::array ofImages = {&Generator::maxima, &Generator::normAcross,
                                          &Generator::transposedConvolution, &Generator::framedConvolution,
                                          &Generator::framedConvolution};
  return (this->*ofImages[below(ofImages.size())])(x);
}

/// log_softmax over the classes, which come last, or stand elsewhere for a while.
Rows Generator::logProbabilities(const Rows &y) {
  const int64_t last = static_cast<int64_t>(y.shape.size());
  if (last == 1 || below(2))
    return unary("log_softmax", y, "dim " + std::to_string(last));
  const Shape turned = {y.shape[1], y.shape[0]};
  Rows probabilities =
      unary("log_softmax", inferred("transpose", y, "permutation [0, 2, 1]", turned), "dim 1");
  return inferred("transpose", probabilities, "permutation [0, 2, 1]", y.shape);
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

/// A graph over variables alone: its scalar added to %sum.
std::string Generator::extra(std::string &sum) {
  Case graph = randomGraph(seed_);
  std::string declaration, operands, types, reads;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Input &input = graph.inputs[i];
    const std::string type = tensor(input.type), number = std::to_string(i), comma = i ? ", " : "";
    if (input.isReal()) {
      variables_ += "gpuc.variable @x" + number + " : " + type + " init uniform(bound = 1.0)\n";
      reads += "%x" + number + " = gpuc.read @x" + number + " : " + type + "\n";
    } else {
      reads += "%x" + number + " = gpuc.constant " +
               std::to_string(below(static_cast<int64_t>(input.high - input.low) + 1) +
                              static_cast<int64_t>(input.low)) +
               " : " + type + "\n";
    }
    declaration += comma + "%x" + number + ": " + type;
    operands += comma + "%x" + number;
    types += comma + type;
  }
  functions_ += "func.func private @extra(" + declaration + ") -> tensor<$T> {\n" + graph.body + "return " +
                graph.outputs[0].name + " : tensor<$T>\n}\n";
  std::string text = reads + "%extra = call @extra(" + operands + ") : (" + types + ") -> tensor<$T>\n" +
                     "%total = gpuc.add " + sum + ", %extra : tensor<$T>\n";
  sum = "%total";
  return text;
}

/// @loss of what @predict gives, of one of the kinds that PyTorch has.
std::string Generator::loss(const Rows &y) {
  static const std::vector<std::string> ofNumbers = {"mse", "huber", "l1", "bce_with_logits"};
  const bool isOfClasses = below(2);
  Rows labels{"%y", isOfClasses ? Shape(y.shape.begin(), y.shape.end() - 1) : y.shape};
  const std::string labelType = isOfClasses ? labels.type("i32") : labels.type();
  const std::string range = isOfClasses ? ", gpuc.range = " + std::to_string(y.shape.back()) : std::string();
  std::string op = isOfClasses ? "cross_entropy" : ofNumbers[below(ofNumbers.size())], operands, types, head;
  std::string attributes = isOfClasses && below(2) ? " {smoothing = 0.125 : f64}" : "";
  if (isOfClasses && below(2)) {
    op = "nll";
    attributes = below(2) ? " {ignore_index = 1 : i64}" : "";
  }
  const std::string x = input_.substr(0, input_.find(" {")), xType = x.substr(x.find("tensor"));
  std::swap(body_, head); // what is computed of the prediction is the loss's own
  Rows of{"%p", y.shape};
  if (op == "nll")
    of = logProbabilities(of);
  if (isOfClasses && below(2)) {
    const Shape classes = {y.shape.back()};
    const std::string weight = next();
    body_ += weight + " = gpuc.constant " + (below(2) ? "0.75" : "1.5") + " : " + typeOf(classes) + "\n";
    operands = " weight " + weight;
    types = ", " + typeOf(classes);
  }
  std::swap(body_, head);
  std::string sum = "%sum", rest = below(2) ? extra(sum) : "";
  return "func.func @loss(" + input_ + ", %y: " + labelType + " {gpuc.name = \"y\"" + range +
         "}) -> (tensor<$T> {gpuc.name = \"loss_sum\"}, tensor<$T> {gpuc.name = \"count\"}) {\n" +
         "%p = call @predict(%x) : (" + xType + ") -> " + y.type() + "\n" + head + "%sum, %count = gpuc." +
         op + " " + of.name + ", %y" + operands + attributes + " : (" + y.type() + ", " + labelType + types +
         ") -> (tensor<$T>, tensor<$T>)\n" + rest + "return " + sum +
         ", %count : tensor<$T>, tensor<$T>\n}\n";
}

std::string Generator::build() {
  Rows x = start();
  for (int64_t layers = 2 + below(5); layers > 0; --layers)
    x = layer(x);
  mayFreeze_ = false; // something is to be trained
  Rows y = linear(x.shape.size() == 2 && below(2) ? x : flat(x), 2 + below(5));
  std::string lossText = loss(y), recipe = trainingRecipe(random_);
  std::string text = "module {\n" + variables_ + "func.func @predict(" + input_ + ") -> (" + y.type() +
                     " {gpuc.name = \"prediction\"}) {\n" + body_ + "return " + y.name + " : " + y.type() +
                     "\n}\n" + functions_ + lossText + recipe + "}\n";
  const std::string element = seed_ % 4 == 3 ? "f64" : "f32";
  for (size_t at; (at = text.find("$T")) != std::string::npos;)
    text.replace(at, 2, element);
  return text;
}

std::string trainingGraph(uint64_t seed) { return Generator(seed).build(); }

} // namespace gpuc::gradients
