//===- ElementwiseOps.cpp - ONNX ops that work element by element -----------===//

#include "frontend/onnx/Formulas.h"
#include "frontend/onnx/Importer.h"
#include "frontend/onnx/ops/OpTable.h"
#include "frontend/onnx/reader/ElementTypes.h"

#include <algorithm>
#include <limits>

namespace gpuc::onnx {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// The dialect's name of the node's op; of truth values and of integers it is one.
std::string dialectName(NodeScope &node) {
  llvm::StringRef name = node.node.op;
  name.consume_front("Bitwise");
  return name.lower();
}

void lowerUnary(NodeScope &node) { node.output(unary(dialectName(node), node.input(0))); }
void lowerBinary(NodeScope &node) { node.output(binary(dialectName(node), node.input(0), node.input(1))); }

void lowerMod(NodeScope &node) {
  Tensor a = node.input(0), b = node.input(1);
  Tensor remainder = binary("rem", a, b); // The sign of a.
  if (node.integer("fmod", 0))
    return node.output(remainder);
  if (a.isFloat())
    return void(node.fail("fmod=0 is for integers"));
  // The sign of b: where remainder and b differ in sign, one b more.
  Tensor differs = compare("lt", binary("xor", remainder, b), 0);
  Tensor wrong = binary("and", compare("ne", remainder, 0), differs);
  if (a.type() == DataType::ui8)
    return node.output(remainder);
  node.output(select(wrong, remainder + b, remainder));
}

/// Integers are raised in f64: by integers exact as long as the result is below 2^52. By a float what comes
/// of it is cut, as a cast is, but for what misses an integer by the rounding of f64 alone.
void lowerPow(NodeScope &node) {
  Tensor base = node.input(0), exponent = node.input(1);
  DataType type = base.type();
  DataType computed =
      base.isFloat() && type != DataType::f16 && type != DataType::bf16 ? type : DataType::f64;
  Tensor power = binary("pow", cast(base, computed), cast(exponent, computed));
  if (!base.isFloat())
    power = exponent.isFloat() ? power * (1 + 0x1p-45) : unary("round", power);
  node.output(cast(power, type));
}

/// Two or more operands, from the left.
Tensor chain(NodeScope &node, const char *name) {
  std::vector<Tensor> operands = node.allInputs();
  if (operands.empty())
    return node.fail("has no input");
  Tensor result = operands.front();
  for (size_t i = 1; i < operands.size(); ++i)
    result = binary(name, result, operands[i]);
  return result;
}

void lowerClip(NodeScope &node) {
  Tensor x = node.input(0);
  // Bounds that were attributes are f32.
  if (node.has(1))
    x = binary("max", x, cast(node.input(1), x.type()));
  if (node.has(2))
    x = binary("min", x, cast(node.input(2), x.type()));
  node.output(x);
}

template <Tensor (*function)(const Tensor &)> void lowerFunction(NodeScope &node) {
  node.output(function(node.input(0)));
}

//===----------------------------------------------------------------------===//
// Logic and types
//===----------------------------------------------------------------------===//

void lowerIsInf(NodeScope &node) {
  Tensor x = node.input(0);
  if (x && !x.isFloat())
    return void(node.fail("asks whether integers are infinite: ONNX has it for floats"));
  Tensor none = node.emitter.constant(x.shape(), DataType::i1, 0);
  Tensor up = node.integer("detect_positive", 1) ? compare("eq", x, kInfinity) : none;
  Tensor down = node.integer("detect_negative", 1) ? compare("eq", x, -kInfinity) : none;
  node.output(binary("or", up, down));
}

void lowerCast(NodeScope &node) {
  std::optional<DataType> type = castTarget(node);
  if (type)
    node.output(cast(node.input(0), *type));
}

//===----------------------------------------------------------------------===//
// Quantisation
//===----------------------------------------------------------------------===//

/// Scales and zero points: one, or one for each index along `axis`.
Tensor alongAxis(NodeScope &node, const Tensor &parameter, const Tensor &x) {
  if (parameter.rank() == 0)
    return parameter;
  int64_t axis = dimension(x, node.integer("axis", 1));
  if (parameter.rank() != 1 || axis < 0)
    return node.fail("scale and zero point are one number, or one for each index along axis");
  return beside(parameter, axis, x.rank());
}

/// round(x / scale) + zero point, ties to even, saturated.
void lowerQuantize(NodeScope &node) {
  Tensor x = node.input(0);
  DataType type = node.has(2) ? node.typeOf(2) : DataType::ui8;
  if (type != DataType::ui8 && type != DataType::i8)
    return void(node.fail("gpuc quantises to UINT8 and INT8 only"));
  Tensor level = unary("round", x / alongAxis(node, node.input(1), x));
  if (node.has(2))
    level = level + cast(alongAxis(node, node.input(2), x), x.type());
  const double low = type == DataType::i8 ? -128 : 0;
  Tensor bounded = binary("min", binary("max", level, like(level, low)), like(level, low + 255));
  node.output(cast(bounded, type));
}

void lowerDequantize(NodeScope &node) {
  Tensor x = node.input(0), scale = node.input(1);
  Tensor level = cast(x, scale.type());
  if (node.has(2))
    level = level - cast(alongAxis(node, node.input(2), x), scale.type());
  node.output(level * alongAxis(node, scale, x));
}

/// A weight's Identity is that weight, as ONNX says. One exception: PyTorch's exporter that goes by
/// TorchScript keeps weights that are equal once and gives the others as its Identity, under their own names.
/// These are layers that begin with the same numbers, which training takes apart. An Identity of the model
/// itself is named by where it stands, /layer/Identity_output_0, or numbered.
bool isMergedWeight(NodeScope &node) {
  const std::string &name = node.node.outputs[0];
  auto isDigit = [](unsigned char letter) { return isdigit(letter); };
  return node.importer().exporter() == Exporter::torchScript && !name.starts_with("/") &&
         !std::all_of(name.begin(), name.end(), isDigit) && !node.importer().isOutput(name);
}

void lowerIdentity(NodeScope &node) {
  if (node.has(0) && node.operand(0).sequence) {
    node.outputs[0].sequence = node.operand(0).sequence;
    return;
  }
  if (!node.has(0) || !node.operand(0).weight)
    return node.output(node.input(0));
  const Operand &weight = node.operand(0);
  const bool merged = isMergedWeight(node);
  if (!merged)
    node.output(node.input(0)); // Read here, under the weight's own name.
  node.output(merged ? std::make_shared<const HostTensor>(*weight.known) : weight.known);
  node.outputs[0].weight = true;
  node.outputs[0].origin = merged ? node.importer().originOf(node.node.outputs[0]) : weight.origin;
}

} // namespace

