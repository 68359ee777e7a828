//===- Element.h - Element types in memory and in registers -----------------===//
//
// An element has three forms. In memory it lies as its tensor type says, i1 as a byte. In a register it has
// the same bits, but ui8 as i8, f16 and bf16 as i16, and i1 as i1. Arithmetic on f16 and bf16 is done in f32
// and rounded once. What rounds to bf16 the target says: a CPU integer arithmetic, so that one that has bf16
// instructions (which flush denormals) gives the same bits as one that has not; a GPU its own instruction.
// They differ in the bits of NaN.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/codegen/math/Expr.h"

namespace gpuc::codegen {

enum class ElementKind { F64, F32, F16, BF16, I64, I32, I8, UI8, I1 };

/// Of an element type or of a tensor of it.
ElementKind elementKind(mlir::Type type);

bool isFloat(ElementKind kind);
bool isUnsigned(ElementKind kind);
int64_t bytesOf(ElementKind kind);

/// The type in a register: a scalar for one lane, else a vector.
mlir::Type registerType(mlir::MLIRContext *context, ElementKind kind, int64_t lanes);
/// The type that is loaded and stored.
mlir::Type memoryType(mlir::MLIRContext *context, ElementKind kind, int64_t lanes);

/// From memory's form to the register's and back.
Expr fromMemory(Expr loaded, ElementKind kind);
Expr toMemory(Expr value, ElementKind kind);

/// From the register's form to the one that arithmetic is done in (f16 and bf16: f32), and back with one
/// rounding.
Expr toCompute(Expr value, ElementKind kind);
Expr fromCompute(Expr value, ElementKind kind);

/// An f32 rounded to bf16, as i16, by integer arithmetic.
Expr bitsOfBfloat16(Expr value);

/// A number in register form, rounded to the nearest that the type has.
Expr numberIn(mlir::ImplicitLocOpBuilder &builder, ElementKind kind, int64_t lanes, double number);

/// The same number in another type, register form to register form. Float to integer truncates towards zero
/// and saturates, NaN becomes 0; anything to i1 asks whether it differs from 0; every other conversion rounds
/// once to the nearest, ties to even. Between integers the low bits are kept.
Expr castElement(Expr value, ElementKind from, ElementKind to);

} // namespace gpuc::codegen
