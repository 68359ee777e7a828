// Opening sessions and reading what they leave, with the checks that every test would repeat.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "runtime/gpuc.h"
#include "test/runtime/plan_builder.h"

namespace gpuc::test {

inline Session open(const PlanBuilder& builder, SessionOptions options = {}) {
  Result<Session> session = Session::create(builder.parse(), options);
  EXPECT_TRUE(session.ok()) << session.message();
  return *std::move(session);
}

inline ProgramId programOf(const Session& session, const std::string& name) {
  Result<ProgramId> id = session.program(name);
  EXPECT_TRUE(id.ok()) << id.message();
  return *id;
}

inline void runOnce(Session& session, ProgramId id, std::span<const HostTensorView> inputs = {},
                    int32_t rows = -1) {
  Status status = session.run(id, inputs, rows);
  ASSERT_TRUE(status.ok()) << status.message();
  status = session.wait();
  ASSERT_TRUE(status.ok()) << status.message();
}

template <typename T>
std::vector<T> valuesOf(HostTensorView view) {
  std::vector<T> values(static_cast<size_t>(view.sizeBytes()) / sizeof(T));
  std::memcpy(values.data(), view.data, values.size() * sizeof(T));
  return values;
}

inline std::vector<float> counting(size_t count, float first = 0) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// The bytes of a variable as values.
template <typename T>
std::vector<T> readVariable(Session& session, const std::string& name, size_t count) {
  std::vector<T> values(count);
  Status status = session.readVariable(name, std::as_writable_bytes(std::span(values)));
  EXPECT_TRUE(status.ok()) << status.message();
  return values;
}

/// A view of all of `values`; `shape` must outlive it.
template <typename T>
HostTensorView viewOf(const std::vector<T>& values, DataType type, std::span<const int64_t> shape) {
  return {values.data(), type, shape};
}

/// `values` at an address that is a multiple of 64, or `off` elements behind one.
class PlacedInput {
 public:
  explicit PlacedInput(const std::vector<float>& values, size_t off = 0)
      : off_(off), room_(values.size() + 32) {
    std::copy(values.begin(), values.end(), data());
  }
  float* data() {
    const auto address = reinterpret_cast<uintptr_t>(room_.data());
    return room_.data() + (64 - address % 64) % 64 / sizeof(float) + off_;
  }
  std::vector<float> values() { return {data(), data() + room_.size() - 32}; }
  HostTensorView view(std::span<const int64_t> shape) { return {data(), DataType::f32, shape}; }

 private:
  size_t off_;
  std::vector<float> room_;
};

}  // namespace gpuc::test
