// A convolution's operands between guard pages, and its result computed by plain loops in f64.
#pragma once

#include "runtime/host/conv.h"
#include "test/runtime/matmul_reference.h"

namespace gpuc {

inline std::string describe(const ConvShape& s) {
  constexpr const char* kKinds[] = {"forward", "input gradient", "filter gradient"};
  char text[300];
  auto axis = [](const ConvAxis& a) {
    char part[120];
    std::snprintf(part, sizeof part, "%ld>%ld k%ld s%ld p%ld,%ld d%ld", long(a.input), long(a.output),
                  long(a.kernel), long(a.stride), long(a.low), long(a.high), long(a.dilation));
    return std::string(part);
  };
  std::snprintf(text, sizeof text, "%s %s batch %ld groups %ld channels %ld>%ld h %s w %s%s%s%s",
                kKinds[static_cast<int>(s.kind)], nameOf(s.type), long(s.batch), long(s.groups),
                long(s.in_channels), long(s.out_channels), axis(s.height).c_str(), axis(s.width).c_str(),
                s.bias ? " bias" : "", s.relu ? " relu" : "", s.mask ? " mask" : "");
  return text;
}

/// countWindows fills in the output.
inline ConvAxis axis(int64_t input, int64_t kernel, int64_t stride = 1, int64_t low = 0, int64_t high = 0,
                     int64_t dilation = 1) {
  return {.input = input,
          .output = 0,
          .kernel = kernel,
          .stride = stride,
          .low = low,
          .high = high,
          .dilation = dilation};
}

inline ConvShape makeShape(int64_t batch, int64_t in, int64_t out, ConvAxis height, ConvAxis width,
                           int64_t groups = 1) {
  ConvShape shape;
  shape.batch = batch, shape.groups = groups;
  shape.in_channels = in, shape.out_channels = out;
  shape.height = height, shape.width = width;
  return shape;
}

/// Fills in how many windows there are; false if there is none.
inline bool countWindows(ConvShape& s) {
  for (ConvAxis* axis : {&s.height, &s.width}) {
    const int64_t room = axis->input + axis->low + axis->high - (axis->kernel - 1) * axis->dilation - 1;
    if (room < 0) return false;
    axis->output = room / axis->stride + 1;
  }
  return true;
}

/// All methods that can compute the shape.
inline std::vector<ConvMethod> methodsOf(const ConvShape& shape) {
  std::vector<ConvMethod> methods;
  for (ConvMethod method : kConvMethods)
    if (fitsMethod(shape, method)) methods.push_back(method);
  return methods;
}

template <typename T>
class GuardedConv {
 public:
  GuardedConv(const ConvShape& shape, uint64_t seed) : GuardedConv(shape, seed, convMethod(shape)) {}
  GuardedConv(const ConvShape& shape, uint64_t seed, ConvMethod method)
      : shape_(shape),
        workspace_bytes_(convWorkspaceBytes(shape, method)),
        x_(shape.batch * shape.in_channels * shape.inputPixels(), seed & 1),
        w_(shape.filterElements(), seed & 2),
        y_(shape.batch * shape.out_channels * shape.outputPixels(), seed & 4),
        bias_(shape.out_channels, seed & 16),
        mask_(x_.size(), seed & 32),
        workspace_(std::max<int64_t>(1, workspace_bytes_ / int64_t{sizeof(T)}), seed & 8) {
    std::mt19937_64 random(seed);
    const Uniform<T> uniform;
    for (GuardedArray<T>* array : {&x_, &w_, &y_, &bias_})
      for (int64_t i = 0; i < array->size(); ++i) (*array)[i] = uniform(random);
    for (int64_t i = 0; i < mask_.size(); ++i)
      mask_[i] = i % 7 == 0 ? std::numeric_limits<T>::quiet_NaN() : std::max(uniform(random), T(0));
    poisonResult();
  }

  ConvOperands operands() {
    void* workspace = workspace_bytes_ > 0 ? workspace_.data() : nullptr;
    const T* bias = shape_.bias ? bias_.data() : nullptr;
    switch (shape_.kind) {
      case ConvKind::forward:
        return {x_.data(), w_.data(), y_.data(), bias, workspace};
      case ConvKind::input_gradient:
        return {y_.data(), w_.data(), x_.data(), bias, workspace, shape_.mask ? mask_.data() : nullptr};
      default:
        return {y_.data(), x_.data(), w_.data(), bias, workspace};
    }
  }

  /// NaN everywhere: what is not overwritten shows.
  void poisonResult() {
    for (GuardedArray<T>* array : {&resultArray(), &workspace_})
      std::fill_n(array->data(), array->size(), std::numeric_limits<T>::quiet_NaN());
  }

