#ifndef PLAN_OPS
#define PLAN_OPS

include "dialects/plan/AttentionCommands.td"
include "dialects/plan/ConvCommand.td"
include "dialects/plan/MatmulCommand.td"
include "dialects/plan/PlanOpBase.td"

//===----------------------------------------------------------------------===//
// What lives across programs
//===----------------------------------------------------------------------===//

def ArenaOp : Plan_Op<"arena", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "The one allocation that a session makes";
  let description = [{
    In this order: variables and constants; the workspace, in which the programs overlay one another; input slots.
    `lower_bound` is what no placement of these buffers in this order of commands could go below.

    - (arena_C1) There are from 1 to 64 slots.

    ```mlir
    plan.arena 1623040 bytes, variables at 0x0, workspace at 0x125400, inputs at 0x185400, slots 2, lower_bound 1623040
    ```
  }];
  let arguments = (ins I64Attr:$bytes, I64Attr:$variables, I64Attr:$workspace, I64Attr:$inputs,
      I64Attr:$slots, I64Attr:$lower_bound);
  let assemblyFormat = [{
    $bytes `bytes` `,` `variables` `at` custom<Hexadecimal>($variables) `,` `workspace` `at`
    custom<Hexadecimal>($workspace) `,` `inputs` `at` custom<Hexadecimal>($inputs) `,` `slots` $slots `,` `lower_bound`
    $lower_bound attr-dict
  }];
  let hasVerifier = 1;
}

def VariableOp : Plan_Op<"variable", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "A tensor that lives across steps and programs";
  let description = [{
    `kind` is parameter, statistic, optimizer or counter; the initializer is kept as it was written. `shard_of`, `shards`
    and `owners` are those of gpuc.variable.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type, StrAttr:$kind,
      Gpuc_SpecAttr:$initializer, UnitAttr:$frozen, OptionalAttr<DenseI64ArrayAttr>:$shard_of,
      OptionalAttr<I64Attr>:$shards, OptionalAttr<StrArrayAttr>:$owners, Plan_Place:$place);
  let assemblyFormat = [{
    $sym_name `:` $type $kind (`frozen` $frozen^)? `init` custom<Spec>($initializer) (`at` custom<Hexadecimal>($place)^)? attr-dict
  }];
  let extraClassDeclaration = "Category getCategory();";
}

def ConstantOp : Plan_Op<"constant", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "Bytes that are copied to the arena once, at load";
  let arguments = (ins SymbolNameAttr:$sym_name, ElementsAttr:$value, Plan_Place:$place);
  let assemblyFormat = "$sym_name `=` $value (`at` custom<Hexadecimal>($place)^)? attr-dict";
  let hasVerifier = 1;
}

def KernelOp : Plan_Op<"kernel", [Symbol, HasParent<"::mlir::ModuleOp">, IsolatedFromAbove, SingleBlock]> {
  let summary = "A function over buffers, still in the gpuc dialect";
  let description = [{
    Its machine code is made when the plan is written. The block's arguments are what it reads, `gpuc.yield` gives what
    it writes. Kernels with equal bodies share their code. A body that is a list of `gpuc.fused`, over the arguments and all
    yielded, is several kernels in one launch.

    `rows` stands where a `plan.parallel` cuts launches of it: part i of n touches only the i-th of n equal parts of what is
    listed, numbers of arguments and, counting on, of results. Its schedule on the target says so.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<I64Attr>:$rows,
      OptionalAttr<DenseI64ArrayAttr>:$by_rows);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name),
                            [{ build($_builder, $_state, name, nullptr, nullptr); }]>];
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Programs and their buffers
//===----------------------------------------------------------------------===//

