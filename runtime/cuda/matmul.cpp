// cuBLAS is column-major: to it our row-major c[m, n] is the matrix cᵀ[n, m], and cᵀ = op(b)ᵀ · op(a)ᵀ. So b
// is its left operand and a its right one. A row-major matrix of r rows and s columns is, to cuBLAS, s x r
// with leading dimension s; where we transpose, so does it.
#include <cinttypes>

#include "runtime/base/data_type.h"
#include "runtime/cuda/library_call.h"

namespace gpuc::cuda {
namespace {

Result<cudaDataType_t> typeOf(fb::DataType type) {
  constexpr cudaDataType_t kFloats[] = {CUDA_R_64F, CUDA_R_32F, CUDA_R_16F,
                                        CUDA_R_16BF};  // as DataType has them
  if (!isFloat(static_cast<DataType>(type)))
    return errorf("cuBLASLt has no matmul of %s", fb::EnumNameDataType(type));
  return kFloats[static_cast<size_t>(type)];
}

using Operation = Owned<cublasLtMatmulDesc_t, cublasStatus_t>;
using Layout = Owned<cublasLtMatrixLayout_t, cublasStatus_t>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasStatus_t>;

/// A product through cuBLASLt: descriptors and algorithm are fixed when the plan is loaded.
class Matmul final : public LibraryCall {
 public:
  explicit Matmul(const BlasHandle& handle) : blas_(handle.blas()), handle_(handle.get()) {}

  Status prepare(const fb::Matmul& matmul, uint32_t alignment) {
    GPUC_RETURN_IF_ERROR(describe(matmul));
    return choose(matmul, alignment);
  }

  Status enqueue(const CUdeviceptr* addresses, CUstream stream) const override {
    const float one = 1, beta = accumulate_ ? 1 : 0;
    const double wide_one = 1, wide_beta = beta;
    auto pointer = [&](size_t operand) { return reinterpret_cast<void*>(addresses[operand]); };
    enum { a, b, c, bias, workspace };
    if (addresses[bias]) GPUC_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointer(bias)));
    return blas_.check(
        blas_.cublasLtMatmul(handle_, operation_.get(), wide_ ? static_cast<const void*>(&wide_one) : &one,
                             pointer(b), left_.get(), pointer(a), right_.get(),
                             wide_ ? static_cast<const void*>(&wide_beta) : &beta, pointer(c), result_.get(),
                             pointer(c), result_.get(), &algorithm_, pointer(workspace), workspace_bytes_,
                             stream),
        "cublasLtMatmul");
  }

