#ifndef GPUC_ELEMENTWISE_OPS
#define GPUC_ELEMENTWISE_OPS

include "dialects/gpuc/GpucOpBase.td"
include "mlir/IR/EnumAttr.td"

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

def AddOp : Gpuc_Binary<"add", Gpuc_NumberTensor, [Commutative, Differentiable]> {
  let summary = "lhs + rhs";
  let description = "`x + y`, rounded once. Integers wrap around (two's complement).";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def SubOp : Gpuc_Binary<"sub", Gpuc_NumberTensor, [Differentiable]> {
  let summary = "lhs - rhs";
  let description = "`x - y`, rounded once. Integers wrap around.";
  let hasFolder = 1;
}

def MulOp : Gpuc_Binary<"mul", Gpuc_NumberTensor, [Commutative, Differentiable]> {
  let summary = "lhs · rhs";
  let description = "`x · y`, rounded once; 0 · ∞ is NaN. Integers wrap around.";
  let hasFolder = 1;
}

def DivOp : Gpuc_Binary<"div", Gpuc_NumberTensor, [Differentiable]> {
  let summary = "lhs / rhs";
  let description = [{
    Floating point by IEEE 754: x / 0 is ±∞, 0 / 0 NaN. Integers round toward zero; division by 0 gives 0 and
    the least integer divided by -1 itself, so that no input stops a step.
  }];
  let hasFolder = 1;
}

def RemOp : Gpuc_Binary<"rem", Gpuc_NumberTensor, [Differentiable]> {
  let summary = "Remainder with the sign of lhs (C's fmod)";
  let description = [{
    lhs - q · rhs with q = lhs / rhs rounded toward zero; exact. rhs = 0 or lhs = ±∞ gives NaN; for integers rhs = 0
    gives 0. Derivative: 1 by lhs, -q by rhs; at a jump that of the side q belongs to.
  }];
}

def MaxOp : Gpuc_Binary<"max", Gpuc_NumberTensor, [Commutative, Differentiable]> {
  let summary = "The larger; NaN if either is";
  let description = [{
    The larger of two; +0 is larger than -0. Derivative: to the larger; where both are equal each gets half, as in
    PyTorch.
  }];
  let hasFolder = 1;
}

def MinOp : Gpuc_Binary<"min", Gpuc_NumberTensor, [Commutative, Differentiable]> {
  let summary = "The smaller; NaN if either is";
  let description = [{
    The smaller of two; -0 is smaller than +0. Derivative: to the smaller; where both are equal each gets half, as
    in PyTorch.
  }];
  let hasFolder = 1;
}

def PowOp : Gpuc_Binary<"pow", Gpuc_FloatTensor, [Differentiable]> {
  let summary = "lhs to the power rhs (C's pow)";
  let description = [{
    Special cases as C's pow (C11 F.10.4.4): x^0 and 1^y are 1 even for NaN; a negative x with y no integer is NaN.
    Derivatives: y · x^(y - 1), 0 where y = 0; x^y · log x, 0 where x = 0 and y ≥ 0, as in PyTorch.
  }];
}

def FmaOp : Gpuc_PureOp<"fma", [Pointwise, SameTensorTypes, SameOperandsAndResultType, Differentiable], ["getFlops"]> {
  let summary = "a · b + c, rounded once";
  let description = [{
    One rounding, at the end. Derivatives: b, a and 1.
  }];
  let arguments = (ins Gpuc_FloatTensor:$a, Gpuc_FloatTensor:$b, Gpuc_FloatTensor:$c);
  let results = (outs Gpuc_FloatTensor:$result);
  let assemblyFormat = "$a `,` $b `,` $c attr-dict `:` type($result)";
}

def NegOp : Gpuc_Unary<"neg", Gpuc_NumberTensor, [Differentiable]> {
  let summary = "-x";
  let description = "The sign bit flipped, of zeros and NaN too. The least integer is its own negative.";
  let hasFolder = 1;
}

def AbsOp : Gpuc_Unary<"abs", Gpuc_NumberTensor, [Differentiable]> {
  let summary = "|x|";
  let description = "The sign bit cleared. The least integer stays. Derivative: sign(x), so 0 at 0.";
}

def SignOp : Gpuc_Unary<"sign", Gpuc_NumberTensor, [Differentiable]> {
  let summary = "-1, 0 or 1; NaN of NaN";
  let description = "Zeros keep their sign. The derivative is 0 everywhere.";
}

def FloorOp : Gpuc_Unary<"floor", Gpuc_FloatTensor, [Differentiable]> {
  let summary = "The largest integer not above x";
  let description = "NaN and ±∞ stay. The derivative is 0 everywhere.";
}

def CeilOp : Gpuc_Unary<"ceil", Gpuc_FloatTensor, [Differentiable]> {
  let summary = "The smallest integer not below x";
  let description = "NaN and ±∞ stay. The derivative is 0 everywhere.";
}

def RoundOp : Gpuc_Unary<"round", Gpuc_FloatTensor, [Differentiable]> {
  let summary = "The nearest integer, ties to even";
  let description = "NaN and ±∞ stay. The derivative is 0 everywhere.";
}

//===----------------------------------------------------------------------===//
// Transcendental functions
//===----------------------------------------------------------------------===//

def ExpOp : Gpuc_Unary<"exp", Gpuc_FloatTensor, [Differentiable]> {
  let summary = "e to the x";
  let description = "exp(-∞) = 0, exp(∞) = ∞. Derivative: the result.";
}

def Expm1Op : Gpuc_Unary<"expm1", Gpuc_FloatTensor, [Differentiable]> {
  let summary = "e to the x, less 1, exact near 0";
  let description = "Derivative: the result plus 1.";
}

def LogOp : Gpuc_Unary<"log", Gpuc_FloatTensor, [Differentiable]> {
  let summary = "Natural logarithm";
  let description = "log 0 = -∞; of a negative number NaN. Derivative: 1 / x.";
}

def Log1pOp : Gpuc_Unary<"log1p", Gpuc_FloatTensor, [Differentiable]> {
  let summary = "log(1 + x), exact near 0";
  let description = "log1p(-1) = -∞; below -1 NaN. Derivative: 1 / (1 + x).";
}

def SqrtOp : Gpuc_Unary<"sqrt", Gpuc_FloatTensor, [Differentiable]> {
  let summary = "Square root, correctly rounded";
  let description = "sqrt(-0) = -0; of a negative number NaN. Derivative: 1 / (2 · result), so ∞ at 0.";
}

def RsqrtOp : Gpuc_Unary<"rsqrt", Gpuc_FloatTensor, [Differentiable]> {
  let summary = "1 / sqrt(x), both steps correctly rounded";
  let description = "rsqrt(±0) = ±∞; of a negative number NaN. Derivative: -result³ / 2.";
}

def SinOp : Gpuc_Unary<"sin", Gpuc_FloatTensor, [Differentiable]> {
  let summary = "Sine of x in radians";
  let description = "±∞ gives NaN. Derivative: cos x.";
}

def CosOp : Gpuc_Unary<"cos", Gpuc_FloatTensor, [Differentiable]> {
  let summary = "Cosine of x in radians";
  let description = "±∞ gives NaN. Derivative: -sin x.";
}

def TanOp : Gpuc_Unary<"tan", Gpuc_FloatTensor, [Differentiable]> {
  let summary = "Tangent of x in radians";
  let description = "±∞ gives NaN. Derivative: 1 + result².";
}

def AtanOp : Gpuc_Unary<"atan", Gpuc_FloatTensor, [Differentiable]> {
  let summary = "Arc tangent in radians";
  let description = "In [-π/2, π/2]. Derivative: 1 / (1 + x²).";
}

def TanhOp : Gpuc_Unary<"tanh", Gpuc_FloatTensor, [Differentiable]> {
  let summary = "Hyperbolic tangent";
  let description = "±1 at ±∞. Derivative: 1 - result².";
}

def SigmoidOp : Gpuc_Unary<"sigmoid", Gpuc_FloatTensor, [Differentiable]> {
  let summary = "1 / (1 + exp(-x))";
  let description = "0 at -∞ and 1 at ∞, with no overflow between. Derivative: result · (1 - result).";
}

def ErfOp : Gpuc_Unary<"erf", Gpuc_FloatTensor, [Differentiable]> {
  let summary = "Error function";
  let description = "2/√π ∫₀ˣ exp(-t²) dt. Derivative: 2/√π · exp(-x²).";
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

def ReluOp : Gpuc_Unary<"relu", Gpuc_FloatTensor, [Differentiable]> {
  let summary = "max(x, 0); NaN of NaN";
  let description = "Derivative: 0 where the result is 0 (at x = 0 too, as in PyTorch), else 1.";
}

def LeakyReluOp : Gpuc_Unary<"leaky_relu", Gpuc_FloatTensor, [Differentiable, Composite]> {
  let summary = "x where x > 0, else slope · x";
  let description = [{
    [Maas, Hannun and Ng 2013]. Derivative: 1 where x > 0, else slope.

    - (leaky_relu_C1) slope is finite.
  }];
  let arguments = (ins Gpuc_FloatTensor:$operand, DefaultValuedAttr<F64Attr, "0.01">:$slope);
  let hasVerifier = 1;
}

def GeluOp : Gpuc_Unary<"gelu", Gpuc_FloatTensor, [Differentiable, Composite]> {
  let summary = "x · Φ(x), by erf or, with `approximate`, by tanh";
  let description = [{
    [Hendrycks and Gimpel 2016]. Φ(x) = (1 + erf(x / √2)) / 2; with `approximate`
    (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2. Derivative: Φ(x) + x · Φ'(x).
  }];
  let arguments = (ins Gpuc_FloatTensor:$operand, UnitAttr:$approximate);
  let assemblyFormat = "$operand (`approximate` $approximate^)? attr-dict `:` type($result)";
}

def SiluOp : Gpuc_Unary<"silu", Gpuc_FloatTensor, [Differentiable, Composite]> {
  let summary = "x · sigmoid(x)";
  let description = [{
    [Elfwing, Uchibe and Doya 2018]. With s = sigmoid(x) the derivative is s · (1 + x · (1 - s)).
  }];
}

def ClampOp : Gpuc_Unary<"clamp", Gpuc_FloatTensor, [Differentiable]> {
  let summary = "The nearest value in [low, high]; NaN of NaN";
  let description = [{
    Derivative: 1 where low < x < high, else 0, at the bounds too, as PyTorch has it of hardtanh and, from 2.15 on, of
    clamp.

    - (clamp_C1) low ≤ high.
  }];
  let arguments = (ins Gpuc_FloatTensor:$operand, F64Attr:$low, F64Attr:$high);
  let assemblyFormat = "$operand `low` $low `high` $high attr-dict `:` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Logic and selection
//===----------------------------------------------------------------------===//

def Gpuc_LogicTensor : Gpuc_TensorOf<AnyTypeOf<[Gpuc_Int, I1]>, "integer or i1 tensor of static shape">;
def AndOp : Gpuc_Binary<"and", Gpuc_LogicTensor, [Commutative]> {
  let summary = "Bitwise and";
  let description = "Of i1: both hold.";
  let hasFolder = 1;
}

def OrOp : Gpuc_Binary<"or", Gpuc_LogicTensor, [Commutative]> {
  let summary = "Bitwise or";
  let description = "Of i1: at least one holds.";
  let hasFolder = 1;
}

def XorOp : Gpuc_Binary<"xor", Gpuc_LogicTensor, [Commutative]> {
  let summary = "Bitwise exclusive or";
  let description = "Of i1: just one holds.";
}

def NotOp : Gpuc_Unary<"not", Gpuc_LogicTensor> {
  let summary = "Bitwise complement";
  let description = "Of i1: it does not hold.";
  let hasFolder = 1;
}

def Gpuc_Comparison : I32EnumAttr<"Comparison", "How two numbers compare", [
  I32EnumAttrCase<"eq", 0>, I32EnumAttrCase<"ne", 1>, I32EnumAttrCase<"lt", 2>,
  I32EnumAttrCase<"le", 3>, I32EnumAttrCase<"gt", 4>, I32EnumAttrCase<"ge", 5>]> {
  let cppNamespace = "::gpuc::ir";
}

def CompareOp : Gpuc_PureOp<"compare", [Pointwise, SameTensorShapes, SameTypeOperands, SameOperandsAndResultShape, Infer]> {
  let summary = "lhs ? rhs, element by element; false of NaN but for ne";
  let description = [{
    Predicates: eq ne lt le gt ge. -0 equals +0. The result has no derivative.

    ```mlir
    %1 = gpuc.compare lt %a, %b : tensor<4xf32>
    ```
  }];
  let arguments = (ins Gpuc_Comparison:$predicate, Gpuc_Tensor:$lhs, Gpuc_Tensor:$rhs);
  let results = (outs Gpuc_BoolTensor:$result);
  let assemblyFormat = "$predicate $lhs `,` $rhs attr-dict `:` type($lhs)";
}

def SelectOp : Gpuc_PureOp<"select", [Pointwise, SameTensorShapes, SameOperandsAndResultShape, Differentiable,
    AllTypesMatch<["on_true", "on_false", "result"]>]> {
  let summary = "on_true where the condition holds, else on_false";
  let description = [{
    Derivative: the cotangent goes to the operand that was taken, 0 to the other.
  }];
  let arguments = (ins Gpuc_BoolTensor:$condition, Gpuc_Tensor:$on_true, Gpuc_Tensor:$on_false);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = "$condition `,` $on_true `,` $on_false attr-dict `:` type($condition) `,` type($result)";
  let hasFolder = 1;
}

def CastOp : Gpuc_PureOp<"cast", [Pointwise, SameTensorShapes, SameOperandsAndResultShape, Differentiable]> {
  let summary = "The same number in another element type";
  let description = [{
    To a floating-point type: rounded to nearest, ties to even; too large becomes ±∞. From floating point to an integer:
    toward zero, saturated, NaN to 0. Between integers: extended by the sign of the source's type, or cut to the low
    bits. To i1: x ≠ 0; from i1: 0 or 1. A derivative passes between floating-point types only, cast back.
  }];
  let arguments = (ins Gpuc_Tensor:$operand);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `to` type($result)";
  let hasFolder = 1;
}

def IsFiniteOp : Gpuc_PureOp<"is_finite", [Pointwise, SameTensorShapes, SameOperandsAndResultShape, Infer]> {
  let summary = "Neither NaN nor infinite";
  let description = [{
    i1. No derivative.
  }];
  let arguments = (ins Gpuc_FloatTensor:$operand);
  let results = (outs Gpuc_BoolTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
}

def StopGradientOp : Gpuc_Unary<"stop_gradient", Gpuc_Tensor, [Differentiable]> {
  let summary = "x, constant to derivatives";
  let description = "The identity; nothing flows back through it.";
}

def ScaleGradientOp : Gpuc_Binary<"scale_gradient", Gpuc_FloatTensor, [Differentiable]> {
  let summary = "lhs; what flows back to it is multiplied by rhs";
  let description = [{
    By this a loss is scaled, so that small gradients do not vanish in f16. Derivative: ct · rhs by lhs, none by rhs.
    [Micikevicius et al. 2018, "Mixed precision training"]
  }];
}

//===----------------------------------------------------------------------===//
// Sources
//===----------------------------------------------------------------------===//

def ConstantOp : Gpuc_PureOp<"constant", [ConstantLike], ["getFlops"]> {
  let summary = "A tensor known when the model is made";
  let description = [{
    One number fills the tensor (its shape may have the batch in it); dense elements give each.

    ```mlir
    %scale = gpuc.constant 3.92156886E-3 : tensor<?x784xf32>
    %table = gpuc.constant dense<[1.0, 2.0]> : tensor<2xf32>
    ```
    Numbers are written as the shortest decimal that reads back to the same bits; also inf, -inf, nan, true, false, and
    nan(0x7fc00001) for a NaN with other bits than the usual ones.

    - (constant_C1) dense elements have the type of the result.
    - (constant_C2) the value is a number or dense elements.
    - (constant_C3) a number has the element type of the result.
  }];
  let arguments = (ins AnyAttr:$value);
  let results = (outs Gpuc_Tensor:$result);
  let hasCustomAssemblyFormat = 1;
  let hasFolder = 1;
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "double":$value)>];
  let extraClassDeclaration = [{
    /// The number that fills the tensor, if there is but one.
    ::mlir::TypedAttr getSplat();
  }];
}

def IotaOp : Gpuc_PureOp<"iota"> {
  let summary = "The index along one dimension";
  let description = [{
    Element (i₀, i₁, …) is i_dim.

    - (iota_C1) dim is a dimension of the result.
  }];
  let arguments = (ins I64Attr:$dim);
  let results = (outs Gpuc_NumberTensor:$result);
  let assemblyFormat = "`dim` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif
