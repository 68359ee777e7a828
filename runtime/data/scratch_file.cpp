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
  const Descriptor file(::mkostemp(path.data(), O_CLOEXEC));
  if (!file.ok()) return fail(errno);
  ::unlink(path.c_str());
  int code = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
  void* data =
      code == 0 ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0) : MAP_FAILED;
  if (data == MAP_FAILED && code == 0) code = errno;
  if (code != 0) return fail(code);
  ScratchFile scratch;
  scratch.memory_ = Mapping(data, {bytes});  // which keeps the file
  return scratch;
}

}  // namespace gpuc
