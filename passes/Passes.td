#ifndef GPUC_PASSES
#define GPUC_PASSES

include "mlir/Pass/PassBase.td"

/// Over a module, and makes ops of gpuc's dialect.
class GpucPass<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::gpuc::ir::GpucDialect"];
}

// In the order in which a model meets them.
include "passes/StepPasses.td"
include "passes/KernelPasses.td"
include "passes/PlanPasses.td"

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

#endif
