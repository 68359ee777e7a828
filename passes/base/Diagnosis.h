//===- Diagnosis.h - What is wrong with a model, as data --------------------===//
#pragma once

#include <cstdint>
#include <string>

namespace gpuc {

/// What is wrong, or what is warned of, and where in the model: as far as that is known.
struct Diagnosis {
  std::string text = {};        ///< One line, with what the compiler notes beside it.
  std::string layer = {};       ///< `fc1`
  std::string file = {};        ///< What the text was called, or its locations name.
  int64_t line = 0, column = 0; ///< From 1; 0: unknown.
};

} // namespace gpuc
