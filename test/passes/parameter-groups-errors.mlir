// What groups of variables and running means refuse.
// RUN: gpuc-opt %s --split-input-file --gpuc-differentiate-loss --gpuc-autodiff --gpuc-expand-recipe --verify-diagnostics

// A misspelt layer.
gpuc.variable @head.weight : tensor<2xf32> init zeros
gpuc.variable @head.bias : tensor<2xf32> init zeros
gpuc.variable @frozen.weight frozen : tensor<2xf32> init zeros
func.func @loss(%x: tensor<2xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
  %0 = gpuc.read @head.weight : tensor<2xf32>
  %1 = gpuc.read @head.bias : tensor<2xf32>
  %2 = gpuc.read @frozen.weight : tensor<2xf32>
  %3 = gpuc.add %0, %1 : tensor<2xf32>
  %4 = gpuc.add %3, %2 : tensor<2xf32>
  %sum, %count = gpuc.mse %4, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{group "haed.*" matches no variable that is trained: the nearest is 'head.bias'}}
gpuc.recipe { loss = @loss, optimizer = adamw, groups = group(match = "haed.*", lr = 0.1) }

// -----

// Each pattern must match.
gpuc.variable @head.weight : tensor<2xf32> init zeros
gpuc.variable @head.bias : tensor<2xf32> init zeros
gpuc.variable @frozen.weight frozen : tensor<2xf32> init zeros
func.func @loss(%x: tensor<2xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
  %0 = gpuc.read @head.weight : tensor<2xf32>
  %1 = gpuc.read @head.bias : tensor<2xf32>
  %2 = gpuc.read @frozen.weight : tensor<2xf32>
  %3 = gpuc.add %0, %1 : tensor<2xf32>
  %4 = gpuc.add %3, %2 : tensor<2xf32>
  %sum, %count = gpuc.mse %4, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{group "tail.*" matches no variable that is trained}}
gpuc.recipe { loss = @loss, optimizer = adamw, groups = group(match = ("head.*", "tail.*"), lr = 0.1) }

// -----

// Nothing frozen is trained.
gpuc.variable @head.weight : tensor<2xf32> init zeros
gpuc.variable @head.bias : tensor<2xf32> init zeros
gpuc.variable @frozen.weight frozen : tensor<2xf32> init zeros
func.func @loss(%x: tensor<2xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
  %0 = gpuc.read @head.weight : tensor<2xf32>
  %1 = gpuc.read @head.bias : tensor<2xf32>
  %2 = gpuc.read @frozen.weight : tensor<2xf32>
  %3 = gpuc.add %0, %1 : tensor<2xf32>
  %4 = gpuc.add %3, %2 : tensor<2xf32>
  %sum, %count = gpuc.mse %4, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{group "frozen.*" matches no variable that is trained}}
gpuc.recipe { loss = @loss, optimizer = adamw, groups = group(match = "frozen.*", lr = 0.1) }

// -----

// A group behind one that takes all of it.
gpuc.variable @head.weight : tensor<2xf32> init zeros
gpuc.variable @head.bias : tensor<2xf32> init zeros
gpuc.variable @frozen.weight frozen : tensor<2xf32> init zeros
func.func @loss(%x: tensor<2xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
  %0 = gpuc.read @head.weight : tensor<2xf32>
  %1 = gpuc.read @head.bias : tensor<2xf32>
  %2 = gpuc.read @frozen.weight : tensor<2xf32>
  %3 = gpuc.add %0, %1 : tensor<2xf32>
  %4 = gpuc.add %3, %2 : tensor<2xf32>
  %sum, %count = gpuc.mse %4, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{group "*.bias" matches no variable that a group before it does not: put it first}}
gpuc.recipe { loss = @loss, optimizer = adamw, groups = (group(match = "head.*", lr = 0.1), group(match = "*.bias", lr = 0.2)) }

// -----

