// What cuDNN is asked for, and plain loops that do it.
#pragma once

#include <cudnn.h>

#include <array>
#include <cstdint>
#include <vector>

namespace gpuc::test {

struct FakeTensor {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::array<int64_t, 4> extents = {}, strides = {};
  int64_t alignment = 1;

  /// From the first byte to behind the last.
  uint64_t spanBytes() const;
};

/// y = conv(x, w), or dx from (dy, w), or dw from (dy, x): the one of the three that `kind` names is written.
/// Behind the first a bias may follow, an element for each channel, and relu.
struct FakeConvolution {
  enum class Kind : uint8_t { forward, input_gradient, filter_gradient };
  Kind kind = Kind::forward;
  FakeTensor input, filter, output;
  // Of height and width.
  std::array<int64_t, 2> strides = {}, dilations = {}, low = {}, high = {};
  void *x = nullptr, *w = nullptr, *y = nullptr;
  FakeTensor bias_tensor = {};
  void* bias = nullptr;  // null: none
  bool relu = false;
  bool tf32 = false;  // operands are rounded before they are multiplied

  int64_t groups() const { return input.extents[1] / filter.extents[1]; }
  void run() const;

 private:
  double followed(double sum, int64_t channel) const;
};

/// An engine that the fake suggests, in this order.
struct FakeEngine {
  std::vector<cudnnBackendNumericalNote_t> notes;
  uint64_t workspace_bytes = 0;
  bool supported = true;  // else no plan can be made of it
  bool fallback = false;  // suggested in that mode only
};

/// Every kind that gpuc must pass over, and behind them one that it may take.
std::vector<FakeEngine> fakeEngines();

}  // namespace gpuc::test
