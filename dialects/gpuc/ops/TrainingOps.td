#ifndef GPUC_TRAINING_OPS
#define GPUC_TRAINING_OPS

include "dialects/gpuc/GpucOpBase.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

def VariableOp : Gpuc_Op<"variable", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "A tensor that lives from step to step";
  let description = [{
    ```mlir
    gpuc.variable @fc1.weight : tensor<128x784xf32> init kaiming_uniform(fan_in = 784)
    gpuc.variable @embedding.weight frozen : tensor<1000x64xf32> init normal(std = 0.02)
    ```
    Initializers: zeros, ones, constant(value), uniform(bound), normal(mean, std), kaiming_uniform(fan_in),
    kaiming_normal(fan_in), xavier_uniform(fan_in, fan_out), xavier_normal(fan_in, fan_out). `frozen`: no gradient is
    computed for it. `kind` is parameter (if it is not said), statistic, optimizer or counter, and is written before the
    colon: `gpuc.variable @step kind counter : tensor<i64> init zeros`.

    - (variable_C1) kind is one of these.
    - (variable_C2) The shape is static: a variable does not depend on the batch.
    - (variable_C3) It has a name.

    Ranks may share a variable out (`gpuc.reduce_scatter` says how): each of `shards` ranks has its share of the tensor of
    the shape `shard_of`. Or each of `shards` ranks has another variable there, rank r that of the r-th of the names
    `owners` (`gpuc.reduce_to_owners`); what those behind the last have there is nobody's.

    - (variable_C4) Where it is a share, its shape is that of one.
    - (variable_C5) There are no more owners than ranks, and it is no share then.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<Gpuc_Tensor>:$type, Gpuc_SpecAttr:$initializer,
                       UnitAttr:$frozen, DefaultValuedAttr<StrAttr, "\"parameter\"">:$kind,
                       OptionalAttr<DenseI64ArrayAttr>:$shard_of, OptionalAttr<I64Attr>:$shards,
                       OptionalAttr<StrArrayAttr>:$owners);
  let assemblyFormat = [{
    $sym_name (`frozen` $frozen^)? (`kind` custom<Word>($kind)^)? custom<ColonTensor>($type) `init`
    custom<Spec>($initializer) attr-dict
  }];
  let builders = [
    /// Of a variable that is no share of one.
    OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::RankedTensorType":$type, "::gpuc::ir::SpecAttr":$initializer,
                   "bool":$frozen, "::llvm::StringRef":$kind), [{
      build($_builder, $_state, name, type, initializer, frozen, kind, ::mlir::DenseI64ArrayAttr(), ::mlir::IntegerAttr(),
            ::mlir::ArrayAttr());
    }]>
  ];
  let extraClassDeclaration = [{
    /// Of the whole tensor, where the variable is a share of one.
    ::mlir::RankedTensorType getWholeType();

    /// Its name in files; of one that is another one on each rank, that of the first.
    ::llvm::StringRef getFirstName();
  }];
  let hasVerifier = 1;
}

def ReadOp : Gpuc_Op<"read", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The value that a variable had when the step began";
  let description = [{
    - (read_C1) The variable is declared.
    - (read_C2) It is declared with this type.
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable);
  let results = (outs Gpuc_Tensor:$result);
  let assemblyFormat = "$variable attr-dict `:` type($result)";
}

def AssignOp : Gpuc_Op<"assign", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The value that a variable will have when the step ends";
  let description = [{
    - (assign_C1) The variable is declared.
    - (assign_C2) It is declared with this type.
    - (assign_C3) It is assigned once on one path.
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable, Gpuc_Tensor:$value);
  let assemblyFormat = "$variable `,` $value attr-dict `:` type($value)";
}

//===----------------------------------------------------------------------===//
// Derivatives and the recipe
//===----------------------------------------------------------------------===//

