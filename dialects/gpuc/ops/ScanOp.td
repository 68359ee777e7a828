#ifndef GPUC_SCAN_OP
#define GPUC_SCAN_OP

include "dialects/gpuc/GpucOpBase.td"

def ScanOp : Gpuc_Op<"scan", [Pure, IsolatedFromAbove, SingleBlock, AttrSizedOperandSegments,
                              DeclareOpInterfaceMethods<CostOpInterface, ["getFlops", "getBytes"]>]> {
  let summary = "A loop over time";
  let description = [{
    Executes the region T times, never unrolled. In iteration i the region gets slice i (along the first dimension) of each of the
    `inputs`, the values that are carried from the iteration before (in the first one the `inits`), and the `captures`,
    which are the same in all. It yields the next values to carry, then a slice of each output. Results: what is carried
    out of the last iteration, then the outputs, whose slices are stacked along a new first dimension.

    With `batch_first` time is the second dimension of inputs and outputs, [batch, T, …], and slices are [batch, …]: so
    the batch, which may not be known yet, leads everywhere. `gpuc-specialize-batch` puts time first when it is.

    With `reverse` the iterations go from T - 1 down to 0; slices, of inputs as of outputs, stay at their own index. T is the first
    extent of the inputs, or `count` where there are none.

    ```mlir
    %hn, %hs = gpuc.scan over(%xs) carry(%h0) captures(%w)
        : (tensor<32x8x4xf32>, tensor<8x16xf32>, tensor<20x16xf32>) -> (tensor<8x16xf32>, tensor<32x8x16xf32>) {
    ^bb0(%x: tensor<8x4xf32>, %h: tensor<8x16xf32>, %w_: tensor<20x16xf32>):
      %xh = gpuc.concat %x, %h dim 1 : (tensor<8x4xf32>, tensor<8x16xf32>) -> tensor<8x20xf32>
      %a = gpuc.matmul %xh, %w_ : (tensor<8x20xf32>, tensor<20x16xf32>) -> tensor<8x16xf32>
      %next = gpuc.tanh %a : tensor<8x16xf32>
      gpuc.yield %next, %next : tensor<8x16xf32>, tensor<8x16xf32>
    }
    ```

    The gradient of a scan is a scan in the other direction over what the forward one has stacked for it: see
    `gpuc-autodiff`. With `recompute` only the carried values are stacked, and the backward region computes the rest
    again. With `chunked` the iterations are parts of one computation, cut up so that less is in memory at once:
    `gpuc-hoist-from-scans` leaves the products in them where they are, for the stacks that it would make are what the
    cutting avoids. With `parallel` nothing is carried and the iterations may be executed in any order, or at once: each
    has memory of its own (see `plan.repeat`).

    - (scan_C1) There are inputs, or a `count` of at least 1, and not both.
    - (scan_C2) All inputs have one static extent along time, at least 1.
    - (scan_C3) The results are of the types of the inits, then the yielded slices with T along time.
    - (scan_C4) The region takes slices of the inputs, then the inits, then the captures, by their types.
    - (scan_C5) It ends in a yield of values of the inits' types, then of the slices of the outputs; with `batch_first`
      these have a dimension.
    - (scan_C6) It holds pure ops of this dialect only: variables are captures, functions are inlined; random numbers
      are captures or inputs, or `random_bits` that say from where they are drawn.
    - (scan_C7) With `parallel` there are no inits, and the scan stands in no other.
  }];
  let arguments = (ins Variadic<Gpuc_Tensor>:$inputs, Variadic<Gpuc_Tensor>:$inits, Variadic<Gpuc_Tensor>:$captures,
                       OptionalAttr<I64Attr>:$count, UnitAttr:$batch_first, UnitAttr:$reverse, UnitAttr:$recompute, UnitAttr:$chunked,
                       UnitAttr:$parallel);
  let results = (outs Variadic<Gpuc_Tensor>:$stacked);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    (`over` `(` $inputs^ `)`)? (`count` $count^)? (`carry` `(` $inits^ `)`)? (`captures` `(` $captures^ `)`)?
    (`batch_first` $batch_first^)? (`reverse` $reverse^)? (`recompute` $recompute^)?
    (`chunked` $chunked^)? (`parallel` $parallel^)? attr-dict `:` functional-type(operands, results) $body
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
  let skipDefaultBuilders = 1;
  let builders = [
    /// A scan whose region is filled later; `outputs` are the types of the slices that it will yield.
    OpBuilder<(ins "::mlir::ValueRange":$inputs, "::mlir::ValueRange":$inits, "::mlir::ValueRange":$captures,
                   "::mlir::TypeRange":$outputs, "int64_t":$trips, "bool":$reverse, "bool":$recompute)>,
    /// A scan whose region `body` fills: it gets slices, carried values and captures, and returns the next values to
    /// carry, then the slices of the outputs.
    OpBuilder<(ins "::mlir::ValueRange":$inputs, "::mlir::ValueRange":$inits, "::mlir::ValueRange":$captures,
                   "int64_t":$trips, "bool":$batchFirst, "bool":$reverse,
                   "::llvm::function_ref<::llvm::SmallVector<::mlir::Value>(::mlir::OpBuilder &, ::mlir::Location, "
                   "::mlir::ValueRange, ::mlir::ValueRange, ::mlir::ValueRange)>":$body)>,
  ];
  let extraClassDeclaration = [{
    /// The number of iterations.
    int64_t getTripCount();
    ::mlir::Block &getBlock() { return getBody().front(); }

    // Arguments of the region.
    ::mlir::ValueRange getSlices() { return getBlock().getArguments().take_front(getInputs().size()); }
    ::mlir::ValueRange getCarries() { return getBlock().getArguments().slice(getInputs().size(), getInits().size()); }
    ::mlir::ValueRange getCaptured() { return getBlock().getArguments().take_back(getCaptures().size()); }

    // What the region yields.
    ::mlir::OperandRange getNextCarries() { return getBlock().getTerminator()->getOperands().take_front(getInits().size()); }
    ::mlir::OperandRange getOutputSlices() { return getBlock().getTerminator()->getOperands().drop_front(getInits().size()); }

    // Results.
    ::mlir::ResultRange getFinals() { return getResults().take_front(getInits().size()); }
    ::mlir::ResultRange getOutputs() { return getResults().drop_front(getInits().size()); }

    /// The dimension of time in inputs and outputs.
    unsigned getTimeDim() { return getBatchFirst() ? 1 : 0; }

    /// The type of a tensor without the dimension of time, and with it.
    static ::mlir::RankedTensorType sliceType(::mlir::Type stacked, unsigned timeDim = 0);
    static ::mlir::RankedTensorType stackType(::mlir::Type slice, int64_t trips, unsigned timeDim = 0);
  }];
}

#endif
