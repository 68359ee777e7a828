//===- KernelCache.h - Compiled kernels on disk -----------------------------===//
//
// Entries are found by the hash of all that they follow from: the kernel's text without names and places, the
// target, the level of optimisation and the compiler itself (KernelKey). So an entry never has to be thought
// out of date; what nobody asks for any more is the first to go when the folder reaches its limit.
//
// Several compilers may use one folder at once. An entry is written beside its place and renamed, so that
// nobody sees half of it, and begins with a checksum of the rest, so that what a crash or a bad disk left is
// no entry. Whatever fails here costs time, never a result.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace gpuc {

/// 32 hexadecimal digits of BLAKE3 over texts, told apart by their lengths.
std::string hashOfTexts(llvm::ArrayRef<llvm::StringRef> texts);

/// What this process's code and its LLVM are, hashed: other code may compile the same kernel to other bytes.
const std::string &compilerFingerprint();

class KernelCache {
public:
  /// Entries lie in `folder`, which is made when the first is stored; all of them take `limitBytes` at most
  /// once trim() is through.
  KernelCache(std::string folder, uint64_t limitBytes) : folder_(std::move(folder)), limit_(limitBytes) {}

  /// The bytes stored under `key`, a hash; marks them as just used. What is damaged is removed.
  std::optional<std::string> load(llvm::StringRef key);
  void store(llvm::StringRef key, llvm::StringRef bytes);
  /// Removes the least recently used entries beyond the limit, if anything was stored, and what compilers
  /// that were killed left. Files that no cache made are never touched.
  void trim();

  /// Why the first entry that could not be stored was not; empty if all were.
  const std::string &complaint() const { return complaint_; }

private:
  std::string pathOf(llvm::StringRef key) const;
  void complain(std::error_code code);

  std::string folder_;
  uint64_t limit_;
  bool stored_ = false;
  std::string complaint_;
};

} // namespace gpuc
