#ifndef GPUC_ELEMENTWISE_OPS
#define GPUC_ELEMENTWISE_OPS

include "dialects/gpuc/GpucOpBase.td"
include "mlir/IR/EnumAttr.td"

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

def AddOp : Gpuc_Binary<"add", Gpuc_NumberTensor, [Commutative, Differentiable]> { let summary = "lhs + rhs"; let hasFolder = 1; }
def SubOp : Gpuc_Binary<"sub", Gpuc_NumberTensor, [Differentiable]> { let summary = "lhs - rhs"; let hasFolder = 1; }
def MulOp : Gpuc_Binary<"mul", Gpuc_NumberTensor, [Commutative, Differentiable]> { let summary = "lhs · rhs"; let hasFolder = 1; }
def DivOp : Gpuc_Binary<"div", Gpuc_NumberTensor, [Differentiable]> { let summary = "lhs / rhs"; let hasFolder = 1; }
def RemOp : Gpuc_Binary<"rem", Gpuc_NumberTensor, [Differentiable]> { let summary = "Remainder with the sign of lhs (C's fmod)"; }
def MaxOp : Gpuc_Binary<"max", Gpuc_NumberTensor, [Commutative, Differentiable]> { let summary = "The larger; NaN if either is"; let hasFolder = 1; }
def MinOp : Gpuc_Binary<"min", Gpuc_NumberTensor, [Commutative, Differentiable]> { let summary = "The smaller; NaN if either is"; let hasFolder = 1; }
def PowOp : Gpuc_Binary<"pow", Gpuc_FloatTensor, [Differentiable]> { let summary = "lhs to the power rhs (C's pow)"; }

def FmaOp : Gpuc_PureOp<"fma", [Pointwise, SameTensorTypes, SameOperandsAndResultType, Differentiable], ["getFlops"]> {
  let summary = "a · b + c, rounded once";
  let arguments = (ins Gpuc_FloatTensor:$a, Gpuc_FloatTensor:$b, Gpuc_FloatTensor:$c);
  let results = (outs Gpuc_FloatTensor:$result);
  let assemblyFormat = "$a `,` $b `,` $c attr-dict `:` type($result)";
}

def NegOp : Gpuc_Unary<"neg", Gpuc_NumberTensor, [Differentiable]> { let summary = "-x"; let hasFolder = 1; }
def AbsOp : Gpuc_Unary<"abs", Gpuc_NumberTensor, [Differentiable]> { let summary = "|x|"; }
def SignOp : Gpuc_Unary<"sign", Gpuc_NumberTensor, [Differentiable]> { let summary = "-1, 0 or 1; NaN of NaN"; }
def FloorOp : Gpuc_Unary<"floor", Gpuc_FloatTensor, [Differentiable]> { let summary = "The largest integer not above x"; }
def CeilOp : Gpuc_Unary<"ceil", Gpuc_FloatTensor, [Differentiable]> { let summary = "The smallest integer not below x"; }
def RoundOp : Gpuc_Unary<"round", Gpuc_FloatTensor, [Differentiable]> { let summary = "The nearest integer, ties to even"; }

//===----------------------------------------------------------------------===//
// Transcendental functions
//===----------------------------------------------------------------------===//

def ExpOp : Gpuc_Unary<"exp", Gpuc_FloatTensor, [Differentiable]> { let summary = "e to the x"; }
def Expm1Op : Gpuc_Unary<"expm1", Gpuc_FloatTensor, [Differentiable]> { let summary = "e to the x, less 1, exact near 0"; }
def LogOp : Gpuc_Unary<"log", Gpuc_FloatTensor, [Differentiable]> { let summary = "Natural logarithm"; }
def Log1pOp : Gpuc_Unary<"log1p", Gpuc_FloatTensor, [Differentiable]> { let summary = "log(1 + x), exact near 0"; }
def SqrtOp : Gpuc_Unary<"sqrt", Gpuc_FloatTensor, [Differentiable]> { let summary = "Square root, correctly rounded"; }
def RsqrtOp : Gpuc_Unary<"rsqrt", Gpuc_FloatTensor, [Differentiable]> { let summary = "1 / sqrt(x), both steps correctly rounded"; }
def SinOp : Gpuc_Unary<"sin", Gpuc_FloatTensor, [Differentiable]> { let summary = "Sine of x in radians"; }
def CosOp : Gpuc_Unary<"cos", Gpuc_FloatTensor, [Differentiable]> { let summary = "Cosine of x in radians"; }
def TanOp : Gpuc_Unary<"tan", Gpuc_FloatTensor, [Differentiable]> { let summary = "Tangent of x in radians"; }
def AtanOp : Gpuc_Unary<"atan", Gpuc_FloatTensor, [Differentiable]> { let summary = "Arc tangent in radians"; }
def TanhOp : Gpuc_Unary<"tanh", Gpuc_FloatTensor, [Differentiable]> { let summary = "Hyperbolic tangent"; }
def SigmoidOp : Gpuc_Unary<"sigmoid", Gpuc_FloatTensor, [Differentiable]> { let summary = "1 / (1 + exp(-x))"; }
def ErfOp : Gpuc_Unary<"erf", Gpuc_FloatTensor, [Differentiable]> { let summary = "Error function"; }

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

