//===- Specs.cpp - Named things with keys: optimizers, initializers ----------===//

#include "passes/base/Specs.h"

#include "runtime/base/flags.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <cmath>
#include <limits>

namespace gpuc {

using namespace mlir;

constinit const SpecRange kAnyNumber = {"a number", [](double) { return true; }};
constinit const SpecRange kFlag = {"true or false", [](double number) { return number == 0 || number == 1; },
                                   /*takesFlags=*/true};
constinit const SpecRange kNotNegative = {"0 or above", [](double number) { return number >= 0; }};
constinit const SpecRange kAboveZero = {"above 0", [](double number) { return number > 0; }};
constinit const SpecRange kBelowOne = {"0 or above, and below 1",
                                       [](double number) { return number >= 0 && number < 1; }};

/// "the nearest is lr; known are beta1, beta2, lr"
static std::string nearestOf(StringRef name, ArrayRef<std::string> known) {
  std::string nearest = nearestName(name.str(), known.vec());
  return "the nearest is '" + nearest + "'; known are " + llvm::join(known, ", ");
}

static std::optional<double> asNumber(Attribute value) {
  if (isa<BoolAttr>(value)) // which is an IntegerAttr, too
    return std::nullopt;
  if (auto integer = dyn_cast<IntegerAttr>(value))
    return integer.getInt();
  if (auto number = dyn_cast<FloatAttr>(value))
    return number.getValueAsDouble();
  return std::nullopt;
}

/// milestones → milestone3
static std::string numberedKey(StringRef plural, size_t index) {
  plural.consume_back("s");
  return (plural + Twine(index + 1)).str();
}

/// The same, but eps → eps2 of a form that has eps1.
static std::string numberedKey(const SpecForm &form, StringRef plural, size_t index) {
  std::string first = (plural + "1").str();
  bool isStem = llvm::any_of(form.keys, [&](const SpecKey &key) { return key.name == first; });
  return isStem ? (plural + Twine(index + 1)).str() : numberedKey(plural, index);
}

/// The key of the form, or null after an error.
static const SpecKey *findKey(const SpecForm &form, StringRef what, StringRef name, EmitError emitError) {
  const SpecKey *key = llvm::find_if(form.keys, [&](const SpecKey &key) { return key.name == name; });
  if (key != form.keys.end())
    return key;
  std::string first = numberedKey(form, name, 0);
  if (llvm::any_of(form.keys, [&](const SpecKey &key) { return key.name == first; })) {
    emitError() << what << ' ' << form.name << ": " << name << " is a list, (…,…); say " << first
                << " for one number alone";
    return nullptr;
  }
  if (form.keys.empty()) {
    emitError() << what << ' ' << form.name << " has no key '" << name << "': it takes none";
    return nullptr;
  }
  auto known = llvm::map_to_vector(form.keys, [](const SpecKey &key) { return key.name.str(); });
  emitError() << what << ' ' << form.name << " has no key '" << name << "': " << nearestOf(name, known);
  return nullptr;
}

std::string numberText(double number, int digits) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.*g", digits, number);
  return text;
}

