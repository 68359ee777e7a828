#include "runtime/cuda/dnn.h"

#include <algorithm>
#include <array>

#include "runtime/cuda/library.h"

namespace gpuc::cuda {
namespace {

const Dnn* dnn_of_tests = nullptr;

#define GPUC_CUDA_TEXT(name) #name
#define GPUC_CUDA_NUMBER(name) GPUC_CUDA_TEXT(name)
constexpr char kFile[] = "libcudnn.so." GPUC_CUDA_NUMBER(CUDNN_MAJOR);

Result<Dnn> load() {
  Result<Library> library = Library::open(kFile);
  if (!library.ok())
    return Status::error("no cuDNN: " + library.message() + " (install cuDNN " + std::to_string(CUDNN_MAJOR) +
                         ", or name its folder in LD_LIBRARY_PATH)");
  Dnn dnn;
#define GPUC_CUDNN_FIND(name)                                       \
  if (Status status = library->find(#name, dnn.name); !status.ok()) \
    return Status::error("no cuDNN: " + status.message());
  GPUC_CUDNN_FUNCTIONS(GPUC_CUDNN_FIND)
#undef GPUC_CUDNN_FIND
  return dnn;
}

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

/// Not on this GPU, or not of this shape; no more is wrong.
bool isUnsupported(cudnnStatus_t status) {
  return CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED;
}

}  // namespace

void useDnn(const Dnn* dnn) { dnn_of_tests = dnn; }

Result<const Dnn*> Dnn::get() {
  if (dnn_of_tests) return dnn_of_tests;
  static const Result<Dnn> dnn = load();
  if (!dnn.ok()) return dnn.status();
  return &*dnn;
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

std::string Dnn::version() const {
  size_t number = cudnnGetVersion();  // 91900
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
         std::to_string(number % 100);
}

Result<DnnHandle> DnnHandle::create(const Dnn& dnn, CUstream stream) {
  cudnnHandle_t handle = nullptr;
  GPUC_RETURN_IF_ERROR(dnn.check(dnn.cudnnCreate(&handle), "cudnnCreate"));
  DnnHandle result;
  result.dnn_ = &dnn;
  result.handle_ = {handle, dnn.cudnnDestroy};
  GPUC_RETURN_IF_ERROR(dnn.check(dnn.cudnnSetStream(handle, stream), "cudnnSetStream"));
  return result;
}

Result<DnnDescriptor> DnnDescriptor::create(const Dnn& dnn, cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  GPUC_RETURN_IF_ERROR(
      dnn.check(dnn.cudnnBackendCreateDescriptor(type, &descriptor), "cudnnBackendCreateDescriptor"));
  DnnDescriptor result;
  result.dnn_ = &dnn;
  result.descriptor_ = {descriptor, dnn.cudnnBackendDestroyDescriptor};
  return result;
}

Status DnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                          const void* values) {
  return dnn_->check(dnn_->cudnnBackendSetAttribute(get(), name, type, count, values),
                     "cudnnBackendSetAttribute");
}

Result<int64_t> DnnDescriptor::read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                    int64_t most, void* values) const {
  int64_t count = 0;
  GPUC_RETURN_IF_ERROR(dnn_->check(dnn_->cudnnBackendGetAttribute(get(), name, type, most, &count, values),
                                   "cudnnBackendGetAttribute"));
  return count;
}

Status DnnDescriptor::finalize() {
  return dnn_->check(dnn_->cudnnBackendFinalize(get()), "cudnnBackendFinalize");
}

Result<bool> DnnDescriptor::finalizeIfSupported() {
  cudnnStatus_t status = dnn_->cudnnBackendFinalize(get());
  if (isUnsupported(status)) return false;
  GPUC_RETURN_IF_ERROR(dnn_->check(status, "cudnnBackendFinalize"));
  return true;
}

}  // namespace gpuc::cuda
