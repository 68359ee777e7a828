// All vector kernels at the width that the file which includes this is compiled for (see vector.h).
#pragma once

#include "runtime/host/matmul/copy.h"
#include "runtime/host/matmul/dot.h"
#include "runtime/host/matmul/finish.h"
#include "runtime/host/matmul/transpose.h"

namespace gpuc {
namespace {

template <typename S>
constexpr TypedVectorKernels<S> typedVectorKernels() {
  return {dotTile<S>, transposeTile<S>, copyTile<S, Computed<S>>, copyTile<Computed<S>, S>, finishTile<S>};
}

constexpr VectorKernelTable makeVectorKernelTable() {
  return {typedVectorKernels<float>(), typedVectorKernels<double>(), typedVectorKernels<Half>(),
          typedVectorKernels<Bfloat16>()};
}

}  // namespace
}  // namespace gpuc
