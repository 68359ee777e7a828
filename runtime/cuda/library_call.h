// What vendors' libraries compute of a plan: cuBLASLt and cuDNN. The rest of this folder knows them by this
// alone.
#pragma once

#include <cuda.h>

#include <memory>
#include <span>
#include <vector>

#include "runtime/cuda/blas.h"
#include "runtime/cuda/dnn.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/gpu_ranks.h"
#include "runtime/plan/access.h"

namespace gpuc::cuda {

/// A call of a library, prepared for one command when a plan is loaded. Addresses are those of the command's
/// operands, in the order of its kind (runtime/plan/roles.h), 0 where it goes without one.
class LibraryCall {
 public:
  virtual ~LibraryCall() = default;

  /// Whether bind() must have seen all addresses of an execution before that is enqueued.
  virtual bool mustBeBound() const { return false; }
  virtual Status bind(const CUdeviceptr*) { return okStatus(); }

  virtual Status enqueue(const CUdeviceptr* addresses, CUstream stream) const = 0;
};

/// A product through cuBLASLt, by the first of its suggestions that fits the command's workspace and always
/// sums in one order: no atomics, no partial results rounded to the output's type. f32 is computed in f32, in
/// TF32 where the command says so, f16 and bf16 are summed in f32. `alignment`: of every address that the
/// command will see, in bytes. Error: nothing fits.
Result<std::unique_ptr<LibraryCall>> prepareMatmul(const BlasHandle& handle, const fb::Matmul& matmul,
                                                   uint32_t alignment);

/// A convolution through cuDNN, by an engine (see chooseEngine) within the command's workspace; its addresses
/// must be bound. Types and alignment likewise.
Result<std::unique_ptr<LibraryCall>> prepareConv(const DnnHandle& handle, const fb::Conv& conv,
                                                 uint32_t alignment);

/// The libraries that a plan calls, opened.
class Libraries {
 public:
  /// `streams`: the plan's. Errors: a library that is not there, or too old.
  static Result<Libraries> open(const fb::Plan& plan, std::span<const Stream> streams);

  /// Meets the other ranks, if the plan exchanges with them; see GpuRanks::meet.
  Status meet(const Driver& driver, const fb::Plan& plan, Communicator& communicator, CUdeviceptr arena,
              CUstream stream);
  /// Null if there are none.
  GpuRanks* ranks() const { return ranks_.get(); }

  /// For a command of that stream. `alignment`: of every address that the command will see, in bytes. Errors:
  /// what the libraries have no algorithm for, or CUDA no library.
  Result<std::unique_ptr<LibraryCall>> prepare(const fb::Command& command, size_t stream,
                                               uint32_t alignment) const;

 private:
  BlasHandle blas_;  // null if the plan has no product
  std::unique_ptr<GpuRanks> ranks_;
  std::vector<DnnHandle> dnn_;  // by stream, so that a step need not move one; null where nothing convolves
};

}  // namespace gpuc::cuda
