// One picture from a PNG or JPEG file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/base/status.h"

namespace gpuc {

/// What a picture has to measure.
struct ImageShape {
  int64_t channels = 0;  // 1: grey, 3: red, green, blue
  int64_t height = 0;
  int64_t width = 0;

  int64_t elementCount() const { return channels * height * width; }
};

/// Decodes `bytes`, PNG or JPEG by their first bytes, into [channels, height, width] at `destination`.
/// Colours become grey (0.299 red + 0.587 green + 0.114 blue), or grey becomes colour, as `shape` wants it;
/// what is transparent is laid over black. Errors name the file: another format, damaged data, colours for
/// print, a picture of another size.
Status decodeImage(std::string_view bytes, const std::string& name, const ImageShape& shape,
                   uint8_t* destination);

}  // namespace gpuc
