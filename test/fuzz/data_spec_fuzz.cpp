// What --data says: any text gives a specification that can be opened, or an error that quotes it.
#include <cstdint>

#include "runtime/data/data_spec.h"
#include "test/fuzz/fuzz_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  gpuc::Result<gpuc::DataSpec> spec = gpuc::parseDataSpec(text);
  if (!spec.ok()) {
    gpuc::requireOneLine(spec, "data '");
    return 0;
  }
  switch (spec->kind) {
    case gpuc::DataSpec::Kind::idx:
    case gpuc::DataSpec::Kind::images:
    case gpuc::DataSpec::Kind::text:
    case gpuc::DataSpec::Kind::tokens:
      gpuc::require(!spec->path.empty(), "there is a path");
      break;
    case gpuc::DataSpec::Kind::npy:
      gpuc::require(!spec->files.empty(), "npy has files");
      for (const auto& [name, path] : spec->files)
        gpuc::require(!name.empty() && !path.empty(), "each file has a field and a path");
      break;
    case gpuc::DataSpec::Kind::synthetic:
      gpuc::require(spec->size >= 1, "synthetic data have a size");
      break;
  }
  return 0;
}
