#include "runtime/host/matmul/micro_kernel.h"

#include <libxsmm.h>
#include <libxsmm_generator.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdlib>
#include <map>
#include <mutex>
#include <tuple>

#include "runtime/host/code_memory.h"

namespace gpuc {
namespace {

/// What LIBXSMM_TARGET calls the CPUs of narrower vectors.
int targetNamed(std::string_view name, int otherwise) {
  constexpr std::pair<std::string_view, int> kTargets[] = {
      {"cpx", LIBXSMM_X86_AVX512_CPX}, {"clx", LIBXSMM_X86_AVX512_CLX},  {"skx", LIBXSMM_X86_AVX512_CORE},
      {"knm", LIBXSMM_X86_AVX512_KNM}, {"knl", LIBXSMM_X86_AVX512_MIC},  {"hsw", LIBXSMM_X86_AVX2},
      {"snb", LIBXSMM_X86_AVX},        {"wsm", LIBXSMM_X86_SSE4},        {"nhm", LIBXSMM_X86_SSE4},
      {"sse3", LIBXSMM_X86_SSE3},      {"generic", LIBXSMM_X86_GENERIC}, {"none", LIBXSMM_X86_GENERIC}};
  for (const auto& [known, target] : kTargets)
    if (name == known) return target;
  return otherwise;
}

/// The CPU for which code is made.
int target() {
  static const int target = [] {
    const char* name = std::getenv("LIBXSMM_TARGET");
    return targetNamed(name ? name : "", libxsmm_cpuid());
  }();
  return target;
}

/// LIBXSMM is column-major: our row-major c = op(a) · b is its c^T = b^T · op(a)^T, so m and n, a and b
/// change places and our transpose_a becomes its TRANS_B. (A transposed b would be its TRANS_A, which 1.17
/// cannot generate.) Null where it has no such kernel.
const libxsmm_gemm_descriptor* describe(const MicroKernelShape& s, libxsmm_descriptor_blob& room) {
  const auto number = [](int64_t value) { return static_cast<libxsmm_blasint>(value); };
  const int beta = s.accumulate ? 1 : 0;
  const int flags = s.transpose_a ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
  const auto init = [&](auto function) {
    return function(&room, number(s.n), number(s.m), number(s.k), number(s.ldb), number(s.lda), number(s.ldc),
                    1, beta, flags, LIBXSMM_PREFETCH_NONE);
  };
  return s.type == DataType::f64 ? init(libxsmm_dgemm_descriptor_init) : init(libxsmm_sgemm_descriptor_init);
}

/// As LIBXSMM's own dispatch has it: tiny products are faster with AVX2.
int targetFor(const MicroKernelShape& s) {
  const bool is_tiny = s.n * s.k <= 16 || s.k * s.m <= 16 || s.n * s.m <= 16;
  return is_tiny ? std::min(target(), LIBXSMM_X86_AVX2) : target();
}

/// Only LIBXSMM's generator is used, and not what keeps its kernels: that takes memory which is writable,
/// then executable, goes on where the system refuses this, and keeps a file of a known name in /tmp.
Result<const void*> generate(const MicroKernelShape& s) {
  libxsmm_descriptor_blob room = {};
  const libxsmm_gemm_descriptor* description = describe(s, room);
  static std::array<uint8_t, 1 << 17> buffer;
  libxsmm_generated_code code = {};
  code.generated_code = buffer.data();
  code.buffer_size = buffer.size();
  code.code_type = 2;  // machine code
  code.arch = static_cast<unsigned>(targetFor(s));
  const bool is_known = description && target() >= LIBXSMM_X86_SSE3;
  if (is_known) libxsmm_generator_gemm_kernel(&code, description);
  if (!is_known || code.last_error != 0 || code.code_size == 0)
    return errorf("matmul: LIBXSMM makes no %s kernel of %" PRId64 "x%" PRId64 "x%" PRId64
                  " for CPU target '%s'; an x86-64 CPU with SSE4.2 or newer is needed",
                  nameOf(s.type), s.m, s.n, s.k, libxsmm_cpuid_name(target()));
  return keepCode({buffer.data(), code.code_size});
}

#if defined(__x86_64__)
__attribute__((target("avx"))) void zeroUpperHalves() { _mm256_zeroupper(); }
#endif

}  // namespace

void (*afterMicroKernels())() {
#if defined(__x86_64__)
  if (target() >= LIBXSMM_X86_AVX) return zeroUpperHalves;
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
  const auto key = std::tuple(s.type, s.m, s.n, s.k, s.lda, s.ldb, s.ldc, s.transpose_a, s.accumulate);
  static std::mutex mutex;
  static std::map<decltype(key), MicroKernel> made;
  const std::lock_guard lock(mutex);
  if (auto known = made.find(key); known != made.end()) return known->second;
  GPUC_ASSIGN_OR_RETURN(const void* code, generate(s));
  const auto kernel = reinterpret_cast<MicroKernel>(reinterpret_cast<uintptr_t>(code));
  made.emplace(key, kernel);
  return kernel;
}

int microKernelVectorBytes() {
  if (target() >= LIBXSMM_X86_AVX512) return 64;
  if (target() >= LIBXSMM_X86_AVX2) return 32;
  return 16;
}

}  // namespace gpuc
