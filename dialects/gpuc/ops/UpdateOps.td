#ifndef GPUC_UPDATE_OPS
#define GPUC_UPDATE_OPS

include "dialects/gpuc/GpucOpBase.td"

/// One step of an optimizer for one variable: from weight, gradient and state to the new weight and the new state.
/// What depends on step and lr alone is computed in f64 and rounded once to the weight's type.
///
/// Some take numbers that whoever runs the plan changes between steps: `given` scalars stand for the attributes that
/// `given_numbers` names. What hangs on an attribute being 0 (whether there is a buffer) hangs on the attribute still.
class Gpuc_UpdateOp<string mnemonic, list<Trait> traits = []>
    : Gpuc_PureOp<mnemonic, traits # [Composite], ["getFlops"]> {
  let hasVerifier = 1;
}

def SgdUpdateOp : Gpuc_UpdateOp<"sgd_update", [AttrSizedOperandSegments]> {
  let summary = "One step of stochastic gradient descent";
  let description = [{
    PyTorch's torch.optim.SGD: g ← g + weight_decay · w; with momentum μ: b ← μ · b + (1 - dampening) · g (in step 1
    b ← g), and g ← g + μ · b with nesterov, else g ← b; w ← w - lr · g.
    Results: the weight and, with momentum, the buffer. `step` is counted from 1.

    - (sgd_update_C1) gradient and buffer have the type of the weight.
    - (sgd_update_C2) step and lr are scalars.
    - (sgd_update_C3) There is a buffer just when momentum is not 0.
    - (sgd_update_C4) nesterov needs momentum and no dampening.
    - (sgd_update_C5) The results have the type of the weight.
    - (sgd_update_C6) momentum and weight_decay are not negative, and dampening is a number (not NaN).
    - (sgd_update_C7) `given` are scalars, as many as given_numbers, which are of momentum and
      weight_decay, each once.
  }];
  let arguments = (ins Gpuc_FloatTensor:$weight, Gpuc_FloatTensor:$gradient, Optional<Gpuc_FloatTensor>:$momentum_buffer,
                       Gpuc_IndexTensor:$step, Gpuc_FloatTensor:$lr, Variadic<Gpuc_FloatTensor>:$given,
                       F64Attr:$momentum, F64Attr:$dampening, F64Attr:$weight_decay, BoolAttr:$nesterov,
                       OptionalAttr<StrArrayAttr>:$given_numbers);
  let results = (outs Variadic<Gpuc_FloatTensor>:$updated);
  let assemblyFormat = [{
    $weight `gradient` $gradient (`buffer` $momentum_buffer^)? `step` $step `lr` $lr (`given` $given^ $given_numbers)?
    attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// The numbers that it may be given.
    static ::llvm::ArrayRef<::llvm::StringRef> getGivable();
  }];
}

