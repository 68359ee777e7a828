#include "runtime/host/matmul/vector_kernel_table.h"

namespace gpuc {

extern const VectorKernelTable kVectorKernels16;
const VectorKernelTable kVectorKernels16 = makeVectorKernelTable();

}  // namespace gpuc
