// cuDNN as a table of functions, its contexts and its descriptors.
#pragma once

#include <cuda.h>
#include <cudnn.h>

#include <span>
#include <string>

#include "runtime/cuda/library.h"
#include "runtime/cuda/owned.h"

namespace gpuc::cuda {

#define GPUC_CUDNN_FUNCTIONS(X)    \
  X(cudnnGetVersion)               \
  X(cudnnGetErrorString)           \
  X(cudnnGetLastErrorString)       \
  X(cudnnCreate)                   \
  X(cudnnDestroy)                  \
  X(cudnnSetStream)                \
  X(cudnnBackendCreateDescriptor)  \
  X(cudnnBackendDestroyDescriptor) \
  X(cudnnBackendSetAttribute)      \
  X(cudnnBackendGetAttribute)      \
  X(cudnnBackendFinalize)          \
  X(cudnnBackendExecute)

/// Of the major version that gpuc was built for.
struct Dnn : LoadedTable<Dnn> {
#define GPUC_CUDNN_ENTRY(name) decltype(&::name) name = nullptr;
  GPUC_CUDNN_FUNCTIONS(GPUC_CUDNN_ENTRY)
#undef GPUC_CUDNN_ENTRY

  static Result<Dnn> load();
  /// "cudnnBackendFinalize: CUDNN_STATUS_BAD_PARAM (what the library says of it): the cure".
  Status check(cudnnStatus_t status, const char* call) const;
  std::string version() const;  // "9.19.0"
};

/// One context of the library, for the device that is current when it is made and for one stream: what it
/// executes is enqueued there.
class DnnHandle {
 public:
  static Result<DnnHandle> create(const Dnn& dnn, CUstream stream);

  const Dnn& dnn() const { return *dnn_; }
  cudnnHandle_t get() const { return handle_.get(); }

 private:
  const Dnn* dnn_ = nullptr;
  Owned<cudnnHandle_t, cudnnStatus_t> handle_;
};

/// A descriptor of the backend: made, given its attributes, finalized, and then only read. What goes wrong on
/// the way, or went wrong with one that it is given, is its status from then on. What it refers to must
/// outlive it.
class DnnDescriptor {
 public:
  DnnDescriptor() = default;
  DnnDescriptor(const Dnn& dnn, cudnnBackendDescriptorType_t type);

  cudnnBackendDescriptor_t get() const { return descriptor_.get(); }
  const Status& status() const { return status_; }
  const Status& finalize();
  /// False if the library has nothing for it on this GPU; an error is whatever else goes wrong.
  Result<bool> finalizeIfSupported();

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
           const void* values);
  void set(cudnnBackendAttributeName_t name, int64_t value) { set(name, CUDNN_TYPE_INT64, 1, &value); }
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
    set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, const DnnDescriptor& value) { set(name, std::span(&value, 1)); }
  void set(cudnnBackendAttributeName_t name, std::span<const DnnDescriptor> values);

  /// Reads up to `most` values, and returns how many there are. Of descriptors `values` is an array of ones
  /// that the caller has made, to be filled in.
  Result<int64_t> read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most,
                       void* values) const;

 private:
  const Dnn* dnn_ = nullptr;
  Owned<cudnnBackendDescriptor_t, cudnnStatus_t> descriptor_;
  Status status_;
};

}  // namespace gpuc::cuda
