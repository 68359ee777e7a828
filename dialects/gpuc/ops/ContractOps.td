#ifndef GPUC_CONTRACT_OPS
#define GPUC_CONTRACT_OPS

include "dialects/gpuc/GpucOpBase.td"

def MatmulOp
    : Gpuc_PureOp<"matmul", [Differentiable, Infer, Product<["getBiasDimension", "mayBeInputCotangent"]>], ["getFlops"]> {
  let summary = "Matrix product of the last two dimensions, batched over the leading ones";
  let description = [{
    `transpose` before an operand says that its last two dimensions are stored the other way round. The leading
    dimensions of both are equal, or rhs has none, and is the same matrix for all.

    ```mlir
    %h = gpuc.matmul %x, transpose %w : (tensor<64x784xf32>, tensor<128x784xf32>) -> tensor<64x128xf32>
    %q = gpuc.matmul %tokens, %w : (tensor<?x32x64xf32>, tensor<64x64xf32>) -> tensor<?x32x64xf32>
    ```
    Products are added along the inner dimension in an order that depends on shape and target alone. Over no elements
    the sum is 0. Derivatives: dC · Bᵀ and Aᵀ · dC.

    - (matmul_C1) lhs and rhs have one element type.
    - (matmul_C2) They have one rank, at least 2, or rhs has rank 2 and lhs a higher one.
    - (matmul_C3) Of one rank, they agree in all but the last two dimensions.
    - (matmul_C4) The columns of lhs are as many as the rows of rhs, both as the product sees them.
    - (matmul_C5) The batch, if there is one in the result, leads it.
    - (matmul_C6) With one rhs for all, lhs is not transposed: its rows are then those of one large matrix.
  }];
  let arguments = (ins Gpuc_FloatTensor:$lhs, Gpuc_FloatTensor:$rhs, UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let results = (outs Gpuc_FloatTensor:$result);
  let assemblyFormat = [{
    (`transpose` $transpose_lhs^)? $lhs `,` (`transpose` $transpose_rhs^)? $rhs attr-dict `:`
    functional-type(operands, results)
  }];
  let hasFolder = 1;
  let extraClassDeclaration = [{
    /// Whether rhs is one matrix for all leading indices of lhs.
    bool hasSharedRhs();

    /// Of static shapes. With one rhs for all, the rows of all matrices are those of one.
    ProductExtents getExtents();
  }];
  let extraClassDefinition = [{
    ::std::optional<int64_t> $cppClass::getBiasDimension() { return getType().getRank() - 1; }
    bool $cppClass::mayBeInputCotangent() { return true; }
  }];
}

#endif