def ProgramOp : Plan_Op<"program", [Symbol, HasParent<"::mlir::ModuleOp">, IsolatedFromAbove, NoTerminator,
                                    SingleBlock, SymbolTable]> {
  let summary = "What one call of the runtime executes: a training step, an evaluation step, …";
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<I64Attr>:$peak_bytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name (`peak` $peak_bytes^)? attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def InputOp : Plan_Op<"input", [BufferOp]> {
  let summary = "A slot that receives one tensor of each batch";
  let description = [{
    There are as many slots as `plan.arena` says, `place` is the first one's; step k uses slot k mod slots. `rows` marks
    the scalar into which the runtime writes how many rows of the batch hold samples. `range`: integers lie in [0, range),
    or are `ignored`, a label that is left out.
  }];
  let arguments = (ins StrAttr:$name, TypeAttrOf<AnyRankedTensor>:$type, OptionalAttr<I64Attr>:$range,
      OptionalAttr<I64Attr>:$ignored, UnitAttr:$rows, Plan_Place:$place, OptionalAttr<I64Attr>:$slot_stride);
  let results = (outs Plan_AnyBuffer:$buffer);
  let assemblyFormat = [{
    $name `:` $type (`range` $range^)? (`ignored` $ignored^)? (`rows` $rows^)?
    (`at` custom<Hexadecimal>($place)^ `stride` $slot_stride)? attr-dict
  }];
}

def UseOp : Plan_Op<"use", [BufferOp, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A variable's or constant's buffer";
  let description = [{
    Type and category are those of the symbol, so that no one who asks a buffer for them has to look it up.

    - (use_C1) `symbol` is a `plan.variable` or a `plan.constant` of the same type and category.
  }];
  let arguments = (ins FlatSymbolRefAttr:$symbol, TypeAttrOf<AnyRankedTensor>:$type,
      Plan_CategoryAttr:$category);
  let results = (outs Plan_AnyBuffer:$buffer);
  let builders = [OpBuilder<(ins "::mlir::Operation *":$symbol)>];
  let assemblyFormat = "$symbol `:` $type $category attr-dict";
  let hasVerifier = 1;
}

def AllocOp : Plan_Op<"buffer", [BufferOp]> {
  let summary =
      "Bytes that a program needs from the first command that writes them to the last that reads them";
  let arguments = (ins StrAttr:$name, TypeAttrOf<AnyRankedTensor>:$type, Plan_CategoryAttr:$category,
      Plan_Place:$place);
  let results = (outs Plan_AnyBuffer:$buffer);
  let assemblyFormat = "$name `:` $type $category (`at` custom<Hexadecimal>($place)^)? attr-dict";
}

def ViewOp : Plan_Op<"view"> {
  let summary = "A part of a buffer; inside loops it moves by strides[d] bytes with the d-th one's "
                "iteration, outermost first";
  let arguments = (ins Plan_AnyBuffer:$source, I64Attr:$offset, TypeAttrOf<AnyRankedTensor>:$type,
      DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$strides);
  let results = (outs Plan_AnyBuffer:$buffer);
  let assemblyFormat = "$source `[` $offset `]` (`strides` $strides^)? `:` $type attr-dict";
  let hasVerifier = 1;
}

def OutputOp : Plan_Op<"output"> {
  let summary = "A buffer that the caller may read after the program, until the program runs again";
  let description = [{
    `checks` says what each element counts: values that are NaN or infinite, by the op that made them. `counts_once` says of the
    count of a loss that it is 1 for the whole batch, of which other ranks and microbatches have parts: the loss is a sum.

    - (output_C1) There are as many checks as elements, and these are i32.
  }];
  let arguments = (ins StrAttr:$name, Plan_AnyBuffer:$buffer, OptionalAttr<Gpuc_CheckArrayAttr>:$checks,
      UnitAttr:$counts_once);
  let assemblyFormat = "$name $buffer (`counts_once` $counts_once^)? (`checks` $checks^)? attr-dict";
  let hasVerifier = 1;
}

def EventOp : Plan_Op<"event"> {
  let summary = "Declares an event";
  let arguments = (ins StrAttr:$name);
  let results = (outs Plan_AnyEvent:$event);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name), [{
    build($_builder, $_state, $_builder.getType<EventType>(), name);
  }]>];
  let assemblyFormat = "$name attr-dict";
}

def StreamOp : Plan_Op<"stream", [NoTerminator, SingleBlock, HasParent<"ProgramOp">]> {
  let summary = "Commands that run one after another; the first stream of a program is the main one";
  let arguments = (ins StrAttr:$name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$name attr-dict-with-keyword $body";
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

def LaunchOp
    : Plan_Command<"launch", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Runs a generated kernel";
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Plan_AnyBuffer>:$inputs,
      Variadic<Plan_AnyBuffer>:$outputs);
  let assemblyFormat = "$kernel `(` $inputs `)` `->` `(` $outputs `)` attr-dict";
}

