// Compiled for each width of vectors (see vector.h).
#include "runtime/host/matmul/vector_kernels.h"

#include "runtime/host/matmul/add_product.h"
#include "runtime/host/matmul/dot.h"
#include "runtime/host/matmul/finish.h"
#include "runtime/host/matmul/load.h"
#include "runtime/host/matmul/squares.h"
#include "runtime/host/matmul/transpose.h"

namespace gpuc {
namespace {

/// Copies a block between the type in memory and the type of arithmetic.
template <typename From, typename To>
void copyTile(const CopyTile<From, To>& t) {
  constexpr int64_t kStep = kLanes<Computed<From>>;
  const bool adjoin = t.source_stride == t.columns && t.target_stride == t.columns;  // as one long row
  const int64_t rows = adjoin ? 1 : t.rows, columns = adjoin ? t.rows * t.columns : t.columns;
  for (int64_t row = 0; row < rows; ++row) {
    const From* source = t.source + row * t.source_stride;
    To* target = t.target + row * t.target_stride;
    int64_t i = 0;
    for (; i + kStep <= columns; i += kStep) store(target + i, load(source + i));
    if (i < columns) storeFirst(target + i, loadFirst(source + i, columns - i), columns - i);
  }
}

template <typename S>
inline Vector<Computed<S>> roundedAs(Vector<Computed<S>> v) {
  if constexpr (kIsWidened<S>)
    return widen<S>(narrow<S>(v));
  else
    return v;
}

/// Adds a block, whose elements are rounded as they are in memory first, to what is there.
template <typename S>
void addTile(const CopyTile<Computed<S>, S>& t) {
  constexpr int64_t kStep = kLanes<Computed<S>>;
  const int64_t whole = t.columns / kStep * kStep, rest = t.columns - whole;
  for (int64_t row = 0; row < t.rows; ++row) {
    const Computed<S>* source = t.source + row * t.source_stride;
    S* target = t.target + row * t.target_stride;
    for (int64_t i = 0; i < whole; i += kStep)
      store(target + i, load(target + i) + roundedAs<S>(load(source + i)));
    if (rest > 0)
      storeFirst(target + whole,
                 loadFirst(target + whole, rest) + roundedAs<S>(loadFirst(source + whole, rest)), rest);
  }
}

template <typename S>
constexpr TypedVectorKernels<S> kKernels = {dotTile<S>,
                                            transposeTile<S>,
                                            copyTile<S, Computed<S>>,
                                            copyTile<Computed<S>, S>,
                                            addTile<S>,
                                            addProduct<Computed<S>>,
                                            finishTile<S>,
                                            squaresOfTile<Computed<S>>};

constexpr VectorKernelTable kTable = {kKernels<float>, kKernels<double>, kKernels<Half>, kKernels<Bfloat16>};

}  // namespace

template <>
const VectorKernelTable& kernelsOf<VectorKernelTable, kVectorBytes>() {
  return kTable;
}

}  // namespace gpuc
