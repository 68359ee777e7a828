// Linked in place of the CUDA device where gpuc is built without it.
#include "runtime/hal/device.h"

namespace gpuc {

Result<std::unique_ptr<Device>> openCudaDevice(int) {
  return errorf("no CUDA device: gpuc was built without CUDA");
}

std::vector<DeviceInfo> listCudaDevices() { return {}; }

Result<int> countCudaDevices() { return errorf("no CUDA device: gpuc was built without CUDA"); }

}  // namespace gpuc
