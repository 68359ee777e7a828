// Which file lies where in memory, so that a file which another program cuts short while it is mapped ends in
// a line that names it. Reading behind its new end is a SIGBUS: no call is there to return an error.
#pragma once

#include <cstddef>
#include <string>

namespace gpuc {

/// While it lives, the bytes from `begin` on are the file's of this name.
class MappedRange {
 public:
  MappedRange(const void* begin, size_t bytes, const std::string& name);
  ~MappedRange();
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;

 private:
  struct Slot;
  friend void endOnCutFiles();
  static Slot* find(const void* address);

  Slot* slot_;
};

/// From now on such a file ends the process: "error: FILE: cut short while it was read" on stderr, status 1.
/// Any other SIGBUS does what it did before. For programs, not for libraries: the handler is the whole
/// process's.
void endOnCutFiles();

}  // namespace gpuc
