// Text as tokens and tokens as text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace gpuc {

/// Each byte of `text` is a token. Errors: no text; a byte that is no token of the vocabulary; a vocabulary
/// of more than 256, whose tokens are not bytes.
Result<std::vector<int64_t>> tokensOfText(const std::string& text, int64_t vocabulary);

/// Reads "12,7,400". Errors: none, what is no number, a number outside of the vocabulary.
Result<std::vector<int64_t>> tokensOfNumbers(const std::string& text, int64_t vocabulary);

}  // namespace gpuc
