// A plan on a GPU: its kernels there, and all that runs it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/driver.h"
#include "runtime/hal/device.h"
#include "runtime/plan/access.h"

namespace gpuc::cuda {

/// A compute capability: sm_90 is {9, 0}.
struct Architecture {
  int major = 0;
  int minor = 0;

  /// "sm_90" or "sm_120": the last digit is the minor number. {0, 0} for anything else.
  static Architecture parse(std::string_view name);
  std::string str() const;
  auto operator<=>(const Architecture&) const = default;
};

/// The plan's code for this device: a cubin of its generation that is not newer, else PTX that is not newer,
/// which the driver compiles. Null if there is neither.
const fb::Code* chooseCode(const fb::Plan& plan, Architecture device);

/// What there is to choose from: "cubin for sm_90, ptx for sm_90".
std::string describeCode(const fb::Plan& plan);

/// Loads `code` into the current context. Error: the driver's, with the first lines of its log.
Result<Module> loadModule(const Driver& driver, const fb::Code& code);

/// The function of each of the plan's kernels. Error: the symbol that the code lacks.
Result<std::vector<CUfunction>> findKernels(const Driver& driver, CUmodule module, const fb::Plan& plan);

/// The primary context of a device, held as long as anything on it lives. Other libraries of the process
/// share it.
class Context {
 public:
  static Result<std::shared_ptr<Context>> create(const Driver& driver, CUdevice device);

  const Driver& driver() const { return driver_; }
  /// Calls of this thread go to this context from here on.
  Status makeCurrent() const { return driver_.check(driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent"); }

 private:
  explicit Context(const Driver& driver) : driver_(driver) {}

  const Driver& driver_;
  CUcontext context_ = nullptr;
  Owned<CUdevice, CUresult> retained_;
};

/// Allocates the arena and the pinned staging, loads code and constants, prepares the libraries' calls.
Result<std::unique_ptr<Executable>> createExecutable(std::shared_ptr<Context> context,
                                                     Architecture architecture, const Plan& plan,
                                                     const DeviceOptions& options);

}  // namespace gpuc::cuda
