// Shared libraries that may be missing: opened when they are needed, their functions looked up by name.
#pragma once

#include <initializer_list>

#include "runtime/base/status.h"

// A name as text, after the headers' macros: they rename functions, and give versions as numbers.
#define GPUC_CUDA_TEXT(name) GPUC_CUDA_WRITTEN(name)
#define GPUC_CUDA_WRITTEN(name) #name

namespace gpuc::cuda {

/// A library, and what errors say of it.
struct LibraryFile {
  const char* begin_of_errors;  // "no cuBLASLt: "
  const char* file;
  const char* cure_if_missing;
  const char* cure_if_old = "";
};

struct LibraryFunction {
  const char* symbol;
  void* pointer;  // to the pointer that is set to it
};

/// Opens a library, which stays open as long as the process lives, as drivers must, and sets the pointers.
/// Errors: it is not there, in the loader's own words; it is older than a symbol.
Status loadFunctions(const LibraryFile& library, std::initializer_list<LibraryFunction> functions);

/// What tables of a library's functions have in common.
template <typename Table>
class LoadedTable {
 public:
  /// The table of this machine, which Table::load() makes once a process. Error: why there is none.
  static Result<const Table*> get() {
    if (of_tests_) return of_tests_;
    static const Result<Table> loaded = Table::load();
    if (!loaded.ok()) return loaded.status();
    return &*loaded;
  }

  /// Makes get() return `table` instead of the machine's; null for the machine's again. For tests.
  static void use(const Table* table) { of_tests_ = table; }

 private:
  inline static const Table* of_tests_ = nullptr;
};

/// "13.1.0" of 130100, as cuBLASLt and cuDNN number their versions.
inline std::string versionText(size_t number) {
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
         std::to_string(number % 100);
}

}  // namespace gpuc::cuda
