#include "test/runtime/cuda/fake_blas.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "runtime/base/half.h"
#include "test/runtime/cuda/fake_gpu.h"

namespace gpuc::test {

uint64_t FakeLayout::spanBytes() const {
  uint64_t matrix = (columns - 1) * static_cast<uint64_t>(leading) + rows;
  return (static_cast<uint64_t>(batch - 1) * static_cast<uint64_t>(batch_stride) + matrix) * elementBytes();
}

float roundedToTf32(float value) {
  constexpr uint32_t kDropped = 13;
  uint32_t bits = std::bit_cast<uint32_t>(value) + (1u << (kDropped - 1));
  return std::bit_cast<float>(bits & ~((1u << kDropped) - 1));
}

namespace {

// What is summed in: f64, or f32 for all else.
double widen(double value) { return value; }
float widen(float value) { return value; }

struct Half {
  uint16_t bits;
  explicit operator float() const { return halfToFloat(bits); }
  explicit Half(float value) : bits(floatToHalf(value)) {}
};
struct Bfloat16 {
  uint16_t bits;
  explicit operator float() const { return bfloat16ToFloat(bits); }
  explicit Bfloat16(float value) : bits(floatToBfloat16(value)) {}
};
float widen(Half value) { return static_cast<float>(value); }
float widen(Bfloat16 value) { return static_cast<float>(value); }

FakeGpu& gpu() { return *FakeGpu::current; }

/// One fused multiply-add after the other, in the order of k.
template <typename T>
void multiply(const FakeMatmul& work) {
  using Sum = decltype(widen(std::declval<T>()));
  const uint64_t rows = work.d_layout.rows, columns = work.d_layout.columns, depth = work.depth();
  // Elements from row to row and from column to column of op(a) and op(b).
  const int64_t a_row = work.transpose_a ? work.a_layout.leading : 1,
                a_column = work.transpose_a ? 1 : work.a_layout.leading,
                b_row = work.transpose_b ? work.b_layout.leading : 1,
                b_column = work.transpose_b ? 1 : work.b_layout.leading;
  auto factor = [&](T value) {
    return work.tf32 ? static_cast<Sum>(roundedToTf32(static_cast<float>(widen(value)))) : widen(value);
  };
  for (int64_t batch = 0; batch < work.d_layout.batch; ++batch) {
    const T* a = static_cast<const T*>(work.a) + batch * work.a_layout.batch_stride;
    const T* b = static_cast<const T*>(work.b) + batch * work.b_layout.batch_stride;
    T* d = static_cast<T*>(work.d) + batch * work.d_layout.batch_stride;
    for (uint64_t j = 0; j < columns; ++j)
      for (uint64_t i = 0; i < rows; ++i) {
        Sum sum = 0;
        for (uint64_t k = 0; k < depth; ++k)
          sum = std::fma(factor(a[i * a_row + k * a_column]), factor(b[k * b_row + j * b_column]), sum);
        if (work.bias && gpu().rounds_before_bias) sum = widen(static_cast<T>(sum));
        if (work.bias) sum += widen(static_cast<const T*>(work.bias)[i]);
        T& result = d[i + j * work.d_layout.leading];
        if (work.adds) sum += widen(result);
        result = static_cast<T>(work.relu && sum <= 0 ? 0 : sum);
      }
  }
}

struct Description {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = CUDA_R_32F;
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  cudaDataType_t bias_type = CUDA_R_32F;
  const void* bias = nullptr;
};

struct Preference {
  uint64_t workspace_bytes = 0;
  uint32_t reduction_mask = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignment_a = 256, alignment_b = 256, alignment_c = 256, alignment_d = 256;
};

/// What an algorithm of the fake relies on.
struct Algorithm {
  uint64_t magic;
  uint64_t workspace_bytes;
  uint32_t alignment_a, alignment_b, alignment_d, alignment_bias;
  uint64_t shape;  // rows, columns, depth and batch mixed up

  static constexpr uint64_t kMagic = 0x67707563;
};

#define GPUC_FAKE_ENTER(call)                                                                   \
  if (cublasStatus_t gpuc_status = gpu().enterBlas(call); gpuc_status != CUBLAS_STATUS_SUCCESS) \
  return gpuc_status

template <typename T, typename Handle>
cublasStatus_t make(Handle* handle, T value) {
  auto object = std::make_shared<T>(value);
  *handle = reinterpret_cast<Handle>(object.get());
  gpu().descriptions[object.get()] = object;
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Handle>
cublasStatus_t destroy(Handle handle) {
  if (!gpu().descriptions.erase(handle)) gpu().misuse("an object of cuBLASLt that was given back before");
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Handle>
auto& descriptionOf(Handle handle) {
  return *reinterpret_cast<const Description*>(handle);
}
const FakeLayout& layoutOf(cublasLtMatrixLayout_t handle) {
  return *reinterpret_cast<const FakeLayout*>(handle);
}

/// Sets `field` from an attribute's bytes, which must be as many.
template <typename T>
cublasStatus_t set(T& field, const void* bytes, size_t size) {
  if (size != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&field, bytes, size);
  return CUBLAS_STATUS_SUCCESS;
}

size_t version() { return gpu().blas_version; }

const char* statusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported" : "the fake's words";
}

cublasStatus_t create(cublasLtHandle_t* handle) {
  GPUC_FAKE_ENTER("cublasLtCreate");
  ++gpu().live_blas_contexts;
  return make(handle, 0);
}

cublasStatus_t destroyHandle(cublasLtHandle_t handle) {
  GPUC_FAKE_ENTER("cublasLtDestroy");
  --gpu().live_blas_contexts;
  return destroy(handle);
}

cublasStatus_t createDescription(cublasLtMatmulDesc_t* handle, cublasComputeType_t compute,
                                 cudaDataType_t scale) {
  GPUC_FAKE_ENTER("cublasLtMatmulDescCreate");
  return make(handle, Description{.compute = compute, .scale = scale});
}

cublasStatus_t destroyDescription(cublasLtMatmulDesc_t handle) {
  GPUC_FAKE_ENTER("cublasLtMatmulDescDestroy");
  return destroy(handle);
}

cublasStatus_t describe(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t attribute,
                        const void* bytes, size_t size) {
  GPUC_FAKE_ENTER("cublasLtMatmulDescSetAttribute");
  auto& description = *reinterpret_cast<Description*>(handle);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(description.a, bytes, size);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(description.b, bytes, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(description.epilogue, bytes, size);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return set(description.bias_type, bytes, size);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(description.bias, bytes, size);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t createLayout(cublasLtMatrixLayout_t* handle, cudaDataType type, uint64_t rows,
                            uint64_t columns, int64_t leading) {
  GPUC_FAKE_ENTER("cublasLtMatrixLayoutCreate");
  return make(handle, FakeLayout{.type = type, .rows = rows, .columns = columns, .leading = leading});
}

cublasStatus_t destroyLayout(cublasLtMatrixLayout_t handle) {
  GPUC_FAKE_ENTER("cublasLtMatrixLayoutDestroy");
  return destroy(handle);
}

cublasStatus_t layOut(cublasLtMatrixLayout_t handle, cublasLtMatrixLayoutAttribute_t attribute,
                      const void* bytes, size_t size) {
  GPUC_FAKE_ENTER("cublasLtMatrixLayoutSetAttribute");
  auto& layout = *reinterpret_cast<FakeLayout*>(handle);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return set(layout.batch, bytes, size);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) return set(layout.batch_stride, bytes, size);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t createPreference(cublasLtMatmulPreference_t* handle) {
  GPUC_FAKE_ENTER("cublasLtMatmulPreferenceCreate");
  return make(handle, Preference{});
}

cublasStatus_t destroyPreference(cublasLtMatmulPreference_t handle) {
  GPUC_FAKE_ENTER("cublasLtMatmulPreferenceDestroy");
  return destroy(handle);
}

cublasStatus_t prefer(cublasLtMatmulPreference_t handle, cublasLtMatmulPreferenceAttributes_t attribute,
                      const void* bytes, size_t size) {
  GPUC_FAKE_ENTER("cublasLtMatmulPreferenceSetAttribute");
  auto& preference = *reinterpret_cast<Preference*>(handle);
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return set(preference.workspace_bytes, bytes, size);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return set(preference.reduction_mask, bytes, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return set(preference.alignment_a, bytes, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return set(preference.alignment_b, bytes, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return set(preference.alignment_c, bytes, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return set(preference.alignment_d, bytes, size);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

bool hasBias(const Description& description) {
  return description.epilogue == CUBLASLT_EPILOGUE_BIAS ||
         description.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
}

bool hasRelu(const Description& description) {
  return description.epilogue == CUBLASLT_EPILOGUE_RELU ||
         description.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
}

bool isTf32(const Description& description) { return description.compute == CUBLAS_COMPUTE_32F_FAST_TF32; }

/// Whether the types are one that the fake computes, with the precision that it takes.
bool supported(const Description& description, const FakeLayout& a, const FakeLayout& b,
               const FakeLayout& d) {
  const bool narrow = a.type == CUDA_R_16F || a.type == CUDA_R_16BF;
  if (a.type != b.type || a.type != d.type || description.scale != (narrow ? CUDA_R_32F : a.type))
    return false;
  if (hasBias(description) && description.bias_type != a.type) return false;
  if (description.epilogue != CUBLASLT_EPILOGUE_DEFAULT && !hasBias(description) && !hasRelu(description))
    return false;
  const bool single = description.compute == CUBLAS_COMPUTE_32F || isTf32(description);
  return (a.type == CUDA_R_32F && single) || (narrow && description.compute == CUBLAS_COMPUTE_32F) ||
         (a.type == CUDA_R_64F && description.compute == CUBLAS_COMPUTE_64F);
}

/// Whether op(a) op(b) has the shape of d, and each layout is one.
bool fits(const Description& description, const FakeLayout& a, const FakeLayout& b, const FakeLayout& d) {
  for (const FakeLayout* layout : {&a, &b, &d})
    if (layout->leading < static_cast<int64_t>(layout->rows) || layout->batch != d.batch) return false;
  bool ta = description.a == CUBLAS_OP_T, tb = description.b == CUBLAS_OP_T;
  return (ta ? a.columns : a.rows) == d.rows && (tb ? b.rows : b.columns) == d.columns &&
         (ta ? a.rows : a.columns) == (tb ? b.columns : b.rows);
}

uint64_t mixed(const Description& description, const FakeLayout& a, const FakeLayout& d) {
  uint64_t depth = description.a == CUBLAS_OP_T ? a.rows : a.columns;
  return ((d.rows * 31 + d.columns) * 31 + depth) * 31 + static_cast<uint64_t>(d.batch);
}

/// Of an address, up to the 256 bytes that cuBLASLt cares for. Null is aligned to everything.
uint32_t alignmentOf(const void* address) {
  auto bits = reinterpret_cast<uintptr_t>(address) | 256;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

cublasStatus_t choose(cublasLtHandle_t, cublasLtMatmulDesc_t description_handle, cublasLtMatrixLayout_t a,
                      cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                      cublasLtMatmulPreference_t preference_handle, int,
                      cublasLtMatmulHeuristicResult_t* results, int* count) {
  GPUC_FAKE_ENTER("cublasLtMatmulAlgoGetHeuristic");
  const Description& description = descriptionOf(description_handle);
  auto& preference = *reinterpret_cast<const Preference*>(preference_handle);
  *count = 0;
  if (!supported(description, layoutOf(a), layoutOf(b), layoutOf(d))) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (!fits(description, layoutOf(a), layoutOf(b), layoutOf(d))) {
    gpu().misuse("a matmul of shapes that do not fit");
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if ((preference.reduction_mask & ~uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE}) != 0)
    gpu().misuse("sums in an order that may differ, or rounded on the way");
  if (preference.workspace_bytes < gpu().blas_workspace_bytes) return CUBLAS_STATUS_NOT_SUPPORTED;
  Algorithm algorithm{Algorithm::kMagic,
                      gpu().blas_workspace_bytes,
                      preference.alignment_a,
                      preference.alignment_b,
                      preference.alignment_d,
                      alignmentOf(description.bias),
                      mixed(description, layoutOf(a), layoutOf(d))};
  static_assert(sizeof(algorithm) <= sizeof(results->algo));
  *results = {};
  std::memcpy(&results->algo, &algorithm, sizeof(algorithm));
  results->workspaceSize = gpu().blas_workspace_bytes;
  results->state = CUBLAS_STATUS_SUCCESS;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

double scalarOf(const Description& description, const void* scalar) {
  return description.scale == CUDA_R_64F ? *static_cast<const double*>(scalar)
                                         : *static_cast<const float*>(scalar);
}

/// What is wrong with the addresses; null if nothing is.
const char* wrongAddress(const FakeMatmul& work, const Algorithm& algorithm, const void* workspace,
                         size_t workspace_bytes) {
  if (!gpu().holds(work.a, work.a_layout.spanBytes(), false) ||
      !gpu().holds(work.b, work.b_layout.spanBytes(), false) ||
      !gpu().holds(work.d, work.d_layout.spanBytes(), false))
    return "a matmul where no memory is";
  if (alignmentOf(work.a) < algorithm.alignment_a || alignmentOf(work.b) < algorithm.alignment_b ||
      alignmentOf(work.d) < algorithm.alignment_d)
    return "a matmul of addresses that are aligned to less than was said";
  if (work.bias && !gpu().holds(work.bias, work.d_layout.rows * work.d_layout.elementBytes(), false))
    return "a bias where no memory is";
  if (work.bias && alignmentOf(work.bias) < algorithm.alignment_bias)
    return "a bias that is aligned to less than the heuristic was told";
  if (workspace_bytes < algorithm.workspace_bytes ||
      (workspace_bytes > 0 && !gpu().holds(workspace, workspace_bytes, false)))
    return "a matmul without the workspace that its algorithm needs";
  if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0)  // as the real one of CUDA 13.0 on an H100
    return "a matmul whose workspace is not at a multiple of 256 bytes";
  return nullptr;
}

cublasStatus_t matmul(cublasLtHandle_t, cublasLtMatmulDesc_t description_handle, const void* alpha,
                      const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                      cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                      cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                      const cublasLtMatmulAlgo_t* algo, void* workspace, size_t workspace_bytes,
                      cudaStream_t stream_handle) {
  GPUC_FAKE_ENTER("cublasLtMatmul");
  const Description& description = descriptionOf(description_handle);
  FakeStream* stream = gpu().find(stream_handle);
  Algorithm algorithm;
  std::memcpy(&algorithm, algo, sizeof(algorithm));
  FakeMatmul work{.transpose_a = description.a == CUBLAS_OP_T,
                  .transpose_b = description.b == CUBLAS_OP_T,
                  .a_layout = layoutOf(a_layout),
                  .b_layout = layoutOf(b_layout),
                  .d_layout = layoutOf(d_layout),
                  .a = a,
                  .b = b,
                  .bias = hasBias(description) ? description.bias : nullptr,
                  .d = d,
                  .adds = scalarOf(description, beta) == 1,
                  .relu = hasRelu(description),
                  .tf32 = isTf32(description)};
  const char* wrong = wrongAddress(work, algorithm, workspace, workspace_bytes);
  if (algorithm.magic != Algorithm::kMagic ||
      algorithm.shape != mixed(description, work.a_layout, work.d_layout))
    wrong = "an algorithm that was not chosen for this matmul";
  if (scalarOf(description, alpha) != 1 || (scalarOf(description, beta) != 0 && !work.adds) || c != d ||
      c_layout != d_layout)
    wrong = "a matmul that scales, or adds to something else, which no plan does";
  if (!stream || wrong) {
    if (wrong) gpu().misuse(wrong);
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  gpu().enqueue(*stream, FakeWork::Kind::matmul, "cublasLtMatmul").matmul = work;
  gpu().enqueued();
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

void FakeMatmul::run() const {
  switch (a_layout.type) {
    case CUDA_R_64F:
      return multiply<double>(*this);
    case CUDA_R_16F:
      return multiply<Half>(*this);
    case CUDA_R_16BF:
      return multiply<Bfloat16>(*this);
    default:
      return multiply<float>(*this);
  }
}

cuda::Blas fakeBlas() {
  cuda::Blas blas;
  blas.cublasLtGetVersion = version;
  blas.cublasLtGetStatusString = statusString;
  blas.cublasLtCreate = create;
  blas.cublasLtDestroy = destroyHandle;
  blas.cublasLtMatmulDescCreate = createDescription;
  blas.cublasLtMatmulDescDestroy = destroyDescription;
  blas.cublasLtMatmulDescSetAttribute = describe;
  blas.cublasLtMatrixLayoutCreate = createLayout;
  blas.cublasLtMatrixLayoutDestroy = destroyLayout;
  blas.cublasLtMatrixLayoutSetAttribute = layOut;
  blas.cublasLtMatmulPreferenceCreate = createPreference;
  blas.cublasLtMatmulPreferenceDestroy = destroyPreference;
  blas.cublasLtMatmulPreferenceSetAttribute = prefer;
  blas.cublasLtMatmulAlgoGetHeuristic = choose;
  blas.cublasLtMatmul = matmul;
  return blas;
}

}  // namespace gpuc::test
