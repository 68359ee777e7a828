// The machine code of a plan, mapped into this process.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/descriptor.h"
#include "runtime/base/status.h"

namespace gpuc {

/// Computes tiles [begin, end); operands are what the kernel reads, then what it writes.
using KernelFunction = void (*)(void* const* operands, int64_t begin, int64_t end);

/// An ELF shared object that was in memory.
class HostCode {
 public:
  /// Maps `object`, which its plan's checksum has vouched for. Errors: not an object for this machine; the
  /// loader's own.
  static Result<HostCode> load(std::span<const uint8_t> object);

  /// The function with this symbol, defined in the object itself and in none of the libraries that it may
  /// need.
  Result<KernelFunction> find(const std::string& symbol) const;

 private:
  struct Close {
    void operator()(void* library) const { ::dlclose(library); }
  };
  Descriptor file_;  // stays open: the loader knows libraries by path, and the path is this number's
  std::unique_ptr<void, Close> library_;
};

}  // namespace gpuc
