// Room for more bytes than memory may have: a mapped file without a name, gone with its owner.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/base/descriptor.h"
#include "runtime/base/status.h"

namespace gpuc {

class ScratchFile {
 public:
  /// `bytes` (at least 1) zeros in the system's folder for temporary files (TMPDIR). The disk's room is
  /// claimed here, so that touching a byte later cannot fail. Errors name the folder and the size.
  static Result<ScratchFile> create(size_t bytes);

  std::span<std::byte> bytes() const {
    return {static_cast<std::byte*>(memory_.get()), memory_.get_deleter().bytes};
  }

 private:
  Mapping memory_;
};

}  // namespace gpuc
