#include "runtime/state/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/file.h"

namespace gpuc {

Result<MappedFile> MappedFile::open(const std::string& path) {
  MappedFile file;
  struct stat info;
  int descriptor = path == "-" ? -1 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  bool mappable =
      descriptor >= 0 && ::fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0;
  if (mappable) {
    size_t size = static_cast<size_t>(info.st_size);
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    int code = errno;
    ::close(descriptor);
    if (address == MAP_FAILED) return Status::error("cannot map " + path + ": " + std::strerror(code));
    file.owner_ = std::shared_ptr<const void>(
        address, [size](const void* mapped) { ::munmap(const_cast<void*>(mapped), size); });
    file.bytes_ = {static_cast<const char*>(address), size};
    return file;
  }
  if (descriptor >= 0) ::close(descriptor);
  // Pipes, devices, empty files, and whatever cannot be opened: readFile says why.
  GPUC_ASSIGN_OR_RETURN(std::string bytes, readFile(path));
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  file.bytes_ = *owner;
  file.owner_ = std::move(owner);
  return file;
}

}  // namespace gpuc