def AdamUpdateOp : Gpuc_UpdateOp<"adam_update", [AttrSizedOperandSegments]> {
  let summary = "One step of Adam, or with `decoupled` weight decay of AdamW";
  let description = [{
    PyTorch's torch.optim.Adam and AdamW [Kingma and Ba 2015; Loshchilov and Hutter 2019]:
    Adam: g ← g + weight_decay · w; AdamW: w ← w - lr · weight_decay · w. m ← β1 · m + (1 - β1) · g;
    v ← β2 · v + (1 - β2) · g²; w ← w - lr / (1 - β1^t) · m / (sqrt(v) / sqrt(1 - β2^t) + ε). `step` is t, from 1.
    With `max`, the largest v so far, the step divides by that: AMSGrad [Reddi, Kale and Kumar 2018].

    - (adam_update_C1) All tensors have the type of the weight.
    - (adam_update_C2) step and lr are scalars.
    - (adam_update_C3) beta1 and beta2 lie in [0, 1).
    - (adam_update_C4) eps and weight_decay are not negative.
    - (adam_update_C5) A new largest second moment is returned just when there is an old one.
    - (adam_update_C6) `given` are scalars, as many as given_numbers, which are of beta1, beta2 and
      weight_decay, each once.
  }];
  let arguments = (ins Gpuc_FloatTensor:$weight, Gpuc_FloatTensor:$gradient, Gpuc_FloatTensor:$exp_avg,
                       Gpuc_FloatTensor:$exp_avg_sq, Optional<Gpuc_FloatTensor>:$max_exp_avg_sq, Gpuc_IndexTensor:$step,
                       Gpuc_FloatTensor:$lr, Variadic<Gpuc_FloatTensor>:$given, F64Attr:$beta1, F64Attr:$beta2,
                       F64Attr:$eps, F64Attr:$weight_decay, UnitAttr:$decoupled,
                       OptionalAttr<StrArrayAttr>:$given_numbers);
  let results = (outs Gpuc_FloatTensor:$new_weight, Gpuc_FloatTensor:$new_exp_avg, Gpuc_FloatTensor:$new_exp_avg_sq,
                      Optional<Gpuc_FloatTensor>:$new_max_exp_avg_sq);
  let assemblyFormat = [{
    $weight `gradient` $gradient `moments` $exp_avg `,` $exp_avg_sq (`max` $max_exp_avg_sq^)? `step` $step `lr` $lr
    (`given` $given^ $given_numbers)? (`decoupled` $decoupled^)? attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// The numbers that it may be given.
    static ::llvm::ArrayRef<::llvm::StringRef> getGivable();
  }];
}

def RmspropUpdateOp : Gpuc_UpdateOp<"rmsprop_update", [AttrSizedOperandSegments]> {
  let summary = "One step of RMSprop";
  let description = [{
    PyTorch's torch.optim.RMSprop [Tieleman and Hinton 2012; centered: Graves 2013]: g ← g + weight_decay · w;
    v ← α · v + (1 - α) · g²; centered, which is with grad_avg a: a ← α · a + (1 - α) · g and d = sqrt(max(v - a², 0)),
    else d = sqrt(v); u = g / (d + ε); with momentum μ: b ← μ · b + u, and u = b; w ← w - lr · u.
    v - a² is below 0 where a gradient never changes and rounding leaves it so, of which PyTorch takes the root, NaN,
    and where v is too small to be kept as a normal number and is 0.
    Results: the weight, v and, of buffer and grad_avg, those that there are.

    - (rmsprop_update_C1) gradient and state have the type of the weight.
    - (rmsprop_update_C2) lr is a scalar.
    - (rmsprop_update_C3) There is a buffer just when momentum is not 0.
    - (rmsprop_update_C4) The results are of the types of the weight and its state.
    - (rmsprop_update_C5) alpha, eps, weight_decay and momentum are not negative.
    - (rmsprop_update_C6) `given` are scalars, as many as given_numbers, which are of momentum and
      weight_decay, each once.
  }];
  let arguments = (ins Gpuc_FloatTensor:$weight, Gpuc_FloatTensor:$gradient, Gpuc_FloatTensor:$square_avg,
                       Optional<Gpuc_FloatTensor>:$momentum_buffer, Optional<Gpuc_FloatTensor>:$grad_avg,
                       Gpuc_FloatTensor:$lr, Variadic<Gpuc_FloatTensor>:$given, F64Attr:$alpha, F64Attr:$eps,
                       F64Attr:$weight_decay, F64Attr:$momentum, OptionalAttr<StrArrayAttr>:$given_numbers);
  let results = (outs Variadic<Gpuc_FloatTensor>:$updated);
  let assemblyFormat = [{
    $weight `gradient` $gradient `square_avg` $square_avg (`buffer` $momentum_buffer^)? (`grad_avg` $grad_avg^)?
    `lr` $lr (`given` $given^ $given_numbers)? attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// The numbers that it may be given.
    static ::llvm::ArrayRef<::llvm::StringRef> getGivable();
  }];
}