def SumOp : Plan_TableCommand<"sum", "kSumOperands"> {
  let summary = "result[i] = 0 + parts[0, i] + parts[1, i] + …: what the parts of a plan.parallel have "
                "computed, in their order";
  let description = [{
    16-bit floats are added in f32 and rounded once. On the host alone.

    - (sum_C1) The parts are a whole number of results.
  }];
  let arguments = (ins Plan_AnyBuffer:$parts, Plan_AnyBuffer:$result, TypeAttr:$element);
  let assemblyFormat = "$parts `->` $result `:` $element attr-dict";
  let hasVerifier = 1;
  let extraClassDefinition = operandsDefinition#[{
    int64_t $cppClass::getFlops() { return rangeOf(getParts()).size / ::gpuc::ir::elementBytes(getElement()); }

    ::llvm::LogicalResult $cppClass::verify() {
      int64_t parts = rangeOf(getParts()).size, result = rangeOf(getResult()).size;
      if (parts % result == 0)
        return ::mlir::success();
      return emitOpError("of ") << parts << " bytes of parts, which is no whole number of results of " << result;
    }
  }];
}

def AllReduceOp : Plan_TableCommand<"all_reduce", "kAllReduceOperands", [Collective]> {
  let summary = "result[i] = 0 + the part of rank 0 [i] + the part of rank 1 [i] + …, on each rank";
  let description = [{
    Waits for the other ranks, which come to it with equally many bytes. 16-bit floats are added in f32 and rounded once. On
    GPUs the order is NCCL's, which rounds them whenever two are added.

    - (all_reduce_C1) Part and result have equally many bytes.
  }];
  let arguments = (ins Plan_AnyBuffer:$part, Plan_AnyBuffer:$result, TypeAttr:$element);
  let assemblyFormat = "$part `->` $result `:` $element attr-dict";
  let hasVerifier = 1;
  let extraClassDefinition = operandsDefinition#[{
    int64_t $cppClass::getFlops() { return rangeOf(getPart()).size / ::gpuc::ir::elementBytes(getElement()); }

    ::llvm::LogicalResult $cppClass::verify() {
      int64_t part = rangeOf(getPart()).size, result = rangeOf(getResult()).size;
      if (part == result)
        return ::mlir::success();
      return emitOpError("of ") << part << " bytes into " << result << " [all_reduce_C1]";
    }
  }];
}

/// Tensors that are shared out, several in one exchange: the i-th share is of the i-th whole; or, with
/// owners, of so many of them.
class Plan_ShareCommand<string mnemonic, string operandsName, dag operands, string format>
    : Plan_TableCommand<mnemonic, operandsName, [AttrSizedOperandSegments, Collective]> {
  let arguments = !con(operands, (ins TypeAttr:$element, I64Attr:$world_size, OptionalAttr<I64Attr>:$owners));
  let assemblyFormat = format#" `:` $element `ranks` $world_size (`owners` $owners^)? attr-dict";
  let hasVerifier = 1;
  let extraClassDefinition = operandsDefinition#[{
    int64_t $cppClass::getFlops() {
      int64_t elements = 0;
      for (::mlir::Value whole : getWholes())
        elements += rangeOf(whole).size / ::gpuc::ir::elementBytes(getElement());
      return elements;
    }

    ::llvm::LogicalResult $cppClass::verify() {
      return verifyShares(*this, getWholes(), getShares(), getElement(), getWorldSize(), getOwners().value_or(0));
    }
  }];
}

def ReduceScatterOp
    : Plan_ShareCommand<"reduce_scatter", "kReduceScatterOperands",
                        (ins Variadic<Plan_AnyBuffer>:$wholes, Variadic<Plan_AnyBuffer>:$shares),
                        "$wholes `->` $shares"> {
  let summary = "A rank's own shares of the sums of what all ranks have";
  let description = [{
    Each of `shares` is of the sum over ranks of the whole of the same number, as `plan.all_reduce` adds up: of n elements rank
    r has the c = ⌈n / world_size⌉ from the (r · c)-th on, and zeros where there are no more. With `owners` K a share is of
    K equal wholes, one behind the other: rank r has the sum of the r-th of them, and those behind the last have zeros.

    - (reduce_scatter_C1) There are as many shares as wholes, at least one, and each is as long as its whole says; with owners
      so many times as many wholes, of which those of one share are equally long. There are no more owners than ranks.

    ```mlir
    plan.reduce_scatter %weight_gradient, %bias_gradient -> %weight_share, %bias_share : f32 ranks 4
    plan.reduce_scatter %first, %second, %third -> %own : f32 ranks 4 owners 3
    ```
  }];
}

