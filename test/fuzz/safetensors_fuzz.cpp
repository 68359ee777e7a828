// safetensors files: any bytes give tensors that tile the data and a header that survives, or an error.
#include <cstdint>

#include "runtime/state/safetensors.h"
#include "runtime/state/safetensors_header.h"
#include "test/fuzz/fuzz_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  gpuc::Result<gpuc::SafetensorsFile> file = gpuc::SafetensorsFile::parse(bytes, "f");
  if (!file.ok()) {
    gpuc::requireOneLine(file, "f:");
    return 0;
  }
  size_t total = 0;
  for (const gpuc::SafetensorsFile::Entry& entry : file->tensors()) {
    gpuc::require(entry.data.size() == static_cast<size_t>(entry.spec.sizeBytes()), "a tensor has its bytes");
    gpuc::require(entry.data.data() >= file->data().data() &&
                      entry.data.data() + entry.data.size() <= bytes.data() + size,
                  "a tensor lies in the data");
    gpuc::require(file->find(entry.spec.name) == &entry, "a tensor is found by its name");
    total += entry.data.size();
  }
  gpuc::require(total == file->data().size(), "the tensors fill the data");
  std::string_view text = bytes.substr(8, size - 8 - file->data().size());
  gpuc::Result<gpuc::SafetensorsHeader> header = gpuc::parseSafetensorsHeader(text);
  gpuc::Result<std::string> written = gpuc::safetensorsHeaderText(*header);
  gpuc::require(written.ok(), "a header that was read can be written");
  gpuc::Result<gpuc::SafetensorsHeader> again = gpuc::parseSafetensorsHeader(*written);
  gpuc::require(again.ok() && again->metadata == header->metadata, "and its metadata come back");
  gpuc::require(again->places.size() == header->places.size(), "and its tensors");
  return 0;
}
