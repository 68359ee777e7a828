// Room for more bytes than memory may have: a mapped file without a name, gone with its owner.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "runtime/base/status.h"

namespace gpuc {

class ScratchFile {
 public:
  /// `bytes` (at least 1) zeros in the system's folder for temporary files (TMPDIR). The disk's room is
  /// claimed here, so that touching a byte later cannot fail. Errors name the folder and the size.
  static Result<ScratchFile> create(size_t bytes);

  std::span<std::byte> bytes() const { return {data_.get(), size_}; }

 private:
  std::shared_ptr<std::byte> data_;  // unmaps
  size_t size_ = 0;
};

}  // namespace gpuc
