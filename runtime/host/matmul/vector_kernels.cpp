// Compiled for each width of vectors (see vector.h).
#include "runtime/host/matmul/vector_kernels.h"

#include "runtime/host/matmul/copy.h"
#include "runtime/host/matmul/dot.h"
#include "runtime/host/matmul/finish.h"
#include "runtime/host/matmul/transpose.h"

namespace gpuc {
namespace {

template <typename S>
constexpr TypedVectorKernels<S> kKernels = {dotTile<S>, transposeTile<S>, copyTile<S, Computed<S>>,
                                            copyTile<Computed<S>, S>, finishTile<S>};

constexpr VectorKernelTable kTable = {kKernels<float>, kKernels<double>, kKernels<Half>, kKernels<Bfloat16>};

}  // namespace

template <>
const VectorKernelTable& kernelsOf<VectorKernelTable, kVectorBytes>() {
  return kTable;
}

}  // namespace gpuc
