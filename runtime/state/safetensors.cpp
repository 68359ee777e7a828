#include "runtime/state/safetensors.h"

#include <algorithm>

#include "runtime/base/file.h"
#include "runtime/base/file_kind.h"
#include "runtime/state/safetensors_header.h"

namespace gpuc {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMostHeaderBytes = 100'000'000;  // the reference implementation's limit

uint64_t littleEndian64(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 8; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

std::string littleEndian64(uint64_t value) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

/// "not a safetensors file: why", or what else the bytes are known for.
Status notSafetensors(std::string_view bytes, const std::string& why) {
  std::string kind = explainFileKind(bytes, FileRole::weights);
  return Status::error("not a safetensors file" + (kind.empty() ? ": " + why : kind));
}

/// The header's text between its length and the data.
Result<std::string_view> headerText(std::string_view bytes) {
  if (FileKind kind = fileKindOf(bytes); kind != FileKind::safetensors && isCertain(kind))
    return notSafetensors(bytes, "");
  if (bytes.size() < kLengthBytes)
    return errorf("cut short: %zu bytes, a safetensors file has at least 8", bytes.size());
  unsigned long long length = littleEndian64(bytes), room = bytes.size() - kLengthBytes;
  if (length > kMostHeaderBytes)
    return notSafetensors(bytes, "its header would have " + std::to_string(length) + " bytes, the limit is " +
                                     std::to_string(kMostHeaderBytes));
  if (length > room) return errorf("cut short: a header of %llu bytes, but only %llu follow", length, room);
  if (length == 0 || bytes[kLengthBytes] != '{')
    return notSafetensors(bytes, "its header does not begin with {");
  return bytes.substr(kLengthBytes, length);
}

Status checkDataLength(uint64_t stated, uint64_t found) {
  if (stated == found) return okStatus();
  return errorf("%s: its header tells of %llu bytes of tensors, but %llu follow",
                found < stated ? "cut short" : "too long", static_cast<unsigned long long>(stated),
                static_cast<unsigned long long>(found));
}

}  // namespace

Result<SafetensorsFile> SafetensorsFile::parse(std::string_view bytes, const std::string& name) {
  auto named = [&](const Status& status) { return Status::error(name + ": " + status.message()); };
  Result<std::string_view> text = headerText(bytes);
  if (!text.ok()) return named(text.status());
  Result<SafetensorsHeader> header = parseSafetensorsHeader(*text);
  if (!header.ok()) return named(header.status());
  SafetensorsFile file;
  file.name_ = name;
  file.data_ = bytes.substr(kLengthBytes + text->size());
  if (Status status = checkDataLength(header->dataBytes(), file.data_.size()); !status.ok())
    return named(status);
  for (SafetensorsPlace& place : header->places)
    file.tensors_.push_back({std::move(place.spec), file.data_.substr(place.begin, place.end - place.begin)});
  std::sort(file.tensors_.begin(), file.tensors_.end(),
            [](const Entry& a, const Entry& b) { return a.spec.name < b.spec.name; });
  file.metadata_ = std::move(header->metadata);
  return file;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  GPUC_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::open(path));
  GPUC_ASSIGN_OR_RETURN(SafetensorsFile file, parse(mapped.bytes(), path));
  file.file_ = std::move(mapped);
  return file;
}

const SafetensorsFile::Entry* SafetensorsFile::find(std::string_view name) const {
  auto place =
      std::lower_bound(tensors_.begin(), tensors_.end(), name,
                       [](const Entry& entry, std::string_view name) { return entry.spec.name < name; });
  return place != tensors_.end() && place->spec.name == name ? &*place : nullptr;
}

Status writeSafetensors(const std::string& path, std::vector<TensorView> tensors, const Metadata& metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorView& a, const TensorView& b) {
    int64_t a_size = sizeOf(a.spec.type), b_size = sizeOf(b.spec.type);
    return a_size != b_size ? a_size > b_size : a.spec.name < b.spec.name;
  });
  SafetensorsHeader header;
  header.metadata = metadata;
  uint64_t end = 0;
  for (const TensorView& tensor : tensors) {
    uint64_t begin = end;
    end += static_cast<uint64_t>(tensor.spec.sizeBytes());
    header.places.push_back({tensor.spec, begin, end});
  }
  Result<std::string> text = safetensorsHeaderText(header);
  if (!text.ok()) return Status::error("cannot write " + path + ": " + text.message());
  std::string start = littleEndian64(text->size()) + *text;
  std::vector<std::string_view> pieces = {start};
  for (const TensorView& tensor : tensors)
    pieces.emplace_back(static_cast<const char*>(tensor.data), static_cast<size_t>(tensor.spec.sizeBytes()));
  return writeFileAtomically(path, pieces);
}

}  // namespace gpuc
