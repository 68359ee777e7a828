#include "runtime/host/matmul/vector_kernel_table.h"

namespace gpuc {

extern const VectorKernelTable kVectorKernels64;
const VectorKernelTable kVectorKernels64 = makeVectorKernelTable();

}  // namespace gpuc
