// Variables, recipes, losses and random ops read back what they write.
// RUN: gpuc-opt %s -o %t.mlir
// RUN: gpuc-opt %t.mlir | diff %t.mlir -
// RUN: gpuc-opt %s --mlir-print-op-generic | gpuc-opt | diff %t.mlir -
// RUN: gpuc-opt %s --emit-bytecode | gpuc-opt | diff %t.mlir -
// RUN: FileCheck %s < %t.mlir

// CHECK: gpuc.variable @w : tensor<4x3xf32> init kaiming_uniform(fan_in = 3)
gpuc.variable @w : tensor<4x3xf32> init kaiming_uniform(fan_in = 3)
// CHECK: gpuc.variable @table frozen : tensor<9x3xf32> init normal(mean = 0.0, std = 0.02)
gpuc.variable @table frozen : tensor<9x3xf32> init normal(std = 0.02, mean = 0.0)
// CHECK: gpuc.variable @"w/exp_avg" kind optimizer : tensor<4x3xf32> init zeros
gpuc.variable @"w/exp_avg" kind optimizer : tensor<4x3xf32> init zeros
gpuc.variable @seed kind counter : tensor<i64> init zeros
gpuc.variable @step kind counter : tensor<i64> init zeros
// Every kind of value that a spec can hold.
// CHECK: init all(betas = (0.9, -0.999, 3), flag = true, limit = inf, name = "a\22b", small = 1.0e-45)
gpuc.variable @spec : tensor<f64> init all(flag = true, betas = (0.9, -0.999, 3), name = "a\22b", limit = inf, small = 1.0e-45)

// CHECK: gpuc.checkpoint "h.*.attn"
gpuc.checkpoint "h.*.attn"

