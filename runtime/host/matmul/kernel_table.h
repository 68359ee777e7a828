// Tables of kernels that are compiled three times, for vectors of 16, 32 and 64 bytes, and the choice among
// them.
#pragma once

#include "runtime/host/matmul/element.h"

namespace gpuc {

/// The same kernels for some element types in memory.
template <template <typename S> typename Kernels, typename... Elements>
struct KernelTable : Kernels<Elements>... {
  template <typename S>
  const Kernels<S>& of() const {
    return *this;
  }
};

/// The table for vectors of just so many bytes; defined by a source that gpuc_vector_kernels compiles for
/// each (see runtime/host/CMakeLists.txt).
template <typename Table, int kBytes>
const Table& kernelsOf();

/// The widest vectors, in bytes, that both this CPU has and `most` allows.
int kernelVectorBytes(int most);

/// The table for those vectors.
template <typename Table>
const Table* kernelsFor(int most_vector_bytes) {
#if defined(__x86_64__)
  const int bytes = kernelVectorBytes(most_vector_bytes);
  if (bytes == 64) return &kernelsOf<Table, 64>();
  if (bytes == 32) return &kernelsOf<Table, 32>();
#endif
  return &kernelsOf<Table, 16>();
}

}  // namespace gpuc
