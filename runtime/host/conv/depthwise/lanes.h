// Vectors at the edges of a row; included by patch_kernels.cpp alone (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/matmul/load.h"

namespace gpuc {
namespace {

#if defined(__AVX512F__)
template <typename T>
using LaneMask = __mmask16;
#elif defined(__AVX2__)
template <typename T>
using LaneMask = __m256i;
#else
template <typename T>
struct LaneMask {
  int64_t begin, end;
};
#endif

/// Lanes [begin, end), which may reach beyond the vector on either side.
template <typename T>
inline LaneMask<T> lanesWithin(int64_t begin, int64_t end) {
  if (begin < 0) begin = 0;
  if (begin > kLanes<T>) begin = kLanes<T>;
  if (end > kLanes<T>) end = kLanes<T>;
  if (end < begin) end = begin;
#if defined(__AVX512F__)
  return static_cast<__mmask16>(((1u << end) - 1) & ~((1u << begin) - 1));
#elif defined(__AVX2__)
  return _mm256_andnot_si256(firstLanes<T>(begin), firstLanes<T>(end));
#else
  return {begin, end};
#endif
}

#if !defined(__AVX2__)
/// Not inline: each of a kernel's many loads would have a loop of its own.
template <typename T>
__attribute__((noinline)) Vector<T> loadSome(const T* address, LaneMask<T> mask) {
  Vector<T> v = {};
  for (int64_t i = mask.begin; i < mask.end; ++i) v[i] = address[i];
  return v;
}
template <typename T>
__attribute__((noinline)) void storeSome(T* address, Vector<T> v, LaneMask<T> mask) {
  for (int64_t i = mask.begin; i < mask.end; ++i) address[i] = v[i];
}
#endif

/// Lest the compiler computes or moves it anew for each of a kernel's many loads.
template <typename T>
inline void keepInRegister([[maybe_unused]] LaneMask<T>& mask) {
#if defined(__AVX512F__)
  asm("" : "+k"(mask));
#endif
}

/// The lanes of the mask, 0 in the others, whose bytes are not touched.
template <typename T>
inline Vector<T> loadLanes(const T* address, LaneMask<T> mask) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return (Vector<T>)_mm512_maskz_loadu_ps(mask, address);
  else
    return (Vector<T>)_mm512_maskz_loadu_pd(static_cast<__mmask8>(mask), address);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4)
    return (Vector<T>)_mm256_maskload_ps(address, mask);
  else
    return (Vector<T>)_mm256_maskload_pd(address, mask);
#else
  return mask.begin == 0 && mask.end == kLanes<T> ? load(address) : loadSome<T>(address, mask);
#endif
}

template <typename T>
inline void storeLanes(T* address, Vector<T> v, LaneMask<T> mask) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    _mm512_mask_storeu_ps(address, mask, (__m512)v);
  else
    _mm512_mask_storeu_pd(address, static_cast<__mmask8>(mask), (__m512d)v);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4)
    _mm256_maskstore_ps(address, mask, (__m256)v);
  else
    _mm256_maskstore_pd(address, mask, (__m256d)v);
#else
  mask.begin == 0 && mask.end == kLanes<T> ? store(address, v) : storeSome<T>(address, v, mask);
#endif
}

#if defined(__AVX512F__)
/// The vector, but for the lanes of the mask, which are loaded, or x.
template <typename T>
inline Vector<T> mergeLanes(Vector<T> v, const T* address, LaneMask<T> mask) {
  if constexpr (sizeof(T) == 4)
    return (Vector<T>)_mm512_mask_loadu_ps((__m512)v, mask, address);
  else
    return (Vector<T>)_mm512_mask_loadu_pd((__m512d)v, static_cast<__mmask8>(mask), address);
}
template <typename T>
inline Vector<T> mergeSplat(Vector<T> v, T x, LaneMask<T> mask) {
  if constexpr (sizeof(T) == 4)
    return (Vector<T>)_mm512_mask_mov_ps((__m512)v, mask, (__m512)splat<T>(x));
  else
    return (Vector<T>)_mm512_mask_mov_pd((__m512d)v, static_cast<__mmask8>(mask), (__m512d)splat<T>(x));
}