def GradientOp : Gpuc_Op<"gradient", [DeclareOpInterfaceMethods<SymbolUserOpInterface>, AttrSizedOperandSegments]> {
  let summary = "A function's results, and the gradient of the first of them";
  let description = [{
    The first result of `callee` is a scalar. After the callee's results come its gradients by the arguments with the
    given numbers, then by the given variables, each times `seed` where there is one. `gpuc-autodiff` puts the forward
    and backward pass in its place.

    ```mlir
    %sum, %count, %d_w = gpuc.gradient @loss(%x, %labels) wrt [@fc.weight]
        : (tensor<64x784xf32>, tensor<64xi32>) -> (tensor<f32>, tensor<f32>, tensor<10x784xf32>)
    %y, %d_x = gpuc.gradient @f(%x) wrt arguments [0] : (tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>)
    %y, %d_x = gpuc.gradient @f(%x) seed %s : tensor<f64> wrt arguments [0] : (tensor<4xf64>) -> (tensor<f64>, tensor<4xf64>)
    ```

    - (gradient_C1) callee is a function of the module.
    - (gradient_C2) inputs are of the types of its arguments.
    - (gradient_C3) Its first result is a floating-point scalar.
    - (gradient_C4) Argument numbers are those of arguments that it has.
    - (gradient_C5) What is derived by is of floating point.
    - (gradient_C6) The results are the callee's, then the gradients.
    - (gradient_C7) Variables are declared.
    - (gradient_C8) seed is of the type of the first result.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<Gpuc_Tensor>:$inputs, Optional<Gpuc_FloatTensor>:$seed,
                       OptionalAttr<DenseI64ArrayAttr>:$arguments,
                       OptionalAttr<TypedArrayAttrBase<FlatSymbolRefAttr, "variables">>:$variables);
  let results = (outs Variadic<Gpuc_Tensor>:$outputs);
  let assemblyFormat = [{
    $callee `(` $inputs `)` (`seed` $seed^ `:` type($seed))? `wrt` (`arguments` $arguments^)? ($variables^)? attr-dict `:`
    functional-type($inputs, $outputs)
  }];
}

def RecipeOp : Gpuc_Op<"recipe", [HasParent<"::mlir::ModuleOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "How the model is trained";
  let description = [{
    ```mlir
    gpuc.recipe {
      loss = @loss,
      accuracy = @accuracy,
      batch = 64,
      accumulate = 4,
      precision = bf16,
      clip_norm = 1.0,
      optimizer = adamw(lr = 3.0e-4),
      groups = (group(match = "head.*", lr = 1.0e-4)),
      schedule = (linear(start_factor = 0.01, total_iters = 100, steps = 100), cosine(T_max = 900))
    }
    ```
    Only `loss` must be there. Names, keys and defaults of specs are PyTorch's where PyTorch has them.

    - `loss` names a function that returns (sum, count); so does `accuracy`, which is only evaluated.
    - `batch`: rows of a microbatch. `accumulate`: microbatches to an update, 1 if it is not said. `emulate_ranks`: so many
      ranks, each with microbatches of its own, take part in an update, one after the other; 1 if it is not said.
      `data_parallel = true`: ranks that are processes of their own, as many as the plan is run with. `shard`: each of
      `world_size` of them keeps its share of what is trained and of the optimizer's state (`optimizer`), and of the sum over
      microbatches as well (`gradients`).
      `sync_batch_norm = true`: statistics of batch norms are those of the rows of all of them, microbatch by microbatch.
    - `precision` of forward and backward pass: see `gpuc-mixed-precision`. `loss_scale` goes with it.
    - `clip_value` bounds each element of the gradient, `clip_norm` the norm of the whole of it.
    - `skip`: which updates are left out as outliers.
    - `optimizer`, and `groups` of variables for which it has other numbers; `schedule`, what becomes of the learning
      rate: several follow one another. `ema`: a running mean of the weights.

    - (recipe_C1) batch, accumulate, emulate_ranks and world_size are at least 1, all but batch below 2^31: rows are counted
      in i32.
    - (recipe_C2) loss and accuracy are functions of the module.
    - (recipe_C3) They return two scalars, both f32 or both f64.
    - (recipe_C4) clip_norm and clip_value are above 0 and finite.
    - (recipe_C5) Ranks are emulated or processes of their own, not both.
    - (recipe_C6) shard is optimizer or gradients, and goes with data_parallel and world_size.
    - (recipe_C7) With sync_batch_norm ranks are processes: emulated ones, one after the other, cannot know of one another.
    - (recipe_C8) A module has one recipe.
  }];
  let arguments = (ins FlatSymbolRefAttr:$loss, OptionalAttr<FlatSymbolRefAttr>:$accuracy, OptionalAttr<I64Attr>:$batch,
                       OptionalAttr<I64Attr>:$accumulate, OptionalAttr<I64Attr>:$emulate_ranks,
                       OptionalAttr<BoolAttr>:$data_parallel, OptionalAttr<Gpuc_SpecAttr>:$shard,
                       OptionalAttr<I64Attr>:$world_size, OptionalAttr<BoolAttr>:$sync_batch_norm,
                       OptionalAttr<Gpuc_SpecAttr>:$precision,
                       OptionalAttr<Gpuc_SpecAttr>:$loss_scale, OptionalAttr<F64Attr>:$clip_value,
                       OptionalAttr<F64Attr>:$clip_norm, OptionalAttr<Gpuc_SpecAttr>:$skip,
                       OptionalAttr<Gpuc_SpecAttr>:$optimizer, OptionalAttr<Gpuc_SpecArrayAttr>:$groups,
                       OptionalAttr<Gpuc_SpecArrayAttr>:$schedule, OptionalAttr<Gpuc_SpecAttr>:$ema,
                       OptionalAttr<I64Attr>:$seed);
  let builders = [
    /// A recipe of a loss and, if it is not null, an accuracy; all else is set afterwards.
    OpBuilder<(ins "::mlir::FlatSymbolRefAttr":$loss, "::mlir::FlatSymbolRefAttr":$accuracy), [{
      $_state.getOrAddProperties<Properties>().loss = loss;
      $_state.getOrAddProperties<Properties>().accuracy = accuracy;
    }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool isDataParallel() { return getDataParallel().value_or(false); }

    /// Whether ranks share out the sum over microbatches as well.
    bool shardsGradients() { return getShard() && getShard()->getName() == "gradients"; }

    /// How the recipe cuts the batch, with so many rows left in a part of the innermost cut; null if it is whole. Errors: see
    /// PartitionAttr.
    ::llvm::FailureOr<PartitionAttr> getPartition(int64_t slices, int64_t rows);
  }];
}

def CheckpointOp : Gpuc_Op<"checkpoint", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "Layers that are computed again for their gradients, not kept";
  let description = [{
    ```mlir
    gpuc.checkpoint "transformer.h.*"
    gpuc.checkpoint "head"
    ```
    `layers` is a pattern of layers' names, as a shell matches files. Of an op's layer `transformer.h.0.attn` the outermost
    that a pattern matches, here `transformer.h.0`, is its block. What blocks read of one another is kept, and what is in
    none; the rest of a block is computed again when the backward pass comes to it. Several of these ops are as one that
    has all of their patterns. `gpuc-checkpoint` does what they say and takes them away; what is not trained needs none.

    - (checkpoint_C1) layers is a pattern, and not empty.
    - (checkpoint_C2) It is one: it has no comma, which would separate it from others on the command line.
  }];
  let arguments = (ins StrAttr:$layers);
  let assemblyFormat = "$layers attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// What is wrong with the text as a pattern; empty if nothing is.
    static std::string findMalformed(::llvm::StringRef layers);
  }];
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

