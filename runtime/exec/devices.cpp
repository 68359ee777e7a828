#include "runtime/exec/devices.h"

#include "runtime/base/parse.h"

namespace gpuc {

Result<std::unique_ptr<Device>> openDevice(const std::string& name, TargetKind target) {
  if (name == "host" || (name == "auto" && target == TargetKind::host)) return openHostDevice();
  if (name == "cuda" || (name == "auto" && target == TargetKind::cuda)) return openCudaDevice(0);
  const std::string prefix = "cuda:";
  if (name.compare(0, prefix.size(), prefix) == 0) {
    Result<int64_t> index = parseInt64(name.substr(prefix.size()));
    if (index.ok() && *index >= 0 && *index < 4096) return openCudaDevice(static_cast<int>(*index));
  }
  return Status::error("unknown device '" + name + "': expected auto, host, cuda or cuda:N");
}

std::vector<DeviceInfo> listDevices() {
  std::vector<DeviceInfo> devices = {openHostDevice()->info()};
  for (DeviceInfo& device : listCudaDevices()) devices.push_back(std::move(device));
  return devices;
}

}  // namespace gpuc