/// The lanes of the mask of two halves, each from an address; as much of them as a half has is not as slow as
/// a whole vector, which crosses more lines of the cache.
template <typename T>
inline Vector<T> loadHalves(const T* low, const T* high, LaneMask<T> mask) {
  if constexpr (sizeof(T) == 4) {
    const auto half = static_cast<__mmask8>(mask);
    const __m256 first = _mm256_maskz_loadu_ps(half, low), other = _mm256_maskz_loadu_ps(half, high);
    return (Vector<T>)_mm512_insertf64x4(_mm512_castpd256_pd512((__m256d)first), (__m256d)other, 1);
  } else {
    const auto half = static_cast<__mmask8>(mask & 15);
    const __m256d first = _mm256_maskz_loadu_pd(half, low), other = _mm256_maskz_loadu_pd(half, high);
    return (Vector<T>)_mm512_insertf64x4(_mm512_castpd256_pd512(first), other, 1);
  }
}
/// All lanes of both.
template <typename T>
inline Vector<T> loadHalves(const T* low, const T* high) {
  typedef T Half __attribute__((vector_size(kVectorBytes / 2)));
  Half first, other;
  __builtin_memcpy(&first, low, sizeof first), __builtin_memcpy(&other, high, sizeof other);
  return (Vector<T>)_mm512_insertf64x4(_mm512_castpd256_pd512((__m256d)first), (__m256d)other, 1);
}
/// The other half where it lies in the vector, which takes no shuffle.
template <typename T>
inline void storeHalves(T* low, T* high, Vector<T> v, LaneMask<T> mask) {
  constexpr int kHalf = kLanes<T> / 2;
  if constexpr (sizeof(T) == 4)
    _mm256_mask_storeu_ps(low, static_cast<__mmask8>(mask), _mm512_castps512_ps256((__m512)v));
  else
    _mm256_mask_storeu_pd(low, static_cast<__mmask8>(mask & 15), _mm512_castpd512_pd256((__m512d)v));
  storeLanes<T>(high - kHalf, v, static_cast<LaneMask<T>>(mask << kHalf));
}

/// Where the mask has lanes the product is added.
template <typename T>
inline Vector<T> multiplyAddLanes(Vector<T> a, Vector<T> b, Vector<T> sum, LaneMask<T> mask) {
  if constexpr (sizeof(T) == 4)
    return (Vector<T>)_mm512_mask3_fmadd_ps((__m512)a, (__m512)b, (__m512)sum, mask);
  else
    return (Vector<T>)_mm512_mask3_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)sum,
                                            static_cast<__mmask8>(mask));
}

template <typename T>
using LaneNumbers = __m512i;

/// Lest the compiler, which may know them, takes shuffles of its own choice, some of them slow.
template <typename T>
inline void keepInRegister(LaneNumbers<T>& numbers, LaneMask<T>& mask) {
  asm("" : "+v"(numbers), "+k"(mask));
}
/// Lest one shuffle of two vectors takes the place of one that brings their quarters together and those
/// within quarters that follow, of which the processor has four at a time.
template <int kCount>
inline __attribute__((always_inline)) void keepInRegisters(__m512 (&vectors)[kCount]) {
#pragma unroll
  for (__m512& v : vectors) asm("" : "+v"(v));
}

/// Lane i has the number first + i.
template <typename T>
inline LaneNumbers<T> lanesFrom(int64_t first) {
  if constexpr (sizeof(T) == 4)
    return _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(first)),
                            _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  else
    return _mm512_add_epi64(_mm512_set1_epi64(first), _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
}

template <typename T>
inline LaneNumbers<T> shiftNumbers(LaneNumbers<T> numbers, int64_t by) {
  if constexpr (sizeof(T) == 4)
    return _mm512_add_epi32(numbers, _mm512_set1_epi32(static_cast<int>(by)));
  else
    return _mm512_add_epi64(numbers, _mm512_set1_epi64(by));
}

template <typename T>
inline LaneNumbers<T> splatNumbers(int64_t number) {
  return shiftNumbers<T>(_mm512_setzero_si512(), number);
}
/// The others where the mask has them.
template <typename T>
inline LaneNumbers<T> mergeNumbers(LaneNumbers<T> numbers, LaneNumbers<T> others, LaneMask<T> mask) {
  if constexpr (sizeof(T) == 4)
    return _mm512_mask_mov_epi32(numbers, mask, others);
  else
    return _mm512_mask_mov_epi64(numbers, static_cast<__mmask8>(mask), others);
}

/// The lanes with these numbers, where the mask has them, else 0.
template <typename T>
inline Vector<T> pickLanes(Vector<T> v, LaneNumbers<T> numbers, LaneMask<T> mask) {
  if constexpr (sizeof(T) == 4)
    return (Vector<T>)_mm512_maskz_permutexvar_ps(mask, numbers, (__m512)v);
  else
    return (Vector<T>)_mm512_maskz_permutexvar_pd(static_cast<__mmask8>(mask), numbers, (__m512d)v);
}

/// Likewise of two vectors, of which the second has the numbers from kLanes on.
template <typename T>
inline Vector<T> pickLanes(Vector<T> first, Vector<T> second, LaneNumbers<T> numbers, LaneMask<T> mask) {
  if constexpr (sizeof(T) == 4)
    return (Vector<T>)_mm512_maskz_permutex2var_ps(mask, (__m512)first, numbers, (__m512)second);
  else
    return (Vector<T>)_mm512_maskz_permutex2var_pd(static_cast<__mmask8>(mask), (__m512d)first, numbers,
                                                   (__m512d)second);
}