def AllGatherOp : Plan_ShareCommand<"all_gather", "kAllGatherOperands",
                                    (ins Variadic<Plan_AnyBuffer>:$shares, Variadic<Plan_AnyBuffer>:$wholes),
                                    "$shares `->` $wholes"> {
  let summary = "What ranks have shares of, whole, on each of them";
  let description = [{
    The other way of `plan.reduce_scatter`.

    - (all_gather_C1) As reduce_scatter_C1.
  }];
}

def UploadOp : Plan_Command<"upload"> {
  let summary = "Copies a tensor of the batch from the host into its input slot";
  let arguments = (ins Plan_AnyBuffer:$to);
  let assemblyFormat = "$to attr-dict";
}

def DownloadOp : Plan_Command<"download"> {
  let summary = "Copies an output to the host";
  let arguments = (ins Plan_AnyBuffer:$from);
  let assemblyFormat = "$from attr-dict";
}

def CopyOp : Plan_Command<"copy"> {
  let summary = "Copies bytes within the arena";
  let arguments = (ins Plan_AnyBuffer:$from, Plan_AnyBuffer:$to);
  let assemblyFormat = "$from `->` $to attr-dict";
}

def FillOp : Plan_Command<"fill"> {
  let summary = "Fills a buffer with one number";
  let arguments = (ins Plan_AnyBuffer:$to, TypedAttrInterface:$value);
  let assemblyFormat = "$to `with` $value attr-dict";
  let hasVerifier = 1;
}

def RecordOp : Plan_Command<"record"> {
  let summary = "Marks the event's next execution";
  let arguments = (ins Plan_AnyEvent:$event);
  let assemblyFormat = "$event attr-dict";
}

def WaitOp : Plan_Command<"wait"> {
  let summary = "The n-th execution returns after the (n - distance)-th execution of the event's record";
  let arguments = (ins Plan_AnyEvent:$event, DefaultValuedAttr<I64Attr, "0">:$distance);
  let assemblyFormat = "$event (`distance` $distance^)? attr-dict";
}

def RepeatOp : Plan_Command<"repeat", [NoTerminator, SingleBlock, LoopOp]> {
  let summary = "Executes its commands `count` times";
  let description = [{
    - (repeat_C1) There is at least one iteration.
    - (repeat_C2) It holds commands and views.
  }];
  let arguments = (ins I64Attr:$count);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$count attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def ParallelOp : Plan_Command<"parallel", [NoTerminator, SingleBlock, LoopOp]> {
  let summary = "A fork and a join of `parts`, which may be executed in any order, or at once";
  let description = [{
    No part touches bytes that another one writes, as `plan-verify` proves and whoever reads the file checks. The commands
    are those of one part, and views move with the parts as with the iterations of a `plan.repeat`. Buffers that only a
    parallel uses have a place for each part: so are the slices of a batch computed.

    With `rows` the commands are those of all parts: the rows of each of them may be cut into any number of equal parts that
    divides `parts`, and the runtime chooses how many. Views are those of all rows then, and do not move. So is a loop over
    time in which no row needs what is computed of another one.

    - (parallel_C1) There are at least two parts.
    - (parallel_C2) It holds commands and views.
    - (parallel_C3) Nothing in it waits for an event, records one, or moves bytes between host and arena.
    - (parallel_C4) It stands in no other, and without `rows` in no `plan.repeat`.
    - (parallel_C5) With `rows`, `parts` divides the rows of each command in it.

    ```mlir
    plan.parallel 4 { … }
    plan.parallel rows 32 { plan.repeat 100 { … } }
    ```
  }];
  let arguments = (ins I64Attr:$parts, UnitAttr:$by_rows);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "(`rows` $by_rows^)? $parts attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

#endif
