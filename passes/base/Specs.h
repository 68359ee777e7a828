//===- Specs.h - Named things with keys: optimizers, initializers ------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"

#include "llvm/ADT/StringMap.h"

namespace gpuc {

/// Which numbers a key may have: "0 or above". Only where it says so may true stand for 1, and false for 0.
struct SpecRange {
  llvm::StringRef text;
  bool (*holds)(double);
  bool takesFlags = false;
};

extern const SpecRange kAnyNumber, kFlag, kNotNegative, kAboveZero, kBelowOne;

/// A key that a spec may give, and what holds if it does not. A key without default must be given.
struct SpecKey {
  llvm::StringRef name;
  std::optional<double> otherwise = {};
  SpecRange range = kAnyNumber;
  /// Texts that stand for 0, 1, …; if there are any, nothing else is taken.
  llvm::SmallVector<llvm::StringRef> choices = {};
  /// It takes any number of numbers, see numbersOf; its name is a plural.
  bool isList = false;
  bool mayBeInfinite = false;
};

/// One name that a spec may have: adam(lr, beta1, …).
struct SpecForm {
  llvm::StringRef name;
  llvm::SmallVector<SpecKey> keys;
};

/// The number of each key; a flag is 0 or 1.
using SpecNumbers = llvm::StringMap<double>;

/// Begins an error where the spec stands.
using EmitError = llvm::function_ref<mlir::InFlightDiagnostic()>;

/// Reads what `spec` gives as keys of `form`, whatever its own name is; keys in `others` are not looked at.
llvm::FailureOr<SpecNumbers> readGivenKeys(ir::SpecAttr spec, llvm::StringRef what, const SpecForm &form,
                                           EmitError emitError, llvm::ArrayRef<llvm::StringRef> others = {});

/// Reads `spec` by the form of its name. A list under a plural stands for numbered keys: betas = (0.9, 0.99)
/// is beta1 = 0.9, beta2 = 0.99, and eps = (0.1, 0.2) is eps1 and eps2 where those are keys. An unknown name
/// or key, a key that is missing and a value that is no number, or out of the key's range (of a key with
/// choices: none of them) are errors, which call the spec a `what` and name the nearest known name.
llvm::FailureOr<SpecNumbers> readSpec(ir::SpecAttr spec, llvm::StringRef what, llvm::ArrayRef<SpecForm> forms,
                                      EmitError emitError);

/// A number as errors write it: with `digits` at most.
std::string numberText(double number, int digits = 6);

/// A value as errors write it: a number without its type.
std::string valueText(mlir::Attribute value);

/// The numbers of a key that is a list; none if it was not given.
llvm::SmallVector<double> numbersOf(const SpecNumbers &numbers, llvm::StringRef key);

} // namespace gpuc
