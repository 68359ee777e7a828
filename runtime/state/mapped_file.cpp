#include "runtime/state/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/base/mapped_ranges.h"

namespace gpuc {
namespace {

/// Unmaps.
class Mapping {
 public:
  Mapping(void* address, size_t bytes, const std::string& path)
      : address_(address), bytes_(bytes), range_(std::in_place, address, bytes, path) {}
  ~Mapping() {
    range_.reset();  // first: the addresses may be another file's at once
    ::munmap(address_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

 private:
  void* address_;
  size_t bytes_;
  std::optional<MappedRange> range_;
};

}  // namespace

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
    file.owner_ = std::make_shared<const Mapping>(address, size, path);
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
