#include "passes/codegen/Kernel.h"
#include "passes/codegen/cuda/CudaLoops.h"
#include "passes/kernels/Fuse.h"