// Keys are the optimizer's.
gpuc.variable @head.weight : tensor<2xf32> init zeros
gpuc.variable @head.bias : tensor<2xf32> init zeros
gpuc.variable @frozen.weight frozen : tensor<2xf32> init zeros
func.func @loss(%x: tensor<2xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
  %0 = gpuc.read @head.weight : tensor<2xf32>
  %1 = gpuc.read @head.bias : tensor<2xf32>
  %2 = gpuc.read @frozen.weight : tensor<2xf32>
  %3 = gpuc.add %0, %1 : tensor<2xf32>
  %4 = gpuc.add %3, %2 : tensor<2xf32>
  %sum, %count = gpuc.mse %4, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{group "head.*": optimizer adamw has no key 'lrate': the nearest is 'lr'; known are lr, beta1, beta2, eps, amsgrad, weight_decay, decay, maximize}}
gpuc.recipe { loss = @loss, optimizer = adamw, groups = group(match = "head.*", lrate = 0.1) }

// -----

// So is what they refuse.
gpuc.variable @head.weight : tensor<2xf32> init zeros
gpuc.variable @head.bias : tensor<2xf32> init zeros
gpuc.variable @frozen.weight frozen : tensor<2xf32> init zeros
func.func @loss(%x: tensor<2xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
  %0 = gpuc.read @head.weight : tensor<2xf32>
  %1 = gpuc.read @head.bias : tensor<2xf32>
  %2 = gpuc.read @frozen.weight : tensor<2xf32>
  %3 = gpuc.add %0, %1 : tensor<2xf32>
  %4 = gpuc.add %3, %2 : tensor<2xf32>
  %sum, %count = gpuc.mse %4, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{group "head.*": optimizer adamw: lr must be 0 or above, but is -1}}
gpuc.recipe { loss = @loss, optimizer = adamw, groups = group(match = "head.*", lr = -1.0) }

// -----

