// RUN: split-file %s %t
// RUN: not gpuc-opt %t/gradients.mlir --gpuc-expand-recipe 2>&1 | FileCheck %s --check-prefix=GRADIENTS
// RUN: gpuc-opt %t/rest.mlir --gpuc-differentiate-loss --gpuc-autodiff --gpuc-expand-recipe --split-input-file --verify-diagnostics

//--- gradients.mlir

// Derivatives come first.
// GRADIENTS: gradients.mlir:{{.*}}: error: 'gpuc.recipe' op has an optimizer, but there is no @gradients for it: run gpuc-differentiate-loss and gpuc-autodiff first
gpuc.variable @w : tensor<2xf32> init ones
func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
  %w = gpuc.read @w : tensor<2xf32>
  %sum, %count = gpuc.mse %w, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
gpuc.recipe {
  loss = @loss,
  optimizer = sgd
}

//--- rest.mlir

// A name that is nearly right.
gpuc.variable @w : tensor<2xf32> init ones
func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
  %w = gpuc.read @w : tensor<2xf32>
  %sum, %count = gpuc.mse %w, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{unknown optimizer 'adamww': the nearest is 'adamw'; known are adadelta, adafactor, adagrad, adam, adamax, adamw, asgd, lion, muon, nadam, radam, rmsprop, rprop, sgd}}
gpuc.recipe {
  loss = @loss,
  optimizer = adamww
}

// -----

// A key of another optimizer.
gpuc.variable @w : tensor<2xf32> init ones
func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
  %w = gpuc.read @w : tensor<2xf32>
  %sum, %count = gpuc.mse %w, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{optimizer adam has no key 'momentun': the nearest is}}
gpuc.recipe {
  loss = @loss,
  optimizer = adam(momentun = 0.9)
}

// -----

// Constants may be infinite, and nothing that an optimizer goes by.
gpuc.variable @w : tensor<2xf32> init constant(value = inf)
func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
  %w = gpuc.read @w : tensor<2xf32>
  %sum, %count = gpuc.mse %w, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{optimizer adam: lr is a finite number, not inf}}
gpuc.recipe {
  loss = @loss,
  optimizer = adam(lr = inf)
}

// -----

// A flag is no number, not even 1.
gpuc.variable @w : tensor<2xf32> init ones
func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
  %w = gpuc.read @w : tensor<2xf32>
  %sum, %count = gpuc.mse %w, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{optimizer adam: lr is a finite number, not true}}
gpuc.recipe {
  loss = @loss,
  optimizer = adam(lr = true)
}

// -----

// Nor are flags among several.
gpuc.variable @w : tensor<2xf32> init ones
func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
  %w = gpuc.read @w : tensor<2xf32>
  %sum, %count = gpuc.mse %w, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{optimizer adam: beta2 is a finite number, not false}}
gpuc.recipe {
  loss = @loss,
  optimizer = adam(betas = (0.9, false))
}

// -----

// Nor is a text a flag.
gpuc.variable @w : tensor<2xf32> init ones
func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
  %w = gpuc.read @w : tensor<2xf32>
  %sum, %count = gpuc.mse %w, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{optimizer adam: amsgrad is true or false, not "true"}}
gpuc.recipe {
  loss = @loss,
  optimizer = adam(amsgrad = "true")
}

// -----

// β2 = 1 would never forget: PyTorch refuses it in these words.
gpuc.variable @w : tensor<2xf32> init ones
func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
  %w = gpuc.read @w : tensor<2xf32>
  %sum, %count = gpuc.mse %w, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{optimizer adam: beta2 must be 0 or above, and below 1, but is 1}}
gpuc.recipe {
  loss = @loss,
  optimizer = adam(beta2 = 1.0)
}

// -----

// Nesterov's look ahead needs a momentum to look along.
gpuc.variable @w : tensor<2xf32> init ones
func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
  %w = gpuc.read @w : tensor<2xf32>
  %sum, %count = gpuc.mse %w, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{optimizer sgd: nesterov needs a momentum above 0 and a dampening of 0, but they are 0 and 0}}
