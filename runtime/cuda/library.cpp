#include "runtime/cuda/library.h"

#include <dlfcn.h>

namespace gpuc::cuda {

Result<Library> Library::open(const char* file) {
  Library library;
  library.file_ = file;
  library.handle_ = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library.handle_) return errorf("%s", dlerror());
  return library;
}

Result<void*> Library::address(const char* symbol) const {
  void* address = dlsym(handle_, symbol);
  if (!address) return errorf("%s has no %s: it is too old", file_.c_str(), symbol);
  return address;
}

}  // namespace gpuc::cuda