// CHECK-LABEL: @predict
func.func @predict(%x: tensor<?x3xf32>) -> tensor<?x4xf32> {
  // CHECK: gpuc.read @w : tensor<4x3xf32>
  %w = gpuc.read @w : tensor<4x3xf32>
  %0 = gpuc.matmul %x, transpose %w : (tensor<?x3xf32>, tensor<4x3xf32>) -> tensor<?x4xf32>
  // CHECK: gpuc.dropout %{{.*}} p 2.500000e-01 id 3 : tensor<?x4xf32>
  %1 = gpuc.dropout %0 p 0.25 id 3 : tensor<?x4xf32>
  %2 = gpuc.softmax %1 dim 1 : tensor<?x4xf32>
  %3 = gpuc.log_softmax %1 dim 1 : tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// CHECK-LABEL: @loss
func.func @loss(%x: tensor<?x3xf32>, %labels: tensor<?xi32> {gpuc.range = 4 : i64}) -> (tensor<f32>, tensor<f32>) {
  %logits = call @predict(%x) : (tensor<?x3xf32>) -> tensor<?x4xf32>
  // CHECK: gpuc.cross_entropy %{{.*}}, %{{.*}} {smoothing = 1.000000e-01 : f64} : (tensor<?x4xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>)
  %sum, %count = gpuc.cross_entropy %logits, %labels {smoothing = 0.1 : f64} : (tensor<?x4xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>)
  return %sum, %count : tensor<f32>, tensor<f32>
}

// CHECK-LABEL: @accuracy
func.func @accuracy(%x: tensor<?x3xf32>, %labels: tensor<?xi32>, %mask: tensor<?xi1>) -> (tensor<f32>, tensor<f32>) {
  %logits = call @predict(%x) : (tensor<?x3xf32>) -> tensor<?x4xf32>
  // CHECK: gpuc.accuracy %{{.*}}, %{{.*}} mask %{{.*}} : (
  %hits, %count = gpuc.accuracy %logits, %labels mask %mask : (tensor<?x4xf32>, tensor<?xi32>, tensor<?xi1>) -> (tensor<f32>, tensor<f32>)
  // Half precision is summed as f32.
  %half = gpuc.cast %logits : tensor<?x4xf32> to tensor<?x4xf16>
  %error, %elements = gpuc.mse %half, %half mask %mask : (tensor<?x4xf16>, tensor<?x4xf16>, tensor<?xi1>) -> (tensor<f32>, tensor<f32>)
  return %hits, %count : tensor<f32>, tensor<f32>
}

// CHECK-LABEL: @gradients
func.func @gradients(%x: tensor<?x3xf32>, %labels: tensor<?xi32>) {
  // CHECK: gpuc.gradient @loss(%{{.*}}, %{{.*}}) wrt [@w] : (
  %0:3 = gpuc.gradient @loss(%x, %labels) wrt [@w] : (tensor<?x3xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x3xf32>)
  // CHECK: gpuc.gradient @loss(%{{.*}}, %{{.*}}) wrt arguments [0] : (
  %1:3 = gpuc.gradient @loss(%x, %labels) wrt arguments [0] : (tensor<?x3xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>, tensor<?x3xf32>)
  // CHECK: gpuc.gradient @loss(%{{.*}}, %{{.*}}) seed %{{.*}} : tensor<f32> wrt [@w] : (
  %2:3 = gpuc.gradient @loss(%x, %labels) seed %0#1 : tensor<f32> wrt [@w] : (tensor<?x3xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>, tensor<4x3xf32>)
  return
}

// CHECK-LABEL: @random
func.func @random(%seed: tensor<i64>, %step: tensor<i64>) {
  %0 = gpuc.random_bits seed %seed step %step id 1 : (tensor<i64>, tensor<i64>) -> tensor<?x4xi32>
  %1 = gpuc.random_uniform seed %seed step %step id 2 low -1.0 high 1.0 : (tensor<i64>, tensor<i64>) -> tensor<4xf32>
  %2 = gpuc.random_normal seed %seed step %step id 3 mean 0.0 deviation 0.02 : (tensor<i64>, tensor<i64>) -> tensor<4xf64>
  // CHECK: gpuc.random_bits seed %{{.*}} step %{{.*}} id 1 from %{{.*}} : (
  %3 = gpuc.random_bits seed %seed step %step id 1 from %step : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?x4xi32>
  return
}

// CHECK-LABEL: @scaled
func.func @scaled(%loss: tensor<f32>, %scale: tensor<f32>, %losses: tensor<4x3xf32>) {
  %0 = gpuc.scale_gradient %losses, %losses : tensor<4x3xf32>
  // CHECK: gpuc.scale_gradient %{{.*}}, %{{.*}} : tensor<f32>
  %1 = gpuc.scale_gradient %loss, %scale : tensor<f32>
  return
}

// CHECK-LABEL: @assigned
func.func @assigned(%w: tensor<4x3xf32>) {
  // CHECK: gpuc.assign @w, %{{.*}} : tensor<4x3xf32>
  gpuc.assign @w, %w : tensor<4x3xf32>
  return
}

// CHECK-LABEL: @kernel
func.func @kernel(%x: tensor<4x3xf32>, %b: tensor<3xf32>) -> tensor<4x3xf32> {
  // CHECK: gpuc.fused "fc1.add"(%{{.*}}, %{{.*}}) : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32> {
  %h = gpuc.fused "fc1.add"(%x, %b) : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32> {
  ^bb0(%arg0: tensor<4x3xf32>, %arg1: tensor<3xf32>):
    %0 = gpuc.broadcast %arg1 dims [1] : tensor<3xf32> to tensor<4x3xf32>
    %1 = gpuc.add %arg0, %0 : tensor<4x3xf32>
    // CHECK: gpuc.yield %{{.*}} : tensor<4x3xf32>
    gpuc.yield %1 : tensor<4x3xf32>
  }
  return %h : tensor<4x3xf32>
}

// CHECK:      gpuc.recipe {
// CHECK-NEXT:   loss = @loss,
// CHECK-NEXT:   batch = 64,
// CHECK-NEXT:   accumulate = 4,
// CHECK-NEXT:   precision = fp16(f32 = ("head.*", "softmax")),
// CHECK-NEXT:   loss_scale = dynamic,
// CHECK-NEXT:   clip_value = 0.5,
// CHECK-NEXT:   clip_norm = 1.0,
// CHECK-NEXT:   skip = outliers(loss = 6.0),
// CHECK-NEXT:   optimizer = adam(lr = 0.001),
// CHECK-NEXT:   groups = group(lr = 1.0e-04, match = "head.*"),
// CHECK-NEXT:   schedule = (linear(steps = 100), cosine(T_max = 900)),
// CHECK-NEXT:   ema = ema(decay = 0.999),
// CHECK-NEXT:   seed = 7
// CHECK-NEXT: }
gpuc.recipe {
  optimizer = adam(lr = 1.0e-3),
  loss = @loss,
  seed = 7,
  ema = ema(decay = 0.999),
  schedule = (linear(steps = 100), cosine(T_max = 900)),
  groups = group(match = "head.*", lr = 1.0e-4),
  skip = outliers(loss = 6.0),
  clip_norm = 1.0,
  clip_value = 0.5,
  loss_scale = dynamic,
  precision = fp16(f32 = ("head.*", "softmax")),
  accumulate = 4,
  batch = 64
}
