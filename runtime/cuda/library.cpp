#include "runtime/cuda/library.h"

#include <dlfcn.h>

#include <cstring>

namespace gpuc::cuda {

Status loadFunctions(const LibraryFile& library, std::initializer_list<LibraryFunction> functions) {
  void* handle = dlopen(library.file, RTLD_NOW | RTLD_LOCAL);
  if (!handle) return errorf("%s%s%s", library.begin_of_errors, dlerror(), library.cure_if_missing);
  for (const LibraryFunction& function : functions) {
    void* address = dlsym(handle, function.symbol);
    if (!address)
      return errorf("%s%s has no %s: it is too old%s", library.begin_of_errors, library.file, function.symbol,
                    library.cure_if_old);
    std::memcpy(function.pointer, &address, sizeof(address));
  }
  return okStatus();
}

}  // namespace gpuc::cuda
