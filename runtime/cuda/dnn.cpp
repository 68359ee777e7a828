#include "runtime/cuda/dnn.h"

#include <algorithm>
#include <array>
#include <vector>

namespace gpuc::cuda {
namespace {

/// What a user can do about an error; null where that is not known.
const char* cureOf(cudnnStatus_t status) {
  switch (CUDNN_STATUS_CATEGORY(status)) {
    case CUDNN_STATUS_EXECUTION_FAILED:
      return "a kernel failed: run under compute-sanitizer to see which; the session is lost";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "update cuDNN";
    default:
      break;
  }
  switch (status) {
    case CUDNN_STATUS_NOT_INITIALIZED:
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
      return "free the GPU's memory";
    case CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH:
    case CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED:
      return "install all of cuDNN's libraries, of one version";
    default:
      return nullptr;
  }
}

}  // namespace

Result<Dnn> Dnn::load() {
  constexpr LibraryFile kFile = {
      "no cuDNN: ", "libcudnn.so." GPUC_CUDA_TEXT(CUDNN_MAJOR),
      " (install cuDNN " GPUC_CUDA_TEXT(CUDNN_MAJOR) ", or name its folder in LD_LIBRARY_PATH)"};
  Dnn dnn;
#define GPUC_CUDNN_FUNCTION(name) {GPUC_CUDA_TEXT(name), &dnn.name},
  GPUC_RETURN_IF_ERROR(loadFunctions(kFile, {GPUC_CUDNN_FUNCTIONS(GPUC_CUDNN_FUNCTION)}));
#undef GPUC_CUDNN_FUNCTION
  return dnn;
}

Status Dnn::check(cudnnStatus_t status, const char* call) const {
  if (status == CUDNN_STATUS_SUCCESS) return okStatus();
  std::array<char, 256> reason = {};
  cudnnGetLastErrorString(reason.data(), reason.size());
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  std::string text = std::string(call) + ": " + cudnnGetErrorString(status);
  if (reason[0] != '\0') text += " (" + std::string(reason.data()) + ")";
  if (const char* cure = cureOf(status)) text += std::string(": ") + cure;
  return Status::error(text);
}

std::string Dnn::version() const { return versionText(cudnnGetVersion()); }

Result<DnnHandle> DnnHandle::create(const Dnn& dnn, CUstream stream) {
  cudnnHandle_t handle = nullptr;
  GPUC_RETURN_IF_ERROR(dnn.check(dnn.cudnnCreate(&handle), "cudnnCreate"));
  DnnHandle result;
  result.dnn_ = &dnn;
  result.handle_ = {handle, dnn.cudnnDestroy};
  GPUC_RETURN_IF_ERROR(dnn.check(dnn.cudnnSetStream(handle, stream), "cudnnSetStream"));
  return result;
}

DnnDescriptor::DnnDescriptor(const Dnn& dnn, cudnnBackendDescriptorType_t type) : dnn_(&dnn) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  status_ = dnn.check(dnn.cudnnBackendCreateDescriptor(type, &descriptor), "cudnnBackendCreateDescriptor");
  if (status_.ok()) descriptor_ = {descriptor, dnn.cudnnBackendDestroyDescriptor};
}

void DnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                        const void* values) {
  if (status_.ok())
    status_ = dnn_->check(dnn_->cudnnBackendSetAttribute(get(), name, type, count, values),
                          "cudnnBackendSetAttribute");
}

void DnnDescriptor::set(cudnnBackendAttributeName_t name, std::span<const DnnDescriptor> values) {
  std::vector<cudnnBackendDescriptor_t> descriptors;
  for (const DnnDescriptor& value : values) {
    if (status_.ok()) status_ = value.status();
    descriptors.push_back(value.get());
  }
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(descriptors.size()), descriptors.data());
}

Result<int64_t> DnnDescriptor::read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                    int64_t most, void* values) const {
  int64_t count = 0;
  GPUC_RETURN_IF_ERROR(dnn_->check(dnn_->cudnnBackendGetAttribute(get(), name, type, most, &count, values),
                                   "cudnnBackendGetAttribute"));
  return count;
}

const Status& DnnDescriptor::finalize() {
  if (status_.ok()) status_ = dnn_->check(dnn_->cudnnBackendFinalize(get()), "cudnnBackendFinalize");
  return status_;
}

Result<bool> DnnDescriptor::finalizeIfSupported() {
  GPUC_RETURN_IF_ERROR(status_);
  const cudnnStatus_t status = dnn_->cudnnBackendFinalize(get());
  if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) return false;
  GPUC_RETURN_IF_ERROR(dnn_->check(status, "cudnnBackendFinalize"));
  return true;
}

}  // namespace gpuc::cuda
