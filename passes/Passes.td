#ifndef GPUC_PASSES
#define GPUC_PASSES

include "mlir/Pass/PassBase.td"

/// Over a module, and makes ops of gpuc's dialect.
class GpucPass<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::gpuc::ir::GpucDialect"];
}

//===----------------------------------------------------------------------===//
// Train step: from the model and its recipe to functions with everything explicit
//===----------------------------------------------------------------------===//

def SpecializeBatchPass : GpucPass<"gpuc-specialize-batch"> {
  let summary = "Bind the batch: every leading `?` becomes one number";
  let description = [{
    The number is the option's, else the recipe's. Afterwards the module has no `?`, and holds the number as its
    attribute `gpuc.batch`. A module without `?` keeps its shapes; a batch that contradicts one bound earlier is an
    error. Scans with `batch_first` become scans over their first dimension, between transposes.

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
}

def FindEntriesPass : GpucPass<"gpuc-find-entries"> {
  let summary = "Find the functions of the model that are entries of the plan by themselves";
  let description = [{
    A public function that the recipe does not name, that is not `@predict`, and that nobody calls, gets the attribute
    `gpuc.entry`: `gpuc-expand-recipe` makes an entry of it, in inference form, and leaves it in the plan. A private
    function that no entry leads to is left out, with a warning.

    Before:
    ```mlir
    func.func @embed(%x: tensor<?x784xf32> {gpuc.name = "x"}) -> (tensor<?x128xf32> {gpuc.name = "embedding"}) {
    ```
    After:
    ```mlir
    func.func @embed(%x: tensor<?x784xf32> {gpuc.name = "x"}) -> (tensor<?x128xf32> {gpuc.name = "embedding"})
        attributes {gpuc.entry} {
    ```
  }];
}

def CheckRangesPass : GpucPass<"gpuc-check-ranges"> {
  let summary = "Refuse an index whose declared range is larger than what it names";
  let description = [{
    Changes nothing. `gpuc.range` of an argument says below which number its integers lie. Where such an argument, or a
    tensor of its elements, is the labels of a loss, the indices of `gather` or `scatter_add`, or what a one-hot vector is
    made of, and there are fewer classes, slices or places than that, it is an error: a label that is no class would count
    nothing, an index out of range read zeros. `ignore_index` may be one more than the classes. Behind arithmetic, and
    behind a `select`, nothing is known of a range.

    ```mlir
    func.func @loss(%x: tensor<?x4xf32>, %labels: tensor<?xi32> {gpuc.name = "labels", gpuc.range = 12}) … {
      // error: takes labels from 'labels' of @loss, whose gpuc.range is 12, but there are 10 classes: …
      %sum, %count = gpuc.cross_entropy %logits, %labels : (tensor<?x10xf32>, tensor<?xi32>) -> …
    ```
  }];
}

def OverrideRecipePass : GpucPass<"gpuc-override-recipe"> {
  let summary = "Write the command line's wishes into the recipe";
  let description = [{
    Whatever follows reads the recipe alone. `entries` are KEY=VALUE;… with the recipe's keys; specs are written as on
    the command line of `gpuc-compile`, and those of a list (groups, schedule) one by one under the same key. What is
    said replaces what the recipe says, the rest stays. A module that has no recipe gets one if it has a function
    `@loss`.

    Before, with `entries=optimizer=sgd:lr=0.1;clip_norm=1`:
    ```mlir
    gpuc.recipe {
      loss = @loss,
      optimizer = adam(lr = 1.0e-3)
    }
    ```
    After:
    ```mlir
    gpuc.recipe {
      loss = @loss,
      clip_norm = 1.0,
      optimizer = sgd(lr = 1.0e-1)
    }
    ```
  }];
  let options = [
    Option<"entries", "entries", "std::string", /*default=*/"", "Entries of the recipe: KEY=VALUE;KEY=VALUE…">,
    Option<"optimizer", "optimizer", "std::string", /*default=*/"",
           "NAME[:key=value,…]: short for the entry of this name">,
    Option<"seed", "seed", "int64_t", /*default=*/"-1", "The plan's default seed; -1 keeps the recipe's">,
  ];
}

def MaskPaddingPass : GpucPass<"gpuc-mask-padding"> {
  let summary = "Let rows that hold no sample count nothing";
  let description = [{
    The last batch of a data set may be padded. The functions that the recipe names get an argument that says how many
    rows hold a sample, and their losses a mask made of it. It stands before `gpuc-autodiff`, so that the backward pass
    has the mask too. Losses with a mask of their own keep it. A function that others use as well keeps its arguments, and
    the recipe gets a copy.

    Before, with a batch of 64:
    ```mlir
    func.func @loss(%logits: tensor<64x10xf32>, %labels: tensor<64xi32>) -> (tensor<f32>, tensor<f32>) {
      %sum, %count = gpuc.cross_entropy %logits, %labels : …
    ```
    After:
    ```mlir
    func.func private @loss(%logits: tensor<64x10xf32>, %labels: tensor<64xi32>,
                            %rows: tensor<i32> {gpuc.name = "rows", gpuc.role = "rows"}) -> … {
      %index = gpuc.iota dim 0 : tensor<64xi32>
      %limit = gpuc.broadcast %rows dims [] : tensor<i32> to tensor<64xi32>
      %mask = gpuc.compare lt %index, %limit : tensor<64xi32>
      %sum, %count = gpuc.cross_entropy %logits, %labels mask %mask : …
    ```
  }];
}

def FuseLinearLossesPass : GpucPass<"gpuc-fuse-linear-losses"> {
  let summary = "Make one op of a linear layer and the loss of its logits, so that they are never stored whole";
  let description = [{
    A `gpuc.cross_entropy` or `gpuc.accuracy` of a matmul with one matrix for all rows, with or without a bias that is
    added to it, becomes a `gpuc.linear_cross_entropy` or `gpuc.linear_accuracy`, if nothing else reads the logits, and if
    these do not fit into one chunk of rows (see `gpuc.linear_cross_entropy`): those that do would be stored anyway. A
    weight that is not stored as [classes, features] is transposed. Calls in the functions that the recipe names are
    inlined first. It stands before `gpuc-autodiff`, which takes the derivative of the one op.

    Before:
    ```mlir
    %logits = gpuc.matmul %h, transpose %w : (tensor<8192x768xf32>, tensor<50257x768xf32>) -> tensor<8192x50257xf32>
    %sum, %count = gpuc.cross_entropy %logits, %labels : …
    ```
    After:
    ```mlir
    %sum, %count = gpuc.linear_cross_entropy %h, %w labels %labels : …
    ```
  }];
}

def MixedPrecisionPass : GpucPass<"gpuc-mixed-precision"> {
  let summary = "Compute the products of loss, accuracy and predict in bf16, f16 or tf32";
  let description = [{
    The recipe's `precision` is `f32`, which changes nothing, `bf16`, `fp16` or `tf32`. Each op has a class, as in PyTorch's
    autocast: products take their f32 operands in the lower precision; exp, log, softmax, norms, sums and losses take
    theirs in f32; the rest follows, the widest type winning. `bf16(f32 = ("head.*", "gelu"), bf16 = "emb")` makes
    exceptions, by the name of a layer with `*` for anything, or of an op. Arguments, results and variables keep their
    types. Variables are cast once for all that read them. The decisions over the loss are kept in the module's attribute
    `gpuc.precision`, for the report. docs/mixed-precision.md has the whole table.

    With `tf32` types stay f32: products, convolutions, attention and linear losses are marked `gpuc.tf32`, and so is
    what comes of them in the backward pass. Only CUDA computes that.

    It stands before `gpuc-autodiff`: gradients pass back through the casts, as in PyTorch.

    Before, with `precision = bf16`:
    ```mlir
    %w = gpuc.read @fc.weight : tensor<10x784xf32>
    %logits = gpuc.matmul %x, transpose %w : (tensor<64x784xf32>, tensor<10x784xf32>) -> tensor<64x10xf32>
    %sum, %count = gpuc.cross_entropy %logits, %labels : (tensor<64x10xf32>, tensor<64xi32>) -> …
    ```
    After:
    ```mlir
    %0 = gpuc.cast %x : tensor<64x784xf32> to tensor<64x784xbf16>
    %w = gpuc.read @fc.weight : tensor<10x784xf32>
    %1 = gpuc.cast %w : tensor<10x784xf32> to tensor<10x784xbf16>
    %logits = gpuc.matmul %0, transpose %1 : (tensor<64x784xbf16>, tensor<10x784xbf16>) -> tensor<64x10xbf16>
    %2 = gpuc.cast %logits : tensor<64x10xbf16> to tensor<64x10xf32>
    %sum, %count = gpuc.cross_entropy %2, %labels : (tensor<64x10xf32>, tensor<64xi32>) -> …
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"host\"",
           "host[:CPU] or cuda:ARCHITECTURE: what has no units for the precision is refused">,
  ];
}

def DifferentiateLossPass : GpucPass<"gpuc-differentiate-loss"> {
  let summary = "Add @gradients, the gradient of the recipe's loss by what is trained";
  let description = [{
    If the recipe has an optimizer, adds `@gradients`: the recipe's loss, or a slice's (see `gpuc-slice-batch`), and its
    gradient by each variable that is trained, for `gpuc-autodiff`. A variable that the loss does not reach is left out,
    with a warning. What flows back from the loss is the last argument; `gpuc-expand-recipe` gives it.

    Before:
    ```mlir
    func.func @loss(%x: tensor<8x4xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) { … }
    ```
    After:
    ```mlir
    func.func @loss(%x: tensor<8x4xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) { … }
    func.func private @gradients(%x: tensor<8x4xf32> {gpuc.name = "x"}, %seed: tensor<f32> {gpuc.role = "seed"})
        -> (tensor<f32>, tensor<f32>, tensor<4xf32> {gpuc.variable = @w}) {
      %0:3 = gpuc.gradient @loss(%x) seed %seed : tensor<f32> wrt [@w]
          : (tensor<8x4xf32>) -> (tensor<f32>, tensor<f32>, tensor<4xf32>)
      return %0#0, %0#1, %0#2 : tensor<f32>, tensor<f32>, tensor<4xf32>
    }
    ```
  }];
}

def AutodiffPass : GpucPass<"gpuc-autodiff"> {
  let summary = "Put forward and backward pass in the place of each gpuc.gradient";
  let description = [{
    Those inside of differentiated functions come first. A forward op keeps its location; what stands for it in the
    backward pass gets `fused<"backward">[…]` around it. What flows back from the result is the gradient's `seed`, else 1.

    The gradient of a `gpuc.scan` is a scan in the other direction. The forward one gets an output for each value that
    the backward one reads (the carried values, and the residuals of the ops in its region); inputs and captures are read
    as they are. With `recompute`, only carried values are stacked, and the backward region computes the rest again.

    Before:
    ```mlir
    func.func @f(%x: tensor<4xf64>) -> tensor<f64> {
      %0 = gpuc.mul %x, %x : tensor<4xf64> loc("square")
      %1 = gpuc.sum %0 dims [0] : (tensor<4xf64>) -> tensor<f64>
      return %1 : tensor<f64>
    }
    func.func @g(%x: tensor<4xf64>) -> tensor<4xf64> {
      %y, %dx = gpuc.gradient @f(%x) wrt arguments [0] : (tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>)
      return %dx : tensor<4xf64>
    }
    ```
    After:
    ```mlir
    func.func @g(%x: tensor<4xf64>) -> tensor<4xf64> {
      %0 = gpuc.mul %x, %x : tensor<4xf64> loc("square")
      %1 = gpuc.sum %0 dims [0] : (tensor<4xf64>) -> tensor<f64>
      %one = gpuc.constant 1.0 : tensor<f64>
      %d_0 = gpuc.broadcast %one dims [] : tensor<f64> to tensor<4xf64>
      %2 = gpuc.mul %d_0, %x : tensor<4xf64> loc(fused<"backward">["square"])
      %3 = gpuc.mul %d_0, %x : tensor<4xf64> loc(fused<"backward">["square"])
      %dx = gpuc.add %2, %3 : tensor<4xf64> loc(fused<"backward">["square"])
      return %dx : tensor<4xf64>
    }
    ```
  }];
}

def SliceBatchPass : GpucPass<"gpuc-slice-batch"> {
  let summary = "Let the host's threads take slices of a recurrent network's batch side by side";
  let description = [{
    A loop over time does little work in each command, and threads that share each of them wait for one another most of
    the time. Where the recipe's loss has such a loop of 16 steps or more, weights of at most 512 kB and 16 rows or more,
    this pass adds a copy of the loss over a half of the rows or a quarter, at least 8, which says so by `gpuc.partition`.
    `gpuc-differentiate-loss` takes the gradient of the copy, and `gpuc-expand-recipe` makes of it a loop over the slices
    whose iterations are independent: threads execute them side by side. All that the loss returns must be sums over rows,
    and no row may depend on another, as with batch_norm; otherwise, with `accumulate` and on CUDA the pass does nothing.
    The number of slices depends on the model alone, so that bits do not depend on the number of threads.

    Before, with `batch=16`:
    ```mlir
    func.func @loss(%x: tensor<?x32x8xf32>, %labels: tensor<?xi32>) -> (tensor<f32>, tensor<f32>) {
      %h = gpuc.scan over(%x) … batch_first
    ```
    After:
    ```mlir
    func.func @loss(%x: tensor<?x32x8xf32>, %labels: tensor<?xi32>) -> (tensor<f32>, tensor<f32>) {
      %h = gpuc.scan over(%x) … batch_first
    …
    func.func private @loss_of_slice(%x: tensor<8x32x8xf32> {gpuc.partition = #gpuc.partition<slices = 2, rows = 8>},
                                     %labels: tensor<8xi32> {gpuc.partition = #gpuc.partition<slices = 2, rows = 8>})
        -> (tensor<f32>, tensor<f32>) attributes {gpuc.partition = #gpuc.partition<slices = 2, rows = 8>} {
      %h = gpuc.scan over(%x) … batch_first
    ```
  }];
  let options = [
    Option<"batch", "batch", "int64_t", /*default=*/"0", "Rows of a batch; 0 takes the recipe's">,
    Option<"target", "target", "std::string", /*default=*/"\"host\"",
           "host[:CPU] or cuda:ARCHITECTURE, for which nothing is done">,
  ];
}

def ExpandRecipePass : GpucPass<"gpuc-expand-recipe"> {
  let summary = "Turn the recipe into @init, @train_step, @eval_step and @predict";
  let description = [{
    `@init` gives every variable its first value, drawn from `@seed`. `@train_step` holds forward and backward pass (from
    `@gradients`), divides the gradients once, and updates each variable by the optimizer; it returns loss_sum, count, lr
    and grad_norm. Gradients are divided by the count; with a loss scale what flows back from the loss is the scale over
    the count, and gradients are divided by the scale. `@eval_step` returns loss_sum, count, correct and
    correct_count, and like `@predict` holds every op in its inference form. Model functions and recipe are erased; the
    counters `@seed` and `@step` and the optimizer's slots become variables. Without an optimizer, or with
    `training=false`, there is no `@train_step` and no slot; without a recipe no `@eval_step` either.

    Where `@gradients` is over a part of the batch (`gpuc.partition`), a loop in `@train_step` adds up loss, count and
    gradients of all of them, in the memory of one if they are microbatches, and side by side if they are slices. Variables
    are read once; those that a microbatch assigns are carried to the next one, and of ranks' the mean is assigned.
    Random numbers are those of an element's place in the whole batch. The module gets the attribute `gpuc.partition`.

    Before:
    ```mlir
    gpuc.variable @w : tensor<4xf32> init uniform(bound = 0.5)
    func.func private @gradients(%x: tensor<8x4xf32> {gpuc.name = "x"}, %seed: tensor<f32> {gpuc.role = "seed"})
        -> (tensor<f32>, tensor<f32>, tensor<4xf32> {gpuc.variable = @w}) { … }
    gpuc.recipe {
      loss = @loss,
      optimizer = sgd(lr = 1.0e-1)
    }
    ```
    After (shortened):
    ```mlir
    gpuc.variable @w : tensor<4xf32> init uniform(bound = 0.5)
    gpuc.variable @seed kind counter : tensor<i64> init zeros
    gpuc.variable @step kind counter : tensor<i64> init zeros
    func.func @train_step(%x: tensor<8x4xf32> {gpuc.name = "x"}) -> (tensor<f32> {gpuc.name = "loss_sum"}, …) {
      …
      %g = gpuc.mul %g_sum, %one_over_count : tensor<4xf32>
      %w_new = gpuc.sgd_update %w gradient %g step %t lr %lr …
      gpuc.assign @w, %w_new : tensor<4xf32>
      return %loss_sum, %count, %lr, %grad_norm : …
    }
    func.func @eval_step(%x: tensor<8x4xf32> {gpuc.name = "x"}) -> (tensor<f32> {gpuc.name = "loss_sum"}, …)
    func.func @init() {
      %w = gpuc.random_uniform seed %seed step %zero id 134217728 low -0.5 high 0.5 …
      gpuc.assign @w, %w : tensor<4xf32>
      …
    ```
    The loop, where `@gradients` is over a quarter of the batch, with
    `%x: tensor<8x4xf32> {gpuc.partition = #gpuc.partition<microbatches = 4, rows = 8>}`:
    ```mlir
      %xs = gpuc.reshape %x : tensor<32x4xf32> to tensor<4x8x4xf32>
      %places = gpuc.iota dim 0 : tensor<4xi64>
      %w = gpuc.read @w : tensor<4xf32>
      %0:3 = gpuc.scan over(%xs, %places) carry(%zero, %zero, %zeros) captures(%w) chunked : … {
      ^bb0(%x_i: tensor<8x4xf32>, %i: tensor<i64>, %sum: tensor<f32>, …):
        …
        %d_w_sum_next = gpuc.add %d_w_sum, %d_w : tensor<4xf32>
        gpuc.yield …
      }
    ```
  }];
  let options = [
    Option<"training", "training", "bool", /*default=*/"true", "Off, only what is run outside of training is made">,
  ];
}

def CheckNumericsPass : GpucPass<"gpuc-check-numerics"> {
  let summary = "Count what each op of @train_step makes of NaN and infinities";
  let description = [{
    Beside `@train_step` a copy of it, `@train_step_checks`, gives one result, `nonfinite` : tensor<n x i32>. Element i
    counts the values that are NaN or infinite and that one op made of operands that were finite everywhere; its
    `#gpuc.check` in the result's attribute `gpuc.checks` names the op, its layer and its place in the model's file.
    Inputs and variables that are read are counted too. The order is that of the program, so that the first element that
    is not 0 is where it began. What a loop over time, chunks or microbatches makes is added up over its iterations.

    The step itself is left alone: what counts a value is one more reader of it, and passes let it hang on who reads a
    value in which kernel it is computed, and so in which order sums are added up. `gpuc-join-checks` puts the copy into
    the step when both are kernels.

    Ops that cannot make such values (moves, max, relu, …) are not counted. A value that only a `select` takes is judged
    behind it: what it leaves out harms nobody. Infinities that a constant brings, as masks of attention do, are no error
    until an op makes NaN of them.

    Before:
    ```mlir
    func.func @train_step(%x: tensor<8x4xf32> {gpuc.name = "x"}) -> (tensor<f32> {gpuc.name = "loss_sum"}, …) {
      %0 = gpuc.log %x : tensor<8x4xf32> loc("head"("model.mlir":12:5))
      …
    ```
    After, beside it (shortened):
    ```mlir
    func.func private @train_step_checks(%x: tensor<8x4xf32> {gpuc.name = "x"}) -> (
        tensor<5xi32> {gpuc.checks = [#gpuc.check<op = "input", layer = "x", location = "", backward = false>,
                                      #gpuc.check<op = "log", layer = "head", location = "model.mlir:12:5", backward = false>, …],
                       gpuc.name = "nonfinite"}) attributes {gpuc.checks_of = @train_step} {
      %0 = gpuc.log %x : tensor<8x4xf32>
      %finite = gpuc.is_finite %0 : tensor<8x4xf32>
      %not = gpuc.not %finite : tensor<8x4xi1>
      %ones = gpuc.cast %not : tensor<8x4xi1> to tensor<8x4xi32>
      %count = gpuc.sum %ones dims [0, 1] : (tensor<8x4xi32>) -> tensor<i32>
      …
    ```
  }];
}

//===----------------------------------------------------------------------===//
// Kernels: what becomes one launch
//===----------------------------------------------------------------------===//

def DecomposePass : GpucPass<"gpuc-decompose"> {
  let summary = "Replace composite ops by their definitions";
  let description = [{
    Repeats until no composite op is left but those that the target has kernels for: attention and its gradient in f32 and
    f64 on the host, and in f32, f16 and bf16 on CUDA, where heads are up to 128 wide, nothing is to be rounded to TF32, and no
    mask's cotangent is read.

    Before:
    ```mlir
    %1 = gpuc.silu %0 : tensor<4xf32> loc("act")
    ```
    After:
    ```mlir
    %1 = gpuc.sigmoid %0 : tensor<4xf32> loc(fused<"silu">["act"])
    %2 = gpuc.mul %0, %1 : tensor<4xf32> loc(fused<"silu">["act"])
    ```
  }];
  let options = [
    ListOption<"keep", "keep", "std::string", "Composite ops that stay whole, by name: softmax,layer_norm">,
    Option<"target", "target", "std::string", /*default=*/"\"\"",
           "host[:CPU] or cuda:ARCHITECTURE: what it has kernels for stays whole, too; none by default">,
  ];
}

def NarrowIndicesPass : GpucPass<"gpuc-narrow-indices"> {
  let summary = "Have max pooling say in a byte where in its window the largest element lies";
  let description = [{
    The gradient of `gpuc.max_pool2d` keeps its indices. As i64 they are twice as long as the f32 that were pooled; the
    place within the window, as ui8 of windows of up to 256 elements, as i32 of larger ones, says as much. An index that
    the model itself reads is computed of that place. It stands before `gpuc-autodiff`, so that loops over time stack
    places. No bit changes.

    Before:
    ```mlir
    %values, %indices = gpuc.max_pool2d %x window [2, 2] strides [2, 2] : (tensor<4x8x28x28xf32>) -> (tensor<4x8x14x14xf32>, tensor<4x8x14x14xi64>)
    ```
    After:
    ```mlir
    %values, %places = gpuc.max_pool2d %x window [2, 2] strides [2, 2] : (tensor<4x8x28x28xf32>) -> (tensor<4x8x14x14xf32>, tensor<4x8x14x14xui8>)
    ```
  }];
}

def CutScansPass : GpucPass<"gpuc-cut-scans"> {
  let summary = "Make a loop over chunks of time of a long loop over time";
  let description = [{
    A loop of T steps, 128 or more, becomes a `chunked` one over T / k chunks, and in it one over the k steps of a chunk; k is
    the least divisor of T from √T on, of 16 at least. What `gpuc-hoist-from-scans` takes out of the inner loop, products of
    inputs and sums of weights' gradients, stays in the outer one, where its stacks are short. `gpuc-checkpoint` may then have
    a chunk's forward pass computed again where its backward pass is. Loops of fewer steps, or of a T that has no such
    divisor, stay as they are.

    Before:
    ```mlir
    %h, %hs = gpuc.scan over(%xs) carry(%h0) captures(%w)
        : (tensor<128x8x4xf32>, tensor<8x16xf32>, tensor<4x16xf32>) -> (tensor<8x16xf32>, tensor<128x8x16xf32>) {…}
    ```
    After:
    ```mlir
    %0 = gpuc.reshape %xs : tensor<128x8x4xf32> to tensor<8x16x8x4xf32>
    %h, %1 = gpuc.scan over(%0) carry(%h0) captures(%w) chunked
        : (tensor<8x16x8x4xf32>, tensor<8x16xf32>, tensor<4x16xf32>) -> (tensor<8x16xf32>, tensor<8x16x8x16xf32>) {
    ^bb0(%x: tensor<16x8x4xf32>, %c: tensor<8x16xf32>, %v: tensor<4x16xf32>):
      %next, %ys = gpuc.scan over(%x) carry(%c) captures(%v)
          : (tensor<16x8x4xf32>, tensor<8x16xf32>, tensor<4x16xf32>) -> (tensor<8x16xf32>, tensor<16x8x16xf32>) {…}
      gpuc.yield %next, %ys : tensor<8x16xf32>, tensor<16x8x16xf32>
    }
    %hs = gpuc.reshape %1 : tensor<8x16x8x16xf32> to tensor<128x8x16xf32>
    ```
  }];
}

def HoistFromScansPass : GpucPass<"gpuc-hoist-from-scans"> {
  let summary = "Do before or behind a loop what need not be done in each of its iterations";
  let description = [{
    What depends on captures alone is computed once. Products of an input, or of what an output needs, with a capture
    become one product of a stack. A gradient that the loop only adds up, of a weight or a bias, becomes one product, or
    sum, over stacks, most of which the backward pass reads anyway. A `chunked` loop keeps its products: it is there
    so that their stacks are never whole.

    Before:
    ```mlir
    %dw, %dh = gpuc.scan over(%hs, %das) carry(%zeros, %d) … reverse : … {
    ^bb0(%h: tensor<8x16xf32>, %da: tensor<8x16xf32>, %sum: tensor<16x16xf32>, …):
      %0 = gpuc.matmul transpose %h, %da : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
      %1 = gpuc.add %sum, %0 : tensor<16x16xf32>
      gpuc.yield %1, …
    }
    ```
    After, with 32 iterations:
    ```mlir
    %dh = gpuc.scan …
    %0 = gpuc.reshape %hs : tensor<32x8x16xf32> to tensor<256x16xf32>
    %1 = gpuc.reshape %das : tensor<32x8x16xf32> to tensor<256x16xf32>
    %dw = gpuc.matmul transpose %0, %1 : (tensor<256x16xf32>, tensor<256x16xf32>) -> tensor<16x16xf32>
    ```
  }];
}

def LayoutPass : GpucPass<"gpuc-layout"> {
  let summary = "Give convolutions the layout, and products the extents, that the target multiplies fastest";
  let description = [{
    Of a GPU's tensor cores: they multiply f16, bf16, and f32 that is marked `gpuc.tf32`. The host's kernels read
    images as models write them; what changes there is *what loops multiply by*. A product of up to 64 rows with the
    transpose of what a loop of 16 iterations or more only reads, x_t · Wᵀ, packs that in each of them: such weights are
    pre-transposed, once before the loop.

    *Channels last.* Convolutions, poolings, and whatever is computed element by element between them, get their images
    as (N, H, W, C) and their filters as (O, kh, kw, C / groups). Transposes are left where such images come from or go to
    something else, and at filters and their gradients; gpuc-fuse lets the kernels there read or write in the other
    order. What hangs together is transposed together, and only if the transposes that are left move fewer bytes than
    the library would to transpose the operands of each convolution by itself. Sums over all images are cut in two, first
    within each image, then over images: else, with few channels, a few blocks of threads would have all the work.

    *Padding.* Products of matrices whose extents are no multiple of 16 bytes get zeros around them, up to the next
    multiple, where that is a small part of the product, and the product large enough to pay for it.

    What was decided, and why, is left in the module's attribute `gpuc.layout`, for the report.

    Before:
    ```mlir
    %w16 = gpuc.cast %w : tensor<64x32x3x3xf32> to tensor<64x32x3x3xbf16>
    %y = gpuc.conv2d %x, %w16 padding [1, 1, 1, 1] : (tensor<8x32x14x14xbf16>, …) -> tensor<8x64x14x14xbf16>
    %z = gpuc.relu %y : tensor<8x64x14x14xbf16>
    ```
    After:
    ```mlir
    %x1 = gpuc.transpose %x permutation [0, 2, 3, 1] : (tensor<8x32x14x14xbf16>) -> tensor<8x14x14x32xbf16>
    %w1 = gpuc.transpose %w16 permutation [0, 2, 3, 1] : (tensor<64x32x3x3xbf16>) -> tensor<64x3x3x32xbf16>
    %y = gpuc.conv2d %x1, %w1 padding [1, 1, 1, 1] channels_last : (tensor<8x14x14x32xbf16>, …) -> tensor<8x14x14x64xbf16>
    %z1 = gpuc.relu %y : tensor<8x14x14x64xbf16>
    %z = gpuc.transpose %z1 permutation [0, 3, 1, 2] : (tensor<8x14x14x64xbf16>) -> tensor<8x64x14x14xbf16>
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"host\"", "host[:CPU] or cuda:ARCHITECTURE">,
  ];
}

def EpiloguesPass : GpucPass<"gpuc-epilogues"> {
  let summary = "Put what follows each element of a product beside it";
  let description = [{
    A bias that is added to a product, a relu of it: libraries do these to the elements that they have just summed up.
    Afterwards they stand with the product in a `gpuc.fused`, relu last, if nobody else reads what is between them.
    So does a product that is the cotangent of a relu with relu's gradient, 0 where relu's result is.
    The host does so for all floats, and for convolutions and their input's gradient. On CUDA cuBLASLt and cuDNN do, but for f64 and
    relu's gradient, and cuDNN takes relu only behind a bias. They add a bias to the f32 sum and round that once to f16 or bf16. What is
    added and is no bias stays outside: a library would begin its sum with it, and give other bits.

    Before:
    ```mlir
    %h = gpuc.matmul %x, transpose %w : … loc("fc1")
    %1 = gpuc.broadcast %b dims [1] : tensor<128xf32> to tensor<64x128xf32> loc("fc1")
    %2 = gpuc.add %h, %1 : tensor<64x128xf32> loc("fc1")
    %3 = gpuc.relu %2 : tensor<64x128xf32> loc("act1")
    ```
    After:
    ```mlir
    %3 = gpuc.fused "fc1.matmul_add_relu"(%x, %w, %b) : (…) -> tensor<64x128xf32> {
    ^bb0(%x_0: tensor<64x784xf32>, %w_1: tensor<128x784xf32>, %b_2: tensor<128xf32>):
      %4 = gpuc.matmul %x_0, transpose %w_1 : …
      %5 = gpuc.broadcast %b_2 dims [1] : tensor<128xf32> to tensor<64x128xf32>
      %6 = gpuc.add %4, %5 : tensor<64x128xf32>
      %7 = gpuc.relu %6 : tensor<64x128xf32>
      gpuc.yield %7 : tensor<64x128xf32>
    }
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"host\"", "host[:CPU] or cuda:ARCHITECTURE: whose libraries">,
  ];
}

def JoinChecksPass : GpucPass<"gpuc-join-checks"> {
  let summary = "Put the copy that counts NaN and infinities into the step";
  let description = [{
    What `gpuc-check-numerics` made beside `@train_step` stands at the step's front afterwards, and its result `nonfinite`
    is the step's last. It comes behind all passes that decide what is computed together, so that the step's own ops are
    those of a step that counts nothing, and train the same bits.

    Before (shortened):
    ```mlir
    func.func @train_step(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = gpuc.fused "head.log"(%x) …
      return %0 : tensor<4xf32>
    }
    func.func private @train_step_checks(%x: tensor<4xf32>) -> (tensor<1xi32> {gpuc.name = "nonfinite"})
        attributes {gpuc.checks_of = @train_step} {
      %0 = gpuc.fused "head.log_is_finite"(%x) …
      return %0 : tensor<1xi32>
    }
    ```
    After:
    ```mlir
    func.func @train_step(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<1xi32> {gpuc.name = "nonfinite"}) {
      %0 = gpuc.fused "head.log_is_finite"(%x) …
      %1 = gpuc.fused "head.log"(%x) …
      return %1, %0 : tensor<4xf32>, tensor<1xi32>
    }
    ```
  }];
}

def FusePass : GpucPass<"gpuc-fuse"> {
  let summary = "Gather ops into kernels";
  let description = [{
    Afterwards every op that a kernel computes stands in a `gpuc.fused`, named after the layer and the ops that it came
    from. Chains of pointwise ops become one kernel, with the constants, broadcasts and casts that they read; so does
    what a reduction alone reads, and what follows it in its own shape. Nothing expensive is computed twice. A long sum
    to one element becomes two, of parts and of those, so that all processors take part in it.

    Reductions of the same rows become one kernel with what lies before, between and behind them, if that is faster
    by the target's figures: a softmax reads its operand once and writes its result. On CUDA attention becomes a kernel by
    itself, with what cuts heads out of a projection; its gradient becomes two, one for the query's cotangent.

    Before:
    ```mlir
    %h = gpuc.matmul %x, transpose %w : … loc("fc1")
    %1 = gpuc.broadcast %b dims [1] : tensor<128xf32> to tensor<64x128xf32> loc("fc1")
    %2 = gpuc.add %h, %1 : tensor<64x128xf32> loc("fc1")
    %3 = gpuc.relu %2 : tensor<64x128xf32> loc("act1")
    ```
    After:
    ```mlir
    %h = gpuc.matmul %x, transpose %w : … loc("fc1")
    %3 = gpuc.fused "fc1.add_relu"(%h, %b) : (tensor<64x128xf32>, tensor<128xf32>) -> tensor<64x128xf32> {
    ^bb0(%h_0: tensor<64x128xf32>, %b_1: tensor<128xf32>):
      %4 = gpuc.broadcast %b_1 dims [1] : tensor<128xf32> to tensor<64x128xf32>
      %5 = gpuc.add %h_0, %4 : tensor<64x128xf32>
      %6 = gpuc.relu %5 : tensor<64x128xf32>
      gpuc.yield %6 : tensor<64x128xf32>
    }
    ```
  }];
  let options = [
    Option<"enable", "enable", "bool", /*default=*/"true", "Off, each op is a kernel of its own (-O0)">,
    Option<"target", "target", "std::string", /*default=*/"\"host\"",
           "host[:CPU] or cuda:ARCHITECTURE: what costs are those of">,
  ];
}

//===----------------------------------------------------------------------===//
// Recomputation
//===----------------------------------------------------------------------===//

def CheckpointPass : GpucPass<"gpuc-checkpoint"> {
  let summary = "Compute values of the forward pass again instead of keeping them";
  let description = [{
    What the backward pass of `@train_step` reads of the forward pass lives from the one to the other. Afterwards it
    reads, in place of what the policy does not keep, copies that are computed again before their first backward reader,
    by the same kernels from what is kept: memory for time, and not a bit changes. Loops over parts of the batch are
    treated by themselves. What a loop over chunks of time (`gpuc-cut-scans`) stacks for backward loops over the same chunks
    alone, those compute again chunk by chunk; another loop over time is one op.

    - `model`, the default, does what the model's `gpuc.checkpoint` ops say: `blocks` with their patterns; `none` where there
      are none.
    - `none` keeps everything.
    - `sqrt` cuts the forward pass, of n ops, into about √n segments at places that few bytes cross, and keeps what
      crosses, and the last segment.
    - `full` takes as many segments as leave the fewest bytes live. Neither of the two keeps stacks of chunks.
    - `save=matmul,attention` keeps the results of kernels and library calls with one of these ops, and what stands
      behind the last of them, where the backward pass begins; nothing else.
    - `blocks=h.*,head` computes layers with such names again as a whole: it keeps what they read of one another, kernels
      that belong to more than one of them or to none, and drops the rest. A pattern is matched as a shell matches files;
      of an op's layer `h.0.attn` the outermost that one matches, here `h.0`, is its block.

    Behind it there are no `gpuc.checkpoint` ops. Of those that another policy overrules a warning tells.

    Before, with `policy=save=matmul`:
    ```mlir
    %h = gpuc.matmul %x, transpose %w : … loc("fc1")
    %a = gpuc.fused "act.gelu"(%h) : …
    …
    %dw = gpuc.matmul transpose %da, %a : … loc(fused<"backward">["fc2"])
    ```
    After:
    ```mlir
    %h = gpuc.matmul %x, transpose %w : … loc("fc1")
    %a = gpuc.fused "act.gelu"(%h) : …
    …
    %b = gpuc.fused "act.gelu"(%h) {gpuc.recomputed} : …
    %dw = gpuc.matmul transpose %da, %b : … loc(fused<"backward">["fc2"])
    ```
  }];
  let options = [
    Option<"policy", "policy", "std::string", /*default=*/"\"model\"", "model, none, sqrt, full, save=OP,OP… or blocks=LAYER,LAYER…">,
  ];
}

//===----------------------------------------------------------------------===//
// Between stages
//===----------------------------------------------------------------------===//

def VerifyStagePass : Pass<"gpuc-verify-stage", "::mlir::ModuleOp"> {
  let summary = "Check what a stage leaves before the next one takes it for granted";
  let description = [{
    Changes nothing. What is wrong is an error that names the pass whose work it was: the one that has run last, `after`,
    or an earlier one that should have seen to it.

    `entries`: what holds from the step until there are commands.
    - There is no recipe, and each function is a public one of one block, or the copy that `gpuc-check-numerics` has made.
    - Nothing is called, and nothing is left to be differentiated.
    - Every value is a tensor of static shape, and every scan goes over its first dimension.
    - `@init` assigns each variable but `@seed`; `@train_step` each optimizer's slot that it reads, and `@step`; no other
      function assigns.

    `step`: that, and what holds when the step was just made.
    - Outside of `@train_step` no op does what it does in training alone.
    - Where a function takes `rows`, its results depend on them: its losses are masked.
    - `@train_step` returns loss_sum, and assigns each parameter, unless it is frozen, on which that depends by way of floats.
    - No two ops of `@init` draw under one id.

    `kernels`: `entries`, and what holds when all ops are in kernels.
    - Each op outside of `gpuc.fused` has a command, or needs none: the question that `gpuc-to-plan` asks.
    - Each `gpuc.fused` is one kernel, or a product with what follows it: the question that the emitter asks.
    - The module says for which target it is, and no copy stands beside the step.

    `updates`: what holds when each assigned value is computed where its variable lies, half-way through `gpuc-to-plan`.
    - No op reads a variable's old value, or draws by `@seed` or `@step`, behind the op that computes the new one.

    `commands`: what holds as long as commands have no streams.
    - There are programs and variables of the plan, no functions; each kernel is launched.
    - Each command touches bytes that its buffers have, in all iterations of the loops around it.
    - Bytes are written before they are read, and inputs uploaded once. Outputs are written.
    - Nothing but an upload writes an input, and nothing a constant.
    - `@init` writes each variable but `@seed`, `@train_step` each optimizer's slot that it uses, and both in whole.

    ```mlir
    func.func @predict(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = gpuc.neg %x : tensor<4xf32> // error: gpuc-fuse left 'gpuc.neg' in @predict outside of every kernel, …
    ```
  }];
  let options = [
    Option<"stage", "stage", "std::string", /*default=*/"\"entries\"", "step, entries, kernels, updates or commands">,
    Option<"after", "after", "std::string", /*default=*/"\"the pass before\"", "The pass that has run last">,
  ];
}

//===----------------------------------------------------------------------===//
// Plan: order, streams, memory
//===----------------------------------------------------------------------===//

def ToPlanPass : Pass<"gpuc-to-plan", "::mlir::ModuleOp"> {
  let summary = "Turn tensors into buffers and ops into commands";
  let description = [{
    Each function becomes a `plan.program`. Fused regions become kernels, matmuls library commands, a reshape another
    name for its operand's buffer. An assigned value is computed where the variable lies; where an old value is still
    needed by then, a copy is made instead.

    Before:
    ```mlir
    func.func @train_step(%x: tensor<4xf32> {gpuc.name = "x"}) {
      %w = gpuc.read @w : tensor<4xf32>
      %0 = gpuc.fused "add" (%w, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> { … }
      gpuc.assign @w, %0 : tensor<4xf32>
      return
    }
    ```
    After:
    ```mlir
    plan.kernel @add (%a: tensor<4xf32>, %b: tensor<4xf32>) { … }
    plan.program @train_step {
      %x = plan.input "x" : tensor<4xf32>
      %w = plan.use @w : tensor<4xf32> parameter
      plan.upload %x
      plan.launch @add(%w, %x) -> (%w)
    }
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"host\"", "host[:CPU] or cuda:ARCHITECTURE">,
  ];
  let dependentDialects = ["::gpuc::plan::PlanDialect"];
}

def OrderPass : Pass<"plan-order", "::mlir::ModuleOp"> {
  let summary = "Order each program's commands so that little memory is live at once";
  let description = [{
    By the commands' reads and writes, in each loop by itself, innermost first, then in the program: greedily, through
    minimum cuts, and by a search that proves the order of a few dozen commands to be the best (`passes/ordering/`). The given
    order stays if the new one has no lower peak, of bytes that are counted as placement will count them.

    Before, both `%a` and `%b` are live at once:
    ```mlir
    plan.launch @big() -> (%a)
    plan.launch @big() -> (%b)
    plan.launch @small(%a) -> (%c)
    plan.launch @small(%b) -> (%d)
    ```
    After:
    ```mlir
    plan.launch @big() -> (%a)
    plan.launch @small(%a) -> (%c)
    plan.launch @big() -> (%b)
    plan.launch @small(%b) -> (%d)
    ```
  }];
}

def AssignStreamsPass : Pass<"plan-assign-streams", "::mlir::ModuleOp"> {
  let summary = "Put commands on streams and order the streams by events";
  let description = [{
    Compute gets one stream. On CUDA uploads get one of their own, and the batch two slots, so that a batch is copied while
    the step before it computes. The host reads inputs where the caller has them.

    Before:
    ```mlir
    plan.upload %x
    plan.launch @f(%x) -> (%y)
    ```
    After:
    ```mlir
    %ready = plan.event "batch_ready"
    %free = plan.event "slot_free"
    plan.stream "compute" {
      plan.wait %ready
      plan.launch @f(%x) -> (%y)
      plan.record %free
    }
    plan.stream "copy" {
      plan.wait %free distance 2
      plan.upload %x
      plan.record %ready
    }
    ```
  }];
}

def GroupLaunchesPass : GpucPass<"plan-group-launches"> {
  let summary = "Make one launch of the optimizer's updates, and one of the norms of the gradients";
  let description = [{
    Three kinds of launches of a program's main stream are grouped, each launch with those of its kind that wait for
    nothing of one another: pointwise kernels that update variables where they lie, whatever they compute; kernels of
    equal ops that fold their operand to one number; and such as fold it to parts that only those read. A group stands
    where its last member stood. Its kernel holds the members' as segments: gpuc.fused over operands of their own, which the
    emitter spreads over one range of tiles or one grid.

    A member that moves back keeps what it alone still needs alive for longer. It joins the last group for which the most
    bytes that are live at once do not grow, or else stays where it is. `most-operands` is how many buffers a launch of the
    target takes; 0 asks the target. A launch that touches more than `most-bytes` stays alone; 0 is no limit on CUDA, and
    256 KiB on the host, whose threads then each update what they have in their caches.

    Before:
    ```mlir
    plan.launch @fc2.weight.sgd(%g2, %w2) -> (%w2)
    plan.matmul %d, transpose %x -> %g1 : f32 batch 1 m 128 n 784 k 64
    plan.launch @fc1.weight.sgd(%g1, %w1) -> (%w1)
    ```
    After:
    ```mlir
    plan.kernel @update.sgd (%a: tensor<10x128xf32>, …) {
      %0 = gpuc.fused "fc2.weight.sgd"(%a, %b) : … { … }
      %1 = gpuc.fused "fc1.weight.sgd"(%c, %d) : … { … }
      gpuc.yield %0, %1 : …
    }
    plan.matmul %d, transpose %x -> %g1 : f32 batch 1 m 128 n 784 k 64
    plan.launch @update.sgd(%g2, %w2, %g1, %w1) -> (%w2, %w1)
    ```
  }];
  let options = [
    Option<"mostOperands", "most-operands", "int64_t", "0", "Buffers that a launch takes; 0: as many as the target's does">,
    Option<"mostBytes", "most-bytes", "int64_t", "0", "Bytes of the buffers of a launch that may join a group; 0: what suits the target">,
  ];
}

def PlaceBuffersPass : Pass<"plan-place-buffers", "::mlir::ModuleOp"> {
  let summary = "Give every variable, constant, buffer and input slot its place in the one arena";
  let description = [{
    Buffers whose lifetimes do not meet share bytes; a kernel's result lies over an operand that dies there if the kernel
    allows it. The result states the arena's size, and what no placement could go below.

    Before:
    ```mlir
    %h = plan.buffer "fc1.matmul" : tensor<64x128xf32> activation
    ```
    After:
    ```mlir
    plan.arena 1623040 bytes, variables at 0x0, workspace at 0x125400, inputs at 0x185400, slots 1, lower_bound 1623040
    %h = plan.buffer "fc1.matmul" : tensor<64x128xf32> activation at 0x156400
    ```
  }];
  let options = [
    Option<"effort", "effort", "int64_t", /*default=*/"1'000'000'000",
           "How hard to search where greedies miss the lower bound, in steps of about a nanosecond">,
  ];
}

def ParallelizePass : Pass<"plan-parallelize", "::mlir::ModuleOp"> {
  let summary = "Make a plan.parallel of loops that threads may take by rows, or by iterations";
  let description = [{
    For the host. A loop over time in which no row needs what is computed of another one is cut by rows; an outermost one whose
    iterations touch nothing that another one writes, by iterations. Kernels say there which of their operands go by rows. No bit
    hangs on it: the runtime chooses how many threads take parts, and whether.

    Before:
    ```mlir
    plan.repeat 100 {
      %h1 = plan.view %hs[4096] strides [4096] : tensor<32x32xf32>
      …
    }
    ```
    After:
    ```mlir
    plan.parallel rows 32 {
      plan.repeat 100 {
        %h1 = plan.view %hs[4096] strides [0, 4096] : tensor<32x32xf32>
        …
      }
    }
    ```
  }];
}

def VerifyPlanPass : Pass<"plan-verify", "::mlir::ModuleOp"> {
  let summary = "Prove that no two commands conflict and that every read finds what was meant";
  let description = [{
    Unrolls (input slots + 1) steps of each program and each program after the others, computes happens-before from
    streams and events, and checks every pair of accesses to the same bytes and the contents that every read finds.
    Changes nothing.

    ```mlir
    plan.stream "copy"    { plan.upload %x }         // error: writes x [0x40, 0x80) while another stream reads
    plan.stream "compute" { plan.launch @f(%x) -> () }  // x [0x40, 0x80): no event orders them
    ```
  }];
}

#endif