std::optional<DataType> castTarget(NodeScope &node) {
  if (node.node.op == "CastLike")
    return node.typeOf(1);
  const char *name = node.node.op == "Cast"                 ? "to"
                     : node.hasAttribute("output_datatype") ? "output_datatype"
                                                            : "dtype";
  int64_t number = node.integer(name, 1);
  std::optional<DataType> type = elementType(number).type;
  if (!type)
    node.fail(std::string("attribute '") + name + "' = " + std::to_string(number) +
              " is an element type that gpuc does not have");
  return type;
}

void addElementwise(OpTable &table) {
  // Those that gpuc has as they are, under the same name.
  for (const char *op : {"Add", "Sub", "Mul", "Div"})
    table[op] = {lowerBinary, {}};
  for (const char *op : {"Neg", "Abs", "Sign", "Floor", "Ceil", "Round", "Exp", "Log", "Sqrt", "Sin", "Cos",
                         "Tan", "Tanh", "Sigmoid", "Atan", "Erf"})
    table[op] = {lowerUnary, {}};
  table["Reciprocal"] = {[](NodeScope &n) { n.output(1.0 / n.input(0)); }, {}};
  table["Asin"] = {lowerFunction<asin>, {}};
  table["Acos"] = {lowerFunction<acos>, {}};
  table["Sinh"] = {lowerFunction<sinh>, {}};
  table["Cosh"] = {lowerFunction<cosh>, {}};
  table["Asinh"] = {lowerFunction<asinh>, {}};
  table["Acosh"] = {lowerFunction<acosh>, {}};
  table["Atanh"] = {lowerFunction<atanh>, {}};
  table["Mod"] = {lowerMod, {"fmod"}};
  table["Pow"] = {lowerPow, {}};
  table["Max"] = {[](NodeScope &n) { n.output(chain(n, "max")); }, {}};
  table["Min"] = {[](NodeScope &n) { n.output(chain(n, "min")); }, {}};
  table["Sum"] = {[](NodeScope &n) { n.output(chain(n, "add")); }, {}};
  table["Mean"] = {[](NodeScope &n) { n.output(chain(n, "add") / static_cast<double>(n.inputCount())); }, {}};
  table["Clip"] = {lowerClip, {}};

  table["Equal"] = {[](NodeScope &n) { n.output(compare("eq", n.input(0), n.input(1))); }, {}};
  table["Less"] = {[](NodeScope &n) { n.output(compare("lt", n.input(0), n.input(1))); }, {}};
  table["LessOrEqual"] = {[](NodeScope &n) { n.output(compare("le", n.input(0), n.input(1))); }, {}};
  table["Greater"] = {[](NodeScope &n) { n.output(compare("gt", n.input(0), n.input(1))); }, {}};
  table["GreaterOrEqual"] = {[](NodeScope &n) { n.output(compare("ge", n.input(0), n.input(1))); }, {}};
  for (const char *op : {"And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor"})
    table[op] = {lowerBinary, {}};
  for (const char *op : {"Not", "BitwiseNot"})
    table[op] = {lowerUnary, {}};
  table["IsNaN"] = {[](NodeScope &n) { n.output(compare("ne", n.input(0), n.input(0))); }, {}};
  table["IsInf"] = {lowerIsInf, {"detect_positive", "detect_negative"}};
  table["Where"] = {[](NodeScope &n) { n.output(select(n.input(0), n.input(1), n.input(2))); }, {}};
  // `saturate` and `round_mode` are about 8-bit floating point, which gpuc has not.
  table["Cast"] = {lowerCast, {"to", "saturate", "round_mode"}};
  table["CastLike"] = {lowerCast, {"saturate", "round_mode"}};
  table["QuantizeLinear"] = {lowerQuantize, {"axis", "saturate"}};
  table["DequantizeLinear"] = {lowerDequantize, {"axis"}};
  table["Identity"] = {lowerIdentity, {}};
}

} // namespace gpuc::onnx
