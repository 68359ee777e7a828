// A plan on a GPU.
#pragma once

#include <memory>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/module.h"
#include "runtime/hal/device.h"

namespace gpuc::cuda {

/// The primary context of a device, held as long as anything on it lives. Other libraries of the process
/// share it.
class Context {
 public:
  static Result<std::shared_ptr<Context>> create(const Driver& driver, CUdevice device);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const { return driver_; }
  /// Calls of this thread go to this context from here on.
  Status makeCurrent() const { return driver_.check(driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent"); }

 private:
  Context(const Driver& driver, CUdevice device) : driver_(driver), device_(device) {}

  const Driver& driver_;
  CUdevice device_;
  CUcontext context_ = nullptr;
};

/// Allocates the arena and the pinned staging, loads code and constants, prepares the libraries' calls.
Result<std::unique_ptr<Executable>> createExecutable(std::shared_ptr<Context> context,
                                                     Architecture architecture, const Plan& plan,
                                                     const DeviceOptions& options);

}  // namespace gpuc::cuda
