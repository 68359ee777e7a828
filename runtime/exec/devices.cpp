#include "runtime/exec/devices.h"

#include "runtime/base/parse.h"

namespace gpuc {
namespace {

/// Which of the GPUs, or -1 if `name` names none.
int cudaIndexOf(const std::string& name) {
  const std::string prefix = "cuda:";
  if (name == "cuda") return 0;
  if (!name.starts_with(prefix)) return -1;
  Result<int64_t> index = parseInt64(name.substr(prefix.size()));
  return index.ok() && *index >= 0 && *index < 4096 ? static_cast<int>(*index) : -1;
}

}  // namespace

Status checkDeviceName(const std::string& name) {
  if (name == "auto" || name == "host" || cudaIndexOf(name) >= 0) return okStatus();
  return Status::error("unknown device '" + name + "': expected auto, host, cuda or cuda:N");
}

Result<std::unique_ptr<Device>> openDevice(const std::string& name, TargetKind target) {
  if (name == "host" || (name == "auto" && target == TargetKind::host)) return openHostDevice();
  GPUC_RETURN_IF_ERROR(checkDeviceName(name));
  return openCudaDevice(name == "auto" ? 0 : cudaIndexOf(name));
}

std::vector<DeviceInfo> listDevices() {
  std::vector<DeviceInfo> devices = {openHostDevice()->info()};
  for (DeviceInfo& device : listCudaDevices()) devices.push_back(std::move(device));
  return devices;
}

}  // namespace gpuc