// Numbers of nobody.
gpuc.variable @head.weight : tensor<2xf32> init zeros
gpuc.variable @head.bias : tensor<2xf32> init zeros
gpuc.variable @frozen.weight frozen : tensor<2xf32> init zeros
func.func @loss(%x: tensor<2xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
  %0 = gpuc.read @head.weight : tensor<2xf32>
  %1 = gpuc.read @head.bias : tensor<2xf32>
  %2 = gpuc.read @frozen.weight : tensor<2xf32>
  %3 = gpuc.add %0, %1 : tensor<2xf32>
  %4 = gpuc.add %3, %2 : tensor<2xf32>
  %sum, %count = gpuc.mse %4, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{a group needs match, a pattern of variables' names: match = "*.bias"}}
gpuc.recipe { loss = @loss, optimizer = adamw, groups = group(lr = 0.1) }

// -----

// A pattern is text.
gpuc.variable @head.weight : tensor<2xf32> init zeros
gpuc.variable @head.bias : tensor<2xf32> init zeros
gpuc.variable @frozen.weight frozen : tensor<2xf32> init zeros
func.func @loss(%x: tensor<2xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
  %0 = gpuc.read @head.weight : tensor<2xf32>
  %1 = gpuc.read @head.bias : tensor<2xf32>
  %2 = gpuc.read @frozen.weight : tensor<2xf32>
  %3 = gpuc.add %0, %1 : tensor<2xf32>
  %4 = gpuc.add %3, %2 : tensor<2xf32>
  %sum, %count = gpuc.mse %4, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{a group needs match, a pattern of variables' names: match = "*.bias"}}
gpuc.recipe { loss = @loss, optimizer = adamw, groups = group(match = 3, lr = 0.1) }

// -----

// Nobody's numbers.
gpuc.variable @head.weight : tensor<2xf32> init zeros
gpuc.variable @head.bias : tensor<2xf32> init zeros
gpuc.variable @frozen.weight frozen : tensor<2xf32> init zeros
func.func @loss(%x: tensor<2xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
  %0 = gpuc.read @head.weight : tensor<2xf32>
  %1 = gpuc.read @head.bias : tensor<2xf32>
  %2 = gpuc.read @frozen.weight : tensor<2xf32>
  %3 = gpuc.add %0, %1 : tensor<2xf32>
  %4 = gpuc.add %3, %2 : tensor<2xf32>
  %sum, %count = gpuc.mse %4, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{group "head.*" changes nothing: give it a key, such as lr = 1.0e-4}}
gpuc.recipe { loss = @loss, optimizer = adamw, groups = group(match = "head.*") }

// -----

// A list of groups holds groups.
gpuc.variable @head.weight : tensor<2xf32> init zeros
gpuc.variable @head.bias : tensor<2xf32> init zeros
gpuc.variable @frozen.weight frozen : tensor<2xf32> init zeros
func.func @loss(%x: tensor<2xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
  %0 = gpuc.read @head.weight : tensor<2xf32>
  %1 = gpuc.read @head.bias : tensor<2xf32>
  %2 = gpuc.read @frozen.weight : tensor<2xf32>
  %3 = gpuc.add %0, %1 : tensor<2xf32>
  %4 = gpuc.add %3, %2 : tensor<2xf32>
  %sum, %count = gpuc.mse %4, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{unknown entry of groups 'adamw': write group(match = "PATTERN", key = value)}}
gpuc.recipe { loss = @loss, optimizer = adamw, groups = adamw(match = "head.*", lr = 0.1) }

// -----

// A pattern that does not end.
gpuc.variable @head.weight : tensor<2xf32> init zeros
gpuc.variable @head.bias : tensor<2xf32> init zeros
gpuc.variable @frozen.weight frozen : tensor<2xf32> init zeros
func.func @loss(%x: tensor<2xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
  %0 = gpuc.read @head.weight : tensor<2xf32>
  %1 = gpuc.read @head.bias : tensor<2xf32>
  %2 = gpuc.read @frozen.weight : tensor<2xf32>
  %3 = gpuc.add %0, %1 : tensor<2xf32>
  %4 = gpuc.add %3, %2 : tensor<2xf32>
  %sum, %count = gpuc.mse %4, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{group "head.[*": }}
gpuc.recipe { loss = @loss, optimizer = adamw, groups = group(match = "head.[*", lr = 0.1) }

// -----

// Decay is of all or of matrices.
gpuc.variable @head.weight : tensor<2xf32> init zeros
gpuc.variable @head.bias : tensor<2xf32> init zeros
gpuc.variable @frozen.weight frozen : tensor<2xf32> init zeros
func.func @loss(%x: tensor<2xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
  %0 = gpuc.read @head.weight : tensor<2xf32>
  %1 = gpuc.read @head.bias : tensor<2xf32>
  %2 = gpuc.read @frozen.weight : tensor<2xf32>
  %3 = gpuc.add %0, %1 : tensor<2xf32>
  %4 = gpuc.add %3, %2 : tensor<2xf32>
  %sum, %count = gpuc.mse %4, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{group "head.*": optimizer adamw: decay is one of all, matrices, not "biases"}}
gpuc.recipe { loss = @loss, optimizer = adamw, groups = group(match = "head.*", decay = "biases") }

// -----

// A mean that grows.
gpuc.variable @head.weight : tensor<2xf32> init zeros
gpuc.variable @head.bias : tensor<2xf32> init zeros
gpuc.variable @frozen.weight frozen : tensor<2xf32> init zeros
func.func @loss(%x: tensor<2xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
  %0 = gpuc.read @head.weight : tensor<2xf32>
  %1 = gpuc.read @head.bias : tensor<2xf32>
  %2 = gpuc.read @frozen.weight : tensor<2xf32>
  %3 = gpuc.add %0, %1 : tensor<2xf32>
  %4 = gpuc.add %3, %2 : tensor<2xf32>
  %sum, %count = gpuc.mse %4, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{running mean ema: decay must be from 0 to 1, but is 1.5}}
gpuc.recipe { loss = @loss, optimizer = adamw, ema = ema(decay = 1.5) }

// -----

// Another mean.
gpuc.variable @head.weight : tensor<2xf32> init zeros
gpuc.variable @head.bias : tensor<2xf32> init zeros
gpuc.variable @frozen.weight frozen : tensor<2xf32> init zeros
func.func @loss(%x: tensor<2xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
  %0 = gpuc.read @head.weight : tensor<2xf32>
  %1 = gpuc.read @head.bias : tensor<2xf32>
  %2 = gpuc.read @frozen.weight : tensor<2xf32>
  %3 = gpuc.add %0, %1 : tensor<2xf32>
  %4 = gpuc.add %3, %2 : tensor<2xf32>
  %sum, %count = gpuc.mse %4, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{unknown running mean 'sma': the nearest is 'ema'; known are ema}}
gpuc.recipe { loss = @loss, optimizer = adamw, ema = sma }

// -----

// Another key.
gpuc.variable @head.weight : tensor<2xf32> init zeros
gpuc.variable @head.bias : tensor<2xf32> init zeros
gpuc.variable @frozen.weight frozen : tensor<2xf32> init zeros
func.func @loss(%x: tensor<2xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
  %0 = gpuc.read @head.weight : tensor<2xf32>
  %1 = gpuc.read @head.bias : tensor<2xf32>
  %2 = gpuc.read @frozen.weight : tensor<2xf32>
  %3 = gpuc.add %0, %1 : tensor<2xf32>
  %4 = gpuc.add %3, %2 : tensor<2xf32>
  %sum, %count = gpuc.mse %4, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{running mean ema has no key 'rate': the nearest is 'decay'; known are decay, evaluate}}
gpuc.recipe { loss = @loss, optimizer = adamw, ema = ema(rate = 0.9) }

// -----

// Whether a group may match nothing is a truth value.
gpuc.variable @head.weight : tensor<2xf32> init zeros
gpuc.variable @head.bias : tensor<2xf32> init zeros
gpuc.variable @frozen.weight frozen : tensor<2xf32> init zeros
func.func @loss(%x: tensor<2xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
  %0 = gpuc.read @head.weight : tensor<2xf32>
  %1 = gpuc.read @head.bias : tensor<2xf32>
  %2 = gpuc.read @frozen.weight : tensor<2xf32>
  %3 = gpuc.add %0, %1 : tensor<2xf32>
  %4 = gpuc.add %3, %2 : tensor<2xf32>
  %sum, %count = gpuc.mse %4, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{group "tail.*": optional must be true or false, but is 3 : i64}}
gpuc.recipe { loss = @loss, optimizer = adamw, groups = group(match = "tail.*", optional = 3, lr = 0.1) }

// -----

// And it is nothing that a group changes.
gpuc.variable @head.weight : tensor<2xf32> init zeros
gpuc.variable @head.bias : tensor<2xf32> init zeros
gpuc.variable @frozen.weight frozen : tensor<2xf32> init zeros
func.func @loss(%x: tensor<2xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
  %0 = gpuc.read @head.weight : tensor<2xf32>
  %1 = gpuc.read @head.bias : tensor<2xf32>
  %2 = gpuc.read @frozen.weight : tensor<2xf32>
  %3 = gpuc.add %0, %1 : tensor<2xf32>
  %4 = gpuc.add %3, %2 : tensor<2xf32>
  %sum, %count = gpuc.mse %4, %x : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}
// expected-error @below {{group "head.*" changes nothing: give it a key, such as lr = 1.0e-4}}
gpuc.recipe { loss = @loss, optimizer = adamw, groups = group(match = "head.*", optional = true) }
