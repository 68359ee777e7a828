#ifndef GPUC_PASSES
#define GPUC_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Train step: from the model and its recipe to functions with everything explicit
//===----------------------------------------------------------------------===//

def SpecializeBatchPass : Pass<"gpuc-specialize-batch", "::mlir::ModuleOp"> {
  let summary = "Bind the batch: every leading `?` becomes one number";
  let description = [{
    The number is the option's, else the recipe's. Afterwards the module has no `?`, and holds the number as its
    attribute `gpuc.batch`. A module without `?` keeps its shapes; a batch that contradicts one bound earlier is an
    error.

    Before, with `batch=64`:
    ```mlir
    %1 = gpuc.broadcast %b dims [1] : tensor<10xf32> to tensor<?x10xf32>
    ```
    After:
    ```mlir
    %1 = gpuc.broadcast %b dims [1] : tensor<10xf32> to tensor<64x10xf32>
    ```
  }];
  let options = [
    Option<"batch", "batch", "int64_t", /*default=*/"0",
           "Rows of a batch, per rank and microbatch; 0 takes the recipe's">,
  ];
  let dependentDialects = ["::gpuc::ir::GpucDialect"];
}

//===----------------------------------------------------------------------===//
// Kernels: what becomes one launch
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Plan: order, streams, memory
//===----------------------------------------------------------------------===//

#endif
