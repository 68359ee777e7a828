// Handles of the driver and of libraries that end with the object that has them.
#pragma once

#include <utility>

namespace gpuc::cuda {

/// What is given back when it is no longer needed: a stream, memory, a library's descriptor. `Code` is what
/// the call that takes it returns.
template <typename Handle, typename Code>
class Owned {
 public:
  using Release = Code (*)(Handle);

  Owned() = default;
  Owned(Handle handle, Release release) : handle_(handle), release_(release) {}
  Owned(Owned&& other) noexcept
      : handle_(std::exchange(other.handle_, Handle{})), release_(std::exchange(other.release_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~Owned() {
    if (release_) release_(handle_);
  }

  Handle get() const { return handle_; }

 private:
  Handle handle_{};
  Release release_ = nullptr;
};

}  // namespace gpuc::cuda
