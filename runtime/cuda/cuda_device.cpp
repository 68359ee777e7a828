// GPUs as devices: how many there are, what they are called, which plans they take.
#include <array>
#include <functional>
#include <string_view>

#include "runtime/cuda/blas.h"
#include "runtime/cuda/dnn.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/executable.h"
#include "runtime/hal/device.h"

namespace gpuc {
namespace cuda {
namespace {

Result<int> attributeOf(const Driver& driver, CUdevice device, CUdevice_attribute attribute) {
  int value = 0;
  GPUC_RETURN_IF_ERROR(
      driver.check(driver.cuDeviceGetAttribute(&value, attribute, device), "cuDeviceGetAttribute"));
  return value;
}

Result<Architecture> architectureOf(const Driver& driver, CUdevice device) {
  GPUC_ASSIGN_OR_RETURN(int major, attributeOf(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  GPUC_ASSIGN_OR_RETURN(int minor, attributeOf(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  return Architecture{major, minor};
}

Result<uint64_t> identityOf(const Driver& driver, CUdevice device) {
  CUuuid uuid = {};
  GPUC_RETURN_IF_ERROR(driver.check(driver.cuDeviceGetUuid(&uuid, device), "cuDeviceGetUuid"));
  return std::hash<std::string_view>{}({uuid.bytes, sizeof(uuid.bytes)});
}

Result<DeviceInfo> describe(const Driver& driver, CUdevice device, int index) {
  DeviceInfo info;
  info.kind = TargetKind::cuda;
  info.index = index;
  std::array<char, 256> name = {};
  GPUC_RETURN_IF_ERROR(
      driver.check(driver.cuDeviceGetName(name.data(), name.size() - 1, device), "cuDeviceGetName"));
  info.name = name.data();
  size_t bytes = 0;
  GPUC_RETURN_IF_ERROR(driver.check(driver.cuDeviceTotalMem(&bytes, device), "cuDeviceTotalMem"));
  info.memory_bytes = bytes;
  GPUC_ASSIGN_OR_RETURN(info.identity, identityOf(driver, device));
  GPUC_ASSIGN_OR_RETURN(Architecture architecture, architectureOf(driver, device));
  info.architecture = architecture.str();
  if (Result<const Blas*> blas = Blas::get(); blas.ok())
    info.libraries.push_back({"cublasLt", (*blas)->version()});
  if (Result<const Dnn*> dnn = Dnn::get(); dnn.ok()) info.libraries.push_back({"cudnn", (*dnn)->version()});
  return info;
}

class CudaDevice : public Device {
 public:
  CudaDevice(DeviceInfo info, Architecture architecture, std::shared_ptr<Context> context)
      : info_(std::move(info)), architecture_(architecture), context_(std::move(context)) {}

  const DeviceInfo& info() const override { return info_; }

  Result<uint64_t> freeMemory() const override {
    GPUC_RETURN_IF_ERROR(context_->makeCurrent());
    return freeBytes(context_->driver());
  }

  Result<std::unique_ptr<Executable>> prepare(const Plan& plan, const DeviceOptions& options) override {
    const PlanInfo& facts = plan.info();
    if (facts.target != TargetKind::cuda)
      return Status::error("plan compiled for " + std::string(nameOf(facts.target)) + " (" +
                           facts.target_name + "), the device is cuda (" + info_.architecture + ", " +
                           info_.name + "): compile with --target=cuda:" + info_.architecture);
    Architecture needed = Architecture::parse(facts.target_name);
    if (needed == Architecture{})
      return Status::error("plan compiled for cuda (" + facts.target_name +
                           "), which is not an architecture such as sm_90");
    if (architecture_ < needed)
      return Status::error("plan compiled for cuda (" + facts.target_name +
                           "), the device is too old: " + info_.name + " is " + info_.architecture +
                           ", expected " + facts.target_name + " or newer");
    if (options.profile_events > 0)
      return Status::error(
          "only the host keeps the times of commands: profile a GPU with Nsight Systems (nsys)");
    return createExecutable(context_, architecture_, plan, options);
  }

 private:
  DeviceInfo info_;
  Architecture architecture_;
  std::shared_ptr<Context> context_;
};

Result<int> deviceCount(const Driver& driver) {
  int count = 0;
  GPUC_RETURN_IF_ERROR(driver.check(driver.cuDeviceGetCount(&count), "no CUDA device: cuDeviceGetCount"));
  if (count == 0) return errorf("no CUDA device: NVIDIA's driver is there, but it finds no GPU");
  return count;
}

Result<std::unique_ptr<Device>> open(int index) {
  GPUC_ASSIGN_OR_RETURN(const Driver* driver, Driver::get());
  GPUC_ASSIGN_OR_RETURN(int count, deviceCount(*driver));
  if (index >= count)
    return errorf("no CUDA device %d: this machine has %d, cuda:0 to cuda:%d", index, count, count - 1);
  CUdevice device = 0;
  GPUC_RETURN_IF_ERROR(driver->check(driver->cuDeviceGet(&device, index), "cuDeviceGet"));
  GPUC_ASSIGN_OR_RETURN(DeviceInfo info, describe(*driver, device, index));
  GPUC_ASSIGN_OR_RETURN(Architecture architecture, architectureOf(*driver, device));
  GPUC_ASSIGN_OR_RETURN(std::shared_ptr<Context> context, Context::create(*driver, device));
  return std::unique_ptr<Device>(
      std::make_unique<CudaDevice>(std::move(info), architecture, std::move(context)));
}

}  // namespace
}  // namespace cuda

Result<std::unique_ptr<Device>> openCudaDevice(int index) { return cuda::open(index); }

Result<int> countCudaDevices() {
  GPUC_ASSIGN_OR_RETURN(const cuda::Driver* driver, cuda::Driver::get());
  return cuda::deviceCount(*driver);
}

/// Those that can be described; none where there is no driver.
std::vector<DeviceInfo> listCudaDevices() {
  std::vector<DeviceInfo> list;
  Result<const cuda::Driver*> driver = cuda::Driver::get();
  if (!driver.ok()) return list;
  Result<int> count = cuda::deviceCount(**driver);
  for (int index = 0; count.ok() && index < *count; ++index) {
    CUdevice device = 0;
    if ((*driver)->cuDeviceGet(&device, index) != CUDA_SUCCESS) continue;
    Result<DeviceInfo> info = cuda::describe(**driver, device, index);
    if (info.ok()) list.push_back(*std::move(info));
  }
  return list;
}

}  // namespace gpuc
