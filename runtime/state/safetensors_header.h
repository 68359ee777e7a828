// The JSON at the head of a safetensors file, as checked text and back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/state/safetensors.h"

namespace gpuc {

/// A tensor's place in the data that follow the header.
struct SafetensorsPlace {
  TensorSpec spec;
  uint64_t begin = 0, end = 0;  // end - begin == spec.sizeBytes()
};

struct SafetensorsHeader {
  std::vector<SafetensorsPlace> places;  // by begin, without gaps or overlaps, from 0 on
  Metadata metadata;
  uint64_t dataBytes() const { return places.empty() ? 0 : places.back().end; }
};

/// Errors carry no file name.
Result<SafetensorsHeader> parseSafetensorsHeader(std::string_view json);

/// The JSON, padded with blanks to a multiple of 8.
Result<std::string> safetensorsHeaderText(const SafetensorsHeader& header);

}  // namespace gpuc
