// The kernels of kernels.c and kernels.ptx, for a fake GPU.
#pragma once

#include "test/runtime/cuda/fake_gpu.h"

namespace gpuc::test {

void defineTestKernels(FakeGpu& gpu);

}  // namespace gpuc::test
