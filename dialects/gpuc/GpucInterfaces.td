#ifndef GPUC_INTERFACES
#define GPUC_INTERFACES

include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::gpuc::ir";
  let description = [{
    The op's vector-Jacobian product, in the same dialect. Most are one line each in `Derivatives.cpp`.
  }];
  let methods = [
    InterfaceMethod<[{
      Builds the cotangent of each operand from the cotangent of each result (null: zero). Pushes one value for each
      operand, null where the op is constant in it. Reads no value of the forward pass but those of `getResiduals`.
    }], "::mlir::LogicalResult", "buildVJP",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$cotangents,
           "::llvm::SmallVectorImpl<::mlir::Value> &":$operandCotangents)>,
    InterfaceMethod<"The operands and results that the VJP reads: what must be kept, or recomputed, until then.",
      "::llvm::SmallVector<::mlir::Value>", "getResiduals", (ins), [{}],
      [{ return ::llvm::SmallVector<::mlir::Value>($_op->getOperands()); }]>,
  ];
}

def CompositeOpInterface : OpInterface<"CompositeOpInterface"> {
  let cppNamespace = "::gpuc::ir";
  let description = [{
    An op that has a definition in simpler ops of the dialect. It stays whole until a target has no kernel for it;
    `gpuc-decompose` then puts the definition in its place.
  }];
  let methods = [
    InterfaceMethod<"Builds the definition and returns its results.",
      "::llvm::SmallVector<::mlir::Value>", "decompose", (ins "::mlir::OpBuilder &":$builder)>,
  ];
}

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::gpuc::ir";
  let description = "What the op costs: by this the compiler schedules, recomputes and reports.";
  let methods = [
    InterfaceMethod<"Floating-point operations; a fused multiply-add is two, a transcendental function one.",
      "int64_t", "getFlops", (ins), [{}], [{ return ::gpuc::ir::elementwiseFlops($_op); }]>,
    InterfaceMethod<"Bytes read and written if every operand and result is touched once.",
      "int64_t", "getBytes", (ins), [{}], [{ return ::gpuc::ir::touchedBytes($_op); }]>,
  ];
}

def ProductOpInterface : OpInterface<"ProductOpInterface"> {
  let cppNamespace = "::gpuc::ir";
  let description = [{
    Matrices, or images and filters, multiplied: a command of its own, which may do what follows each element of the result.
  }];
  let methods = [
    InterfaceMethod<"The result's dimension along which a layer's bias has an element each: columns, or channels; none of a "
                    "gradient that no bias follows.",
      "::std::optional<int64_t>", "getBiasDimension", (ins), [{}], [{ return ::std::nullopt; }]>,
    InterfaceMethod<"Whether the result may be the cotangent of what relu gave.",
      "bool", "mayBeInputCotangent", (ins), [{}], [{ return false; }]>,
  ];
  let extraSharedClassDeclaration = [{
    /// Whether a layer, or the derivative of one with respect to its input, is such a product.
    bool isOfLayer() { return $_op.getBiasDimension() || $_op.mayBeInputCotangent(); }
  }];
}

def RandomOpInterface : OpInterface<"RandomOpInterface"> {
  let cppNamespace = "::gpuc::ir";
  let description = [{
    Draws from the counter-based generator Philox4x32-10 with key (seed, step, id). The id is given when the model is
    made and kept by every clone, so that recomputing draws the same numbers.
  }];
  let methods = [InterfaceMethod<"The op's id, unique in the model.", "int64_t", "getRandomId", (ins), [{}],
                                 [{ return $_op.getId(); }]>];
}

def TrainingOpInterface : OpInterface<"TrainingOpInterface"> {
  let cppNamespace = "::gpuc::ir";
  let description = "An op that does something else in `eval_step` and `predict` than in `train_step`.";
  let methods = [
    InterfaceMethod<"Builds what the op computes outside of training, and returns its results.",
      "::llvm::SmallVector<::mlir::Value>", "buildInference", (ins "::mlir::OpBuilder &":$builder)>,
  ];
}

def LossOpInterface : OpInterface<"LossOpInterface"> {
  let cppNamespace = "::gpuc::ir";
  let description = [{
    Returns (sum, count) over the rows of a batch. Rows that hold no sample (the tail of a data set, padded to a batch)
    are masked out by the optional operand `mask`, one i1 a row.
  }];
  let methods = [
    InterfaceMethod<"The mask, or null.", "::mlir::Value", "getRowMask", (ins), [{}], [{ return $_op.getMask(); }]>,
    InterfaceMethod<"Masks rows out.", "void", "setRowMask", (ins "::mlir::Value":$mask), [{}],
                    [{ $_op.getMaskMutable().assign(mask); }]>,
    InterfaceMethod<"How many rows a mask has: those of the first operand.", "int64_t", "getRows", (ins), [{}],
                    [{ return ::gpuc::ir::rowCount($_op->getOperand(0).getType()); }]>,
  ];
}

#endif
