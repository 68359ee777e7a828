// RUN: gpuc-opt %s --canonicalize --cse | FileCheck %s

// Two loops over the same chunks are one, and share what both compute of a chunk.
// CHECK-LABEL: func.func @chunks(
// CHECK:         %[[RESULTS:.*]]:3 = gpuc.scan over(%{{.*}}) carry(%{{.*}}, %{{.*}}) captures(%{{.*}}) chunked
// CHECK:           gpuc.exp
// CHECK-NOT:       gpuc.exp
// CHECK:           gpuc.yield
// CHECK-NOT:     gpuc.scan
// CHECK:         return %[[RESULTS]]#0, %[[RESULTS]]#1, %[[RESULTS]]#2
func.func @chunks(%x: tensor<3x4xf32>, %a: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<3x4xf32>) {
  %s = gpuc.scan over(%x) carry(%a) chunked : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<4xf32>, %c: tensor<4xf32>):
    %e = gpuc.exp %i : tensor<4xf32>
    %n = gpuc.add %c, %e : tensor<4xf32>
    gpuc.yield %n : tensor<4xf32>
  }
  %t, %all = gpuc.scan over(%x) carry(%w) captures(%w) chunked : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<3x4xf32>) {
  ^bb0(%i: tensor<4xf32>, %c: tensor<4xf32>, %v: tensor<4xf32>):
    %e = gpuc.exp %i : tensor<4xf32>
    %p = gpuc.mul %e, %v : tensor<4xf32>
    %n = gpuc.add %c, %p : tensor<4xf32>
    gpuc.yield %n, %e : tensor<4xf32>, tensor<4xf32>
  }
  return %s, %t, %all : tensor<4xf32>, tensor<4xf32>, tensor<3x4xf32>
}

// One that waits for the other stays behind it; loops over time, which are no chunks, are left alone; and so is one that
// carries something behind one whose iterations are parallel.
// CHECK-LABEL: func.func @waits(
// CHECK-COUNT-2: gpuc.scan
// CHECK-LABEL: func.func @times(
// CHECK-COUNT-2: gpuc.scan
// CHECK-LABEL: func.func @slices(
// CHECK-COUNT-2: gpuc.scan
func.func @waits(%x: tensor<3x4xf32>, %a: tensor<4xf32>) -> tensor<4xf32> {
  %s = gpuc.scan over(%x) carry(%a) chunked : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<4xf32>, %c: tensor<4xf32>):
    %n = gpuc.add %c, %i : tensor<4xf32>
    gpuc.yield %n : tensor<4xf32>
  }
  %t = gpuc.scan over(%x) carry(%s) chunked : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<4xf32>, %c: tensor<4xf32>):
    %n = gpuc.mul %c, %i : tensor<4xf32>
    gpuc.yield %n : tensor<4xf32>
  }
  return %t : tensor<4xf32>
}
func.func @times(%x: tensor<3x4xf32>, %a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %s = gpuc.scan over(%x) carry(%a) : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<4xf32>, %c: tensor<4xf32>):
    %n = gpuc.add %c, %i : tensor<4xf32>
    gpuc.yield %n : tensor<4xf32>
  }
  %t = gpuc.scan over(%x) carry(%a) : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<4xf32>, %c: tensor<4xf32>):
    %n = gpuc.mul %c, %i : tensor<4xf32>
    gpuc.yield %n : tensor<4xf32>
  }
  return %s, %t : tensor<4xf32>, tensor<4xf32>
}
func.func @slices(%x: tensor<3x4xf32>, %a: tensor<4xf32>) -> (tensor<3x4xf32>, tensor<4xf32>) {
  %s = gpuc.scan over(%x) chunked parallel : (tensor<3x4xf32>) -> tensor<3x4xf32> {
  ^bb0(%i: tensor<4xf32>):
    %n = gpuc.exp %i : tensor<4xf32>
    gpuc.yield %n : tensor<4xf32>
  }
  %t = gpuc.scan over(%x) carry(%a) chunked : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<4xf32>, %c: tensor<4xf32>):
    %n = gpuc.mul %c, %i : tensor<4xf32>
    gpuc.yield %n : tensor<4xf32>
  }
  return %s, %t : tensor<3x4xf32>, tensor<4xf32>
}
