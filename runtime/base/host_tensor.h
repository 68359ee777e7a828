// A tensor in host memory that somebody else owns: what goes into a session's step and what comes out.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/data_type.h"
#include "runtime/base/tensor_spec.h"

namespace gpuc {

/// Row-major and dense. Whoever makes the view keeps data and shape alive while it is used.
struct HostTensorView {
  const void* data = nullptr;
  DataType type = DataType::f32;
  std::span<const int64_t> shape;

  HostTensorView() = default;
  HostTensorView(const void* data, DataType type, std::span<const int64_t> shape)
      : data(data), type(type), shape(shape) {}
  HostTensorView(const void* data, const TensorSpec& spec) : data(data), type(spec.type), shape(spec.shape) {}

  int64_t sizeBytes() const {
    int64_t bytes = sizeOf(type);
    for (int64_t extent : shape) bytes *= extent;
    return bytes;
  }
};

}  // namespace gpuc
