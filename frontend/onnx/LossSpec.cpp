//===- LossSpec.cpp - What --loss says --------------------------------------===//

#include "frontend/onnx/Loss.h"

#include "runtime/base/flags.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace gpuc::onnx {
namespace {

/// A loss, and the arguments that it takes.
struct LossForm {
  StringRef name;
  SmallVector<StringRef> keys;
  SmallVector<StringRef> aliases = {}; ///< What PyTorch calls it, if that is not its name.
};

const std::vector<LossForm> &lossForms() {
  static const std::vector<LossForm> forms = {
      {"cross_entropy", {"weight", "ignore_index", "label_smoothing", "reduction", "dim", "output"}},
      {"nll", {"weight", "ignore_index", "reduction", "dim", "output"}, {"nll_loss"}},
      {"mse", {"reduction", "output"}, {"mse_loss"}},
      {"l1", {"reduction", "output"}, {"l1_loss"}},
      {"huber", {"delta", "reduction", "output"}, {"huber_loss"}},
      {"smooth_l1", {"beta", "reduction", "output"}, {"smooth_l1_loss"}},
      {"bce_with_logits", {"pos_weight", "reduction", "output"}, {"binary_cross_entropy_with_logits"}},
  };
  return forms;
}

const LossForm *findForm(StringRef name) {
  for (const LossForm &form : lossForms())
    if (form.name == name || llvm::is_contained(form.aliases, name))
      return &form;
  return nullptr;
}

Status unknownLoss(const std::string &name) {
  std::vector<std::string> names;
  for (const LossForm &form : lossForms())
    names.push_back(form.name.str());
  std::string similar = similarName(name, names);
  return Status::error(
      "no loss is called '" + name + "'" + (similar.empty() ? "" : "; did you mean '" + similar + "'?") +
      "; there are " + llvm::join(names, ", ") +
      ", and output:NAME for a loss that the model computes itself; what else a loss may be, "
      "docs/onnx.md says");
}

std::string textOf(Attribute value) {
  if (auto text = dyn_cast<StringAttr>(value))
    return text.str();
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (auto list = dyn_cast<ArrayAttr>(value)) {
    stream << '(';
    llvm::interleave(list, stream, [&](Attribute element) { stream << textOf(element); }, ",");
    stream << ')';
  } else {
    value.print(stream, /*elideType=*/true);
  }
  return text;
}

std::optional<double> numberOf(Attribute value) {
  if (auto number = dyn_cast<FloatAttr>(value))
    return number.getValueAsDouble();
  auto integer = dyn_cast<IntegerAttr>(value);
  if (integer && integer.getType().isInteger(64))
    return static_cast<double>(integer.getInt());
  return std::nullopt;
}

/// Reads the arguments of one loss.
class Arguments {
public:
  Arguments(const LossForm &form, LossSpec &spec) : form_(form), spec_(spec) {}

  Status read(StringRef key, Attribute value) {
    if (!llvm::is_contained(form_.keys, key))
      return Status::error(form_.name.str() + " has no argument '" + key.str() + "'; it takes " +
                           llvm::join(form_.keys, ", "));
    if (key == "reduction")
      return readReduction(value);
    if (key == "ignore_index")
      return readInteger(key, value, spec_.ignoreIndex);
    if (key == "dim")
      return readInteger(key, value, spec_.dim);
    if (key == "label_smoothing")
      return readNumber(key, value, spec_.smoothing, "a number from 0 to 1",
                        [](double number) { return number >= 0 && number <= 1; });
    if (key == "delta" || key == "beta")
      return readNumber(key, value, spec_.threshold, "a number above 0",
                        [](double number) { return number > 0; });
    if (key == "output") {
      spec_.output = textOf(value);
      return okStatus();
    }
    return readWeight(key, value);
  }

private:
  Status wrong(StringRef key, Attribute value, const std::string &expected) {
    return Status::error(form_.name.str() + ": " + key.str() + " is " + expected + ", not '" + textOf(value) +
                         "'");
  }

  Status readReduction(Attribute value) {
    std::string text = textOf(value);
    if (text != "mean" && text != "sum")
      return wrong("reduction", value, "mean or sum");
    spec_.sums = text == "sum";
    return okStatus();
  }

  Status readInteger(StringRef key, Attribute value, std::optional<int64_t> &result) {
    auto integer = dyn_cast<IntegerAttr>(value);
    if (!integer || !integer.getType().isInteger(64))
      return wrong(key, value, "an integer");
    result = integer.getInt();
    return okStatus();
  }

  Status readNumber(StringRef key, Attribute value, double &result, const char *expected,
                    function_ref<bool(double)> isSound) {
    std::optional<double> number = numberOf(value);
    if (!number || !std::isfinite(*number) || !isSound(*number))
      return wrong(key, value, expected);
    result = *number;
    return okStatus();
  }

  Status readWeight(StringRef key, Attribute value) {
    auto list = dyn_cast<ArrayAttr>(value);
    for (Attribute element : list ? list.getValue() : ArrayRef(value)) {
      std::optional<double> number = numberOf(element);
      if (!number || !std::isfinite(*number))
        return wrong(key, value, "a list of numbers, as in " + key.str() + "=(0.5,1,2)");
      spec_.weight.push_back(*number);
    }
    return okStatus();
  }

  const LossForm &form_;
  LossSpec &spec_;
};

} // namespace

Result<LossSpec> parseLoss(MLIRContext &context, const std::string &text) {
  LossSpec spec;
  // A name of the model's may hold anything.
  constexpr StringRef kOutput = "output";
  StringRef rest = text;
  if (rest.consume_front(kOutput) && (rest.empty() || rest.consume_front(":"))) {
    spec.name = kOutput.str();
    spec.output = rest.str();
    return spec;
  }
  std::string error;
  FailureOr<ir::SpecAttr> parsed = ir::SpecAttr::fromText(&context, text, error);
  if (failed(parsed))
    return Status::error(error);
  const LossForm *form = findForm(parsed->getName());
  if (!form)
    return unknownLoss(parsed->getName().str());
  spec.name = form->name.str();
  for (NamedAttribute argument : parsed->getArguments())
    GPUC_RETURN_IF_ERROR(Arguments(*form, spec).read(argument.getName(), argument.getValue()));
  return spec;
}

} // namespace gpuc::onnx
