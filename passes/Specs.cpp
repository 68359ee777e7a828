//===- Specs.cpp - Named things with keys: optimizers, initializers ----------===//

#include "passes/Specs.h"

#include "runtime/base/flags.h"

#include "llvm/ADT/StringExtras.h"

namespace gpuc {

using namespace mlir;

using EmitError = function_ref<InFlightDiagnostic()>;

/// "the nearest is lr; known are beta1, beta2, lr"
static std::string nearestOf(StringRef name, ArrayRef<std::string> known) {
  std::string nearest = nearestName(name.str(), known.vec());
  return "the nearest is '" + nearest + "'; known are " + llvm::join(known, ", ");
}

static std::optional<double> asNumber(Attribute value) {
  if (auto flag = dyn_cast<BoolAttr>(value))
    return flag.getValue();
  if (auto integer = dyn_cast<IntegerAttr>(value))
    return integer.getInt();
  if (auto number = dyn_cast<FloatAttr>(value))
    return number.getValueAsDouble();
  return std::nullopt;
}

static LogicalResult setKey(SpecNumbers &numbers, const SpecForm &form, StringRef what, StringRef key,
                            Attribute value, EmitError emitError) {
  if (!llvm::any_of(form.keys, [&](const SpecKey &known) { return known.name == key; })) {
    if (form.keys.empty())
      return emitError() << what << ' ' << form.name << " has no key '" << key << "': it takes none";
    auto known = llvm::map_to_vector(form.keys, [](const SpecKey &known) { return known.name.str(); });
    return emitError() << what << ' ' << form.name << " has no key '" << key
                       << "': " << nearestOf(key, known);
  }
  std::optional<double> number = asNumber(value);
  if (!number)
    return emitError() << what << ' ' << form.name << ": " << key << " is a number, not " << value;
  numbers[key] = *number;
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

FailureOr<SpecNumbers> readSpec(ir::SpecAttr spec, StringRef what, ArrayRef<SpecForm> forms,
                                EmitError emitError) {
  const SpecForm *form = findForm(spec, what, forms, emitError);
  if (!form)
    return failure();
  SpecNumbers numbers;
  for (NamedAttribute argument : spec.getArguments()) {
    StringRef key = argument.getName();
    auto list = dyn_cast<ArrayAttr>(argument.getValue());
    if (!list) {
      if (failed(setKey(numbers, *form, what, key, argument.getValue(), emitError)))
        return failure();
      continue;
    }
    key.consume_back("s");
    for (auto [index, value] : llvm::enumerate(list))
      if (failed(setKey(numbers, *form, what, (key + Twine(index + 1)).str(), value, emitError)))
        return failure();
  }
  for (const SpecKey &key : form->keys) {
    if (!key.otherwise && !numbers.contains(key.name))
      return emitError() << what << ' ' << form->name << " needs a value for '" << key.name << "'";
    numbers.try_emplace(key.name, key.otherwise.value_or(0.0));
  }
  return numbers;
}

} // namespace gpuc
