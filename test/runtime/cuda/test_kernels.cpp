#include "test/runtime/cuda/test_kernels.h"

extern "C" {
void test_add(void* const* operands, int64_t begin, int64_t end);
void test_double(void* const* operands, int64_t begin, int64_t end);
void test_increment(void* const* operands, int64_t begin, int64_t end);
}

namespace gpuc::test {

void defineTestKernels(FakeGpu& gpu) {
  auto define = [&](const char* symbol, size_t operands, void (*kernel)(void* const*, int64_t, int64_t)) {
    gpu.define(symbol, operands, [kernel](void* const* operands, uint32_t grid, uint32_t) {
      kernel(operands, 0, grid);  // a block for each tile
    });
  };
  define("test_add", 3, test_add);
  define("test_double", 2, test_double);
  define("test_increment", 2, test_increment);
}

}  // namespace gpuc::test
