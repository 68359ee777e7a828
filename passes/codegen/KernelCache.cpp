//===- KernelCache.cpp - Compiled kernels on disk ---------------------------===//

#include "passes/codegen/KernelCache.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <filesystem>

using namespace llvm;

namespace gpuc {

namespace files = std::filesystem;

/// Before an entry's checksum; another layout gets another name.
constexpr StringLiteral kMagic = "gpuc-kernel-1\n";
constexpr StringLiteral kTemporary = "tmp-";
constexpr size_t kFolderDigits = 2, kHashDigits = 32;

std::string hashOfTexts(ArrayRef<StringRef> texts) {
  BLAKE3 hasher;
  for (StringRef text : texts) {
    hasher.update(std::to_string(text.size()) + "\n");
    hasher.update(text);
  }
  return toHex(hasher.final<kHashDigits / 2>(), /*LowerCase=*/true);
}

const std::string &compilerFingerprint() {
  static const std::string fingerprint = [] {
    static int here;
    auto program = MemoryBuffer::getFile(sys::fs::getMainExecutable("gpuc", &here));
    return hashOfTexts({LLVM_VERSION_STRING, program ? (*program)->getBuffer() : StringRef()});
  }();
  return fingerprint;
}

std::string KernelCache::pathOf(StringRef key) const {
  SmallString<128> path(folder_);
  sys::path::append(path, key.take_front(kFolderDigits), key.drop_front(kFolderDigits));
  return path.str().str();
}

void KernelCache::complain(std::error_code code) {
  if (complaint_.empty())
    complaint_ = code.message();
}

std::optional<std::string> KernelCache::load(StringRef key) {
  std::string path = pathOf(key);
  auto file = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return std::nullopt;
  StringRef rest = (*file)->getBuffer();
  bool whole = rest.consume_front(kMagic) && rest.size() >= kHashDigits;
  StringRef checksum = rest.take_front(kHashDigits), bytes = rest.drop_front(checksum.size());
  std::error_code ignored;
  if (!whole || checksum != hashOfTexts({key, bytes})) {
    files::remove(path, ignored);
    return std::nullopt;
  }
  files::last_write_time(path, files::file_time_type::clock::now(), ignored); // used last, removed last
  return bytes.str();
}

void KernelCache::store(StringRef key, StringRef bytes) {
  if (!complaint_.empty()) // where one entry cannot be written, none can
    return;
  std::string path = pathOf(key);
  StringRef parent = sys::path::parent_path(path);
  if (std::error_code code = sys::fs::create_directories(parent))
    return complain(code);
  int descriptor;
  SmallString<128> temporary;
  if (std::error_code code =
          sys::fs::createUniqueFile(parent + "/" + kTemporary + "%%%%%%%%%%%%", descriptor, temporary))
    return complain(code);
  raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
  stream << kMagic << hashOfTexts({key, bytes}) << bytes;
  stream.close();
  std::error_code code = stream.error();
  stream.clear_error();
  if (!code)
    code = sys::fs::rename(temporary, path);
  if (!code) {
    stored_ = true;
    return;
  }
  sys::fs::remove(temporary);
  complain(code);
}

namespace {
struct Entry {
  files::file_time_type used;
  uint64_t bytes;
  files::path path;
};

bool isHash(const std::string &name, size_t digits) {
  return name.size() == digits &&
         llvm::all_of(name, [](char c) { return isDigit(c) || (c >= 'a' && c <= 'f'); });
}
} // namespace

/// The entries of one folder. Removes temporary files that no compiler can be writing any more.
static void collect(const files::path &folder, std::vector<Entry> &entries) {
  std::error_code code;
  auto now = files::file_time_type::clock::now();
  for (files::directory_iterator file(folder, code), end; !code && file != end; file.increment(code)) {
    std::error_code gone; // another compiler may remove files, too
    std::string name = file->path().filename().string();
    files::file_time_type used = file->last_write_time(gone);
    if (gone)
      continue;
    if (isHash(name, kHashDigits - kFolderDigits))
      entries.push_back({used, file->file_size(gone), file->path()});
    else if (StringRef(name).starts_with(kTemporary) && now - used > std::chrono::hours(1))
      files::remove(file->path(), gone);
  }
}

void KernelCache::trim() {
  if (!stored_)
    return;
  stored_ = false;
  std::vector<Entry> entries;
  std::error_code code;
  for (files::directory_iterator folder(folder_, code), end; !code && folder != end; folder.increment(code))
    if (isHash(folder->path().filename().string(), kFolderDigits))
      collect(folder->path(), entries);
  uint64_t total = 0;
  for (const Entry &entry : entries)
    total += entry.bytes;
  llvm::sort(entries, [](const Entry &a, const Entry &b) { return a.used < b.used; });
  for (const Entry &entry : entries) {
    if (total <= limit_)
      break;
    std::error_code gone;
    files::remove(entry.path, gone);
    total -= entry.bytes;
  }
}

} // namespace gpuc
