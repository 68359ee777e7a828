// The safetensors format: https://huggingface.co/docs/safetensors, section "Format".
//   8 bytes: N, little-endian · N bytes: JSON {"name": {"dtype", "shape", "data_offsets": [begin, end]}, …} ·
//   data
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/tensor_spec.h"
#include "runtime/state/mapped_file.h"

namespace gpuc {

using Metadata = std::map<std::string, std::string>;

/// A file whose header has been checked in full; tensors are read in place.
class SafetensorsFile {
 public:
  struct Entry {
    TensorSpec spec;
    std::string_view data;  // spec.sizeBytes() bytes, perhaps not aligned to the element
  };

  static Result<SafetensorsFile> open(const std::string& path);

  /// As open, for bytes that outlive the result; `name` begins every error. Errors: a header that is not
  /// there in full, not JSON, or with anything that the format does not know; a dtype that gpuc does not
  /// know; an extent below 0 or sizes beyond 64 bits; offsets that do not agree with dtype and shape, that
  /// overlap, leave gaps, or end before or behind the file's end; a name that comes twice.
  static Result<SafetensorsFile> parse(std::string_view bytes, const std::string& name);

  const std::string& name() const { return name_; }
  /// Sorted by name.
  const std::vector<Entry>& tensors() const { return tensors_; }
  const Metadata& metadata() const { return metadata_; }
  /// The tensor of this name, or null.
  const Entry* find(std::string_view name) const;
  /// All tensors' bytes in the order of the file.
  std::string_view data() const { return data_; }

 private:
  std::string name_;
  std::vector<Entry> tensors_;
  Metadata metadata_;
  std::string_view data_;
  MappedFile file_;
};

/// A tensor to be written; `data` points to spec.sizeBytes() bytes.
struct TensorView {
  TensorSpec spec;
  const void* data = nullptr;
};

/// Replaces `path` atomically (see writeFileAtomically). The bytes depend on names, shapes, types, values and
/// metadata alone: tensors are laid out by element size, largest first, then by name, as the reference
/// implementation does so that each is aligned to its elements. Errors: a name that comes twice, is
/// "__metadata__" or is no UTF-8; what the system says of the file.
Status writeSafetensors(const std::string& path, std::vector<TensorView> tensors, const Metadata& metadata);

}  // namespace gpuc
