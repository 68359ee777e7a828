#include "runtime/host/matmul/vector_kernel_table.h"

namespace gpuc {

extern const VectorKernelTable kVectorKernels32;
const VectorKernelTable kVectorKernels32 = makeVectorKernelTable();

}  // namespace gpuc
