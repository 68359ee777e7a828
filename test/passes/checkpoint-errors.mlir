// RUN: not gpuc-opt %s --gpuc-checkpoint=policy=half 2>&1 | FileCheck %s --check-prefix=POLICY
// POLICY: error: 'half' is no policy: model, none, sqrt, full, save=OP,OP… or blocks=LAYER,LAYER…
// RUN: not gpuc-opt %s --gpuc-checkpoint=policy=save=matmul,gemm 2>&1 | FileCheck %s --check-prefix=OP
// OP: error: 'gemm' is no op: save= takes names such as matmul, conv2d and attention
// RUN: not gpuc-opt %s --gpuc-checkpoint=policy=full 2>&1 | FileCheck %s --check-prefix=PLACES
// RUN: sed '$a gpuc.checkpoint "h.0"' %s > %t.mlir && not gpuc-opt %t.mlir --gpuc-checkpoint 2>&1 | FileCheck %s --check-prefix=NAMELESS
// NAMELESS: error: 'gpuc.checkpoint' op no layer is named 'h.0', nor anything: what was compiled is text without locations
// PLACES: error: what belongs to gradients is known by locations, and @train_step has none

func.func @train_step(%x: tensor<3xf32> {gpuc.name = "x"}) -> (tensor<f32> {gpuc.name = "loss_sum"}) {
  %0 = gpuc.sum %x dims [0] : (tensor<3xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
