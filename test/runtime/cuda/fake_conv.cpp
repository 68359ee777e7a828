// Convolutions by their definition: each element of the result is one sum in f64.
#include <algorithm>

#include "runtime/base/half.h"
#include "test/runtime/cuda/fake_blas.h"
#include "test/runtime/cuda/fake_dnn.h"
#include "test/runtime/cuda/fake_gpu.h"

namespace gpuc::test {

uint64_t FakeTensor::spanBytes() const {
  int64_t last = 0;
  for (size_t dim = 0; dim < 4; ++dim) last += (extents[dim] - 1) * strides[dim];
  const uint64_t bytes = type == CUDNN_DATA_DOUBLE ? 8 : type == CUDNN_DATA_FLOAT ? 4 : 2;
  return static_cast<uint64_t>(last + 1) * bytes;
}

namespace {

double load(const FakeTensor& tensor, const void* data, int64_t at) {
  switch (tensor.type) {
    case CUDNN_DATA_DOUBLE:
      return static_cast<const double*>(data)[at];
    case CUDNN_DATA_FLOAT:
      return static_cast<const float*>(data)[at];
    case CUDNN_DATA_HALF:
      return halfToFloat(static_cast<const uint16_t*>(data)[at]);
    default:
      return bfloat16ToFloat(static_cast<const uint16_t*>(data)[at]);
  }
}

void store(const FakeTensor& tensor, void* data, int64_t at, double value) {
  switch (tensor.type) {
    case CUDNN_DATA_DOUBLE:
      static_cast<double*>(data)[at] = value;
      break;
    case CUDNN_DATA_FLOAT:
      static_cast<float*>(data)[at] = static_cast<float>(value);
      break;
    case CUDNN_DATA_HALF:
      static_cast<uint16_t*>(data)[at] = floatToHalf(static_cast<float>(value));
      break;
    default:
      static_cast<uint16_t*>(data)[at] = floatToBfloat16(static_cast<float>(value));
  }
}

double rounded(const FakeTensor& like, double value) {
  uint64_t element = 0;
  store(like, &element, 0, value);
  return load(like, &element, 0);
}

int64_t offset(const FakeTensor& tensor, int64_t a, int64_t b, int64_t c, int64_t d) {
  return a * tensor.strides[0] + b * tensor.strides[1] + c * tensor.strides[2] + d * tensor.strides[3];
}

class Loops {
 public:
  explicit Loops(const FakeConvolution& conv) : conv_(conv) {}

  /// y[n, o, p, q]
  double outputAt(int64_t n, int64_t o, int64_t p, int64_t q) const {
    double sum = 0;
    for (int64_t c = 0; c < conv_.filter.extents[1]; ++c)
      for (int64_t i = 0; i < conv_.filter.extents[2]; ++i)
        for (int64_t j = 0; j < conv_.filter.extents[3]; ++j)
          sum += input(n, firstInput(o) + c, p, i, q, j) * filter(o, c, i, j);
    return sum;
  }

  /// w[o, c, i, j]
  double filterAt(int64_t o, int64_t c, int64_t i, int64_t j) const {
    double sum = 0;
    for (int64_t n = 0; n < conv_.output.extents[0]; ++n)
      for (int64_t p = 0; p < conv_.output.extents[2]; ++p)
        for (int64_t q = 0; q < conv_.output.extents[3]; ++q)
          sum += input(n, firstInput(o) + c, p, i, q, j) * output(n, o, p, q);
    return sum;
  }

  /// x[n, c, h, v]
  double inputAt(int64_t n, int64_t c, int64_t h, int64_t v) const {
    const int64_t inputs = conv_.filter.extents[1], outputs = conv_.filter.extents[0] / conv_.groups();
    double sum = 0;
    for (int64_t o = c / inputs * outputs; o < (c / inputs + 1) * outputs; ++o)
      for (int64_t i = 0; i < conv_.filter.extents[2]; ++i)
        for (int64_t j = 0; j < conv_.filter.extents[3]; ++j) {
          int64_t p = 0, q = 0;
          if (windowOf(0, h, i, p) && windowOf(1, v, j, q))
            sum += output(n, o, p, q) * filter(o, c % inputs, i, j);
        }
    return sum;
  }

 private:
  /// The first channel that the group of output channel `o` reads.
  int64_t firstInput(int64_t o) const {
    return o / (conv_.filter.extents[0] / conv_.groups()) * conv_.filter.extents[1];
  }

  /// What window (p, q) sees through tap (i, j); 0 beyond the edge.
  double input(int64_t n, int64_t c, int64_t p, int64_t i, int64_t q, int64_t j) const {
    const int64_t h = p * conv_.strides[0] - conv_.low[0] + i * conv_.dilations[0],
                  v = q * conv_.strides[1] - conv_.low[1] + j * conv_.dilations[1];
    if (h < 0 || h >= conv_.input.extents[2] || v < 0 || v >= conv_.input.extents[3]) return 0;
    return factor(conv_.input, conv_.x, offset(conv_.input, n, c, h, v));
  }
  double filter(int64_t o, int64_t c, int64_t i, int64_t j) const {
    return factor(conv_.filter, conv_.w, offset(conv_.filter, o, c, i, j));
  }
  double output(int64_t n, int64_t o, int64_t p, int64_t q) const {
    return factor(conv_.output, conv_.y, offset(conv_.output, n, o, p, q));
  }

  double factor(const FakeTensor& tensor, const void* data, int64_t at) const {
    const double value = load(tensor, data, at);
    return conv_.tf32 ? roundedToTf32(static_cast<float>(value)) : value;
  }

  /// The window that sees input element `h` through tap `i` along an axis, if there is one.
  bool windowOf(size_t axis, int64_t h, int64_t i, int64_t& p) const {
    const int64_t start = h + conv_.low[axis] - i * conv_.dilations[axis];
    p = start / conv_.strides[axis];
    return start >= 0 && start % conv_.strides[axis] == 0 && p < conv_.output.extents[2 + axis];
  }

  const FakeConvolution& conv_;
};

template <typename At>
void writeAll(const FakeTensor& tensor, void* data, At at) {
  const auto& extents = tensor.extents;
  for (int64_t a = 0; a < extents[0]; ++a)
    for (int64_t b = 0; b < extents[1]; ++b)
      for (int64_t c = 0; c < extents[2]; ++c)
        for (int64_t d = 0; d < extents[3]; ++d)
          store(tensor, data, offset(tensor, a, b, c, d), at(a, b, c, d));
}

}  // namespace

/// The sum and the bias are rounded to f32 one after the other.
double FakeConvolution::followed(double sum, int64_t channel) const {
  if (!bias) return sum;
  if (FakeGpu::current->rounds_before_bias) sum = rounded(output, sum);
  const float biased = static_cast<float>(sum) +
                       static_cast<float>(load(bias_tensor, bias, offset(bias_tensor, 0, channel, 0, 0)));
  return relu ? std::max(biased, 0.0f) : biased;
}

void FakeConvolution::run() const {
  const Loops loops(*this);
  switch (kind) {
    case Kind::forward:
      return writeAll(output, y, [&](int64_t n, int64_t o, int64_t p, int64_t q) {
        return followed(loops.outputAt(n, o, p, q), o);
      });
    case Kind::input_gradient:
      return writeAll(input, x, [&](auto... at) { return loops.inputAt(at...); });
    case Kind::filter_gradient:
      return writeAll(filter, w, [&](auto... at) { return loops.filterAt(at...); });
  }
}

}  // namespace gpuc::test
