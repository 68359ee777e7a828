#include "runtime/state/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/file.h"

namespace gpuc {

// flock, and not fcntl: its locks go with the descriptor alone, and a folder can be locked without a file
// that would stay behind.
Result<FolderLock> FolderLock::take(const std::string& folder, const std::string& cure) {
  FolderLock lock;
  lock.folder_ = Descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock.folder_.ok()) return systemError("open the folder", folder);
  int outcome;
  do {
    outcome = ::flock(lock.folder_.get(), LOCK_EX | LOCK_NB);
  } while (outcome != 0 && errno == EINTR);
  if (outcome == 0) return lock;
  if (errno == EWOULDBLOCK)
    return Status::error("another process is writing to the folder " + folder + ": " + cure);
  lock.warning_ = "the folder " + folder + " cannot be locked (" + std::strerror(errno) +
                  "): see to it that nothing else writes there";
  return lock;
}

}  // namespace gpuc
