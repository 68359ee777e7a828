#include "runtime/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "runtime/base/exceptions.h"

namespace gpuc {
namespace {

/// "cannot <action> <path>: <the system's reason>", from errno.
Status systemError(const char* action, const std::string& path) {
  int code = errno;
  return Status::error(std::string("cannot ") + action + " " + path + ": " + std::strerror(code));
}

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }
  bool ok() const { return number_ >= 0; }

 private:
  int number_;
};

Result<std::string> readAll(int descriptor, const std::string& name) {
  std::string bytes;
  struct stat info;
  // One more than the size, so that the read which finds the end needs no further room.
  size_t room =
      ::fstat(descriptor, &info) == 0 && info.st_size > 0 ? static_cast<size_t>(info.st_size) + 1 : 65536;
  size_t used = 0;
  while (true) {
    if (bytes.size() - used == 0) bytes.resize(used == 0 ? room : used * 2);
    ssize_t count = ::read(descriptor, bytes.data() + used, bytes.size() - used);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return systemError("read", name);
    if (count == 0) break;
    used += static_cast<size_t>(count);
  }
  bytes.resize(used);
  return bytes;
}

/// The file may be larger than the memory.
Result<std::string> readAllOrSay(int descriptor, const std::string& name) {
  return withoutExceptions("cannot read " + name, [&] { return readAll(descriptor, name); });
}

Status writeAll(int descriptor, std::string_view bytes, const std::string& name) {
  while (!bytes.empty()) {
    ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return systemError("write", name);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return okStatus();
}

Status writePieces(int descriptor, std::span<const std::string_view> pieces, const std::string& name) {
  for (std::string_view piece : pieces) GPUC_RETURN_IF_ERROR(writeAll(descriptor, piece, name));
  return okStatus();
}

Status writeDirectly(const std::string& path, std::span<const std::string_view> pieces) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.ok()) return systemError("open", path);
  return writePieces(file.get(), pieces, path);
}

/// The file that `path` names after following links; `path` itself where nothing is there yet.
std::string followLinks(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  if (!resolved) return path;
  std::string text = resolved;
  std::free(resolved);
  return text;
}

/// A file that is written under another name first.
struct Temporary {
  std::string name;
  Descriptor file;
};

/// A new file beside `path`. A name may be taken: by one of this number before, which was killed, or by one
/// on another machine that shares the folder.
Temporary makeTemporary(const std::string& path, mode_t mode) {
  static std::atomic<unsigned> count{0};
  constexpr unsigned kMostNames = 1'000'000;
  for (unsigned tried = 1;; ++tried) {
    std::string name = path + ".tmp." + std::to_string(::getpid()) + "." + std::to_string(count++);
    int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file >= 0 || errno != EEXIST || tried == kMostNames) return {std::move(name), Descriptor(file)};
  }
}

/// Makes the rename itself durable. Some file systems refuse to sync folders; the bytes are safe all the
/// same.
void syncFolderOf(const std::string& path) {
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.ok()) (void)::fsync(descriptor.get());
}

/// What replaces a file is nobody else's to read before it has that file's permissions. Errors name `path`,
/// which the user knows, and not the temporary, which is gone by then.
Status writeTemporary(const std::string& path, std::span<const std::string_view> pieces,
                      const struct stat* replaced) {
  Temporary temporary = makeTemporary(path, replaced ? 0600 : 0666);
  int file = temporary.file.get();
  if (!temporary.file.ok()) return systemError("write", path);
  Status status = writePieces(file, pieces, path);
  if (status.ok() && replaced && ::fchmod(file, replaced->st_mode & 07777) != 0)
    status = systemError("set the permissions of", path);
  if (status.ok() && ::fsync(file) != 0) status = systemError("write", path);
  if (status.ok() && ::rename(temporary.name.c_str(), path.c_str()) != 0) status = systemError("write", path);
  if (!status.ok()) ::unlink(temporary.name.c_str());
  return status;
}

}  // namespace

Result<std::string> readFile(const std::string& path) {
  if (path == "-") return readAllOrSay(STDIN_FILENO, "stdin");
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.ok()) return systemError("open", path);
  return readAllOrSay(file.get(), path);
}

Status writeFileAtomically(const std::string& path, std::string_view bytes) {
  return writeFileAtomically(path, std::span<const std::string_view>(&bytes, 1));
}

Status writeFileAtomically(const std::string& path, std::span<const std::string_view> pieces) {
  if (path == "-") return writePieces(STDOUT_FILENO, pieces, "stdout");
  std::string target = followLinks(path);
  struct stat info;
  bool exists = ::stat(target.c_str(), &info) == 0;
  // Renaming over a device would replace the device.
  if (exists && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return writeDirectly(target, pieces);
  GPUC_RETURN_IF_ERROR(writeTemporary(target, pieces, exists ? &info : nullptr));
  syncFolderOf(target);
  return okStatus();
}

}  // namespace gpuc
