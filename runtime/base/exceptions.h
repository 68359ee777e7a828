// Where exceptions end: what the standard library throws becomes an error as every other.
#pragma once

#include <array>
#include <string>

#include "runtime/base/status.h"

namespace gpuc {

/// What the exception that is being handled says: "out of memory", "cannot start a thread: …", its own text.
/// Allocates nothing.
std::array<char, 256> describeException();

/// What `make` returns; if anything in it throws, the error "what: out of memory".
template <typename Make>
auto withoutExceptions(const std::string& what, Make make) -> decltype(make()) {
  try {
    return make();
  } catch (...) {
    return Status::error(what + ": " + describeException().data());
  }
}

}  // namespace gpuc
