// A plan's matmul through cuBLASLt: descriptors and algorithm are fixed when the plan is loaded.
#pragma once

#include <cuda.h>

#include <memory>

#include "runtime/cuda/library_call.h"

namespace gpuc::cuda {

class Matmul final : public LibraryCall {
 public:
  /// Chooses the first of cuBLASLt's suggestions that fits the command's workspace and always sums in one
  /// order: no atomics, no partial results rounded to the output's type. f32 is computed in f32, in TF32
  /// where the command says so, f16 and bf16 are summed in f32. `alignment`: of every address that the
  /// command will see, in bytes. Error: nothing fits.
  static Result<std::unique_ptr<Matmul>> create(const BlasHandle& handle, const fb::Matmul& matmul,
                                                uint32_t alignment);
  ~Matmul() override;
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  Status enqueue(const CUdeviceptr* addresses, CUstream stream) const override;

 private:
  explicit Matmul(const BlasHandle& handle) : blas_(handle.blas()), handle_(handle.get()) {}
  Status describe(const fb::Matmul& matmul);
  Status describeLayout(cublasLtMatrixLayout_t& layout, uint64_t rows, uint64_t columns, uint64_t batch,
                        uint64_t stride);
  Status choose(const fb::Matmul& matmul, uint32_t alignment);

  const Blas& blas_;
  cublasLtHandle_t handle_;
  cudaDataType_t type_ = CUDA_R_32F;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t left_ = nullptr, right_ = nullptr, result_ = nullptr;  // as cuBLAS sees them
  cublasLtMatmulAlgo_t algorithm_ = {};
  size_t workspace_bytes_ = 0;
  bool wide_ = false;        // f64: alpha and beta are, too
  bool accumulate_ = false;  // beta is 1: add to what the result holds
};

}  // namespace gpuc::cuda