 private:
  /// `rows` and `columns` as stored, row-major.
  Result<Layout> layoutOf(uint64_t rows, uint64_t columns, uint64_t batch, uint64_t stride) const {
    cublasLtMatrixLayout_t made = nullptr;
    GPUC_RETURN_IF_ERROR(blas_.check(
        blas_.cublasLtMatrixLayoutCreate(&made, type_, columns, rows, static_cast<int64_t>(columns)),
        "cublasLtMatrixLayoutCreate"));
    Layout layout(made, blas_.cublasLtMatrixLayoutDestroy);
    if (batch == 1) return layout;
    auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, auto value) {
      return blas_.check(blas_.cublasLtMatrixLayoutSetAttribute(made, attribute, &value, sizeof(value)),
                         "cublasLtMatrixLayoutSetAttribute");
    };
    GPUC_RETURN_IF_ERROR(set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(batch)));
    GPUC_RETURN_IF_ERROR(set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, static_cast<int64_t>(stride)));
    return layout;
  }

  Status describe(const fb::Matmul& matmul) {
    if (matmul.batch() > INT32_MAX)
      return errorf("cuBLASLt has no batch of %" PRIu64 " matrices", matmul.batch());
    GPUC_ASSIGN_OR_RETURN(type_, typeOf(matmul.type()));
    wide_ = matmul.type() == fb::DataType::f64;
    accumulate_ = matmul.accumulate();
    cublasComputeType_t compute = wide_           ? CUBLAS_COMPUTE_64F
                                  : matmul.tf32() ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                  : CUBLAS_COMPUTE_32F;
    cublasLtMatmulDesc_t operation = nullptr;
    GPUC_RETURN_IF_ERROR(
        blas_.check(blas_.cublasLtMatmulDescCreate(&operation, compute, wide_ ? CUDA_R_64F : CUDA_R_32F),
                    "cublasLtMatmulDescCreate"));
    operation_ = {operation, blas_.cublasLtMatmulDescDestroy};
    cublasOperation_t left = matmul.transpose_b() ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t right = matmul.transpose_a() ? CUBLAS_OP_T : CUBLAS_OP_N;
    GPUC_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_TRANSA, left));
    GPUC_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_TRANSB, right));
    const cublasLtEpilogue_t epilogue = matmul.bias() && matmul.relu() ? CUBLASLT_EPILOGUE_RELU_BIAS
                                        : matmul.bias()                ? CUBLASLT_EPILOGUE_BIAS
                                        : matmul.relu()                ? CUBLASLT_EPILOGUE_RELU
                                                                       : CUBLASLT_EPILOGUE_DEFAULT;
    GPUC_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue));
    if (matmul.bias()) GPUC_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_));
    uint64_t m = matmul.m(), n = matmul.n(), k = matmul.k(), batch = matmul.batch();
    const uint64_t stride_a = matmul.batch_stride_a(), stride_b = matmul.batch_stride_b();
    GPUC_ASSIGN_OR_RETURN(
        left_, matmul.transpose_b() ? layoutOf(n, k, batch, stride_b) : layoutOf(k, n, batch, stride_b));
    GPUC_ASSIGN_OR_RETURN(
        right_, matmul.transpose_a() ? layoutOf(k, m, batch, stride_a) : layoutOf(m, k, batch, stride_a));
    GPUC_ASSIGN_OR_RETURN(result_, layoutOf(m, n, batch, m * n));
    return okStatus();
  }

  Status choose(const fb::Matmul& matmul, uint32_t alignment) {
    workspace_bytes_ = matmul.workspace() ? matmul.workspace()->size() : 0;
    // How far the bias is aligned cuBLASLt reads off its address, which is not followed here; null would
    // promise everything.
    if (matmul.bias())
      GPUC_RETURN_IF_ERROR(
          set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<void*>(static_cast<uintptr_t>(alignment))));
    cublasLtMatmulPreference_t made = nullptr;
    GPUC_RETURN_IF_ERROR(
        blas_.check(blas_.cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate"));
    const Preference preference(made, blas_.cublasLtMatmulPreferenceDestroy);
    auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      return blas_.check(blas_.cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof(value)),
                         "cublasLtMatmulPreferenceSetAttribute");
    };
    GPUC_RETURN_IF_ERROR(
        prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(workspace_bytes_)));
    GPUC_RETURN_IF_ERROR(prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)));
    for (auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      GPUC_RETURN_IF_ERROR(prefer(attribute, alignment));

    cublasLtMatmulHeuristicResult_t found = {};
    int count = 0;
    cublasStatus_t status =
        blas_.cublasLtMatmulAlgoGetHeuristic(handle_, operation_.get(), left_.get(), right_.get(),
                                             result_.get(), result_.get(), made, 1, &found, &count);
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

  template <typename T>
  Status set(cublasLtMatmulDescAttributes_t attribute, T value) const {
    return blas_.check(
        blas_.cublasLtMatmulDescSetAttribute(operation_.get(), attribute, &value, sizeof(value)),
        "cublasLtMatmulDescSetAttribute");
  }

  const Blas& blas_;
  cublasLtHandle_t handle_;
  cudaDataType_t type_ = CUDA_R_32F;
  Operation operation_;
  Layout left_, right_, result_;  // as cuBLAS sees them
  cublasLtMatmulAlgo_t algorithm_ = {};
  size_t workspace_bytes_ = 0;
  bool wide_ = false;        // f64: alpha and beta are, too
  bool accumulate_ = false;  // beta is 1: add to what the result holds
};

}  // namespace

Result<std::unique_ptr<LibraryCall>> prepareMatmul(const BlasHandle& handle, const fb::Matmul& matmul,
                                                   uint32_t alignment) {
  auto call = std::make_unique<Matmul>(handle);
  GPUC_RETURN_IF_ERROR(call->prepare(matmul, alignment));
  return std::unique_ptr<LibraryCall>(std::move(call));
}

}  // namespace gpuc::cuda