  std::vector<T> result() { return {resultArray().data(), resultArray().data() + resultArray().size()}; }
  GuardedArray<T>& x() { return x_; }

  /// The result of the convolution alone, with bias and relu, or a mask, as the plan's words have them.
  std::vector<T> finished(std::vector<T> y) {
    for (size_t i = 0; i < y.size(); ++i) {
      if (shape_.bias) y[i] += bias_[static_cast<int64_t>(i) / shape_.outputPixels() % shape_.out_channels];
      if (shape_.relu && y[i] <= 0) y[i] = 0;
      if (shape_.mask && mask_[static_cast<int64_t>(i)] <= 0) y[i] = 0;
    }
    return y;
  }

  /// What plain loops in f64 give, and Σ|terms| of each element.
  struct Expected {
    std::vector<double> sums, magnitudes;
  };

  Expected expected() {
    Expected all;
    all.sums.resize(static_cast<size_t>(resultArray().size()));
    all.magnitudes = all.sums;
    const ConvKind kind = shape_.kind;
    const T* const first = kind == ConvKind::forward ? x_.data() : y_.data();
    const T* const second = kind == ConvKind::filter_gradient ? x_.data() : w_.data();
    forEachRun([&](int64_t count, Walk x, Walk w, Walk y) {
      Walk a = kind == ConvKind::forward ? x : y, b = kind == ConvKind::filter_gradient ? x : w;
      Walk c = kind == ConvKind::forward ? y : kind == ConvKind::input_gradient ? x : w;
      double *const sums = all.sums.data(), *const magnitudes = all.magnitudes.data();
      for (int64_t i = 0; i < count; ++i, a.place += a.step, b.place += b.step, c.place += c.step) {
        const double term = double(first[a.place]) * double(second[b.place]);
        sums[c.place] += term;
        magnitudes[c.place] += std::fabs(term);
      }
    });
    return all;
  }

  /// The first element beyond 64·ε·Σ|terms| of what is expected, in words; empty if there is none.
  std::string firstError() { return firstError(expected()); }
  std::string firstError(const Expected& all) {
    GuardedArray<T>& result = resultArray();
    for (int64_t i = 0; i < result.size(); ++i) {
      const double sum = all.sums[static_cast<size_t>(i)], got = result[i];
      const double bound =
          64 * double(std::numeric_limits<T>::epsilon()) * all.magnitudes[static_cast<size_t>(i)];
      if (std::isnan(sum) ? std::isnan(got) : std::fabs(got - sum) <= bound) continue;
      char text[200];
      std::snprintf(text, sizeof text, "element %ld is %.17g, expected %.17g within %g", long(i), got, sum,
                    bound);
      return text;
    }
    return "";
  }

 private:
  GuardedArray<T>& resultArray() {
    return shape_.kind == ConvKind::forward ? y_ : shape_.kind == ConvKind::input_gradient ? x_ : w_;
  }

  /// A place in an array, and how far it is to the next one.
  struct Walk {
    int64_t place, step;
  };

  /// Calls visit with how many windows of a row have a tap within the picture, and with the places in x, w
  /// and y of the products that the convolution sums up for these.
  template <typename Visit>
  void forEachRun(Visit visit) const {
    const ConvShape& s = shape_;
    const ConvAxis &h = s.height, &v = s.width;
    for (int64_t n = 0; n < s.batch; ++n)
      for (int64_t o = 0; o < s.out_channels; ++o)
        for (int64_t c = 0; c < s.groupInputs(); ++c)
          for (int64_t i = 0; i < h.kernel; ++i)
            for (int64_t j = 0; j < v.kernel; ++j)
              for (int64_t p = 0; p < h.output; ++p) {
                const int64_t row = p * h.stride - h.low + i * h.dilation, tap = j * v.dilation - v.low;
                int64_t begin = 0, end = v.output;
                while (begin < end && begin * v.stride + tap < 0) ++begin;
                while (begin < end && (end - 1) * v.stride + tap >= v.input) --end;
                if (row < 0 || row >= h.input || begin == end) continue;
                const int64_t channel = o / s.groupOutputs() * s.groupInputs() + c;
                const int64_t x = ((n * s.in_channels + channel) * h.input + row) * v.input;
                const int64_t w = ((o * s.groupInputs() + c) * h.kernel + i) * v.kernel + j;
                const int64_t y = ((n * s.out_channels + o) * h.output + p) * v.output;
                visit(end - begin, Walk{x + begin * v.stride + tap, v.stride}, Walk{w, 0},
                      Walk{y + begin, 1});
              }
  }

  ConvShape shape_;
  int64_t workspace_bytes_;
  GuardedArray<T> x_, w_, y_, bias_, mask_, workspace_;
};

}  // namespace gpuc
