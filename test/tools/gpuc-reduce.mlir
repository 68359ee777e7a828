// A defect that shows with one op needs no other: the rest goes.
// RUN: gpuc-reduce %s -reduction-tree='traversal-mode=0 test=%S/Inputs/has-tanh.sh' | FileCheck %s

// The whole module is not replaced by what is left of it.
// RUN: cp %s %t.mlir
// RUN: not gpuc-reduce %t.mlir -reduction-tree='traversal-mode=0 test=%S/Inputs/has-tanh.sh' -o %t.mlir 2>&1 | FileCheck %s --check-prefix=SAME
// RUN: diff %s %t.mlir
// SAME: error: cannot write {{.*}}.mlir: it is read, too; give the output another name

// CHECK: gpuc.tanh
// CHECK-NOT: gpuc.exp
func.func @needed(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = gpuc.tanh %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @superfluous(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = gpuc.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
