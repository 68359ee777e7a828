// RUN: gpuc-opt %s --gpuc-fuse-attention --split-input-file | FileCheck %s
// RUN: gpuc-opt %s --gpuc-fuse-attention=target=cuda:sm_90 --split-input-file | FileCheck %s --check-prefix=CUDA

// A divisor for the scale; keys transposed in memory; three dimensions are one head each.
// CHECK-LABEL: func.func @divided(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: tensor<6x8x4xf32>, %[[K:[a-z0-9]+]]: tensor<6x5x4xf32>, %[[V:[a-z0-9]+]]: tensor<6x5x3xf32>)
// CHECK-DAG:     %[[Q4:.*]] = gpuc.reshape %[[Q]] : tensor<6x8x4xf32> to tensor<6x1x8x4xf32>
// CHECK-DAG:     %[[K4:.*]] = gpuc.reshape %[[K]] : tensor<6x5x4xf32> to tensor<6x1x5x4xf32>
// CHECK-DAG:     %[[V4:.*]] = gpuc.reshape %[[V]] : tensor<6x5x3xf32> to tensor<6x1x5x3xf32>
// CHECK:         %[[O:.*]], %{{.*}} = gpuc.attention %[[Q4]], %[[K4]], %[[V4]] scale 5.000000e-01 :
// CHECK-NEXT:    %[[R:.*]] = gpuc.reshape %[[O]] : tensor<6x1x8x3xf32> to tensor<6x8x3xf32>
// CHECK-NEXT:    return %[[R]]
func.func @divided(%q: tensor<6x8x4xf32>, %k: tensor<6x5x4xf32>, %v: tensor<6x5x3xf32>) -> tensor<6x8x3xf32> {
  %keys = gpuc.transpose %k permutation [0, 2, 1] : (tensor<6x5x4xf32>) -> tensor<6x4x5xf32>
  %s = gpuc.matmul %q, %keys : (tensor<6x8x4xf32>, tensor<6x4x5xf32>) -> tensor<6x8x5xf32>
  %number = gpuc.constant 2.0 : tensor<1xf32>
  %scalar = gpuc.reshape %number : tensor<1xf32> to tensor<f32>
  %two = gpuc.broadcast %scalar dims [] : tensor<f32> to tensor<6x8x5xf32>
  %scaled = gpuc.div %s, %two : tensor<6x8x5xf32>
  %p = gpuc.softmax %scaled dim 2 : tensor<6x8x5xf32>
  %o = gpuc.matmul %p, %v : (tensor<6x8x5xf32>, tensor<6x5x3xf32>) -> tensor<6x8x3xf32>
  return %o : tensor<6x8x3xf32>
}

// -----

// A triangle of constants; dropout keeps its id; no scale is a scale of 1. What is not scaled by the formula has been in the query.
// CHECK-LABEL: func.func @triangle(
// CHECK:         gpuc.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.000000e+00 causal dropout 1.000000e-01 id 7 :
// CHECK-NEXT:    return
func.func @triangle(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  %s = gpuc.matmul %q, transpose %k : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x3xf32>
  %later = gpuc.constant dense<[[false, true, true], [false, false, true], [false, false, false]]> : tensor<3x3xi1>
  %hidden = gpuc.broadcast %later dims [2, 3] : tensor<3x3xi1> to tensor<2x2x3x3xi1>
  %least = gpuc.constant -3.40282347E+38 : tensor<2x2x3x3xf32>
  %masked = gpuc.select %hidden, %least, %s : tensor<2x2x3x3xi1>, tensor<2x2x3x3xf32>
  %p = gpuc.softmax %masked dim 3 : tensor<2x2x3x3xf32>
  %d = gpuc.dropout %p p 0.1 id 7 : tensor<2x2x3x3xf32>
  %o = gpuc.matmul %d, %v : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  return %o : tensor<2x2x3x4xf32>
}

// -----

