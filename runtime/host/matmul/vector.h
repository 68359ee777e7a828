// Vectors as wide as the file that includes this is compiled for.
//
// Included by vector_kernels.cpp and its like alone, which are compiled three times, with other machine flags
// each. Everything lies in an unnamed namespace, and nothing of the standard library is called: a function
// that the linker merges between those objects could be the copy with AVX-512 in it, and crash a CPU without.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace gpuc {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <typename T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kVectorBytes)));
};
template <typename T>
using Vector = typename VectorOf<T>::Type;

template <typename T>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

template <typename T>
using LaneIndices = std::make_index_sequence<kLanes<T>>;

/// x in each lane.
template <typename T>
inline Vector<T> splat(T x) {
  return x - Vector<T>{};
}

/// a·b + c, fused where the CPU does that at full speed.
template <typename T>
inline Vector<T> multiplyAdd(Vector<T> a, Vector<T> b, Vector<T> c) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return (Vector<T>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
  else
    return (Vector<T>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__AVX2__) && defined(__FMA__)
  if constexpr (sizeof(T) == 4)
    return (Vector<T>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
  else
    return (Vector<T>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
  return a * b + c;
#endif
}

/// Of two vectors cut into groups of kDistance lanes: the even groups of x, each followed by the same group
/// of y.
template <int kDistance, typename T, std::size_t... kLane>
inline Vector<T> evenGroups(Vector<T> x, Vector<T> y, std::index_sequence<kLane...>) {
  return __builtin_shufflevector(
      x, y,
      (kLane & kDistance ? kLanes<T> + static_cast<int>(kLane) - kDistance : static_cast<int>(kLane))...);
}

/// The odd groups of x, each followed by the same group of y.
template <int kDistance, typename T, std::size_t... kLane>
inline Vector<T> oddGroups(Vector<T> x, Vector<T> y, std::index_sequence<kLane...>) {
  return __builtin_shufflevector(
      x, y,
      (kLane & kDistance ? kLanes<T> + static_cast<int>(kLane) : static_cast<int>(kLane) + kDistance)...);
}

}  // namespace
}  // namespace gpuc