def AdagradUpdateOp : Gpuc_UpdateOp<"adagrad_update"> {
  let summary = "One step of Adagrad";
  let description = [{
    PyTorch's torch.optim.Adagrad [Duchi, Hazan and Singer 2011]: g ← g + weight_decay · w; s ← s + g²;
    w ← w - lr / (1 + (t - 1) · lr_decay) · g / (sqrt(s) + ε). `step` is t, from 1.

    - (adagrad_update_C1) All tensors have the type of the weight.
    - (adagrad_update_C2) step and lr are scalars.
    - (adagrad_update_C3) lr_decay, eps and weight_decay are not negative.
    - (adagrad_update_C4) `given` is a scalar if there is one, and given_numbers is weight_decay.
  }];
  let arguments = (ins Gpuc_FloatTensor:$weight, Gpuc_FloatTensor:$gradient, Gpuc_FloatTensor:$sum,
                       Gpuc_IndexTensor:$step, Gpuc_FloatTensor:$lr, Variadic<Gpuc_FloatTensor>:$given,
                       F64Attr:$lr_decay, F64Attr:$eps, F64Attr:$weight_decay, OptionalAttr<StrArrayAttr>:$given_numbers);
  let results = (outs Gpuc_FloatTensor:$new_weight, Gpuc_FloatTensor:$new_sum);
  let assemblyFormat = [{
    $weight `gradient` $gradient `sum` $sum `step` $step `lr` $lr (`given` $given^ $given_numbers)?
    attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// The numbers that it may be given.
    static ::llvm::ArrayRef<::llvm::StringRef> getGivable();
  }];
}

def AdadeltaUpdateOp : Gpuc_UpdateOp<"adadelta_update"> {
  let summary = "One step of Adadelta";
  let description = [{
    PyTorch's torch.optim.Adadelta [Zeiler 2012, algorithm 1]: g ← g + weight_decay · w; v ← ρ · v + (1 - ρ) · g²;
    u = sqrt(a + ε) / sqrt(v + ε) · g; a ← ρ · a + (1 - ρ) · u²; w ← w - lr · u. v is square_avg, a acc_delta.

    - (adadelta_update_C1) All tensors have the type of the weight.
    - (adadelta_update_C2) lr is a scalar.
    - (adadelta_update_C3) rho lies in [0, 1].
    - (adadelta_update_C4) eps and weight_decay are not negative.
    - (adadelta_update_C5) `given` is a scalar if there is one, and given_numbers is weight_decay.
  }];
  let arguments = (ins Gpuc_FloatTensor:$weight, Gpuc_FloatTensor:$gradient, Gpuc_FloatTensor:$square_avg,
                       Gpuc_FloatTensor:$acc_delta, Gpuc_FloatTensor:$lr, Variadic<Gpuc_FloatTensor>:$given,
                       F64Attr:$rho, F64Attr:$eps, F64Attr:$weight_decay, OptionalAttr<StrArrayAttr>:$given_numbers);
  let results = (outs Gpuc_FloatTensor:$new_weight, Gpuc_FloatTensor:$new_square_avg, Gpuc_FloatTensor:$new_acc_delta);
  let assemblyFormat = [{
    $weight `gradient` $gradient `square_avg` $square_avg `acc_delta` $acc_delta `lr` $lr
    (`given` $given^ $given_numbers)? attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// The numbers that it may be given.
    static ::llvm::ArrayRef<::llvm::StringRef> getGivable();
  }];
}

