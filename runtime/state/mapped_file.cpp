#include "runtime/state/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "runtime/base/descriptor.h"
#include "runtime/base/file.h"
#include "runtime/base/mapped_ranges.h"

namespace gpuc {
namespace {

/// The range goes first: the addresses may be another file's at once.
struct NamedMapping {
  NamedMapping(void* address, size_t bytes, const std::string& path)
      : memory(address, {bytes}), range(address, bytes, path) {}

  Mapping memory;
  MappedRange range;
};

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  MappedFile file;
  struct stat info;
  const Descriptor descriptor(path == "-" ? -1 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (descriptor.ok() && ::fstat(descriptor.get(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
    size_t size = static_cast<size_t>(info.st_size);
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor.get(), 0);
    if (address == MAP_FAILED) return systemError("map", path);
    file.owner_ = std::make_shared<const NamedMapping>(address, size, path);
    file.bytes_ = {static_cast<const char*>(address), size};
    return file;
  }
  // Pipes, devices, empty files, and whatever cannot be opened: readFile says why.
  GPUC_ASSIGN_OR_RETURN(std::string bytes, readFile(path));
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  file.bytes_ = *owner;
  file.owner_ = std::move(owner);
  return file;
}

}  // namespace gpuc
