// Numbers from text, strictly: the whole text or an error that quotes it. No locale, no leading blanks, no
// '+'.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/status.h"

namespace gpuc {

/// A decimal integer within int64, e.g. "-12". Errors: empty, other characters, out of range.
Result<int64_t> parseInt64(std::string_view text);

/// A finite decimal number, e.g. "1e-3". Errors: empty, other characters, out of range, infinity, NaN.
Result<double> parseDouble(std::string_view text);

/// A size in bytes: a number, then nothing or one of KB MB GB (powers of 10) KiB MiB GiB (powers of 2). With
/// a unit the number may have a fraction ("1.5GiB"); what is then less than a byte is cut off. Never
/// negative.
Result<int64_t> parseSize(std::string_view text);

}  // namespace gpuc
