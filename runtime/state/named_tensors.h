// Tensors by name, out of one file or of several.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/state/safetensors.h"

namespace gpuc {

/// The tensors of files of weights as if they lay in one. Of a name that comes in several, the last file's
/// counts: base weights first, then what was trained on top of them. Views: the files must outlive it.
class NamedTensors {
 public:
  NamedTensors(const SafetensorsFile& file);  // NOLINT: a file is a set of named tensors
  explicit NamedTensors(std::span<const SafetensorsFile> files);

  /// The files' names: "a.safetensors and b.safetensors".
  const std::string& name() const { return name_; }
  /// The tensor of this name, or null.
  const SafetensorsFile::Entry* find(std::string_view name) const;
  /// The file that the tensor of this name is taken from, or null.
  const SafetensorsFile* fileOf(std::string_view name) const;
  /// " in b.safetensors" for a tensor that is there, if there are several files; else nothing.
  std::string whereIs(std::string_view name) const;
  /// Sorted by name, none twice.
  std::vector<const SafetensorsFile::Entry*> all() const;

 private:
  void add(const SafetensorsFile& file);

  struct Place {
    const SafetensorsFile* file;
    const SafetensorsFile::Entry* entry;
  };
  std::string name_;
  int files_ = 0;
  std::map<std::string_view, Place> entries_;
};

/// Opens all of them.
Result<std::vector<SafetensorsFile>> openSafetensors(std::span<const std::string> paths);

}  // namespace gpuc
