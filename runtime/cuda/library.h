// Shared libraries that may be missing: opened when they are needed, their functions looked up by name.
#pragma once

#include <string>

#include "runtime/base/status.h"

namespace gpuc::cuda {

/// A library that stays open as long as the process lives, as drivers must.
class Library {
 public:
  /// Error: the loader's own words.
  static Result<Library> open(const char* file);

  /// Sets `function` to the symbol of this name. Error: the library is older than the symbol.
  template <typename Function>
  Status find(const char* symbol, Function& function) const {
    GPUC_ASSIGN_OR_RETURN(void* address, address(symbol));
    function = reinterpret_cast<Function>(address);
    return okStatus();
  }

 private:
  Result<void*> address(const char* symbol) const;

  void* handle_ = nullptr;
  std::string file_;
};

}  // namespace gpuc::cuda