// A part of the batch draws what the whole has there.
// CHECK-LABEL: func.func @part(
// CHECK:         gpuc.attention {{.*}} dropout 1.000000e-01 id 7 {gpuc.partition = #gpuc.partition<slices = 2, rows = 2>} :
func.func @part(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  %s = gpuc.matmul %q, transpose %k : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x3xf32>
  %p = gpuc.softmax %s dim 3 : tensor<2x2x3x3xf32>
  %d = gpuc.dropout %p p 0.1 id 7 {gpuc.partition = #gpuc.partition<slices = 2, rows = 2>} : tensor<2x2x3x3xf32>
  %o = gpuc.matmul %d, %v : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  return %o : tensor<2x2x3x4xf32>
}

// -----

// A band is no triangle, but known, so that any large negative number will do; it stays a mask, of what takes part.
// CHECK-LABEL: func.func @band(
// CHECK:         %[[FAR:.*]] = gpuc.constant dense
// CHECK:         %[[NEAR:.*]] = gpuc.not %[[FAR]] : tensor<3x3xi1>
// CHECK:         %[[MASK:.*]] = gpuc.reshape %[[NEAR]] : tensor<3x3xi1> to tensor<1x1x3x3xi1>
// CHECK:         gpuc.attention %{{.*}}, %{{.*}}, %{{.*}} mask %[[MASK]] scale 1.000000e+00 :
func.func @band(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  %s = gpuc.matmul %q, transpose %k : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x3xf32>
  %far = gpuc.constant dense<[[false, false, true], [false, false, false], [true, false, false]]> : tensor<3x3xi1>
  %hidden = gpuc.broadcast %far dims [2, 3] : tensor<3x3xi1> to tensor<2x2x3x3xi1>
  %fill = gpuc.constant -1.0e9 : tensor<2x2x3x3xf32>
  %masked = gpuc.select %hidden, %fill, %s : tensor<2x2x3x3xi1>, tensor<2x2x3x3xf32>
  %p = gpuc.softmax %masked dim 3 : tensor<2x2x3x3xf32>
  %o = gpuc.matmul %p, %v : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  return %o : tensor<2x2x3x4xf32>
}

// -----

// Padding that a batch says, by -∞, and a triangle besides; the condition says what takes part.
// CHECK-LABEL: func.func @padding(
// CHECK-SAME:    %[[PRESENT:[a-z0-9]+]]: tensor<2x3xi1>
// CHECK:         %[[MASK:.*]] = gpuc.reshape %[[PRESENT]] : tensor<2x3xi1> to tensor<2x1x1x3xi1>
// CHECK:         gpuc.attention %{{.*}}, %{{.*}}, %{{.*}} mask %[[MASK]] scale 1.000000e+00 causal :
func.func @padding(%present: tensor<2x3xi1>, %q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  %s = gpuc.matmul %q, transpose %k : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x3xf32>
  %least = gpuc.constant -inf : tensor<2x2x3x3xf32>
  %query = gpuc.iota dim 2 : tensor<2x2x3x3xi64>
  %key = gpuc.iota dim 3 : tensor<2x2x3x3xi64>
  %behind = gpuc.sub %query, %key : tensor<2x2x3x3xi64>
  %none = gpuc.constant 0 : tensor<2x2x3x3xi64>
  %seen = gpuc.compare ge %behind, %none : tensor<2x2x3x3xi64>
  %causal = gpuc.select %seen, %s, %least : tensor<2x2x3x3xi1>, tensor<2x2x3x3xf32>
  %shown = gpuc.broadcast %present dims [0, 3] : tensor<2x3xi1> to tensor<2x2x3x3xi1>
  %masked = gpuc.select %shown, %causal, %least : tensor<2x2x3x3xi1>, tensor<2x2x3x3xf32>
  %p = gpuc.softmax %masked dim 3 : tensor<2x2x3x3xf32>
  %o = gpuc.matmul %p, %v : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  return %o : tensor<2x2x3x4xf32>
}

// -----

// A bias by position, which is trained, behind the scale.
// CHECK-LABEL: func.func @bias(
// CHECK-SAME:    %[[BIAS:[a-z0-9]+]]: tensor<2x3x3xf32>
// CHECK:         %[[MASK:.*]] = gpuc.reshape %[[BIAS]] : tensor<2x3x3xf32> to tensor<1x2x3x3xf32>
// CHECK:         gpuc.attention %{{.*}}, %{{.*}}, %{{.*}} mask %[[MASK]] scale 5.000000e-01 :
func.func @bias(%bias: tensor<2x3x3xf32>, %q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  %s = gpuc.matmul %q, transpose %k : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x3xf32>
  %half = gpuc.constant 0.5 : tensor<2x2x3x3xf32>
  %scaled = gpuc.mul %half, %s : tensor<2x2x3x3xf32>
  %spread = gpuc.broadcast %bias dims [1, 2, 3] : tensor<2x3x3xf32> to tensor<2x2x3x3xf32>
  %masked = gpuc.add %spread, %scaled : tensor<2x2x3x3xf32>
  %p = gpuc.softmax %masked dim 3 : tensor<2x2x3x3xf32>
  %o = gpuc.matmul %p, %v : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  return %o : tensor<2x2x3x4xf32>
}

// -----

// Casts of mixed precision are no hindrance; a constant triangle that is added needs no number of another type.
// CHECK-LABEL: func.func @casts(
// CHECK:         gpuc.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.000000e+00 causal : (tensor<2x2x2x4xbf16>
// CHECK-NEXT:    return
func.func @casts(%q: tensor<2x2x2x4xbf16>, %k: tensor<2x2x2x4xbf16>, %v: tensor<2x2x2x4xbf16>) -> tensor<2x2x2x4xbf16> {
  %s = gpuc.matmul %q, transpose %k : (tensor<2x2x2x4xbf16>, tensor<2x2x2x4xbf16>) -> tensor<2x2x2x2xbf16>
  %wide = gpuc.cast %s : tensor<2x2x2x2xbf16> to tensor<2x2x2x2xf32>
  %plane = gpuc.constant dense<[[0.0, -3.40282347E+38], [0.0, 0.0]]> : tensor<2x2xf32>
  %mask = gpuc.broadcast %plane dims [2, 3] : tensor<2x2xf32> to tensor<2x2x2x2xf32>
  %masked = gpuc.add %wide, %mask : tensor<2x2x2x2xf32>
  %p = gpuc.softmax %masked dim 3 : tensor<2x2x2x2xf32>
  %narrow = gpuc.cast %p : tensor<2x2x2x2xf32> to tensor<2x2x2x2xbf16>
  %o = gpuc.matmul %narrow, %v : (tensor<2x2x2x2xbf16>, tensor<2x2x2x4xbf16>) -> tensor<2x2x2x4xbf16>
  return %o : tensor<2x2x2x4xbf16>
}

// -----

// A row that a batch hides by a number would be a mean.
// CHECK-LABEL: func.func @mean(
// CHECK-NOT:     gpuc.attention
// CHECK:         return
func.func @mean(%hidden: tensor<2x2x3x3xi1>, %q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  %s = gpuc.matmul %q, transpose %k : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x3xf32>
  %fill = gpuc.constant -1.0e9 : tensor<2x2x3x3xf32>
  %masked = gpuc.select %hidden, %fill, %s : tensor<2x2x3x3xi1>, tensor<2x2x3x3xf32>
  %p = gpuc.softmax %masked dim 3 : tensor<2x2x3x3xf32>
  %o = gpuc.matmul %p, %v : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  return %o : tensor<2x2x3x4xf32>
}

// -----

// The same of a triangle that hides by a number what padding leaves, and of a row of a known mask that sees nothing.
// CHECK-LABEL: func.func @left(
// CHECK-NOT:     gpuc.attention
// CHECK:         return
func.func @left(%present: tensor<2x3xi1>, %q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  %s = gpuc.matmul %q, transpose %k : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x3xf32>
  %fill = gpuc.constant -1.0e9 : tensor<2x2x3x3xf32>
  %least = gpuc.constant -inf : tensor<2x2x3x3xf32>
  %seen = gpuc.constant dense<[[true, false, false], [true, true, false], [true, true, true]]> : tensor<3x3xi1>
  %alike = gpuc.broadcast %seen dims [2, 3] : tensor<3x3xi1> to tensor<2x2x3x3xi1>
  %causal = gpuc.select %alike, %s, %fill : tensor<2x2x3x3xi1>, tensor<2x2x3x3xf32>
  %shown = gpuc.broadcast %present dims [0, 3] : tensor<2x3xi1> to tensor<2x2x3x3xi1>
  %masked = gpuc.select %shown, %causal, %least : tensor<2x2x3x3xi1>, tensor<2x2x3x3xf32>
  %p = gpuc.softmax %masked dim 3 : tensor<2x2x3x3xf32>
  %o = gpuc.matmul %p, %v : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  return %o : tensor<2x2x3x4xf32>
}

// CHECK-LABEL: func.func @none(
// CHECK-NOT:     gpuc.attention
// CHECK:         return
func.func @none(%q: tensor<2x2x2x4xf32>, %k: tensor<2x2x2x4xf32>, %v: tensor<2x2x2x4xf32>) -> tensor<2x2x2x4xf32> {
  %s = gpuc.matmul %q, transpose %k : (tensor<2x2x2x4xf32>, tensor<2x2x2x4xf32>) -> tensor<2x2x2x2xf32>
  %least = gpuc.constant -inf : tensor<2x2x2x2xf32>
  %seen = gpuc.constant dense<[[false, false], [true, true]]> : tensor<2x2xi1>
  %alike = gpuc.broadcast %seen dims [2, 3] : tensor<2x2xi1> to tensor<2x2x2x2xi1>
  %masked = gpuc.select %alike, %s, %least : tensor<2x2x2x2xi1>, tensor<2x2x2x2xf32>
  %p = gpuc.softmax %masked dim 3 : tensor<2x2x2x2xf32>
  %o = gpuc.matmul %p, %v : (tensor<2x2x2x2xf32>, tensor<2x2x2x4xf32>) -> tensor<2x2x2x4xf32>
  return %o : tensor<2x2x2x4xf32>
}

// -----

// Somebody wants the probabilities.
// CHECK-LABEL: func.func @read(
// CHECK-NOT:     gpuc.attention
// CHECK:         return
func.func @read(%q: tensor<2x8x4xf32>, %k: tensor<2x8x4xf32>, %v: tensor<2x8x4xf32>) -> (tensor<2x8x4xf32>, tensor<2x8x8xf32>) {
  %s = gpuc.matmul %q, transpose %k : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x8xf32>
  %p = gpuc.softmax %s dim 2 : tensor<2x8x8xf32>
  %o = gpuc.matmul %p, %v : (tensor<2x8x8xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  return %o, %p : tensor<2x8x4xf32>, tensor<2x8x8xf32>
}

// -----

// A mask that is scaled, probabilities along queries, one matrix of values for all, and a scale that hangs on a variable.
// CHECK-LABEL: func.func @others(
// CHECK-NOT:     gpuc.attention
// CHECK:         return
func.func @others(%m: tensor<2x8x8xf32>, %q: tensor<2x8x4xf32>, %k: tensor<2x8x4xf32>, %v: tensor<2x8x4xf32>, %w: tensor<8x4xf32>, %t: tensor<2x8x8xf32>) -> (tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>) {
  %half = gpuc.constant 0.5 : tensor<2x8x8xf32>
  %s0 = gpuc.matmul %q, transpose %k : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x8xf32>
  %masked = gpuc.add %s0, %m : tensor<2x8x8xf32>
  %scaled = gpuc.mul %masked, %half : tensor<2x8x8xf32>
  %p0 = gpuc.softmax %scaled dim 2 : tensor<2x8x8xf32>
  %o0 = gpuc.matmul %p0, %v : (tensor<2x8x8xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  %s1 = gpuc.matmul %q, transpose %k : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x8xf32>
  %p1 = gpuc.softmax %s1 dim 1 : tensor<2x8x8xf32>
  %o1 = gpuc.matmul %p1, %v : (tensor<2x8x8xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  %s2 = gpuc.matmul %q, transpose %k : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x8xf32>
  %p2 = gpuc.softmax %s2 dim 2 : tensor<2x8x8xf32>
  %o2 = gpuc.matmul %p2, %w : (tensor<2x8x8xf32>, tensor<8x4xf32>) -> tensor<2x8x4xf32>
  %s3 = gpuc.matmul %q, transpose %k : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x8xf32>
  %hot = gpuc.mul %s3, %t : tensor<2x8x8xf32>
  %p3 = gpuc.softmax %hot dim 2 : tensor<2x8x8xf32>
  %o3 = gpuc.matmul %p3, %v : (tensor<2x8x8xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  return %o0, %o1, %o2, %o3 : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>
}

// -----

// The host has kernels for heads of up to 256, and for f64; a GPU for 128, and not for f64.
// CHECK-LABEL: func.func @wide(
// CHECK:         gpuc.attention
// CHECK-NOT:     gpuc.attention
// CUDA-LABEL: func.func @wide(
// CUDA-NOT:     gpuc.attention
// CUDA:         return
func.func @wide(%q: tensor<2x8x200xf32>, %k: tensor<2x8x200xf32>, %v: tensor<2x8x200xf32>, %x: tensor<2x8x300xf32>) -> (tensor<2x8x200xf32>, tensor<2x8x300xf32>) {
  %s = gpuc.matmul %q, transpose %k : (tensor<2x8x200xf32>, tensor<2x8x200xf32>) -> tensor<2x8x8xf32>
  %p = gpuc.softmax %s dim 2 : tensor<2x8x8xf32>
  %o = gpuc.matmul %p, %v : (tensor<2x8x8xf32>, tensor<2x8x200xf32>) -> tensor<2x8x200xf32>
  %s1 = gpuc.matmul %x, transpose %x : (tensor<2x8x300xf32>, tensor<2x8x300xf32>) -> tensor<2x8x8xf32>
  %p1 = gpuc.softmax %s1 dim 2 : tensor<2x8x8xf32>
  %o1 = gpuc.matmul %p1, %x : (tensor<2x8x8xf32>, tensor<2x8x300xf32>) -> tensor<2x8x300xf32>
  return %o, %o1 : tensor<2x8x200xf32>, tensor<2x8x300xf32>
}

// -----

// Two rows of indices that meet; of three dimensions the numbers that are added get a dimension of heads.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:    %[[BIAS:[a-z0-9]+]]: tensor<2x3xf32>
// CHECK:         %[[MASK:.*]] = gpuc.reshape %[[BIAS]] : tensor<2x3xf32> to tensor<2x1x1x3xf32>
// CHECK:         gpuc.attention %{{.*}}, %{{.*}}, %{{.*}} mask %[[MASK]] scale 1.000000e+00 causal : (tensor<2x1x3x4xf32>
func.func @rows(%bias: tensor<2x3xf32>, %q: tensor<2x3x4xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %s = gpuc.matmul %q, transpose %k : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
  %index = gpuc.constant dense<[0, 1, 2]> : tensor<3xi64>
  %query = gpuc.broadcast %index dims [0] : tensor<3xi64> to tensor<3x3xi64>
  %key = gpuc.broadcast %index dims [1] : tensor<3xi64> to tensor<3x3xi64>
  %seen = gpuc.compare le %key, %query : tensor<3x3xi64>
  %alike = gpuc.broadcast %seen dims [1, 2] : tensor<3x3xi1> to tensor<2x3x3xi1>
  %least = gpuc.constant -inf : tensor<2x3x3xf32>
  %spread = gpuc.broadcast %bias dims [0, 2] : tensor<2x3xf32> to tensor<2x3x3xf32>
  %added = gpuc.add %s, %spread : tensor<2x3x3xf32>
  %masked = gpuc.select %alike, %added, %least : tensor<2x3x3xi1>, tensor<2x3x3xf32>
  %p = gpuc.softmax %masked dim 2 : tensor<2x3x3xf32>
  %o = gpuc.matmul %p, %v : (tensor<2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %o : tensor<2x3x4xf32>
}

// -----

// Numbers that are small hide nothing.
// CHECK-LABEL: func.func @distances(
// CHECK:         %[[FAR:.*]] = gpuc.constant dense
// CHECK:         %[[MASK:.*]] = gpuc.reshape %[[FAR]] : tensor<2x2xf32> to tensor<1x1x2x2xf32>
// CHECK:         gpuc.attention %{{.*}}, %{{.*}}, %{{.*}} mask %[[MASK]] scale 1.000000e+00 :
func.func @distances(%q: tensor<2x2x4xf32>, %k: tensor<2x2x4xf32>, %v: tensor<2x2x4xf32>) -> tensor<2x2x4xf32> {
  %s = gpuc.matmul %q, transpose %k : (tensor<2x2x4xf32>, tensor<2x2x4xf32>) -> tensor<2x2x2xf32>
  %plane = gpuc.constant dense<[[0.0, -1.0], [0.0, 0.0]]> : tensor<2x2xf32>
  %far = gpuc.broadcast %plane dims [1, 2] : tensor<2x2xf32> to tensor<2x2x2xf32>
  %added = gpuc.add %s, %far : tensor<2x2x2xf32>
  %p = gpuc.softmax %added dim 2 : tensor<2x2x2xf32>
  %o = gpuc.matmul %p, %v : (tensor<2x2x2xf32>, tensor<2x2x4xf32>) -> tensor<2x2x4xf32>
  return %o : tensor<2x2x4xf32>
}

// -----

// Numbers that are cast before or behind they are repeated are cast as they are stored, a factor is what it was.
// CHECK-LABEL: func.func @rounded(
// CHECK-SAME:    %[[BIAS:[a-z0-9]+]]: tensor<2x2x2xf32>
// CHECK:         %[[NARROW:.*]] = gpuc.cast %[[BIAS]] : tensor<2x2x2xf32> to tensor<2x2x2xbf16>
// CHECK:         %[[MASK:.*]] = gpuc.reshape %[[NARROW]] : tensor<2x2x2xbf16> to tensor<1x2x2x2xbf16>
// CHECK:         gpuc.attention %{{.*}}, %{{.*}}, %{{.*}} mask %[[MASK]] scale 1.000000e-01 causal :
func.func @rounded(%bias: tensor<2x2x2xf32>, %q: tensor<3x2x2x4xbf16>, %k: tensor<3x2x2x4xbf16>, %v: tensor<3x2x2x4xbf16>) -> tensor<3x2x2x4xbf16> {
  %s = gpuc.matmul %q, transpose %k : (tensor<3x2x2x4xbf16>, tensor<3x2x2x4xbf16>) -> tensor<3x2x2x2xbf16>
  %tenth = gpuc.constant 0.1 : tensor<3x2x2x2xf64>
  %factor = gpuc.cast %tenth : tensor<3x2x2x2xf64> to tensor<3x2x2x2xbf16>
  %scaled = gpuc.mul %s, %factor : tensor<3x2x2x2xbf16>
  %plane = gpuc.constant dense<[[0.0, 0xFF800000], [0.0, 0.0]]> : tensor<2x2xf32>
  %triangle = gpuc.broadcast %plane dims [2, 3] : tensor<2x2xf32> to tensor<3x2x2x2xf32>
  %later = gpuc.cast %triangle : tensor<3x2x2x2xf32> to tensor<3x2x2x2xbf16>
  %causal = gpuc.add %scaled, %later : tensor<3x2x2x2xbf16>
  %spread = gpuc.broadcast %bias dims [1, 2, 3] : tensor<2x2x2xf32> to tensor<3x2x2x2xf32>
  %mask = gpuc.cast %spread : tensor<3x2x2x2xf32> to tensor<3x2x2x2xbf16>
  %masked = gpuc.add %causal, %mask : tensor<3x2x2x2xbf16>
  %p = gpuc.softmax %masked dim 3 : tensor<3x2x2x2xbf16>
  %o = gpuc.matmul %p, %v : (tensor<3x2x2x2xbf16>, tensor<3x2x2x4xbf16>) -> tensor<3x2x2x4xbf16>
  return %o : tensor<3x2x2x4xbf16>
}

// -----

// As many rows as queries: the constant hides keys of a row, not of a query.
// CHECK-LABEL: func.func @square(
// CHECK:         %[[MASK:.*]] = gpuc.reshape %{{.*}} : tensor<2x2xi1> to tensor<2x1x1x2xi1>
// CHECK:         gpuc.attention %{{.*}}, %{{.*}}, %{{.*}} mask %[[MASK]] scale 1.000000e+00 :
func.func @square(%q: tensor<2x2x2x4xf32>, %k: tensor<2x2x2x4xf32>, %v: tensor<2x2x2x4xf32>) -> tensor<2x2x2x4xf32> {
  %s = gpuc.matmul %q, transpose %k : (tensor<2x2x2x4xf32>, tensor<2x2x2x4xf32>) -> tensor<2x2x2x2xf32>
  %present = gpuc.constant dense<[[true, false], [true, true]]> : tensor<2x2xi1>
  %seen = gpuc.broadcast %present dims [0, 3] : tensor<2x2xi1> to tensor<2x2x2x2xi1>
  %least = gpuc.constant -inf : tensor<2x2x2x2xf32>
  %masked = gpuc.select %seen, %s, %least : tensor<2x2x2x2xi1>, tensor<2x2x2x2xf32>
  %p = gpuc.softmax %masked dim 3 : tensor<2x2x2x2xf32>
  %o = gpuc.matmul %p, %v : (tensor<2x2x2x2xf32>, tensor<2x2x2x4xf32>) -> tensor<2x2x2x4xf32>
  return %o : tensor<2x2x2x4xf32>
}

// -----

// Each score has a number of its own.
// CHECK-LABEL: func.func @own(
// CHECK-NOT:     gpuc.attention
// CHECK:         return
func.func @own(%m: tensor<2x3x3xf32>, %q: tensor<2x3x4xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %s = gpuc.matmul %q, transpose %k : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
  %added = gpuc.add %s, %m : tensor<2x3x3xf32>
  %p = gpuc.softmax %added dim 2 : tensor<2x3x3xf32>
  %o = gpuc.matmul %p, %v : (tensor<2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %o : tensor<2x3x4xf32>
}
