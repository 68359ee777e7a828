// The plan's kernels on a device.
#pragma once

#include <string>
#include <vector>

#include "runtime/cuda/driver.h"
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

}  // namespace gpuc::cuda
