#include "runtime/host/code_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <string>

namespace gpuc {
namespace {

constexpr unsigned kMayNotBeExecuted =
    8;  // MFD_NOEXEC_SEAL, younger than some C libraries: by exec(), that is

uint64_t pageBytes() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

/// Whether code may be mapped from the file; if not, errno says why.
bool mayRunFrom(int file) {
  if (ftruncate(file, static_cast<off_t>(pageBytes())) != 0) return false;
  void* page = mmap(nullptr, pageBytes(), PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) return false;
  munmap(page, pageBytes());
  return ftruncate(file, 0) == 0;
}

/// Whether it is open, and code may run from it; else what it lacks.
bool fits(const Descriptor& file, const std::string& place, std::string& lacks) {
  if (file.ok() && mayRunFrom(file.get())) return true;
  lacks += (lacks.empty() ? "" : ", ") + place + ": " + std::strerror(errno);
  return false;
}

/// The system would end a process that writes more.
Status checkFileSize(uint64_t bytes) {
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes)
    return okStatus();
  return errorf("machine code of %" PRIu64 " bytes: files may have %" PRIu64
                " bytes here, and code is mapped from one; raise ulimit -f",
                bytes, static_cast<uint64_t>(limit.rlim_cur));
}

/// Code is appended to it; what is mapped changes with it.
struct Chunk {
  Descriptor file;
  uint8_t* memory = nullptr;
  uint64_t bytes = 0, used = 0;
};

Result<Chunk> mapChunk(uint64_t bytes) {
  GPUC_RETURN_IF_ERROR(checkFileSize(bytes));
  GPUC_ASSIGN_OR_RETURN(Descriptor file, openCodeFile());
  void* memory = MAP_FAILED;
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) == 0)
    memory = mmap(nullptr, bytes, PROT_READ | PROT_EXEC, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED)
    return errorf("no memory for %" PRIu64 " bytes of machine code: %s", bytes, std::strerror(errno));
  return Chunk{std::move(file), static_cast<uint8_t*>(memory), bytes, 0};
}

/// For systems that have no file to map: pages that are written before they may be executed.
Result<const void*> keepInOwnPages(std::span<const uint8_t> code, const Status& why) {
  const uint64_t bytes = (code.size() + pageBytes() - 1) / pageBytes() * pageBytes();
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return why;
  std::memcpy(memory, code.data(), code.size());
  if (mprotect(memory, bytes, PROT_READ | PROT_EXEC) == 0) return static_cast<const void*>(memory);
  const Status status =
      Status::error(why.message() + "; nor may pages that were written be executed: " + std::strerror(errno));
  munmap(memory, bytes);
  return status;
}

}  // namespace

Result<Descriptor> openCodeFile() {
  GPUC_RETURN_IF_ERROR(checkFileSize(pageBytes()));
  std::string lacks;
  for (unsigned flags : {0u, kMayNotBeExecuted})
    if (Descriptor file(memfd_create("gpuc-code", MFD_CLOEXEC | flags)); fits(file, "memfd_create", lacks))
      return file;
  const char* chosen = std::getenv("TMPDIR");
  for (const char* folder : {chosen, "/tmp", "/var/tmp", "/dev/shm"}) {
    if (!folder || !*folder) continue;
    Descriptor file(open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600));
    if (fits(file, folder, lacks)) return file;
  }
  return Status::error("no file that machine code may be mapped from (" + lacks +
                       "); set TMPDIR to a folder that is writable and not mounted noexec");
}

Status writeCode(int file, std::span<const uint8_t> bytes, uint64_t offset) {
  GPUC_RETURN_IF_ERROR(checkFileSize(offset + bytes.size()));
  while (!bytes.empty()) {
    const ssize_t written = pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errorf("cannot write machine code: %s", std::strerror(errno));
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return okStatus();
}

namespace {
std::atomic<uint64_t> kept_bytes = 0;
}  // namespace

uint64_t keptCodeBytes() { return kept_bytes; }

Result<const void*> keepCode(std::span<const uint8_t> code) {
  constexpr uint64_t kChunkBytes = uint64_t{1} << 20, kMostBytes = uint64_t{1} << 30, kLine = 64;
  static Chunk chunk;
  const uint64_t bytes = (code.size() + kLine - 1) / kLine * kLine;
  if (kMostBytes - kept_bytes < bytes)
    return errorf("more than %" PRIu64 " bytes of machine code for the products of all plans of this process",
                  kMostBytes);
  kept_bytes += bytes;
  if (chunk.bytes - chunk.used < bytes) {
    Result<Chunk> next = mapChunk(std::max(kChunkBytes, bytes));
    if (!next.ok()) return keepInOwnPages(code, next.status());
    chunk = *std::move(next);  // the memory of that before stays
  }
  if (Status status = writeCode(chunk.file.get(), code, chunk.used); !status.ok())
    return keepInOwnPages(code, status);
  const void* kept = chunk.memory + chunk.used;
  chunk.used += bytes;
  return kept;
}

}  // namespace gpuc