def AdamaxUpdateOp : Gpuc_UpdateOp<"adamax_update"> {
  let summary = "One step of Adamax: Adam by the infinity norm";
  let description = [{
    PyTorch's torch.optim.Adamax [Kingma and Ba 2015, algorithm 2]: g ← g + weight_decay · w; m ← β1 · m + (1 - β1) · g;
    u ← max(β2 · u, |g| + ε); w ← w - lr / (1 - β1^t) · m / u. `step` is t, from 1; m is exp_avg, u exp_inf.

    - (adamax_update_C1) All tensors have the type of the weight.
    - (adamax_update_C2) step and lr are scalars.
    - (adamax_update_C3) beta1 and beta2 lie in [0, 1).
    - (adamax_update_C4) eps and weight_decay are not negative.
    - (adamax_update_C5) `given` are scalars, as many as given_numbers, which are of beta1, beta2 and
      weight_decay, each once.
  }];
  let arguments = (ins Gpuc_FloatTensor:$weight, Gpuc_FloatTensor:$gradient, Gpuc_FloatTensor:$exp_avg,
                       Gpuc_FloatTensor:$exp_inf, Gpuc_IndexTensor:$step, Gpuc_FloatTensor:$lr,
                       Variadic<Gpuc_FloatTensor>:$given, F64Attr:$beta1, F64Attr:$beta2, F64Attr:$eps,
                       F64Attr:$weight_decay, OptionalAttr<StrArrayAttr>:$given_numbers);
  let results = (outs Gpuc_FloatTensor:$new_weight, Gpuc_FloatTensor:$new_exp_avg, Gpuc_FloatTensor:$new_exp_inf);
  let assemblyFormat = [{
    $weight `gradient` $gradient `moments` $exp_avg `,` $exp_inf `step` $step `lr` $lr
    (`given` $given^ $given_numbers)? attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// The numbers that it may be given.
    static ::llvm::ArrayRef<::llvm::StringRef> getGivable();
  }];
}

def NadamUpdateOp : Gpuc_UpdateOp<"nadam_update"> {
  let summary = "One step of NAdam: Adam with Nesterov momentum";
  let description = [{
    PyTorch's torch.optim.NAdam [Dozat 2016]: g ← g + weight_decay · w, or `decoupled` w ← w - lr · weight_decay · w.
    μ_t = β1 · (1 - 0.96^(t · momentum_decay) / 2); p ← p · μ_t; m ← β1 · m + (1 - β1) · g; v ← β2 · v + (1 - β2) · g²;
    w ← w - lr · ((1 - μ_t) / (1 - p) · g + μ_(t+1) / (1 - p · μ_(t+1)) · m) / (sqrt(v / (1 - β2^t)) + ε).
    `step` is t, from 1; m is exp_avg, v exp_avg_sq, p mu_product, the product of all μ so far, 1 at first.

    - (nadam_update_C1) All tensors have the type of the weight.
    - (nadam_update_C2) mu_product, step and lr are scalars, and the new mu_product has the type of the old one.
    - (nadam_update_C3) beta1 and beta2 lie in [0, 1).
    - (nadam_update_C4) eps, weight_decay and momentum_decay are not negative.
    - (nadam_update_C5) `given` are scalars, as many as given_numbers, which are of beta1, beta2 and
      weight_decay, each once.
  }];
  let arguments = (ins Gpuc_FloatTensor:$weight, Gpuc_FloatTensor:$gradient, Gpuc_FloatTensor:$exp_avg,
                       Gpuc_FloatTensor:$exp_avg_sq, Gpuc_FloatTensor:$mu_product, Gpuc_IndexTensor:$step,
                       Gpuc_FloatTensor:$lr, Variadic<Gpuc_FloatTensor>:$given, F64Attr:$beta1, F64Attr:$beta2,
                       F64Attr:$eps, F64Attr:$weight_decay, F64Attr:$momentum_decay, UnitAttr:$decoupled,
                       OptionalAttr<StrArrayAttr>:$given_numbers);
  let results = (outs Gpuc_FloatTensor:$new_weight, Gpuc_FloatTensor:$new_exp_avg, Gpuc_FloatTensor:$new_exp_avg_sq,
                      Gpuc_FloatTensor:$new_mu_product);
  let assemblyFormat = [{
    $weight `gradient` $gradient `moments` $exp_avg `,` $exp_avg_sq `mu_product` $mu_product `step` $step `lr` $lr
    (`given` $given^ $given_numbers)? (`decoupled` $decoupled^)? attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// The numbers that it may be given.
    static ::llvm::ArrayRef<::llvm::StringRef> getGivable();
  }];
}