gpuc.recipe {
  loss = @loss,
  optimizer = sgd(nesterov = true)
}

// -----

// A schedule that is misspelt in the recipe itself; what else is wrong with one: schedules-errors.mlir.
gpuc.variable @w : tensor<2xf32> init ones
func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
  %w = gpuc.read @w : tensor<2xf32>
  %sum, %count = gpuc.mse %w, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{schedule step needs a value for 'step_size'}}
gpuc.recipe {
  loss = @loss,
  optimizer = sgd,
  schedule = step(gamma = 0.5)
}

// -----

// Loss and accuracy disagree on what "x" is.
gpuc.variable @w : tensor<2xf32> init ones
func.func @loss(%x: tensor<2xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
  %w = gpuc.read @w : tensor<2xf32>
  %sum, %count = gpuc.mse %w, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{takes 'x' as 'tensor<f32>', while another function of the recipe takes it as 'tensor<2xf32>'}}
func.func @accuracy(%x: tensor<f32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
  return %x, %x : tensor<f32>, tensor<f32>
}
gpuc.recipe {
  loss = @loss,
  accuracy = @accuracy,
  optimizer = sgd
}

// -----

// Numbers are drawn for floating-point elements only.
// expected-error @below {{has elements of type 'i32', which uniform cannot draw: use zeros, ones or constant}}
gpuc.variable @w kind statistic : tensor<2xi32> init uniform(bound = 3)
func.func @predict(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}

// -----

// What a variable begins with is a number of its type.
// expected-error @below {{has elements of type 'f16', none of which is 100000}}
gpuc.variable @w : tensor<2xf16> init constant(value = 1.0e5)

// -----

// expected-error @below {{has elements of type 'f16', none of which is 1e-12}}
gpuc.variable @w : tensor<2xf16> init constant(value = 1.0e-12)

// -----

// expected-error @below {{has elements of type 'ui8', none of which is 256}}
gpuc.variable @w kind counter : tensor<2xui8> init constant(value = 256)

// -----

// expected-error @below {{has elements of type 'i32', none of which is 1.5}}
gpuc.variable @w kind counter : tensor<2xi32> init constant(value = 1.5)

// -----

// expected-error @below {{has elements of type 'i32', none of which is inf}}
gpuc.variable @w kind counter : tensor<2xi32> init constant(value = inf)

// -----

// All bounds that an f32 can have.
// expected-error @below {{initializer uniform: bound is 1e+39, which no f32 is}}
gpuc.variable @w : tensor<2xf32> init uniform(bound = 1.0e39)

// -----

// An initializer misspelt.
// expected-error @below {{unknown initializer 'kaiming': the nearest is}}
gpuc.variable @w : tensor<2xf32> init kaiming(fan_in = 2)
func.func @predict(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}

// -----

// A name that this pass gives.
// expected-error @below {{is named @init, as gpuc-expand-recipe names what it makes: rename it}}
func.func @init(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
  %sum, %count = gpuc.mse %x, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
gpuc.recipe {
  loss = @init
}

// -----

// @step counts steps, as an i64 scalar.
// expected-error @below {{is named @step, which is the name of a counter, a variable of type 'tensor<i64>'}}
gpuc.variable @step : tensor<f32> init zeros
func.func @predict(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}

// -----

// A number that is 0 stays so, and then there is nothing to give.
gpuc.variable @w : tensor<2xf32> init ones
func.func @loss(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>) {
  %w = gpuc.read @w : tensor<2xf32>
  %sum, %count = gpuc.mse %w, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{schedule given: momentum is no number of the optimizer that can be given, or it is 0, and then stays so}}
gpuc.recipe {
  loss = @loss,
  optimizer = sgd(weight_decay = 0.1),
  schedule = (given(weight_decay = true, momentum = true))
}