def FusedOp : Gpuc_Op<"fused", [Pure, IsolatedFromAbove, SingleBlock, OpAsmOpInterface]> {
  let summary = "Ops that become one kernel";
  let description = [{
    Made by `gpuc-fuse`; named after the layer that it came from. The region's arguments are the operands.

    ```mlir
    %h = gpuc.fused "fc1.add_relu"(%0, %bias) : (tensor<64x128xf32>, tensor<128xf32>) -> tensor<64x128xf32> {
    ^bb0(%x: tensor<64x128xf32>, %b: tensor<128xf32>):
      %1 = gpuc.broadcast %b dims [1] : tensor<128xf32> to tensor<64x128xf32>
      %2 = gpuc.add %x, %1 : tensor<64x128xf32>
      %3 = gpuc.relu %2 : tensor<64x128xf32>
      gpuc.yield %3 : tensor<64x128xf32>
    }
    ```

    - (fused_C1) The region's arguments have the types of the inputs.
    - (fused_C2) It ends in a yield of the outputs' types.
  }];
  let arguments = (ins StrAttr:$name, Variadic<Gpuc_Tensor>:$inputs);
  let results = (outs Variadic<Gpuc_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$name `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs) $body";
  let hasVerifier = 1;
}

def YieldOp : Gpuc_Op<"yield", [Pure, ReturnLike, Terminator]> {
  let summary = "The results of a region";
  let arguments = (ins Variadic<Gpuc_Tensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

#endif
