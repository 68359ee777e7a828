#ifndef GPUC_CONV_OPS
#define GPUC_CONV_OPS

include "dialects/gpuc/GpucOpBase.td"

//===----------------------------------------------------------------------===//
// Convolution
//===----------------------------------------------------------------------===//

/// One of the three convolutions; they have one set of numbers and constraints.
class Gpuc_Convolution<string mnemonic, string lhs, string rhs, list<Trait> traits = []>
    : Gpuc_PureOp<mnemonic, [Differentiable] # traits, ["getFlops"]> {
  dag numbers = (ins DefaultValuedAttr<DenseI64ArrayAttr, "{1, 1}">:$strides,
                     DefaultValuedAttr<DenseI64ArrayAttr, "{0, 0, 0, 0}">:$padding,
                     DefaultValuedAttr<DenseI64ArrayAttr, "{1, 1}">:$dilation, DefaultValuedAttr<I64Attr, "1">:$groups,
                     UnitAttr:$channels_last);
  let results = (outs Gpuc_FloatTensor:$result);
  let assemblyFormat = "$" # lhs # " `,` $" # rhs # [{
    (`strides` $strides^)? (`padding` $padding^)? (`dilation` $dilation^)? (`groups` $groups^)?
    (`channels_last` $channels_last^)? attr-dict `:`
    functional-type(operands, results)
  }];
}

def Conv2dOp : Gpuc_Convolution<"conv2d", "input", "filter", [Infer, Product<["getBiasDimension"]>]> {
  let summary = "Convolution of images with a filter, as torch.nn.functional.conv2d";
  let description = [{
    A cross-correlation, as every framework's convolution is [Dumoulin and Visin 2016, A guide to convolution arithmetic
    for deep learning, arXiv:1603.07285]: with input x (N, C, H, W), filter w (O, C / groups, kh, kw) and x = 0 outside,

        y[n, o, p, q] = Σ over c, i, j of x[n, g·C/groups + c, p·sh - top + i·dh, q·sw - left + j·dw] · w[o, c, i, j]

    where g = ⌊o · groups / O⌋ and OH = ⌊(H + top + bottom - (kh - 1)·dh - 1) / sh⌋ + 1, OW likewise. Products are added in
    an order that depends on shape and target alone. NaN and infinities spread as products and sums spread them; a zero
    of the padding times an infinity of the filter may be NaN or left out. groups = C = O is a depthwise convolution. A
    convolution in one dimension is one over images of height 1. FLOPs: 2 · N · O · OH · OW · C / groups · kh · kw.

    It is bilinear, and so are its two gradients: each differentiates into the other two, to any order.

    `channels_last` says how the same numbers lie in memory, and so what the types are: input (N, H, W, C), filter
    (O, kh, kw, C / groups), result (N, OH, OW, O), of this op and of its two gradients. gpuc-layout sets it where a
    GPU's tensor cores multiply; the host has no such convolution.

    ```mlir
    %y = gpuc.conv2d %x, %w strides [2, 2] padding [1, 1, 1, 1] : (tensor<?x3x32x32xf32>, tensor<16x3x3x3xf32>) -> tensor<?x16x16x16xf32>
    ```

    - (conv_C1) Operands and result are of one element type and of rank 4; the filter's shape is static.
    - (conv_C2) strides [sh, sw], dilation [dh, dw] and groups are at least 1, padding [top, bottom, left, right] at
      least 0, all of them less than 2³¹.
    - (conv_C3) groups divides the channels of input and result, and the filter has C / groups input channels.
    - (conv_C4) The dilated filter fits into the padded input, and no extent is 0 or as large as 2³¹.
  }];
  let arguments = !con((ins Gpuc_FloatTensor:$input, Gpuc_FloatTensor:$filter), numbers);
  let extraClassDefinition = "::std::optional<int64_t> $cppClass::getBiasDimension() { return getChannelsLast() ? 3 : 1; }";
}

