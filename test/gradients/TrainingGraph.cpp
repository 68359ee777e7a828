//===- TrainingGraph.cpp - Valid small models with a recipe, from a seed ------===//

#include "test/gradients/TrainingGraph.h"

#include "test/gradients/RandomGraph.h"
#include "test/gradients/TrainingRecipe.h"

#include <algorithm>
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

  // The module.
  std::string loss(const Rows &y);
  std::string extra(std::string &sum);

  uint64_t seed_;
  std::mt19937_64 random_;
  std::string variables_, body_, functions_;
  std::string input_; // the arguments of @predict
  int64_t count_ = 0, variableCount_ = 0;
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
    std::string embedding = read(table, "normal(mean = 0.0, std = 1.0)");
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
  std::string weight = read(matrix, "kaiming_uniform(fan_in = " + std::to_string(features) + ")");
  Rows y = emit("matmul " + x.name + (isTransposed ? ", transpose " : ", ") + weight + " : (" + x.type() +
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
  const std::string op = isOfClasses ? "cross_entropy" : ofNumbers[below(ofNumbers.size())];
  const std::string attributes = isOfClasses && below(2) ? " {smoothing = 0.125 : f64}" : "";
  const std::string x = input_.substr(0, input_.find(" {")), xType = x.substr(x.find("tensor"));
  std::string sum = "%sum", rest = below(2) ? extra(sum) : "";
  return "func.func @loss(" + input_ + ", %y: " + labelType + " {gpuc.name = \"y\"" + range +
         "}) -> (tensor<$T> {gpuc.name = \"loss_sum\"}, tensor<$T> {gpuc.name = \"count\"}) {\n" +
         "%p = call @predict(%x) : (" + xType + ") -> " + y.type() + "\n%sum, %count = gpuc." + op +
         " %p, %y" + attributes + " : (" + y.type() + ", " + labelType + ") -> (tensor<$T>, tensor<$T>)\n" +
         rest + "return " + sum + ", %count : tensor<$T>, tensor<$T>\n}\n";
}

std::string Generator::build() {
  Rows x = start();
  for (int64_t layers = 2 + below(5); layers > 0; --layers)
    x = layer(x);
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
