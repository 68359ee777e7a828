// Loading and storing vectors, of elements that are computed as they are stored and of 16-bit floats, which
// are f32 in registers; included by vector_kernels.cpp and its like alone (see vector.h).
#pragma once

#include "runtime/host/matmul/half_vector.h"

namespace gpuc {
namespace {

/// Copies `count` elements of two bytes, fewer than 16.
inline void copyHalves(void* to, const void* from, int64_t count) {
  char* target = static_cast<char*>(to);
  const char* source = static_cast<const char*>(from);
  if (count & 8) __builtin_memcpy(target, source, 16), target += 16, source += 16;
  if (count & 4) __builtin_memcpy(target, source, 8), target += 8, source += 8;
  if (count & 2) __builtin_memcpy(target, source, 4), target += 4, source += 4;
  if (count & 1) __builtin_memcpy(target, source, 2);
}

#if defined(__AVX2__) && !defined(__AVX512F__)
/// All bits of the first `count` lanes.
template <typename T>
inline __m256i firstLanes(int64_t count) {
  if constexpr (sizeof(T) == 4)
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  else
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
}
#endif

template <typename S>
inline Vector<Computed<S>> load(const S* address) {
  if constexpr (kIsWidened<S>) {
    HalfBits bits;
    __builtin_memcpy(&bits, address, sizeof bits);
    return widen<S>(bits);
  } else {
    Vector<S> v;
    __builtin_memcpy(&v, address, sizeof v);
    return v;
  }
}

template <typename S>
inline void store(S* address, Vector<Computed<S>> v) {
  if constexpr (kIsWidened<S>) {
    const HalfBits bits = narrow<S>(v);
    __builtin_memcpy(address, &bits, sizeof bits);
  } else {
    __builtin_memcpy(address, &v, sizeof v);
  }
}

/// The first `count` elements, then zeros; touches no byte beyond them. count < kLanes of a vector.
template <typename S>
inline Vector<Computed<S>> loadFirst(const S* address, int64_t count) {
  if constexpr (kIsWidened<S>) {
    HalfBits bits = {};
    copyHalves(&bits, address, count);
    return widen<S>(bits);
  } else {
#if defined(__AVX512F__)
    const unsigned mask = (1u << count) - 1;
    if constexpr (sizeof(S) == 4)
      return (Vector<S>)_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), address);
    else
      return (Vector<S>)_mm512_maskz_loadu_pd(static_cast<__mmask8>(mask), address);
#elif defined(__AVX2__)
    if constexpr (sizeof(S) == 4)
      return (Vector<S>)_mm256_maskload_ps(address, firstLanes<S>(count));
    else
      return (Vector<S>)_mm256_maskload_pd(address, firstLanes<S>(count));
#else
    Vector<S> v = {};
    for (int64_t i = 0; i < count; ++i) v[i] = address[i];
    return v;
#endif
  }
}

/// The first `count` lanes; touches no byte beyond them. count < kLanes of a vector.
template <typename S>
inline void storeFirst(S* address, Vector<Computed<S>> v, int64_t count) {
  if constexpr (kIsWidened<S>) {
    const HalfBits bits = narrow<S>(v);
    copyHalves(address, &bits, count);
  } else {
#if defined(__AVX512F__)
    const unsigned mask = (1u << count) - 1;
    if constexpr (sizeof(S) == 4)
      _mm512_mask_storeu_ps(address, static_cast<__mmask16>(mask), (__m512)v);
    else
      _mm512_mask_storeu_pd(address, static_cast<__mmask8>(mask), (__m512d)v);
#elif defined(__AVX2__)
    if constexpr (sizeof(S) == 4)
      _mm256_maskstore_ps(address, firstLanes<S>(count), (__m256)v);
    else
      _mm256_maskstore_pd(address, firstLanes<S>(count), (__m256d)v);
#else
    for (int64_t i = 0; i < count; ++i) address[i] = v[i];
#endif
  }
}

}  // namespace
}  // namespace gpuc