def Conv2dInputGradientOp : Gpuc_Convolution<"conv2d_input_gradient", "cotangent", "filter", [Product<["mayBeInputCotangent"]>]> {
  let summary = "The cotangent of conv2d's input; the transposed convolution";
  let description = [{
    dx[n, g·C/groups + c, h, v] = Σ cotangent[n, o, p, q] · w[o, c, i, j] over all o of the group g and all p, q, i, j with
    h = p·sh - top + i·dh and v = q·sw - left + j·dw. The result's type says what the input's shape was: with strides,
    several inputs have a cotangent of one shape.

    This is `torch.nn.functional.conv_transpose2d(cotangent, w)`, whose weight is laid out (in, out / groups, kh, kw),
    which is what w is; `output_padding` is in the result's type. Constraints are those of `gpuc.conv2d`, and

    - (conv_C5) The cotangent has the type that conv2d gives for that input and filter.

    ```mlir
    %dx = gpuc.conv2d_input_gradient %dy, %w strides [2, 2] padding [1, 1, 1, 1] : (tensor<8x16x16x16xf32>, tensor<16x3x3x3xf32>) -> tensor<8x3x32x32xf32>
    ```
  }];
  let arguments = !con((ins Gpuc_FloatTensor:$cotangent, Gpuc_FloatTensor:$filter), numbers);
  let extraClassDefinition = "bool $cppClass::mayBeInputCotangent() { return true; }";
  let hasVerifier = 1;
}

def Conv2dFilterGradientOp : Gpuc_Convolution<"conv2d_filter_gradient", "cotangent", "input", [Product<>]> {
  let summary = "The cotangent of conv2d's filter";
  let description = [{
    dw[o, c, i, j] = Σ cotangent[n, o, p, q] · x[n, g·C/groups + c, p·sh - top + i·dh, q·sw - left + j·dw] over all n, p and q,
    g being the group of o. The result's type says what the filter's shape was. Constraints are those of `gpuc.conv2d`
    and (conv_C5).

    ```mlir
    %dw = gpuc.conv2d_filter_gradient %dy, %x padding [1, 1, 1, 1] : (tensor<8x16x32x32xf32>, tensor<8x3x32x32xf32>) -> tensor<16x3x3x3xf32>
    ```
  }];
  let arguments = !con((ins Gpuc_FloatTensor:$cotangent, Gpuc_FloatTensor:$input), numbers);
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

/// `operands` as the assembly format has them.
class Gpuc_Pooling<string mnemonic, string operands, list<Trait> traits = []>
    : Gpuc_PureOp<mnemonic, [Differentiable] # traits, ["getFlops"]> {
  dag windows = (ins DenseI64ArrayAttr:$window, DefaultValuedAttr<DenseI64ArrayAttr, "{1, 1}">:$strides,
                     DefaultValuedAttr<DenseI64ArrayAttr, "{0, 0, 0, 0}">:$padding);
  string last = ?;
  let assemblyFormat = operands # " `window` $window (`strides` $strides^)? (`padding` $padding^)? " # last #
                       " (`channels_last` $channels_last^)? attr-dict `:` functional-type(operands, results)";
}
class Gpuc_MaxPooling<string mnemonic, string operands, list<Trait> traits = []>
    : Gpuc_Pooling<mnemonic, operands, traits> {
  dag numbers = !con(windows, (ins DefaultValuedAttr<DenseI64ArrayAttr, "{1, 1}">:$dilation,
                                    UnitAttr:$channels_last));
  let last = "(`dilation` $dilation^)?";
}
class Gpuc_AvgPooling<string mnemonic, string operands, list<Trait> traits = []>
    : Gpuc_Pooling<mnemonic, operands, traits> {
  dag numbers = !con(windows, (ins UnitAttr:$exclude_padding, UnitAttr:$channels_last));
  let last = "(`exclude_padding` $exclude_padding^)?";
}

