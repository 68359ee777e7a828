// The choice among devices by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/hal/device.h"

namespace gpuc {

/// Whether `name` is one that openDevice takes: "auto", "host", "cuda" or "cuda:N".
Status checkDeviceName(const std::string& name);

/// `name`: "host", "cuda", "cuda:N", or "auto", which is the plan's target. Errors: another name; no such
/// device here.
Result<std::unique_ptr<Device>> openDevice(const std::string& name, TargetKind target);

/// Every device that this build can use, for people to choose from.
std::vector<DeviceInfo> listDevices();

}  // namespace gpuc
