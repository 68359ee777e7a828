// Cotangents of grouped heads, in another order than the projection's, written side by side: the bits that transposes and a
// concat of their own give.
// RUN: gpuc-compile %s -O0 --target=host -o %t.apart.plan && gpuc-run %t.apart.plan --entry=predict --output-dir=%t.apart
// RUN: gpuc-compile %s -O3 --target=host -o %t.joined.plan && gpuc-run %t.joined.plan --entry=predict --output-dir=%t.joined
// RUN: cmp %t.apart/d.npy %t.joined/d.npy
// RUN: gpuc-inspect %t.apart.plan | FileCheck %s --check-prefix=APART
// RUN: gpuc-inspect %t.joined.plan | FileCheck %s --check-prefix=JOINED

// Two uploads, attention and its gradient.
// APART-NOT: predict {{ *}}4 commands
// JOINED:    predict {{ *}}4 commands
module @gqa {
  func.func @predict(%qkv: tensor<2x7x48xf32> {gpuc.name = "qkv"}, %ct: tensor<2x4x7x6xf32> {gpuc.name = "ct"}) -> (tensor<2x7x48xf32> {gpuc.name = "d"}) {
    %0 = gpuc.slice %qkv starts [0, 0, 0] limits [-1, -1, 24] strides [1, 1, 1] : (tensor<2x7x48xf32>) -> tensor<2x7x24xf32>
    %1 = gpuc.reshape %0 : tensor<2x7x24xf32> to tensor<2x7x4x6xf32>
    %q = gpuc.transpose %1 permutation [0, 2, 1, 3] : (tensor<2x7x4x6xf32>) -> tensor<2x4x7x6xf32>
    %2 = gpuc.slice %qkv starts [0, 0, 24] limits [-1, -1, 36] strides [1, 1, 1] : (tensor<2x7x48xf32>) -> tensor<2x7x12xf32>
    %3 = gpuc.reshape %2 : tensor<2x7x12xf32> to tensor<2x7x2x6xf32>
    %k = gpuc.transpose %3 permutation [0, 2, 1, 3] : (tensor<2x7x2x6xf32>) -> tensor<2x2x7x6xf32>
    %4 = gpuc.slice %qkv starts [0, 0, 36] limits [-1, -1, 48] strides [1, 1, 1] : (tensor<2x7x48xf32>) -> tensor<2x7x12xf32>
    %5 = gpuc.reshape %4 : tensor<2x7x12xf32> to tensor<2x7x2x6xf32>
    %v = gpuc.transpose %5 permutation [0, 2, 1, 3] : (tensor<2x7x2x6xf32>) -> tensor<2x2x7x6xf32>
    %y, %log = gpuc.attention %q, %k, %v causal : (tensor<2x4x7x6xf32>, tensor<2x2x7x6xf32>, tensor<2x2x7x6xf32>) -> (tensor<2x4x7x6xf32>, tensor<2x4x7xf32>)
    %dq, %dk, %dv = gpuc.attention_gradient %ct of %y, %log query %q key %k value %v causal
        : (tensor<2x4x7x6xf32>, tensor<2x4x7x6xf32>, tensor<2x4x7xf32>, tensor<2x4x7x6xf32>, tensor<2x2x7x6xf32>, tensor<2x2x7x6xf32>)
        -> (tensor<2x4x7x6xf32>, tensor<2x2x7x6xf32>, tensor<2x2x7x6xf32>)
    %6 = gpuc.transpose %dq permutation [0, 2, 1, 3] : (tensor<2x4x7x6xf32>) -> tensor<2x7x4x6xf32>
    %7 = gpuc.reshape %6 : tensor<2x7x4x6xf32> to tensor<2x7x24xf32>
    %8 = gpuc.transpose %dk permutation [0, 2, 1, 3] : (tensor<2x2x7x6xf32>) -> tensor<2x7x2x6xf32>
    %9 = gpuc.reshape %8 : tensor<2x7x2x6xf32> to tensor<2x7x12xf32>
    %10 = gpuc.transpose %dv permutation [0, 2, 1, 3] : (tensor<2x2x7x6xf32>) -> tensor<2x7x2x6xf32>
    %11 = gpuc.reshape %10 : tensor<2x7x2x6xf32> to tensor<2x7x12xf32>
    %12 = gpuc.concat %9, %7, %11 dim 2 : (tensor<2x7x12xf32>, tensor<2x7x24xf32>, tensor<2x7x12xf32>) -> tensor<2x7x48xf32>
    return %12 : tensor<2x7x48xf32>
  }
}