def RadamUpdateOp : Gpuc_UpdateOp<"radam_update"> {
  let summary = "One step of RAdam: Adam whose steps are as sure as its second moments";
  let description = [{
    PyTorch's torch.optim.RAdam [Liu et al. 2020, algorithm 2]: g ← g + weight_decay · w, or `decoupled`
    w ← w - lr · weight_decay · w. m ← β1 · m + (1 - β1) · g; v ← β2 · v + (1 - β2) · g². With `step` t, from 1,
    ρ∞ = 2 / (1 - β2) - 1 and ρ = ρ∞ - 2 · t · β2^t / (1 - β2^t): w ← w - lr / (1 - β1^t) · m · s, where s is
    sqrt((ρ - 4) · (ρ - 2) · ρ∞ / ((ρ∞ - 4) · (ρ∞ - 2) · ρ)) · sqrt(1 - β2^t) / (sqrt(v) + ε) if ρ > 5, else 1.

    - (radam_update_C1) All tensors have the type of the weight.
    - (radam_update_C2) step and lr are scalars.
    - (radam_update_C3) beta1 and beta2 lie in [0, 1).
    - (radam_update_C4) eps and weight_decay are not negative.
    - (radam_update_C5) `given` are scalars, as many as given_numbers, which are of beta1, beta2 and
      weight_decay, each once.
  }];
  let arguments = (ins Gpuc_FloatTensor:$weight, Gpuc_FloatTensor:$gradient, Gpuc_FloatTensor:$exp_avg,
                       Gpuc_FloatTensor:$exp_avg_sq, Gpuc_IndexTensor:$step, Gpuc_FloatTensor:$lr,
                       Variadic<Gpuc_FloatTensor>:$given, F64Attr:$beta1, F64Attr:$beta2, F64Attr:$eps,
                       F64Attr:$weight_decay, UnitAttr:$decoupled, OptionalAttr<StrArrayAttr>:$given_numbers);
  let results = (outs Gpuc_FloatTensor:$new_weight, Gpuc_FloatTensor:$new_exp_avg, Gpuc_FloatTensor:$new_exp_avg_sq);
  let assemblyFormat = [{
    $weight `gradient` $gradient `moments` $exp_avg `,` $exp_avg_sq `step` $step `lr` $lr
    (`given` $given^ $given_numbers)? (`decoupled` $decoupled^)? attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// The numbers that it may be given.
    static ::llvm::ArrayRef<::llvm::StringRef> getGivable();
  }];
}

def RpropUpdateOp : Gpuc_UpdateOp<"rprop_update"> {
  let summary = "One step of Rprop: steps by the gradient's sign";
  let description = [{
    PyTorch's torch.optim.Rprop [Riedmiller and Braun 1993]: g ← g + weight_decay · w; in the first step s ← lr;
    s ← s · eta_plus where g · p > 0, s · eta_minus where it is < 0, and within [step_size_min, step_size_max];
    g ← 0 where g · p < 0; w ← w - s where g > 0, w + s where it is < 0; p ← g. `step` is t, from 1; p is prev, s step_size.
    A gradient that is NaN moves nothing, as in PyTorch. Of lr nothing is read after the first step.

    - (rprop_update_C1) All tensors have the type of the weight.
    - (rprop_update_C2) step and lr are scalars.
    - (rprop_update_C3) 0 < eta_minus < 1 < eta_plus.
    - (rprop_update_C4) step_size_min and weight_decay are not negative, and step_size_min ≤ step_size_max.
    - (rprop_update_C5) `given` is a scalar if there is one, and given_numbers is weight_decay.
  }];
  let arguments = (ins Gpuc_FloatTensor:$weight, Gpuc_FloatTensor:$gradient, Gpuc_FloatTensor:$prev,
                       Gpuc_FloatTensor:$step_size, Gpuc_IndexTensor:$step, Gpuc_FloatTensor:$lr,
                       Variadic<Gpuc_FloatTensor>:$given, F64Attr:$eta_minus, F64Attr:$eta_plus, F64Attr:$step_size_min,
                       F64Attr:$step_size_max, F64Attr:$weight_decay, OptionalAttr<StrArrayAttr>:$given_numbers);
  let results = (outs Gpuc_FloatTensor:$new_weight, Gpuc_FloatTensor:$new_prev, Gpuc_FloatTensor:$new_step_size);
  let assemblyFormat = [{
    $weight `gradient` $gradient `prev` $prev `step_size` $step_size `step` $step `lr` $lr
    (`given` $given^ $given_numbers)? attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// The numbers that it may be given.
    static ::llvm::ArrayRef<::llvm::StringRef> getGivable();
  }];
}