def ReluOp : Gpuc_Unary<"relu", Gpuc_FloatTensor, [Differentiable]> { let summary = "max(x, 0); NaN of NaN"; }
def LeakyReluOp : Gpuc_Unary<"leaky_relu", Gpuc_FloatTensor, [Differentiable, Composite]> {
  let summary = "x where x > 0, else slope · x";
  let arguments = (ins Gpuc_FloatTensor:$operand, DefaultValuedAttr<F64Attr, "0.01">:$slope);
}
def GeluOp : Gpuc_Unary<"gelu", Gpuc_FloatTensor, [Differentiable, Composite]> {
  let summary = "x · Φ(x), by erf or, with `approximate`, by tanh";
  let arguments = (ins Gpuc_FloatTensor:$operand, UnitAttr:$approximate);
  let assemblyFormat = "$operand (`approximate` $approximate^)? attr-dict `:` type($result)";
}
def SiluOp : Gpuc_Unary<"silu", Gpuc_FloatTensor, [Differentiable, Composite]> { let summary = "x · sigmoid(x)"; }
def ClampOp : Gpuc_Unary<"clamp", Gpuc_FloatTensor, [Differentiable]> {
  let summary = "The nearest value in [low, high]; NaN of NaN";
  let arguments = (ins Gpuc_FloatTensor:$operand, F64Attr:$low, F64Attr:$high);
  let assemblyFormat = "$operand `low` $low `high` $high attr-dict `:` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Logic and selection
//===----------------------------------------------------------------------===//

def Gpuc_LogicTensor : Gpuc_TensorOf<AnyTypeOf<[Gpuc_Int, I1]>, "integer or i1 tensor of static shape">;
def AndOp : Gpuc_Binary<"and", Gpuc_LogicTensor, [Commutative]> { let summary = "Bitwise and"; let hasFolder = 1; }
def OrOp : Gpuc_Binary<"or", Gpuc_LogicTensor, [Commutative]> { let summary = "Bitwise or"; let hasFolder = 1; }
def XorOp : Gpuc_Binary<"xor", Gpuc_LogicTensor, [Commutative]> { let summary = "Bitwise exclusive or"; }
def NotOp : Gpuc_Unary<"not", Gpuc_LogicTensor> { let summary = "Bitwise complement"; let hasFolder = 1; }

def Gpuc_Comparison : I32EnumAttr<"Comparison", "How two numbers compare", [
  I32EnumAttrCase<"eq", 0>, I32EnumAttrCase<"ne", 1>, I32EnumAttrCase<"lt", 2>,
  I32EnumAttrCase<"le", 3>, I32EnumAttrCase<"gt", 4>, I32EnumAttrCase<"ge", 5>]> {
  let cppNamespace = "::gpuc::ir";
}

def CompareOp : Gpuc_PureOp<"compare", [Pointwise, SameTensorShapes, SameTypeOperands, SameOperandsAndResultShape, Infer]> {
  let summary = "lhs ? rhs, element by element; false of NaN but for ne";
  let arguments = (ins Gpuc_Comparison:$predicate, Gpuc_Tensor:$lhs, Gpuc_Tensor:$rhs);
  let results = (outs Gpuc_BoolTensor:$result);
  let assemblyFormat = "$predicate $lhs `,` $rhs attr-dict `:` type($lhs)";
}

def SelectOp : Gpuc_PureOp<"select", [Pointwise, SameTensorShapes, SameOperandsAndResultShape, Differentiable,
    AllTypesMatch<["on_true", "on_false", "result"]>]> {
  let summary = "on_true where the condition holds, else on_false";
  let arguments = (ins Gpuc_BoolTensor:$condition, Gpuc_Tensor:$on_true, Gpuc_Tensor:$on_false);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = "$condition `,` $on_true `,` $on_false attr-dict `:` type($condition) `,` type($result)";
  let hasFolder = 1;
}

def CastOp : Gpuc_PureOp<"cast", [Pointwise, SameTensorShapes, SameOperandsAndResultShape, Differentiable]> {
  let summary = "The same number in another element type";
  let arguments = (ins Gpuc_Tensor:$operand);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `to` type($result)";
  let hasFolder = 1;
}

def IsFiniteOp : Gpuc_PureOp<"is_finite", [Pointwise, SameTensorShapes, SameOperandsAndResultShape, Infer]> {
  let summary = "Neither NaN nor infinite";
  let arguments = (ins Gpuc_FloatTensor:$operand);
  let results = (outs Gpuc_BoolTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
}

def StopGradientOp : Gpuc_Unary<"stop_gradient", Gpuc_Tensor, [Differentiable]> { let summary = "x, constant to derivatives"; }

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
  let arguments = (ins I64Attr:$dim);
  let results = (outs Gpuc_NumberTensor:$result);
  let assemblyFormat = "`dim` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif
