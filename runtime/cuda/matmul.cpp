// cuBLAS is column-major: to it our row-major c[m, n] is the matrix cᵀ[n, m], and cᵀ = op(b)ᵀ · op(a)ᵀ. So b
// is its left operand and a its right one. A row-major matrix of r rows and s columns is, to cuBLAS, s x r
// with leading dimension s; where we transpose, so does it.
#include "runtime/cuda/matmul.h"

#include <cinttypes>

#include "runtime/base/data_type.h"

namespace gpuc::cuda {
namespace {

Result<cudaDataType_t> typeOf(fb::DataType type) {
  switch (type) {
    case fb::DataType::f64:
      return CUDA_R_64F;
    case fb::DataType::f32:
      return CUDA_R_32F;
    case fb::DataType::f16:
      return CUDA_R_16F;
    case fb::DataType::bf16:
      return CUDA_R_16BF;
    default:
      return errorf("cuBLASLt has no matmul of %s", fb::EnumNameDataType(type));
  }
}

/// Destroys the preference when it goes out of scope.
struct Preference {
  const Blas& blas;
  cublasLtMatmulPreference_t get = nullptr;
  ~Preference() {
    if (get) blas.cublasLtMatmulPreferenceDestroy(get);
  }

  template <typename T>
  Status set(cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    return blas.check(blas.cublasLtMatmulPreferenceSetAttribute(get, attribute, &value, sizeof(value)),
                      "cublasLtMatmulPreferenceSetAttribute");
  }
};

template <typename T>
Status setAttribute(const Blas& blas, cublasLtMatmulDesc_t operation,
                    cublasLtMatmulDescAttributes_t attribute, T value) {
  return blas.check(blas.cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof(value)),
                    "cublasLtMatmulDescSetAttribute");
}

}  // namespace

Result<std::unique_ptr<Matmul>> Matmul::create(const BlasHandle& handle, const fb::Matmul& matmul,
                                               uint32_t alignment) {
  std::unique_ptr<Matmul> result(new Matmul(handle));
  GPUC_RETURN_IF_ERROR(result->describe(matmul));
  GPUC_RETURN_IF_ERROR(result->choose(matmul, alignment));
  return result;
}

Matmul::~Matmul() {
  for (cublasLtMatrixLayout_t layout : {left_, right_, result_})
    if (layout) blas_.cublasLtMatrixLayoutDestroy(layout);
  if (operation_) blas_.cublasLtMatmulDescDestroy(operation_);
}

/// `rows` and `columns` as stored, row-major.
Status Matmul::describeLayout(cublasLtMatrixLayout_t& layout, uint64_t rows, uint64_t columns, uint64_t batch,
                              uint64_t stride) {
  GPUC_RETURN_IF_ERROR(blas_.check(
      blas_.cublasLtMatrixLayoutCreate(&layout, type_, columns, rows, static_cast<int64_t>(columns)),
      "cublasLtMatrixLayoutCreate"));
  if (batch == 1) return okStatus();
  int32_t count = static_cast<int32_t>(batch);
  int64_t offset = static_cast<int64_t>(stride);
  GPUC_RETURN_IF_ERROR(blas_.check(blas_.cublasLtMatrixLayoutSetAttribute(
                                       layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)),
                                   "cublasLtMatrixLayoutSetAttribute"));
  return blas_.check(blas_.cublasLtMatrixLayoutSetAttribute(
                         layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &offset, sizeof(offset)),
                     "cublasLtMatrixLayoutSetAttribute");
}

Status Matmul::describe(const fb::Matmul& matmul) {
  if (matmul.batch() > INT32_MAX)
    return errorf("cuBLASLt has no batch of %" PRIu64 " matrices", matmul.batch());
  GPUC_ASSIGN_OR_RETURN(type_, typeOf(matmul.type()));
  wide_ = matmul.type() == fb::DataType::f64;
  accumulate_ = matmul.accumulate();
  cublasComputeType_t compute = wide_           ? CUBLAS_COMPUTE_64F
                                : matmul.tf32() ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                : CUBLAS_COMPUTE_32F;
  GPUC_RETURN_IF_ERROR(
      blas_.check(blas_.cublasLtMatmulDescCreate(&operation_, compute, wide_ ? CUDA_R_64F : CUDA_R_32F),
                  "cublasLtMatmulDescCreate"));
  cublasOperation_t left = matmul.transpose_b() ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasOperation_t right = matmul.transpose_a() ? CUBLAS_OP_T : CUBLAS_OP_N;
  GPUC_RETURN_IF_ERROR(setAttribute(blas_, operation_, CUBLASLT_MATMUL_DESC_TRANSA, left));
  GPUC_RETURN_IF_ERROR(setAttribute(blas_, operation_, CUBLASLT_MATMUL_DESC_TRANSB, right));
  const cublasLtEpilogue_t epilogue = matmul.bias() && matmul.relu() ? CUBLASLT_EPILOGUE_RELU_BIAS
                                      : matmul.bias()                ? CUBLASLT_EPILOGUE_BIAS
                                      : matmul.relu()                ? CUBLASLT_EPILOGUE_RELU
                                                                     : CUBLASLT_EPILOGUE_DEFAULT;
  GPUC_RETURN_IF_ERROR(setAttribute(blas_, operation_, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue));
  if (matmul.bias())
    GPUC_RETURN_IF_ERROR(setAttribute(blas_, operation_, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_));
  uint64_t m = matmul.m(), n = matmul.n(), k = matmul.k(), batch = matmul.batch();
  GPUC_RETURN_IF_ERROR(describeLayout(left_, matmul.transpose_b() ? n : k, matmul.transpose_b() ? k : n,
                                      batch, matmul.batch_stride_b()));
  GPUC_RETURN_IF_ERROR(describeLayout(right_, matmul.transpose_a() ? k : m, matmul.transpose_a() ? m : k,
                                      batch, matmul.batch_stride_a()));
  return describeLayout(result_, m, n, batch, m * n);
}

Status Matmul::choose(const fb::Matmul& matmul, uint32_t alignment) {
  workspace_bytes_ = matmul.workspace() ? matmul.workspace()->size() : 0;
  // How far the bias is aligned cuBLASLt reads off its address, which is not followed here; null would
  // promise everything.
  if (matmul.bias())
    GPUC_RETURN_IF_ERROR(setAttribute(blas_, operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                      reinterpret_cast<void*>(static_cast<uintptr_t>(alignment))));
  Preference preference{blas_};
  GPUC_RETURN_IF_ERROR(
      blas_.check(blas_.cublasLtMatmulPreferenceCreate(&preference.get), "cublasLtMatmulPreferenceCreate"));
  GPUC_RETURN_IF_ERROR(
      preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(workspace_bytes_)));
  GPUC_RETURN_IF_ERROR(preference.set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                      static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)));
  for (auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    GPUC_RETURN_IF_ERROR(preference.set(attribute, alignment));

  cublasLtMatmulHeuristicResult_t found = {};
  int count = 0;
  cublasStatus_t status = blas_.cublasLtMatmulAlgoGetHeuristic(handle_, operation_, left_, right_, result_,
                                                               result_, preference.get, 1, &found, &count);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED)
    GPUC_RETURN_IF_ERROR(blas_.check(status, "cublasLtMatmulAlgoGetHeuristic"));
  if (status != CUBLAS_STATUS_SUCCESS || count == 0 || found.state != CUBLAS_STATUS_SUCCESS)
    return errorf("cuBLASLt %s has no algorithm for this %s matmul (batch %" PRIu64 ", m %" PRIu64
                  ", n %" PRIu64 ", k %" PRIu64
                  ") within %zu bytes of workspace: compile with a newer gpuc, or update cuBLAS",
                  blas_.version().c_str(), fb::EnumNameDataType(matmul.type()), matmul.batch(), matmul.m(),
                  matmul.n(), matmul.k(), workspace_bytes_);
  algorithm_ = found.algo;
  return okStatus();
}

Status Matmul::enqueue(const CUdeviceptr* addresses, CUstream stream) const {
  const float one = 1, beta = accumulate_ ? 1 : 0;
  const double wide_one = 1, wide_beta = beta;
  auto pointer = [&](size_t operand) { return reinterpret_cast<void*>(addresses[operand]); };
  enum { a, b, c, bias, workspace };
  if (addresses[bias])
    GPUC_RETURN_IF_ERROR(setAttribute(blas_, operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointer(bias)));
  return blas_.check(
      blas_.cublasLtMatmul(handle_, operation_, wide_ ? static_cast<const void*>(&wide_one) : &one,
                           pointer(b), left_, pointer(a), right_,
                           wide_ ? static_cast<const void*>(&wide_beta) : &beta, pointer(c), result_,
                           pointer(c), result_, &algorithm_, pointer(workspace), workspace_bytes_, stream),
      "cublasLtMatmul");
}

}  // namespace gpuc::cuda