def AsgdUpdateOp : Gpuc_UpdateOp<"asgd_update"> {
  let summary = "One step of averaged stochastic gradient descent";
  let description = [{
    PyTorch's torch.optim.ASGD [Polyak and Juditsky 1992]: g ← g + weight_decay · w; in the first step η ← lr;
    w ← w · (1 - λ · η) - η · g; a ← w where μ is 1, else a + μ · (w - a); then, for the next step,
    η ← lr / (1 + λ · lr · t)^α and μ ← 1 / max(1, t - t0). `step` is t, from 1; a is ax, the mean of weights, λ lambd;
    μ is 1 at first.

    - (asgd_update_C1) gradient and ax have the type of the weight, and so have the new ones.
    - (asgd_update_C2) eta, mu, step and lr are scalars, and the new eta and mu have the types of the old ones.
    - (asgd_update_C3) lambd and weight_decay are not negative, and alpha and t0 are numbers.
    - (asgd_update_C4) `given` is a scalar if there is one, and given_numbers is weight_decay.
  }];
  let arguments = (ins Gpuc_FloatTensor:$weight, Gpuc_FloatTensor:$gradient, Gpuc_FloatTensor:$ax,
                       Gpuc_FloatTensor:$eta, Gpuc_FloatTensor:$mu, Gpuc_IndexTensor:$step, Gpuc_FloatTensor:$lr,
                       Variadic<Gpuc_FloatTensor>:$given, F64Attr:$lambd, F64Attr:$alpha, F64Attr:$t0,
                       F64Attr:$weight_decay, OptionalAttr<StrArrayAttr>:$given_numbers);
  let results = (outs Gpuc_FloatTensor:$new_weight, Gpuc_FloatTensor:$new_ax, Gpuc_FloatTensor:$new_eta,
                      Gpuc_FloatTensor:$new_mu);
  let assemblyFormat = [{
    $weight `gradient` $gradient `ax` $ax `eta` $eta `mu` $mu `step` $step `lr` $lr
    (`given` $given^ $given_numbers)? attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// The numbers that it may be given.
    static ::llvm::ArrayRef<::llvm::StringRef> getGivable();
  }];
}

def LionUpdateOp : Gpuc_UpdateOp<"lion_update"> {
  let summary = "One step of Lion";
  let description = [{
    [Chen et al. 2023, algorithm 2]: w ← w - lr · weight_decay · w; w ← w - lr · sign(β1 · m + (1 - β1) · g);
    m ← β2 · m + (1 - β2) · g. sign(0) is 0.

    - (lion_update_C1) All tensors have the type of the weight.
    - (lion_update_C2) lr is a scalar.
    - (lion_update_C3) beta1 and beta2 lie in [0, 1).
    - (lion_update_C4) weight_decay is not negative.
  }];
  let arguments = (ins Gpuc_FloatTensor:$weight, Gpuc_FloatTensor:$gradient, Gpuc_FloatTensor:$exp_avg,
                       Gpuc_FloatTensor:$lr, F64Attr:$beta1, F64Attr:$beta2, F64Attr:$weight_decay);
  let results = (outs Gpuc_FloatTensor:$new_weight, Gpuc_FloatTensor:$new_exp_avg);
  let assemblyFormat = [{
    $weight `gradient` $gradient `exp_avg` $exp_avg `lr` $lr attr-dict `:` functional-type(operands, results)
  }];
}

