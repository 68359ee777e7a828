// IDX files, plain or packed: any bytes give extents that agree with the length, or an error.
#include <cstdint>

#include "runtime/base/tensor_spec.h"
#include "runtime/data/formats.h"
#include "runtime/data/gzip.h"
#include "test/fuzz/fuzz_check.h"

namespace {

void checkIdx(std::string_view bytes, size_t rank) {
  gpuc::Result<std::vector<int64_t>> shape = gpuc::parseIdx(bytes, rank, "f");
  if (!shape.ok()) return gpuc::requireOneLine(shape, "f:");
  gpuc::TensorSpec spec{"", gpuc::DataType::ui8, *shape};
  gpuc::require(shape->size() == rank, "there are as many extents as the rank");
  gpuc::require(bytes.size() == 4 + 4 * rank + static_cast<size_t>(spec.sizeBytes()),
                "all bytes are accounted for");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::string unpacked;
  if (gpuc::isGzip(bytes)) {
    gpuc::Result<std::string> result = gpuc::gunzip(bytes, "f", SIZE_MAX);
    if (!result.ok()) {
      gpuc::requireOneLine(result, "f:");
      return 0;
    }
    unpacked = *result;
    bytes = unpacked;
  }
  checkIdx(bytes, 1);
  checkIdx(bytes, 3);
  return 0;
}
