// A folder that one process at a time may write to.
#pragma once

#include <string>

#include "runtime/base/descriptor.h"
#include "runtime/base/status.h"

namespace gpuc {

/// Held until it goes, or its process does, however that ends. Leaves nothing in the folder.
class FolderLock {
 public:
  /// Locks `folder`, which must be there. The error says that another process holds it, and `cure`; or what
  /// the system says, of which that is no cure.
  static Result<FolderLock> take(const std::string& folder, const std::string& cure);

  /// A line for people where the file system knows no locks: nothing keeps others out. Else empty.
  const std::string& warning() const { return warning_; }

 private:
  Descriptor folder_;
  std::string warning_;
};

}  // namespace gpuc
