#include "runtime/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "runtime/base/descriptor.h"
#include "runtime/base/exceptions.h"

namespace gpuc {
namespace {

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

std::string folderOf(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

/// Makes the rename itself durable. Some file systems refuse to sync folders; the bytes are safe all the
/// same.
void syncFolderOf(const std::string& path) {
  Descriptor descriptor(::open(folderOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.ok()) (void)::fsync(descriptor.get());
}

/// What is to stand at `path`, and what stands there; null if nothing does. Errors name `path`, which the
/// user knows, and not the temporary, which is gone by then.
struct Replacement {
  const std::string& path;
  std::span<const std::string_view> pieces;
  const struct stat* replaced;

  /// Of what is written until it is whole: what replaces a file is nobody else's to read before it has that
  /// file's permissions.
  mode_t mode() const { return replaced ? 0600 : 0666; }

  Status fill(int file) const {
    GPUC_RETURN_IF_ERROR(writePieces(file, pieces, path));
    if (replaced && ::fchmod(file, replaced->st_mode & 07777) != 0)
      return systemError("set the permissions of", path);
    return ::fsync(file) == 0 ? okStatus() : systemError("write", path);
  }

  Status rename(const std::string& temporary) const {
    return ::rename(temporary.c_str(), path.c_str()) == 0 ? okStatus() : systemError("write", path);
  }
};

/// A name beside `path` that `take` could have; empty, with errno, if it could have none. A name may be
/// taken: by one of this number before, which was killed, or by one on another machine that shares the
/// folder.
template <typename Take>
std::string takeName(const std::string& path, Take take) {
  static std::atomic<unsigned> count{0};
  constexpr unsigned kMostNames = 1'000'000;
  for (unsigned tried = 1; tried <= kMostNames; ++tried) {
    std::string name = path + ".tmp." + std::to_string(::getpid()) + "." + std::to_string(count++);
    if (take(name)) return name;
    if (errno != EEXIST) break;
  }
  return "";
}

/// Through a file without a name, of which nothing is left if the process ends before it is whole. None if
/// the file system, or one without /proc, knows no such files.
std::optional<Status> replaceThroughUnnamed(const Replacement& replacement) {
  Descriptor file(
      ::open(folderOf(replacement.path).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, replacement.mode()));
  if (!file.ok()) return std::nullopt;
  if (Status filled = replacement.fill(file.get()); !filled.ok()) return filled;
  // No link can be made over a file, so that it gets a name of its own for a moment.
  const std::string unnamed = "/proc/self/fd/" + std::to_string(file.get());
  std::string name = takeName(replacement.path, [&](const std::string& name) {
    return ::linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  });
  if (name.empty()) return std::nullopt;
  Status status = replacement.rename(name);
  if (!status.ok()) ::unlink(name.c_str());
  return status;
}

Status replaceThroughNamed(const Replacement& replacement) {
  int number = -1;
  std::string name = takeName(replacement.path, [&](const std::string& name) {
    number = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, replacement.mode());
    return number >= 0;
  });
  if (name.empty()) return systemError("write", replacement.path);
  Descriptor file(number);
  Status status = replacement.fill(file.get());
  if (status.ok()) status = replacement.rename(name);
  if (!status.ok()) ::unlink(name.c_str());
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
  const Replacement replacement{target, pieces, exists ? &info : nullptr};
  std::optional<Status> replaced = replaceThroughUnnamed(replacement);
  GPUC_RETURN_IF_ERROR(replaced ? *replaced : replaceThroughNamed(replacement));
  syncFolderOf(target);
  return okStatus();
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

Status makeFolder(const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  return failed ? Status::error("cannot make the folder " + path + ": " + failed.message()) : okStatus();
}

Status systemError(const char* action, const std::string& path) {
  int code = errno;
  return Status::error(std::string("cannot ") + action + " " + path + ": " + std::strerror(code));
}

}  // namespace gpuc
