// What variables, recipes, losses and random ops refuse.
// RUN: gpuc-opt %s -verify-diagnostics -split-input-file

// A kind is one of four.
// expected-error @below {{kind must be one of parameter, statistic, optimizer, counter, but is weight [variable_C1]}}
gpuc.variable @w kind weight : tensor<4xf32> init zeros

// -----

// Nothing could refer to it.
// expected-error @below {{has no name [variable_C3]}}
"gpuc.variable"() <{initializer = #gpuc.spec<zeros>, sym_name = "", type = tensor<4xf32>}> : () -> ()

// -----

// Weights' files keep this name for what is no tensor.
// expected-error @below {{cannot be named "__metadata__", a name that no safetensors file can hold: rename it [variable_C3]}}
gpuc.variable @__metadata__ : tensor<4xf32> init zeros

// -----

// Names in them are UTF-8.
// expected-error @below {{cannot be named "w\FF", a name that no safetensors file can hold: rename it [variable_C3]}}
gpuc.variable @"w\FF" : tensor<4xf32> init zeros

// -----

// A variable outlives the batch.
// expected-error @below {{'w' must have a static shape, but is 'tensor<?x4xf32>' [variable_C2]}}
gpuc.variable @w : tensor<?x4xf32> init zeros

// -----

// The name of a spec.
// expected-error @below {{the name of a spec must be a word, but is 'he.normal' [spec_C1]}}
gpuc.variable @w : tensor<4xf32> init he.normal

// -----

// A key is a word.
// expected-error @below {{argument 'a.b' of spec 'normal' must be a number, true, false, text or a tuple of these [spec_C2]}}
gpuc.variable @w : tensor<4xf32> init normal(a.b = 1)

// -----

// A pattern is one.
// expected-error @below {{'h.[' invalid glob pattern, unmatched '[' [checkpoint_C1]}}
gpuc.checkpoint "h.["

// -----

// It could match nothing.
// expected-error @below {{'' names no layer [checkpoint_C1]}}
gpuc.checkpoint ""

// -----

// The command line would take it for two.
// expected-error @below {{'h.0,h.1' has a comma: give each pattern an op of its own [checkpoint_C2]}}
gpuc.checkpoint "h.0,h.1"

// -----

// It speaks of the whole model.
func.func @case() {
  // expected-error @below {{expects parent op 'builtin.module'}}
  gpuc.checkpoint "h.0"
  return
}

// -----

// An argument is given once.
// expected-error @below {{'std' is given twice}}
gpuc.variable @w : tensor<4xf32> init normal(std = 1.0, std = 2.0)

// -----

gpuc.variable @weight : tensor<4xf32> init zeros
// The nearest declared name is told.
func.func @case() {
  // expected-error @below {{variable 'wieght' is not declared, did you mean 'weight'? [read_C1]}}
  %0 = gpuc.read @wieght : tensor<4xf32>
  return
}

// -----

gpuc.variable @weight : tensor<4xf32> init zeros
// Nothing near is declared.
func.func @case() {
  // expected-error @below {{variable 'momentum' is not declared [read_C1]}}
  %0 = gpuc.read @momentum : tensor<4xf32>
  return
}

// -----

// expected-note @below {{declared here}}
gpuc.variable @weight : tensor<4xf32> init zeros
// Both types are told.
func.func @case() {
  // expected-error @below {{variable 'weight' is declared as 'tensor<4xf32>', but used as 'tensor<5xf32>' [read_C2]}}
  %0 = gpuc.read @weight : tensor<5xf32>
  return
}

// -----

gpuc.variable @weight : tensor<4xf32> init zeros
// Nothing is declared by assigning.
func.func @case(%a: tensor<4xf32>) {
  // expected-error @below {{variable 'weights' is not declared, did you mean 'weight'? [assign_C1]}}
  gpuc.assign @weights, %a : tensor<4xf32>
  return
}

// -----

// expected-note @below {{declared here}}
gpuc.variable @weight : tensor<4xf32> init zeros
// Both types are told.
func.func @case(%a: tensor<5xf32>) {
  // expected-error @below {{variable 'weight' is declared as 'tensor<4xf32>', but used as 'tensor<5xf32>' [assign_C2]}}
  gpuc.assign @weight, %a : tensor<5xf32>
  return
}

// -----

gpuc.variable @weight : tensor<4xf32> init zeros
// Which of the two would hold?
func.func @case(%a: tensor<4xf32>) {
  // expected-note @below {{first assigned here}}
  gpuc.assign @weight, %a : tensor<4xf32>
  // expected-error @below {{variable 'weight' is assigned twice [assign_C3]}}
  gpuc.assign @weight, %a : tensor<4xf32>
  return
}

// -----

func.func @loss(%a: tensor<4xf32>, %n: tensor<4xi32>) -> tensor<f32> {
  %0 = gpuc.sum %a dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// A misspelt function.
func.func @case(%a: tensor<4xf32>, %n: tensor<4xi32>) {
  // expected-error @below {{callee 'lass' is not a function of the module, did you mean 'loss'? [gradient_C1]}}
  %0:2 = gpuc.gradient @lass(%a, %n) wrt arguments [0] : (tensor<4xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>)
  return
}

// -----

func.func @loss(%a: tensor<4xf32>, %n: tensor<4xi32>) -> tensor<f32> {
  %0 = gpuc.sum %a dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// An argument is missing.
func.func @case(%a: tensor<4xf32>, %n: tensor<4xi32>) {
  // expected-error @below {{inputs ('tensor<4xf32>') do not fit the arguments of 'loss', ('tensor<4xf32>', 'tensor<4xi32>') [gradient_C2]}}
  %0:2 = gpuc.gradient @loss(%a) wrt arguments [0] : (tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>)
  return
}

// -----

func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}

// A gradient is of one number.
func.func @case(%a: tensor<4xf32>, %n: tensor<4xi32>) {
  // expected-error @below {{the first result of 'f' must be a floating-point scalar, but it returns ('tensor<4xf32>') [gradient_C3]}}
  %0:2 = gpuc.gradient @f(%a) wrt arguments [0] : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @loss(%a: tensor<4xf32>, %n: tensor<4xi32>) -> tensor<f32> {
  %0 = gpuc.sum %a dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// Arguments count from 0.
func.func @case(%a: tensor<4xf32>, %n: tensor<4xi32>) {
  // expected-error @below {{argument number 2 does not exist: 'loss' has 2 [gradient_C4]}}
  %0:2 = gpuc.gradient @loss(%a, %n) wrt arguments [2] : (tensor<4xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>)
  return
}

// -----

func.func @loss(%a: tensor<4xf32>) -> tensor<f32> {
  %0 = gpuc.sum %a dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

func.func @case(%a: tensor<4xf32>, %s: tensor<f64>) {
  // expected-error @below {{the seed must be of the type of the first result, 'tensor<f32>', but is of 'tensor<f64>' [gradient_C8]}}
  %0:2 = gpuc.gradient @loss(%a) seed %s : tensor<f64> wrt arguments [0] : (tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>)
  return
}

// -----

func.func @loss(%a: tensor<4xf32>, %n: tensor<4xi32>) -> tensor<f32> {
  %0 = gpuc.sum %a dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// Labels do not move by a little.
func.func @case(%a: tensor<4xf32>, %n: tensor<4xi32>) {
  // expected-error @below {{there is no gradient by a tensor of integers: 'tensor<4xi32>' [gradient_C5]}}
  %0:2 = gpuc.gradient @loss(%a, %n) wrt arguments [1] : (tensor<4xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xi32>)
  return
}

// -----

func.func @loss(%a: tensor<4xf32>, %n: tensor<4xi32>) -> tensor<f32> {
  %0 = gpuc.sum %a dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// Results first, then gradients.
func.func @case(%a: tensor<4xf32>, %n: tensor<4xi32>) {
  // expected-error @below {{must return the results of 'loss' and then the gradients, ('tensor<f32>', 'tensor<4xf32>'), but returns ('tensor<4xf32>', 'tensor<f32>') [gradient_C6]}}
  %0:2 = gpuc.gradient @loss(%a, %n) wrt arguments [0] : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<f32>)
  return
}

// -----

gpuc.variable @weight : tensor<4xf32> init zeros
func.func @loss(%a: tensor<4xf32>, %n: tensor<4xi32>) -> tensor<f32> {
  %0 = gpuc.sum %a dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// A misspelt variable.
func.func @case(%a: tensor<4xf32>, %n: tensor<4xi32>) {
  // expected-error @below {{variable 'weigth' is not declared, did you mean 'weight'? [gradient_C7]}}
  %0:2 = gpuc.gradient @loss(%a, %n) wrt [@weigth] : (tensor<4xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>)
  return
}

// -----

func.func @loss(%a: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  return %a, %a : tensor<f32>, tensor<f32>
}

// A point, or MLIR's lexer takes the exponent for a word.
// expected-error @below {{a number with an exponent has a point: write 1.0e-3 for 1e-3}}
gpuc.recipe { loss = @loss, optimizer = sgd(lr = 1e-3) }

// -----

func.func @loss(%a: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  return %a, %a : tensor<f32>, tensor<f32>
}

// expected-error @below {{'KiB' follows the number}}
gpuc.recipe { loss = @loss, optimizer = sgd(lr = 4KiB) }

// -----

func.func @loss(%a: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  return %a, %a : tensor<f32>, tensor<f32>
}

// Two would be two trainings.
// expected-note @below {{the first is here}}
gpuc.recipe { loss = @loss, batch = 4 }
// expected-error @below {{is a second one: a module has one recipe, leave out the other [recipe_C8]}}
gpuc.recipe { loss = @loss, batch = 8 }

// -----

func.func @loss(%a: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  return %a, %a : tensor<f32>, tensor<f32>
}

// A seed is a number of --seed, which has no sign.
// expected-error @below {{seed must be at least 0, but is -1 [recipe_C1]}}
gpuc.recipe { loss = @loss, batch = 4, seed = -1 }

// -----

func.func @loss(%a: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  return %a, %a : tensor<f32>, tensor<f32>
}

// Steps of no samples.
// expected-error @below {{batch must be at least 1, but is 0 [recipe_C1]}}
gpuc.recipe { loss = @loss, batch = 0 }

// -----

func.func @loss(%a: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  return %a, %a : tensor<f32>, tensor<f32>
}

// Steps of no samples.
// expected-error @below {{accumulate must be at least 1, but is 0 [recipe_C1]}}
gpuc.recipe { loss = @loss, accumulate = 0 }

// -----

func.func @loss(%a: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  return %a, %a : tensor<f32>, tensor<f32>
}

// Steps of no samples.
// expected-error @below {{accumulate must be below 2^31, but is 2147483648 [recipe_C1]}}
gpuc.recipe { loss = @loss, accumulate = 2147483648 }

// -----

func.func @loss(%a: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  return %a, %a : tensor<f32>, tensor<f32>
}

// Steps of no samples.
// expected-error @below {{clip_norm must be above 0, but is 0 [recipe_C4]}}
gpuc.recipe { loss = @loss, clip_norm = 0.0 }

// -----

func.func @loss(%a: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  return %a, %a : tensor<f32>, tensor<f32>
}

// Steps of no samples.
// expected-error @below {{clip_value must be above 0, but is -1 [recipe_C4]}}
gpuc.recipe { loss = @loss, clip_value = -1.0 }

// -----

func.func @loss(%a: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  return %a, %a : tensor<f32>, tensor<f32>
}

// MLIR's own way to write an infinity, as which it would cut nothing.
// expected-error @below {{clip_value must be finite, but is inf [recipe_C4]}}
gpuc.recipe { loss = @loss, clip_value = 0x7FF0000000000000 }

// -----

func.func @loss(%a: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  return %a, %a : tensor<f32>, tensor<f32>
}

// And a NaN, which would make all gradients one.
// expected-error @below {{clip_value must be above 0, but is nan [recipe_C4]}}
gpuc.recipe { loss = @loss, clip_value = 0x7FF8000000000000 }

// -----

func.func @loss(%a: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  return %a, %a : tensor<f32>, tensor<f32>
}

// A misspelt function.
// expected-error @below {{loss 'lost' is not a function of the module, did you mean 'loss'? [recipe_C2]}}
gpuc.recipe { loss = @lost }

// -----

func.func @loss(%a: tensor<4xf32>, %n: tensor<4xi32>) -> tensor<f32> {
  %0 = gpuc.sum %a dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// A loss that is no pair.
// expected-error @below {{loss 'loss' must return (sum, count), two scalars of f32 or f64, but it returns ('tensor<f32>') [recipe_C3]}}
gpuc.recipe { loss = @loss }

// -----

func.func @loss(%a: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  return %a, %a : tensor<f32>, tensor<f32>
}

// A misspelt entry.
// expected-error @below {{unknown entry 'optimiser' of a recipe: there are loss, accuracy, batch, accumulate, emulate_ranks, data_parallel, shard, world_size, sync_batch_norm, precision, loss_scale, clip_value, clip_norm, skip, optimizer, groups, schedule, ema, seed}}
gpuc.recipe { loss = @loss, optimiser = sgd(lr = 0.1) }

// -----

func.func @loss(%a: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  return %a, %a : tensor<f32>, tensor<f32>
}

// An entry is given once.
// expected-error @below {{'batch' is given twice}}
gpuc.recipe { loss = @loss, batch = 1, batch = 2 }

// -----

// There is nothing to train by.
// expected-error @below {{a recipe needs an entry 'loss'}}
gpuc.recipe { batch = 64 }

// -----

// Nothing to share among.
func.func @case(%a: tensor<4x0xf32>) {
  // expected-error @below {{dim 1 of the operand 'tensor<4x0xf32>' has no elements to share among [along_dim_C2]}}
  %0 = gpuc.softmax %a dim 1 : tensor<4x0xf32>
  return
}

// -----

// There is no dimension 1.
func.func @case(%a: tensor<4xf32>) {
  // expected-error @below {{'gpuc.softmax' op dim 1 is not a dimension of the operand 'tensor<4xf32>', which has 1 [along_dim_C1]}}
  %0 = gpuc.softmax %a dim 1 : tensor<4xf32>
  return
}

// -----

// One seed for all.
func.func @case(%s: tensor<2xi64>, %t: tensor<i64>) {
  // expected-error @below {{seed must be a scalar tensor, but is 'tensor<2xi64>' [random_C1]}}
  %0 = gpuc.random_bits seed %s step %t id 1 : (tensor<2xi64>, tensor<i64>) -> tensor<4xi32>
  return
}

// -----

// One beginning for all.
func.func @case(%s: tensor<i64>, %from: tensor<2xi64>) {
  // expected-error @below {{from must be a scalar tensor, but is 'tensor<2xi64>' [random_C1]}}
  %0 = gpuc.random_bits seed %s step %s id 1 from %from : (tensor<i64>, tensor<i64>, tensor<2xi64>) -> tensor<4xi32>
  return
}

// -----

// Larger ids are further draws of other ops.
func.func @case(%s: tensor<i64>, %t: tensor<i64>) {
  // expected-error @below {{id must lie in [0, 268435456), but is 268435456 [random_C2]}}
  %0 = gpuc.random_uniform seed %s step %t id 268435456 low 0.0 high 1.0 : (tensor<i64>, tensor<i64>) -> tensor<4xf32>
  return
}

// -----

// An empty interval.
func.func @case(%s: tensor<i64>, %t: tensor<i64>) {
  // expected-error @below {{low must be less than high by a finite number, but low is 1 and high 1 [random_uniform_C1]}}
  %0 = gpuc.random_uniform seed %s step %t id 1 low 1.0 high 1.0 : (tensor<i64>, tensor<i64>) -> tensor<4xf32>
  return
}

// -----

// No spread is negative.
func.func @case(%s: tensor<i64>, %t: tensor<i64>) {
  // expected-error @below {{mean and deviation must be finite and deviation not negative, but are 0 and -1 [random_normal_C1]}}
  %0 = gpuc.random_normal seed %s step %t id 1 mean 0.0 deviation -1.0 : (tensor<i64>, tensor<i64>) -> tensor<4xf32>
  return
}

// -----

// More than all.
func.func @case(%a: tensor<4xf32>) {
  // expected-error @below {{p must lie in [0, 1], but is 1.5 [dropout_C1]}}
  %0 = gpuc.dropout %a p 1.5 id 1 : tensor<4xf32>
  return
}

// -----

// The region takes what the kernel is given.
func.func @case(%a: tensor<4xf32>) {
  // expected-error @below {{region takes ('tensor<5xf32>'), but the inputs are ('tensor<4xf32>') [fused_C1]}}
  %0 = gpuc.fused "k"(%a) : (tensor<4xf32>) -> tensor<5xf32> {
  ^bb0(%x: tensor<5xf32>):
    gpuc.yield %x : tensor<5xf32>
  }
  return
}

// -----

// The region yields what the kernel returns.
func.func @case(%a: tensor<4xf32>) {
  // expected-error @below {{region must end in a gpuc.yield of ('tensor<5xf32>') [fused_C2]}}
  %0 = gpuc.fused "k"(%a) : (tensor<4xf32>) -> tensor<5xf32> {
  ^bb0(%x: tensor<4xf32>):
    gpuc.yield %x : tensor<4xf32>
  }
  return
}

// -----

func.func @loss(%x: tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>) {
  %loss, %count = gpuc.mse %x, %x : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
  return %loss, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{has data_parallel and emulates 2 ranks: leave out one of the two [recipe_C5]}}
gpuc.recipe { loss = @loss, emulate_ranks = 2, data_parallel = true }

// -----

func.func @loss(%x: tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>) {
  %loss, %count = gpuc.mse %x, %x : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
  return %loss, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{has world_size and nothing to shard: give shard=optimizer or shard=gradients, or leave it out, for any number of ranks [recipe_C6]}}
gpuc.recipe { loss = @loss, world_size = 2, data_parallel = true }

// -----

func.func @loss(%x: tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>) {
  %loss, %count = gpuc.mse %x, %x : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
  return %loss, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{shards 'weights': there are optimizer and gradients [recipe_C6]}}
gpuc.recipe { loss = @loss, shard = weights, world_size = 2, data_parallel = true }

// -----

func.func @loss(%x: tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>) {
  %loss, %count = gpuc.mse %x, %x : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
  return %loss, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{shards among ranks that are not counted: give world_size [recipe_C6]}}
gpuc.recipe { loss = @loss, shard = optimizer, data_parallel = true }

// -----

func.func @loss(%x: tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>) {
  %loss, %count = gpuc.mse %x, %x : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
  return %loss, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{shards among ranks, and has none: give data_parallel [recipe_C6]}}
gpuc.recipe { loss = @loss, shard = gradients, world_size = 2 }

// -----

// A share of 10 elements among 4 is of 3.
// expected-error @below {{'w' of 'tensor<2xf32>' is no share of what shard_of and shards say [variable_C4]}}
gpuc.variable @w : tensor<2xf32> init zeros {shard_of = array<i64: 2, 5>, shards = 4 : i64}

// -----

// expected-error @below {{is no share of what shard_of and shards say [variable_C4]}}
gpuc.variable @w : tensor<2xf32> init zeros {shards = 4 : i64}

// -----

func.func @loss(%x: tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>) {
  %loss, %count = gpuc.mse %x, %x : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>)
  return %loss, %count : tensor<f32>, tensor<f32>
}
// Emulated ranks follow one another: when the first is done, the second has not begun.
// expected-error @below {{has sync_batch_norm, but no ranks that could synchronise: give it data_parallel, or leave that out [recipe_C7]}}
gpuc.recipe { loss = @loss, emulate_ranks = 2, sync_batch_norm = true }

// -----

// expected-error @below {{'w' has 3 owners among 2 ranks [variable_C5]}}
gpuc.variable @w : tensor<2xf32> init zeros {owners = ["a", "b", "c"], shards = 2 : i64}

// -----

// expected-error @below {{'w' has 2 owners among 4 ranks, and is a share [variable_C5]}}
gpuc.variable @w : tensor<3xf32> init zeros {owners = ["a", "b"], shard_of = array<i64: 2, 5>, shards = 4 : i64}
