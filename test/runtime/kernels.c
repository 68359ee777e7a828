// Kernels as the compiler makes them, for plans that tests build by hand. A tile is 16 elements.
#include <stdint.h>

enum { kTile = 16 };

// c = a + b
void test_add(void* const* operands, int64_t begin, int64_t end) {
  const float *a = operands[0], *b = operands[1];
  float* c = operands[2];
  for (int64_t i = begin * kTile; i < end * kTile; ++i) c[i] = a[i] + b[i];
}

// b = 2 a
void test_double(void* const* operands, int64_t begin, int64_t end) {
  const float* a = operands[0];
  float* b = operands[1];
  for (int64_t i = begin * kTile; i < end * kTile; ++i) b[i] = 2 * a[i];
}

// counter += 1; one tile
void test_increment(void* const* operands, int64_t begin, int64_t end) {
  const int64_t* from = operands[0];
  int64_t* to = operands[1];
  for (int64_t i = begin; i < end; ++i) to[i] = from[i] + 1;
}

// b = where a lies; of one element
void test_address(void* const* operands, int64_t begin, int64_t end) {
  (void)begin;
  (void)end;
  *(int64_t*)operands[1] = (int64_t)(intptr_t)operands[0];
}

// Nothing: what is left of its time is the executor's.
void test_nothing(void* const* operands, int64_t begin, int64_t end) {
  (void)operands;
  (void)begin;
  (void)end;
}
