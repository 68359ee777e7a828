// .npy files: any bytes give an array inside them that survives writing and reading, or an error.
#include <cstdint>

#include "runtime/state/npy.h"
#include "test/fuzz/fuzz_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  gpuc::Result<gpuc::NpyArray> array = gpuc::parseNpy(bytes, "f");
  if (!array.ok()) {
    gpuc::requireOneLine(array, "f:");
    return 0;
  }
  gpuc::require(array->data.size() == static_cast<size_t>(array->spec.sizeBytes()), "the data are all there");
  gpuc::require(array->data.data() + array->data.size() == bytes.data() + size, "the data end with the file");
  // Headers of version 1 hold less than 64 KiB; a shape of that length is none of ours.
  if (array->spec.shape.size() > 1000) return 0;
  std::string written = gpuc::npyBytes(array->spec, array->data.data());
  gpuc::Result<gpuc::NpyArray> again = gpuc::parseNpy(written, "f");
  gpuc::require(again.ok(), "what is written can be read");
  gpuc::require(again->spec.str() == array->spec.str() && again->data == array->data, "and is the same");
  return 0;
}