def AdafactorUpdateOp : Gpuc_UpdateOp<"adafactor_update"> {
  let summary = "One step of Adafactor";
  let description = [{
    torch.optim.Adafactor as of PyTorch 2.5 [Shazeer and Stern 2018]. With t = `step`, from 1, f = t^beta2_decay,
    RMS(x) = sqrt(mean of x²) and ρ = max(eps2, RMS(w)) · min(lr, 1 / sqrt(t)): w ← w - lr · weight_decay · w;
    second moments v below; u = g / max(sqrt(v), eps1); w ← w - ρ / max(1, RMS(u) / d) · u.

    A weight of m × n (leading dimensions are a batch of such) has its second moments factored into a column of m and a
    row of n: r ← r + f · (mean of g² over the last dimension - r), likewise c over the one before, and
    v = r · c / max(mean of r, eps1). Of other weights they are kept: v ← v + f · (g² - v).
    f16 and bf16 are computed as f32. Results: the weight, then its new variances.

    - (adafactor_update_C1) The gradient has the type of the weight.
    - (adafactor_update_C2) step and lr are scalars.
    - (adafactor_update_C3) variances are row_var, the weight's type with a last extent of 1, and col_var, with a last
      but one of 1; of a weight of rank below 2 the one variance, of its type.
    - (adafactor_update_C4) The results are of the types of the weight and its variances.
    - (adafactor_update_C5) The weight is of static shape and has elements: their mean is taken.
    - (adafactor_update_C6) beta2_decay is not positive, d is at least 1; eps1, eps2 and weight_decay are not negative.
  }];
  let arguments = (ins Gpuc_FloatTensor:$weight, Gpuc_FloatTensor:$gradient, Variadic<Gpuc_FloatTensor>:$variances,
                       Gpuc_IndexTensor:$step, Gpuc_FloatTensor:$lr, F64Attr:$beta2_decay, F64Attr:$eps1, F64Attr:$eps2,
                       F64Attr:$d, F64Attr:$weight_decay);
  let results = (outs Variadic<Gpuc_FloatTensor>:$updated);
  let assemblyFormat = [{
    $weight `gradient` $gradient `variances` $variances `step` $step `lr` $lr attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// The types of a weight's variances: row_var and col_var, or the one variance.
    static ::llvm::SmallVector<::mlir::Type> getVarianceTypes(::mlir::RankedTensorType weight);
  }];
}

def MuonUpdateOp : Gpuc_UpdateOp<"muon_update"> {
  let summary = "One step of Muon: momentum, made orthogonal";
  let description = [{
    [Jordan et al. 2024]: b ← μ · b + (1 - μ) · g; u = (1 - μ) · g + μ · b with nesterov, else b. Of u as a matrix of m
    rows (all but the first dimension are its columns, n of them) the Newton-Schulz iteration makes one with singular
    values near 1: x = u / (‖u‖ + 1e-7), with the Frobenius norm, then `ns_steps` times with a = x · xᵀ
    x ← 3.4445 · x + (-4.775 · a + 2.0315 · a · a) · x.
    w ← w - lr · weight_decay · w; w ← w - lr · sqrt(max(1, m / n)) · x.
    All is computed in the weight's type, f16 and bf16 as f32; the author's program rounds the iteration to bf16.

    - (muon_update_C1) All tensors have the type of the weight.
    - (muon_update_C2) lr is a scalar.
    - (muon_update_C3) The weight is of static shape, of rank 2 at least, and has elements.
    - (muon_update_C4) ns_steps lies in [1, 99].
    - (muon_update_C5) momentum lies in [0, 1), and weight_decay is not negative.
  }];
  let arguments = (ins Gpuc_FloatTensor:$weight, Gpuc_FloatTensor:$gradient, Gpuc_FloatTensor:$momentum_buffer,
                       Gpuc_FloatTensor:$lr, F64Attr:$momentum, BoolAttr:$nesterov, I64Attr:$ns_steps,
                       F64Attr:$weight_decay);
  let results = (outs Gpuc_FloatTensor:$new_weight, Gpuc_FloatTensor:$new_momentum_buffer);
  let assemblyFormat = [{
    $weight `gradient` $gradient `buffer` $momentum_buffer `lr` $lr attr-dict `:` functional-type(operands, results)
  }];
}

#endif
