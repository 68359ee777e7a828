// A matmul's operands between guard pages, and its result computed by a plain loop in f64.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "runtime/host/matmul.h"

namespace gpuc {

inline std::string describe(const MatmulShape& s) {
  char text[200];
  std::snprintf(text, sizeof text, "%s batch %ld m %ld n %ld k %ld %c%c strides %ld %ld%s%s%s%s",
                nameOf(s.type), long(s.batch), long(s.m), long(s.n), long(s.k), s.transpose_a ? 'T' : 'N',
                s.transpose_b ? 'T' : 'N', long(s.batch_stride_a), long(s.batch_stride_b),
                s.accumulate ? " accumulate" : "", s.bias ? " bias" : "", s.relu ? " relu" : "",
                s.mask ? " mask" : "");
  return text;
}

/// Numbers from [-1, 1), as many as the type has there one epsilon apart. The standard library's distribution
/// takes a logarithm for each, and with it longer than most products.
template <typename T>
struct Uniform {
  T operator()(std::mt19937_64& random) const {
    constexpr int kBits = std::numeric_limits<T>::digits;
    return static_cast<T>(static_cast<int64_t>(random()) >> (64 - kBits)) * std::numeric_limits<T>::epsilon();
  }
};

/// An array of which both neighbouring pages fault. It begins right after the first (at_begin) or ends right
/// before the last, so that reading or writing one element too far ends the test.
template <typename T>
class GuardedArray {
 public:
  GuardedArray(int64_t count, bool at_begin) : count_(count) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    const size_t inner = (bytes + page - 1) / page * page;
    mapped_bytes_ = inner + 2 * page;
    void* mapped = mmap(nullptr, mapped_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) std::abort();
    mapped_ = static_cast<char*>(mapped);
    if (mprotect(mapped_ + page, inner, PROT_READ | PROT_WRITE) != 0) std::abort();
    data_ = reinterpret_cast<T*>(mapped_ + page + (at_begin ? 0 : inner - bytes));
  }
  GuardedArray(const std::vector<T>& from, bool at_begin)
      : GuardedArray(static_cast<int64_t>(from.size()), at_begin) {
    std::copy(from.begin(), from.end(), data_);
  }
  GuardedArray(const GuardedArray&) = delete;
  GuardedArray& operator=(const GuardedArray&) = delete;
  ~GuardedArray() { munmap(mapped_, mapped_bytes_); }

  T* data() { return data_; }
  int64_t size() const { return count_; }
  T& operator[](int64_t i) { return data_[i]; }

 private:
  char* mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
  T* data_ = nullptr;
  int64_t count_;
};

template <typename T>
class GuardedMatmul {
 public:
  GuardedMatmul(const MatmulShape& shape, uint64_t seed)
      : shape_(shape),
        a_((shape.batch - 1) * shape.batch_stride_a + shape.m * shape.k, seed & 1),
        b_((shape.batch - 1) * shape.batch_stride_b + shape.k * shape.n, seed & 2),
        c_(shape.batch * shape.m * shape.n, seed & 4),
        bias_(shape.n, seed & 8),
        mask_(c_.size(), seed & 16),
        before_(shape.accumulate ? c_.size() : 0) {
    std::mt19937_64 random(seed);
    const Uniform<T> uniform;
    for (GuardedArray<T>* array : {&a_, &b_, &bias_})
      for (int64_t i = 0; i < array->size(); ++i) (*array)[i] = uniform(random);
    for (T& element : before_) element = uniform(random);
    for (int64_t i = 0; i < mask_.size(); ++i)
      mask_[i] = i % 7 == 0 ? std::numeric_limits<T>::quiet_NaN() : std::max(uniform(random), T(0));
    poisonResult();
  }

  MatmulOperands operands() {
    return {a_.data(), b_.data(),
            c_.data(), shape_.bias ? bias_.data() : nullptr,
            nullptr,   shape_.mask ? mask_.data() : nullptr};
  }

  /// NaN everywhere, so that what is not overwritten shows; of a shape that accumulates, what it adds to.
  void poisonResult() {
    std::fill_n(c_.data(), c_.size(), std::numeric_limits<T>::quiet_NaN());
    std::copy(before_.begin(), before_.end(), c_.data());
  }

  std::vector<T> result() { return {c_.data(), c_.data() + c_.size()}; }

  /// `product`, of the same shape with nothing behind it, with what follows as the plan's words have it.
  std::vector<T> finished(std::vector<T> product) {
    for (size_t i = 0; i < product.size(); ++i) {
      if (shape_.bias) product[i] += bias_[static_cast<int64_t>(i) % shape_.n];
      if (shape_.relu && product[i] <= 0) product[i] = 0;
      if (shape_.mask && mask_[static_cast<int64_t>(i)] <= 0) product[i] = 0;
      if (shape_.accumulate) product[i] = before_[i] + product[i];
    }
    return product;
  }

  T& elementA(int64_t batch, int64_t row, int64_t k) {
    return a_[batch * shape_.batch_stride_a + (shape_.transpose_a ? k * shape_.m + row : row * shape_.k + k)];
  }
  T& elementB(int64_t batch, int64_t k, int64_t column) {
    return b_[batch * shape_.batch_stride_b +
              (shape_.transpose_b ? column * shape_.k + k : k * shape_.n + column)];
  }

  /// The first element beyond 64·ε·Σ|terms| of the plain loop's, in words; empty if there is none. Where the
  /// loop finds NaN or an infinity, the same must stand.
  std::string firstError() {
    for (int64_t batch = 0; batch < shape_.batch; ++batch)
      for (int64_t row = 0; row < shape_.m; ++row)
        for (int64_t column = 0; column < shape_.n; ++column) {
          std::string error = errorAt(batch, row, column);
          if (!error.empty()) return error;
        }
    return "";
  }

 private:
  std::string errorAt(int64_t batch, int64_t row, int64_t column) {
    const int64_t place = (batch * shape_.m + row) * shape_.n + column;
    double sum = shape_.bias         ? double(bias_[column])
                 : shape_.accumulate ? double(before_[static_cast<size_t>(place)])
                                     : 0.0;
    double magnitude = std::fabs(sum);
    for (int64_t k = 0; k < shape_.k; ++k) {
      const double term = double(elementA(batch, row, k)) * double(elementB(batch, k, column));
      sum += term;
      magnitude += std::fabs(term);
    }
    if (shape_.relu && sum <= 0) sum = 0;
    if (shape_.mask && mask_[place] <= 0) sum = 0;
    const double got = c_[place];
    const double bound = 64 * double(std::numeric_limits<T>::epsilon()) * magnitude;
    const bool same = std::isnan(sum)   ? std::isnan(got)
                      : std::isinf(sum) ? got == sum
                                        : std::fabs(got - sum) <= bound;
    if (same) return "";
    char text[200];
    std::snprintf(text, sizeof text, "c[%ld, %ld, %ld] is %.17g, expected %.17g within %g", long(batch),
                  long(row), long(column), got, sum, bound);
    return text;
  }

  MatmulShape shape_;
  GuardedArray<T> a_, b_, c_, bias_, mask_;
  std::vector<T> before_;  // what c holds in the beginning
};

}  // namespace gpuc
