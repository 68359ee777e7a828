#include "runtime/host/matmul/dot.h"
#include "runtime/host/matmul/transpose.h"

namespace gpuc {

extern const VectorKernelTable kVectorKernels16;
const VectorKernelTable kVectorKernels16 = {{dotTile<float>, transposeTile<float>},
                                            {dotTile<double>, transposeTile<double>}};

}  // namespace gpuc