/// All of them.
template <typename T>
inline Vector<T> pickLanes(Vector<T> first, Vector<T> second, LaneNumbers<T> numbers) {
  if constexpr (sizeof(T) == 4)
    return (Vector<T>)_mm512_permutex2var_ps((__m512)first, numbers, (__m512)second);
  else
    return (Vector<T>)_mm512_permutex2var_pd((__m512d)first, numbers, (__m512d)second);
}

/// The lanes of the mask, 0 in the others.
template <typename T>
inline Vector<T> keepLanes(Vector<T> v, LaneMask<T> mask) {
  if constexpr (sizeof(T) == 4)
    return (Vector<T>)_mm512_maskz_mov_ps(mask, (__m512)v);
  else
    return (Vector<T>)_mm512_maskz_mov_pd(static_cast<__mmask8>(mask), (__m512d)v);
}

/// Lane i of the result is lane i + kBy of low and high, one behind the other. By this instruction: a shuffle
/// of two vectors would need a register for its numbers.
template <int kBy>
inline __attribute__((always_inline)) Vector<float> shiftLanes(Vector<float> low, Vector<float> high) {
  Vector<float> v;
  asm("valignd %3, %1, %2, %0" : "=v"(v) : "v"(low), "v"(high), "i"(kBy));
  return v;
}

/// Likewise, where the mask has them, else 0. The compiler would take a shuffle of two vectors here, too,
/// which has three operands to read as a multiply-add has, and delays those.
template <int kBy>
inline __attribute__((always_inline)) Vector<float> shiftLanes(Vector<float> low, Vector<float> high,
                                                               LaneMask<float> mask) {
  Vector<float> v;
  asm("valignd %3, %1, %2, %0%{%4%}%{z%}" : "=v"(v) : "v"(low), "v"(high), "i"(kBy), "Yk"(mask));
  return v;
}
#endif

/// Every other lane of two vectors that follow one another, from the first on.
template <typename T, std::size_t... kLane>
inline Vector<T> everyOther(Vector<T> low, Vector<T> high, std::index_sequence<kLane...>) {
  return __builtin_shufflevector(low, high, (2 * static_cast<int>(kLane))...);
}

/// The others.
template <typename T, std::size_t... kLane>
inline Vector<T> everyOdd(Vector<T> low, Vector<T> high, std::index_sequence<kLane...>) {
  return __builtin_shufflevector(low, high, (2 * static_cast<int>(kLane) + 1)...);
}

/// Lane `kLane` / 2 of the first, if kLane is even, else of the second: the lower, or the upper half.
template <int kFirst, typename T, std::size_t... kLane>
inline Vector<T> alternate(Vector<T> even, Vector<T> odd, std::index_sequence<kLane...>) {
  return __builtin_shufflevector(even, odd,
                                 (kFirst + static_cast<int>(kLane) / 2 + (kLane % 2 ? kLanes<T> : 0))...);
}

/// Asks for what is read, or written, some time later: the processor foresees what adjoins alone.
template <int kVectors, typename T>
inline __attribute__((always_inline)) void askForLines(const T* address) {
#pragma unroll
  for (int i = 0; i < kVectors; ++i) __builtin_prefetch(address + i * kLanes<T>);
}
template <int kVectors, typename T>
inline __attribute__((always_inline)) void askForLinesToWrite(const T* address) {
#pragma unroll
  for (int i = 0; i < kVectors; ++i) __builtin_prefetch(address + i * kLanes<T>, 1);
}

/// Which of the elements address[0], address[kStride], … of a vector lie within a row.
template <int kStride, typename T>
struct StepMask {
  LaneMask<T> parts[kStride];

  StepMask() = default;
  /// Of the elements from the address on those in [begin, end).
  StepMask(int64_t begin, int64_t end) {
    for (int i = 0; i < kStride; ++i) parts[i] = lanesWithin<T>(begin - i * kLanes<T>, end - i * kLanes<T>);
  }
};

template <int kStride, typename T>
inline Vector<T> loadSteps(const T* address, const StepMask<kStride, T>& mask) {
  static_assert(kStride == 1 || kStride == 2);
  const Vector<T> low = loadLanes<T>(address, mask.parts[0]);
  if constexpr (kStride == 1)
    return low;
  else
    return everyOther<T>(low, loadLanes<T>(address + kLanes<T>, mask.parts[1]), LaneIndices<T>());
}

/// Of all lanes.
template <int kStride, typename T>
inline Vector<T> loadSteps(const T* address) {
  if constexpr (kStride == 1)
    return load(address);
  else
    return everyOther<T>(load(address), load(address + kLanes<T>), LaneIndices<T>());
}

}  // namespace
}  // namespace gpuc
