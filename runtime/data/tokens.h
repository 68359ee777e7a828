// Runs of tokens from one long text, each with the tokens that follow.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "runtime/data/dataset.h"

namespace gpuc {

/// How a file spells tokens.
enum class TokenFormat {
  bytes,   // each byte is a token: 0 … 255
  uint16,  // two bytes each, little-endian
};

/// Cuts the file into runs of T tokens, T being what a sample of the plan's input `x` holds; sample i begins
/// at token i·T. Fields, of the types that the plan's inputs have (i32 or i64): `x`, the run, and `labels`,
/// the same run one token later, which needs no input. The file is mapped, not read. Errors name the file:
/// it cannot be read, ends within a token, or holds fewer than T + 1 tokens; or the input that is missing or
/// is no run of integers.
Result<std::unique_ptr<Dataset>> openTokens(const std::string& path, TokenFormat format,
                                            std::span<const InputSpec> inputs);

}  // namespace gpuc
