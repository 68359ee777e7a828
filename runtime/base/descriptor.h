// What is given back to the system: open files, mapped memory.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <utility>

namespace gpuc {

/// A file descriptor that closes itself; negative: none.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() {
    if (ok()) ::close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  int get() const { return number_; }
  bool ok() const { return number_ >= 0; }

 private:
  int number_;
};

/// Memory of mmap that unmaps itself.
struct Unmap {
  size_t bytes = 0;
  void operator()(void* memory) const { ::munmap(memory, bytes); }
};
using Mapping = std::unique_ptr<void, Unmap>;

}  // namespace gpuc
