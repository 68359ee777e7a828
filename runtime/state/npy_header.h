// The dictionary at the head of a .npy file, a literal of Python:
//   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace gpuc {

struct NpyHeader {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

/// Exactly the three keys, each once, in any order. Errors say what was expected at which byte of `text`;
/// they carry no file name.
Result<NpyHeader> parseNpyHeader(std::string_view text);

}  // namespace gpuc
