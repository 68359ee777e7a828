//===- KernelPasses.td - What becomes one launch, and what is computed again -===//

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

def LayoutPass : GpucPass<"gpuc-layout"> {
  let summary = "Give convolutions the layout, and products the extents, that the target multiplies fastest";
  let description = [{
    Of a GPU's tensor cores: they multiply f16, bf16, and f32 that is marked `gpuc.tf32`. The host's kernels read
    images as models write them; what changes there is *what loops multiply by*. A product of up to 64 rows with the
    transpose of what a loop of 16 iterations or more only reads, x_t · Wᵀ, packs that in each of them: such weights are
    pre-transposed, once before the loop. And what is computed element by element between a transpose and its inverse,
    as in a norm over the channels of pictures, is computed without the two; sums over it are taken in that order, too.

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

    On CUDA, too, factors that all terms of a sum have in common are multiplied behind it, and where channels lie last a
    batch norm's mean and variance take one sweep over its operand. A long sum over several leading dimensions to few
    columns, as a bias's gradient, becomes two: of what lies under each index of the first, and of those.

    What waits for the backward pass has a price where it is more than the caches hold. For that, on the host, a kernel of
    the backward pass may write again what one of the forward pass has written, so that it need not be kept. The attribute
    `gpuc.written_again` of such a kernel has a list for each result that it repeats: the result's number, the first
    kernel's name, and the number there, as in `{gpuc.written_again = [[0, "act1.gelu", 0]]}`. Policies of
    `gpuc-checkpoint` that drop whole layers, and a memory budget, take it back where what was written first is computed
    again anyway. The command that the kernel becomes has the first kernels' names in the plan, `gpuc.writes_again`.

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
