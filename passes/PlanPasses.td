//===- PlanPasses.td - Commands: order, streams, memory ----------------------===//

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

def BucketAllReducesPass : Pass<"plan-bucket-all-reduces", "::mlir::ModuleOp"> {
  let summary = "Have what ranks exchange travel together, and beside the commands that compute";
  let description = [{
    The parts that one element type and one time make fit become views of one buffer, which is summed where it lies: nothing is
    packed. Sums that travel beside the commands that compute, if that is faster by the time that the target's figures give
    commands and `link` gives an exchange, are marked for `plan-assign-streams`; their buckets are cut so that the last sum is there
    early at any pace of the commands, and parts come first that take the least to compute. In turn with the commands, buckets are
    so large that latency is a twentieth of their time. What consumes sums is put off until they are predicted to be there. No bit
    hangs on any of it.

    What ranks share out is exchanged in buckets, too, which are one command of several tensors, from and to where these lie:
    `plan.reduce_scatter` as sums are, in loops as well, `plan.all_gather` when the first of its tensors is needed, together with
    those that are needed next.

    Before:
    ```mlir
    plan.launch @backward2(%h) -> (%g2)
    plan.all_reduce %g2 -> %s2 : f32
    plan.launch @backward1(%x) -> (%g1)
    plan.all_reduce %g1 -> %s1 : f32
    plan.launch @update(%s1, %w1) -> (%w1)
    plan.launch @update(%s2, %w2) -> (%w2)
    ```
    After:
    ```mlir
    %bucket0 = plan.buffer "bucket0" : tensor<2048xf32> gradient
    %g2 = plan.view %bucket0[0] : tensor<1024xf32>
    %g1 = plan.view %bucket0[4096] : tensor<1024xf32>
    plan.launch @backward2(%h) -> (%g2)
    plan.launch @backward1(%x) -> (%g1)
    plan.all_reduce %bucket0 -> %bucket0 : f32 {plan.on_stream = "collective"}
    plan.launch @update(%g2, %w2) -> (%w2)
    plan.launch @update(%g1, %w1) -> (%w1)
    ```

    Before:
    ```mlir
    plan.launch @backward2(%h) -> (%g2)
    plan.reduce_scatter %g2 -> %s2 : f32 ranks 2
    plan.launch @backward1(%x) -> (%g1)
    plan.reduce_scatter %g1 -> %s1 : f32 ranks 2
    ```
    After:
    ```mlir
    plan.launch @backward2(%h) -> (%g2)
    plan.launch @backward1(%x) -> (%g1)
    plan.reduce_scatter %g2, %g1 -> %s2, %s1 : f32 ranks 2
    ```
  }];
  let options = [
    Option<"link", "link", "std::string", /*default=*/"\"\"",
           "What ranks exchange by: memory, ethernet, infiniband, nvlink, with :bandwidth=SIZE,latency=MICROSECONDS; "
           "empty: memory on the host, nvlink on CUDA">,
    Option<"bucketBytes", "bucket-bytes", "int64_t", "0", "Most bytes of a bucket; 0: what suits the link">,
    Option<"alwaysBeside", "always-beside", "bool", "false",
           "Exchanges travel beside the commands that compute, whatever is predicted: for tests">,
  ];
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

def UpdateInProductsPass : GpucPass<"plan-update-in-products"> {
  let summary = "On the host, hand a weight's gradient to the weight's update tile by tile, instead of storing it";
  let description = [{
    Of a matmul, or a filter's gradient, whose result nobody but a weight's update reads, element by element: the update
    moves up to the product, or the product down to the update, behind all else that reads the weight. The latter keeps the
    product's operands for longer, and is done only if the most bytes that are live at once do not grow. The kernel gets the
    gradient as its first argument. Not of 16-bit gradients, nor of filters' in f64, nor where the host would take the
    product's sums in another order, or adds up a filter's by parts of a tile (runtime/workspace/conv_tiles.h); in repeats
    nothing is joined.

    Before:
    ```mlir
    plan.matmul transpose %d, %x -> %g : f32 batch 1 m 128 n 784 k 64
    plan.matmul %d, %w -> %dx : f32 batch 1 m 64 n 784 k 128
    plan.launch @fc1.weight.sgd(%w, %g) -> (%w)
    ```
    After:
    ```mlir
    plan.matmul %d, %w -> %dx : f32 batch 1 m 64 n 784 k 128
    plan.matmul transpose %d, %x update @fc1.weight.sgd(%w) -> (%w) : f32 batch 1 m 128 n 784 k 64
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
    Option<"greedies", "greedies", "bool", /*default=*/"false",
           "Leave it at what greedies find: for what a plan takes at the least, which is stated as well">,
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
    streams and events, and checks every pair of accesses to the same bytes and the contents that every read finds. No copy packs
    or unpacks what is summed over ranks. Changes nothing.

    ```mlir
    plan.stream "copy"    { plan.upload %x }         // error: writes x [0x40, 0x80) while another stream reads
    plan.stream "compute" { plan.launch @f(%x) -> () }  // x [0x40, 0x80): no event orders them
    ```
  }];
}
