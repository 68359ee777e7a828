#include "runtime/data/scratch_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

namespace gpuc {

Result<ScratchFile> ScratchFile::create(size_t bytes) {
  std::error_code error;
  std::string folder = std::filesystem::temp_directory_path(error).string();
  if (error) return Status::error("no folder for temporary files: set TMPDIR to one");
  auto fail = [&](int code) {
    return errorf("%s: no room for a temporary file of %zu bytes (%s): set TMPDIR to a folder that has it",
                  folder.c_str(), bytes, std::strerror(code));
  };
  std::string path = folder + "/gpuc-XXXXXX";
  int file = ::mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) return fail(errno);
  ::unlink(path.c_str());
  int code = ::posix_fallocate(file, 0, static_cast<off_t>(bytes));
  void* data = code == 0 ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  if (data == MAP_FAILED && code == 0) code = errno;
  ::close(file);  // the mapping keeps the file
  if (code != 0) return fail(code);
  ScratchFile scratch;
  scratch.size_ = bytes;
  scratch.data_ = std::shared_ptr<std::byte>(static_cast<std::byte*>(data),
                                             [bytes](std::byte* mapped) { ::munmap(mapped, bytes); });
  return scratch;
}

}  // namespace gpuc
