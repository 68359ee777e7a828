#include "runtime/host/matmul/micro_kernel.h"

#include <libxsmm.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cinttypes>
#include <mutex>

namespace gpuc {
namespace {

/// 2 to 3 ms, most of it LIBXSMM measuring the clock; once a process, when the first matmul is loaded.
void initializeOnce() {
  static std::once_flag once;
  std::call_once(once, [] { libxsmm_init(); });
}

/// LIBXSMM is column-major: our row-major c = op(a) · b is its c^T = b^T · op(a)^T, so m and n, a and b
/// change places and our transpose_a becomes its TRANS_B. (A transposed b would be its TRANS_A, which 1.17
/// cannot generate.)
template <typename T, typename Dispatch>
MicroKernel dispatch(const MicroKernelShape& s, Dispatch dispatch_function) {
  const T alpha = 1;
  const T beta = s.accumulate ? 1 : 0;
  const libxsmm_blasint lda = static_cast<libxsmm_blasint>(s.ldb);
  const libxsmm_blasint ldb = static_cast<libxsmm_blasint>(s.lda);
  const libxsmm_blasint ldc = static_cast<libxsmm_blasint>(s.ldc);
  const int flags = s.transpose_a ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
  const int prefetch = LIBXSMM_PREFETCH_NONE;
  return reinterpret_cast<MicroKernel>(dispatch_function(
      static_cast<libxsmm_blasint>(s.n), static_cast<libxsmm_blasint>(s.m), static_cast<libxsmm_blasint>(s.k),
      &lda, &ldb, &ldc, &alpha, &beta, &flags, &prefetch));
}

#if defined(__x86_64__)
__attribute__((target("avx"))) void zeroUpperHalves() { _mm256_zeroupper(); }
#endif

}  // namespace

void (*afterMicroKernels())() {
#if defined(__x86_64__)
  initializeOnce();
  if (libxsmm_get_target_archid() >= LIBXSMM_X86_AVX) return zeroUpperHalves;
#endif
  return nullptr;
}

std::string microKernelVersion() {
  return std::to_string(LIBXSMM_VERSION_MAJOR) + "." + std::to_string(LIBXSMM_VERSION_MINOR) + "." +
         std::to_string(LIBXSMM_VERSION_UPDATE);
}

Result<MicroKernel> makeMicroKernel(const MicroKernelShape& s) {
  // The generated code addresses up to some 30 rows from one register with displacements of 32 bits.
  constexpr int64_t kMostRowElements = int64_t{1} << 22;
  for (int64_t leading : {s.lda, s.ldb, s.ldc})
    if (leading > kMostRowElements)
      return errorf("matmul: a matrix has rows of %" PRId64 " elements, at most %" PRId64
                    " are supported on the host",
                    leading, kMostRowElements);
  initializeOnce();
  MicroKernel kernel = s.type == DataType::f64 ? dispatch<double>(s, libxsmm_dmmdispatch)
                                               : dispatch<float>(s, libxsmm_smmdispatch);
  if (!kernel)
    return errorf("matmul: LIBXSMM makes no %s kernel of %" PRId64 "x%" PRId64 "x%" PRId64
                  " for CPU target '%s'; an x86-64 CPU with SSE4.2 or newer is needed",
                  nameOf(s.type), s.m, s.n, s.k, libxsmm_get_target_arch());
  return kernel;
}

int microKernelVectorBytes() {
  initializeOnce();
  int target = libxsmm_get_target_archid();
  if (target >= LIBXSMM_X86_AVX512) return 64;
  if (target >= LIBXSMM_X86_AVX2) return 32;
  return 16;
}

}  // namespace gpuc