std::string valueText(Attribute value) {
  if (std::optional<double> number = asNumber(value))
    return numberText(*number);
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

/// Whether a value is the text of a number that no f64 is, 1e400 or 1e-400.
static bool isBeyondDoubles(Attribute value) {
  auto text = dyn_cast<StringAttr>(value);
  double number;
  return text && text.getValue().find_first_of("0123456789") == 0 && !text.getValue().getAsDouble(number);
}

/// In which updates compute.
static bool isBeyondFloats(double number) {
  return std::isfinite(number) && std::abs(number) > std::numeric_limits<float>::max();
}

/// Sets `number` to what `value` says for the key.
static LogicalResult readValue(double &number, const SpecForm &form, StringRef what, const SpecKey &key,
                               Attribute value, EmitError emitError) {
  auto text = dyn_cast<StringAttr>(value);
  const StringRef *choice = text ? llvm::find(key.choices, text.getValue()) : key.choices.end();
  if (choice != key.choices.end()) {
    number = choice - key.choices.begin();
    return success();
  }
  if (!key.choices.empty())
    return emitError() << what << ' ' << form.name << ": " << key.name << " is one of "
                       << llvm::join(key.choices, ", ") << ", not " << valueText(value);
  auto flag = dyn_cast<BoolAttr>(value);
  std::optional<double> given = flag && key.range.takesFlags ? flag.getValue() : asNumber(value);
  if (!given || std::isnan(*given) || (std::isinf(*given) && !key.mayBeInfinite))
    return emitError() << what << ' ' << form.name << ": " << key.name << " is "
                       << (key.range.takesFlags ? key.range.text : "a finite number") << ", not "
                       << valueText(value) << (isBeyondDoubles(value) ? ", which no f64 is" : "");
  if (!key.range.holds(*given))
    return emitError() << what << ' ' << form.name << ": " << key.name << " must be " << key.range.text
                       << ", but is " << valueText(value);
  if (isBeyondFloats(*given) && !key.mayBeInfinite)
    return emitError() << what << ' ' << form.name << ": " << key.name << " is " << valueText(value)
                       << ", which no f32 is";
  number = *given;
  return success();
}

/// Sets the key, or the keys, that one argument of the spec gives.
static LogicalResult readArgument(SpecNumbers &numbers, const SpecForm &form, StringRef what,
                                  NamedAttribute argument, EmitError emitError) {
  StringRef name = argument.getName();
  Attribute value = argument.getValue();
  auto list = dyn_cast<ArrayAttr>(value);
  const SpecKey *plural = llvm::find_if(form.keys, [&](auto &key) { return key.name == name && key.isList; });
  bool isList = plural != form.keys.end();
  if (!list && !isList) {
    const SpecKey *key = findKey(form, what, name, emitError);
    return failure(!key || failed(readValue(numbers[name], form, what, *key, value, emitError)));
  }
  for (auto [index, element] : llvm::enumerate(list ? list.getValue() : ArrayRef(value))) {
    std::string numbered = numberedKey(form, name, index);
    const SpecKey *key = isList ? plural : findKey(form, what, numbered, emitError);
    if (!key || failed(readValue(numbers[numbered], form, what, *key, element, emitError)))
      return failure();
  }
  return success();
}

/// The form named as `spec` is, or null after an error.
static const SpecForm *findForm(ir::SpecAttr spec, StringRef what, ArrayRef<SpecForm> forms,
                                EmitError emitError) {
  const SpecForm *form =
      llvm::find_if(forms, [&](const SpecForm &form) { return form.name == spec.getName(); });
  if (form != forms.end())
    return form;
  auto known = llvm::map_to_vector(forms, [](const SpecForm &form) { return form.name.str(); });
  emitError() << "unknown " << what << " '" << spec.getName() << "': " << nearestOf(spec.getName(), known);
  return nullptr;
}

FailureOr<SpecNumbers> readGivenKeys(ir::SpecAttr spec, StringRef what, const SpecForm &form,
                                     EmitError emitError, ArrayRef<StringRef> others) {
  SpecNumbers numbers;
  for (NamedAttribute argument : spec.getArguments())
    if (!llvm::is_contained(others, argument.getName()) &&
        failed(readArgument(numbers, form, what, argument, emitError)))
      return failure();
  return numbers;
}

FailureOr<SpecNumbers> readSpec(ir::SpecAttr spec, StringRef what, ArrayRef<SpecForm> forms,
                                EmitError emitError) {
  const SpecForm *form = findForm(spec, what, forms, emitError);
  if (!form)
    return failure();
  FailureOr<SpecNumbers> numbers = readGivenKeys(spec, what, *form, emitError);
  if (failed(numbers))
    return failure();
  for (const SpecKey &key : form->keys) {
    if (!key.otherwise && !numbers->contains(key.isList ? numberedKey(key.name, 0) : key.name.str()))
      return emitError() << what << ' ' << form->name << " needs a value for '" << key.name << "'";
    if (!key.isList)
      numbers->try_emplace(key.name, key.otherwise.value_or(0.0));
  }
  return numbers;
}

SmallVector<double> numbersOf(const SpecNumbers &numbers, StringRef key) {
  SmallVector<double> list;
  for (auto number = numbers.find(numberedKey(key, 0)); number != numbers.end();
       number = numbers.find(numberedKey(key, list.size())))
    list.push_back(number->second);
  return list;
}

} // namespace gpuc
