// The envelope of a plan: 32 bytes that say what follows and whether it arrived whole.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace gpuc {

/// XXH3, 64 bits, of the payload with its size as seed.
uint64_t planChecksum(std::string_view payload);

/// The whole file: header and `payload`, a finished FlatBuffer whose root is fb::Plan.
std::string sealPlan(std::string_view payload);

/// The payload of a plan file, once magic, format version, size and checksum agree. The view lies in `file`.
/// Errors: not a gpuc plan; a format version other than ours (found and expected); cut short or too long;
/// damaged.
Result<std::string_view> openSeal(std::string_view file);

}  // namespace gpuc
