//===- StepPasses.td - From a model to a step in which everything is explicit ===//

def SpecializeBatchPass : GpucPass<"gpuc-specialize-batch"> {
  let summary = "Bind the batch: every leading `?` becomes one number";
  let description = [{
    The number is the option's, else the recipe's. Afterwards the module has no `?`, and holds the number as its
    attribute `gpuc.batch`. A module without `?` keeps its shapes; a batch that contradicts one bound earlier is an
    error. Scans with `batch_first` become scans over their first dimension, between transposes. Where the recipe has
    microbatches or ranks, arguments and random ops with a leading `?` are marked (`gpuc.partition`), and so are those that
    a frontend has marked which knew the batch (`gpuc.has_rows`).

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

def SyncBatchNormPass : GpucPass<"gpuc-sync-batch-norm"> {
  let summary = "Have batch norms count the rows of all ranks";
  let description = [{
    As PyTorch's `SyncBatchNorm.convert_sync_batchnorm`, if the recipe has `sync_batch_norm = true`. What is over the
    batch is seen by its leading `?`, so that this comes before `gpuc-specialize-batch`, or a frontend has marked it which
    knew the batch (`gpuc.has_rows`). A batch norm in a loop is an error, and so is a model that has none.

    Before:
    ```mlir
    %y, %m, %v, %mu, %r = gpuc.batch_norm %x running %rm, %rv : (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>) -> …
    ```
    After:
    ```mlir
    %y, %m, %v, %mu, %r = gpuc.batch_norm %x running %rm, %rv sync : (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>) -> …
    ```
  }];
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
    behind a `select`, nothing is known of a range. Where an entry's argument without a range is the labels, or says
    the rows of a weight, that is a warning: then nobody checks the data.

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

    Where it has an optimizer, the module gets `gpuc.training`, a number that is the same for all that train the same: made of
    what the loss calls and reads and of the recipe's entries, but for those that share the batch out, the seed, initial
    values, names of layers, and what is only evaluated. A plan carries it, and a checkpoint, so that going on with
    something else is said.

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
    The last batch of a data set may be padded. The functions that the recipe names, and those with the attribute
    `gpuc.counts_rows`, get an argument that says how many rows hold a sample, and their losses a mask made of it. It
    stands before `gpuc-autodiff`, so that the backward pass has the mask too. Losses with a mask of their own keep it. A
    function that others use as well keeps its arguments, and the recipe gets a copy. Batch norms that are synchronised
    count these rows alone, where there is such an argument.

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
    A `gpuc.nll` of a `gpuc.log_softmax` that nothing else reads becomes the `gpuc.cross_entropy` that it is.
    A `gpuc.cross_entropy` or `gpuc.accuracy` of a matmul with one matrix for all rows, with or without a bias that is
    added to it, becomes a `gpuc.linear_cross_entropy` or `gpuc.linear_accuracy`, if nothing else reads the logits, and if
    these do not fit into one chunk of rows (see `gpuc.linear_cross_entropy`): those that do would be stored anyway. A
    weight that is not stored as [classes, features] is transposed. Calls in the functions that the recipe names are
    inlined first. Where such an op, the model's own or one made here, leaves `chunk` open and would take fewer rows than
    keep the target busy, which are 1,024 on a GPU, it gets that `chunk`; one that says `chunk` keeps it. It stands before
    `gpuc-autodiff`, which takes the derivative of the one op.

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
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"host\"",
           "host[:CPU] or cuda:ARCHITECTURE: how many rows a chunk has at the least">,
  ];
}

def FoldPaddingPass : GpucPass<"gpuc-fold-padding"> {
  let summary = "Make padding of convolutions of zeros around images, and of rows and columns that are cut off";
  let description = [{
    Zeros that a `gpuc.pad` puts around rows and columns of what a `gpuc.conv2d` reads become padding of the convolution,
    also around a series of which a reshape makes images of height or width 1. What a `gpuc.slice` leaves of the rows and
    columns of a convolution, or of a transposed one, is all that is computed, if nothing else reads the rest: behind a
    bias, and behind the reshape that makes a series of images. Windows that would have to begin further inside than the
    image does are left as they are. It stands before `gpuc-autodiff`, so that no cotangent is computed of what is padding.

    Before:
    ```mlir
    %padded = gpuc.pad %x low [0, 0, 0, 0] high [0, 0, 1, 1] interior [0, 0, 0, 0] : (tensor<8x3x32x32xf32>) -> tensor<8x3x33x33xf32>
    %y = gpuc.conv2d %padded, %w strides [2, 2] : (tensor<8x3x33x33xf32>, tensor<16x3x3x3xf32>) -> tensor<8x16x16x16xf32>
    ```
    After:
    ```mlir
    %y = gpuc.conv2d %x, %w strides [2, 2] padding [0, 1, 0, 1] : (tensor<8x3x32x32xf32>, tensor<16x3x3x3xf32>) -> tensor<8x16x16x16xf32>
    ```
  }];
}

def FuseAttentionPass : GpucPass<"gpuc-fuse-attention"> {
  let summary = "Make one op of attention that is spelled out, so that no score is stored";
  let description = [{
    softmax(scale · query · keyᵀ + mask) · value, written op by op, becomes a `gpuc.attention`, if the target computes
    that whole (see `gpuc-decompose`) and nothing else reads what stands between. Matrices have 3 or 4 dimensions. There
    may be casts between, a factor or divisor that is a constant, dropout of the probabilities, and masks: -∞ where a
    condition holds, or numbers that are added. A mask that constants say, and that leaves each query all keys up to its
    own, becomes `causal`; one that leaves all keys goes. A large negative number (-1e9 or less) in the place of -∞ is
    taken of known masks alone, of which each row sees something; elsewhere a row that sees nothing would be a mean of
    all values, where attention gives 0. It gives 0 as well where -∞ hides all keys of a query, which the formula makes
    NaN of. Numbers of which each score has its own are no mask. It stands behind `gpuc-mixed-precision`, whose casts it sees: products keep
    their type, and what is between is computed in f32. It stands before `gpuc-autodiff`, which takes the derivative of
    the one op.

    Before:
    ```mlir
    %s = gpuc.matmul %q, transpose %k : (tensor<8x4x64x16xf32>, tensor<8x4x64x16xf32>) -> tensor<8x4x64x64xf32>
    %scaled = gpuc.mul %s, %quarter : tensor<8x4x64x64xf32>
    %p = gpuc.softmax %scaled dim 3 : tensor<8x4x64x64xf32>
    %o = gpuc.matmul %p, %v : (tensor<8x4x64x64xf32>, tensor<8x4x64x16xf32>) -> tensor<8x4x64x16xf32>
    ```
    After:
    ```mlir
    %o, %lse = gpuc.attention %q, %k, %v scale 0.25 : …
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"host\"",
           "host[:CPU] or cuda:ARCHITECTURE: which attention stays whole">,
  ];
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
    Option<"predict", "predict", "bool", /*default=*/"true", "Off, @predict is erased as well">,
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

def ReluBehindPoolingPass : GpucPass<"gpuc-relu-behind-pooling"> {
  let summary = "Pool first, then relu, so that what is pooled need not be kept";
  let description = [{
    The largest of relus is the relu of the largest. Behind the pooling relu has fewer elements, and its derivative reads
    what the next layer keeps anyway. relu stays where it is if another op reads it, if one reads the pooling's indices, and
    behind a batch norm, whose result is not kept but computed again. It stands before `gpuc-autodiff`. No number changes,
    but perhaps the sign of a zero.

    Before:
    ```mlir
    %0 = gpuc.relu %x : tensor<4x8x28x28xf32>
    %values, %indices = gpuc.max_pool2d %0 window [2, 2] strides [2, 2] : (tensor<4x8x28x28xf32>) -> (tensor<4x8x14x14xf32>, tensor<4x8x14x14xi64>)
    ```
    After:
    ```mlir
    %values, %indices = gpuc.max_pool2d %x window [2, 2] strides [2, 2] : (tensor<4x8x28x28xf32>) -> (tensor<4x8x14x14xf32>, tensor<4x8x14x14xi64>)
    %0 = gpuc.relu %values : tensor<4x8x14x14xf32>
    ```
  }];
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

def EvaluateGradientsPass : GpucPass<"gpuc-evaluate-gradients"> {
  let summary = "Have predictions and evaluation differentiate what they compute, in inference form";
  let description = [{
    `@predict`, the entries that `gpuc-find-entries` found, and the loss and the accuracy as `@eval_step` has them compute
    in inference form: a batch norm by its running statistics, dropout not at all. What they differentiate has that form
    as well, so that derivatives are those of the numbers that come out: each of them that comes to a `gpuc.gradient`, and to
    an op whose form matters, gets copies of all functions on the way. An entry that training calls goes on by the copy's
    name with what it was; the loss says what it is evaluated as. It stands before `gpuc-autodiff`; elsewhere
    `gpuc-expand-recipe` brings about the form.

    Before:
    ```mlir
    func.func private @energy(%x: tensor<4xf64>) -> tensor<f64> {
      %0 = gpuc.dropout %x p 0.5 id 1 : tensor<4xf64>
      …
    }
    func.func @slope(%x: tensor<4xf64>) -> tensor<4xf64> attributes {gpuc.entry} {
      %y, %dx = gpuc.gradient @energy(%x) wrt arguments [0] : (tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>)
    ```
    After:
    ```mlir
    func.func private @energy_0(%x: tensor<4xf64>) -> tensor<f64> {
      … // %x in place of the dropout
    }
    func.func @slope(%x: tensor<4xf64>) -> tensor<4xf64> attributes {gpuc.entry} {
      %y, %dx = gpuc.gradient @energy_0(%x) wrt arguments [0] : (tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>)
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
