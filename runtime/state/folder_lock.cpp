#include "runtime/state/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace gpuc {

// flock, and not fcntl: its locks go with the descriptor alone, and a folder can be locked without a file
// that would stay behind.
Result<FolderLock> FolderLock::take(const std::string& folder) {
  int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return Status::error("cannot open the folder " + folder + ": " + std::strerror(errno));
  FolderLock lock(descriptor);
  int outcome;
  do {
    outcome = ::flock(descriptor, LOCK_EX | LOCK_NB);
  } while (outcome != 0 && errno == EINTR);
  if (outcome == 0) return lock;
  if (errno == EWOULDBLOCK) return Status::error("another process is writing to the folder " + folder);
  lock.warning_ = "the folder " + folder + " cannot be locked (" + std::strerror(errno) +
                  "): see to it that nothing else writes there";
  return lock;
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), warning_(std::move(other.warning_)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(warning_, other.warning_);
  return *this;
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace gpuc
