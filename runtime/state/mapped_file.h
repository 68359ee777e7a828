// A whole file, readable in place: large data and weights are paged in as they are touched, never copied.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace gpuc {

/// Read-only bytes of a file, mapped where it is a regular one, else read ("-" is stdin). A file that is
/// replaced by renaming, as gpuc does, keeps its old bytes here; one that another program cuts short while it
/// is mapped does not, and reading it then ends the process: with a line that names it, in gpuc's programs
/// (see runtime/base/mapped_ranges.h).
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);

  std::string_view bytes() const { return bytes_; }

 private:
  std::shared_ptr<const void> owner_;  // unmaps or frees
  std::string_view bytes_;
};

}  // namespace gpuc