def MaxPool2dOp : Gpuc_MaxPooling<"max_pool2d", "$operand", [Infer]> {
  let summary = "The largest element of each window, and where it lies";
  let description = [{
    As `torch.nn.functional.max_pool2d(return_indices=True)`: window (p, q) of an image (H, W) holds the elements at rows
    p·sh - top + i·dh and columns q·sw - left + j·dw that lie inside. Of equal ones the first in row-major order counts,
    NaN is larger than all else, -0 equals +0. PyTorch's `ceil_mode` is more padding at bottom and right. FLOPs: one
    comparison for each element of each window.

    `indices` is h · W + v for each window as i64, which is what PyTorch has. In a narrower type it is the element's place
    in the window, i · kw + j: that is all that the derivative, `max_pool2d_gradient`, needs to keep, and of a window of
    up to 256 elements it is a byte. `gpuc-narrow-indices` makes the one of the other before derivatives are taken.

    ```mlir
    %values, %indices = gpuc.max_pool2d %x window [2, 2] strides [2, 2] : (tensor<?x8x28x28xf32>) -> (tensor<?x8x14x14xf32>, tensor<?x8x14x14xi64>)
    ```

    - (pool_C1) Images have rank 4: (N, C, H, W), or, with `channels_last`, (N, H, W, C), as what is pooled of them.
    - (pool_C2) window, strides and dilation are two numbers of at least 1, padding [top, bottom, left, right] four of at
      least 0, all of them less than 2³¹.
    - (pool_C3) There is a window, and each holds an element that is not padding.
    - (pool_C5) indices are i64, or of the narrower of ui8 and i32 that has room for all places in a window.
  }];
  let arguments = !con((ins Gpuc_FloatTensor:$operand), numbers);
  let results = (outs Gpuc_FloatTensor:$values, Gpuc_PlaceTensor:$indices);
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Indices may be narrower than those that are inferred.
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange given);
  }];
}

def MaxPool2dGradientOp : Gpuc_MaxPooling<"max_pool2d_gradient", "$cotangent `,` $indices"> {
  let summary = "Each window's cotangent goes to the element that the window chose";
  let description = [{
    result[n, c, h, v] = Σ cotangent[n, c, p, q] over the windows (p, q) that hold (h, v) and whose index names it, as
    `max_pool2d` does, from the last row of windows to the first and in each from the last to the first. An index that
    does not lie in its own window, or in the padding, chooses nothing. The derivative is `max_pool2d_gather`.

    - (pool_C4) cotangent and indices have the types of what the pooling of the result gives; (pool_C5) holds.
  }];
  let arguments = !con((ins Gpuc_FloatTensor:$cotangent, Gpuc_PlaceTensor:$indices), numbers);
  let results = (outs Gpuc_FloatTensor:$result);
  let hasVerifier = 1;
}

def MaxPool2dGatherOp : Gpuc_MaxPooling<"max_pool2d_gather", "$operand `,` $indices"> {
  let summary = "The element that each window chose";
  let description = [{
    result[n, c, p, q] is the element of the operand at indices[n, c, p, q] if that lies in window (p, q), else 0: the
    transpose of `max_pool2d_gradient`, into which it differentiates. (pool_C4) holds of result and indices, and (pool_C5).
  }];
  let arguments = !con((ins Gpuc_FloatTensor:$operand, Gpuc_PlaceTensor:$indices), numbers);
  let results = (outs Gpuc_FloatTensor:$result);
  let hasVerifier = 1;
}

def AvgPool2dOp : Gpuc_AvgPooling<"avg_pool2d", "$operand", [Infer]> {
  let summary = "The mean of each window";
  let description = [{
    As `torch.nn.functional.avg_pool2d`: the sum of the window's elements, row by row, divided by the window's size; with
    `exclude_padding` (PyTorch's count_include_pad=False) by the number of its elements that are not padding. Windows lie
    as in `max_pool2d`, undilated; (pool_C1) to (pool_C3) hold. Linear; the derivative is `avg_pool2d_gradient`.

    ```mlir
    %y = gpuc.avg_pool2d %x window [2, 2] strides [2, 2] : (tensor<?x8x28x28xf32>) -> tensor<?x8x14x14xf32>
    ```
  }];
  let arguments = !con((ins Gpuc_FloatTensor:$operand), numbers);
  let results = (outs Gpuc_FloatTensor:$result);
}

def AvgPool2dGradientOp : Gpuc_AvgPooling<"avg_pool2d_gradient", "$cotangent"> {
  let summary = "Each window's cotangent, divided as the mean was, goes to all of its elements";
  let description = [{
    result[n, c, h, v] = Σ cotangent[n, c, p, q] / size over the windows (p, q) that hold (h, v), from the last row of
    windows to the first and in each from the last to the first. The derivative is `avg_pool2d`. (pool_C4) holds of the
    cotangent.
  }];
  let arguments = !con((ins Gpuc_FloatTensor:$cotangent), numbers);
  let results = (outs Gpuc_FloatTensor:$result);
  let hasVerifier = 1;
}

#endif
