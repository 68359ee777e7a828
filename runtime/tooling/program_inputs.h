// What gpuc-run feeds a program: the .npy files that were named, and made-up values for the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "runtime/base/host_tensor.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

namespace gpuc {

/// Whether each is of the form NAME=FILE.npy; the error shows the first that is not.
Status checkInputFlags(const std::vector<std::string>& files);

/// The FILE of each NAME=FILE.npy.
std::vector<std::string> inputPaths(const std::vector<std::string>& files);

/// As aligned as the host wants inputs that it reads where they are.
struct alignas(64) AlignedBlock {
  std::byte bytes[64];
};

/// The bytes of all inputs of one program.
class ProgramInputs {
 public:
  /// `files`: "name=FILE.npy". What no file gives is filled from the seed, integers within the input's range.
  /// Errors: not of that form; an input that does not exist (those that do are named), or given twice;
  /// another type or shape; a value outside the input's range.
  static Result<ProgramInputs> gather(const ProgramInfo& program, const std::vector<std::string>& files,
                                      uint64_t seed);

  /// In the program's order; valid as long as this object.
  const std::vector<HostTensorView>& views() const { return views_; }

 private:
  std::byte* addRoom(const TensorSpec& spec);

  std::deque<std::vector<AlignedBlock>> data_;
  std::vector<HostTensorView> views_;
};

}  // namespace gpuc
