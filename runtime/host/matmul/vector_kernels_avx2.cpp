#include "runtime/host/matmul/dot.h"
#include "runtime/host/matmul/transpose.h"

namespace gpuc {

extern const VectorKernelTable kVectorKernels32;
const VectorKernelTable kVectorKernels32 = {{dotTile<float>, transposeTile<float>},
                                            {dotTile<double>, transposeTile<double>}};

}  // namespace gpuc
