// A folder that one process at a time may write to.
#pragma once

#include <string>

#include "runtime/base/descriptor.h"
#include "runtime/base/status.h"

namespace gpuc {

/// Held until it goes, or its process does, however that ends. Leaves nothing in the folder.
class FolderLock {
 public:
  /// Locks `folder`, which must be there. The error says that another process holds it.
  static Result<FolderLock> take(const std::string& folder);

  /// A line for people where the file system knows no locks: nothing keeps others out. Else empty.
  const std::string& warning() const { return warning_; }

 private:
  Descriptor folder_;
  std::string warning_;
};

}  // namespace gpuc
