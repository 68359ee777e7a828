// The operands of attention between guard pages, and its results computed by plain loops in f64.
#pragma once

#include <map>

#include "runtime/base/philox.h"
#include "runtime/host/attention.h"
#include "test/runtime/matmul_reference.h"

namespace gpuc {

inline std::string describe(const AttentionShape& s) {
  constexpr const char* kMasks[] = {"none", "flags", "addends"};
  char text[400];
  std::snprintf(
      text, sizeof text,
      "%s %s batch %ld heads %ld/%ld queries %ld keys %ld widths %ld %ld scale %g%s mask %s %ld,%ld,%ld,%ld "
      "dropout %g row of query %ld",
      s.kind == AttentionKind::forward ? "forward" : "gradient", nameOf(s.type), long(s.batch), long(s.heads),
      long(s.groups), long(s.queries), long(s.keys), long(s.width), long(s.value_width), s.scale,
      s.causal ? " causal" : "", kMasks[static_cast<int>(s.mask)], long(s.mask_strides[0]),
      long(s.mask_strides[1]), long(s.mask_strides[2]), long(s.mask_strides[3]), s.dropout,
      long(s.query.row));
  return text;
}

/// [batch, rows, heads, width], with `gap` elements before the next row: what a projection of all heads
/// leaves.
inline AttentionLayout headsInside(int64_t heads, int64_t rows, int64_t width, int64_t gap) {
  const int64_t row = heads * width + gap;
  return {rows * row, width, row};
}

enum class Lay { dense, inside, gaps };

inline AttentionLayout layoutOf(Lay lay, int64_t heads, int64_t rows, int64_t width) {
  return lay == Lay::dense ? denseAttentionLayout(heads, rows, width)
                           : headsInside(heads, rows, width, lay == Lay::gaps ? 5 : 0);
}

inline void setLayouts(AttentionShape& s, Lay lay) {
  s.query = s.query_cotangent = layoutOf(lay, s.heads, s.queries, s.width);
  s.key = s.key_cotangent = layoutOf(lay, s.groups, s.keys, s.width);
  s.value = s.value_cotangent = layoutOf(lay, s.groups, s.keys, s.value_width);
  s.result = s.cotangent = layoutOf(lay, s.heads, s.queries, s.value_width);
}

/// Strides of a mask that has the dimensions of which `has` is true.
inline void setMask(AttentionShape& s, AttentionMask mask, const bool (&has)[4]) {
  const int64_t extents[] = {s.batch, s.heads, s.queries, s.keys};
  s.mask = mask;
  int64_t stride = 1;
  for (int dim = 3; dim >= 0; --dim) {
    s.mask_strides[dim] = has[dim] && extents[dim] > 1 ? stride : 0;
    if (has[dim]) stride *= extents[dim];
  }
}

/// An array with one of a tensor's layouts, what it should hold, and how large what adds up to that is.
template <typename T>
struct GuardedTensor {
  int64_t heads, rows, width;
  AttentionLayout layout;
  GuardedArray<T> data;
  std::vector<double> expected, terms;

  GuardedTensor(int64_t batch, int64_t heads, int64_t rows, int64_t width, const AttentionLayout& layout,
                bool at_begin)
      : heads(heads),
        rows(rows),
        width(width),
        layout(layout),
        data((batch - 1) * layout.batch + (heads - 1) * layout.head + (rows - 1) * layout.row + width,
             at_begin),
        expected(static_cast<size_t>(batch * heads * rows * width)),
        terms(expected.size()) {}

  int64_t offset(int64_t b, int64_t h, int64_t row) const {
    return b * layout.batch + h * layout.head + row * layout.row;
  }
  T& at(int64_t b, int64_t h, int64_t row, int64_t i) { return data[offset(b, h, row) + i]; }
  size_t index(int64_t b, int64_t h, int64_t row, int64_t i) const {
    return static_cast<size_t>(((b * heads + h) * rows + row) * width + i);
  }
  void add(int64_t b, int64_t h, int64_t row, int64_t i, double term, double size) {
    expected[index(b, h, row, i)] += term;
    terms[index(b, h, row, i)] += size;
  }
};

/// Attention and its gradient on random operands.
template <typename T>
class GuardedAttention {
 public:
  using Tensor = GuardedTensor<T>;

  GuardedAttention(const AttentionShape& s, uint64_t seed)
      : s_(s),
        mask_count_(maskCount()),
        query(s.batch, s.heads, s.queries, s.width, s.query, seed & 1),
        key(s.batch, s.groups, s.keys, s.width, s.key, seed & 2),
        value(s.batch, s.groups, s.keys, s.value_width, s.value, seed & 4),
        result(s.batch, s.heads, s.queries, s.value_width, s.result, seed & 8),
        logs(s.batch, s.heads, s.queries, 1, denseAttentionLayout(s.heads, s.queries, 1), seed & 16),
        cotangent(s.batch, s.heads, s.queries, s.value_width, s.cotangent, seed & 1),
        query_cotangent(s.batch, s.heads, s.queries, s.width, s.query_cotangent, seed & 2),
        key_cotangent(s.batch, s.groups, s.keys, s.width, s.key_cotangent, seed & 4),
        value_cotangent(s.batch, s.groups, s.keys, s.value_width, s.value_cotangent, seed & 8),
        mask_cotangent(1, 1, 1, mask_count_, {}, seed & 16),
        addends(mask_count_, seed & 1),
        flags(mask_count_, seed & 1),
        workspace(std::max<int64_t>(1, workspaceBytes() / int64_t{sizeof(T)}), seed & 2) {
    std::mt19937_64 random(seed);
    const Uniform<T> uniform;
    for (Tensor* tensor : {&query, &key, &value, &cotangent})
      for (int64_t i = 0; i < tensor->data.size(); ++i) tensor->data[i] = uniform(random);
    for (int64_t i = 0; i < mask_count_; ++i) {
      addends[i] = 2 * uniform(random);
      flags[i] = uniform(random) > T(-0.4);
    }
    poisonResults();
  }

  /// NaN everywhere: what is not overwritten shows.
  void poisonResults() {
    for (Tensor* tensor :
         {&result, &logs, &query_cotangent, &key_cotangent, &value_cotangent, &mask_cotangent})
      std::fill_n(tensor->data.data(), tensor->data.size(), std::numeric_limits<T>::quiet_NaN());
    std::fill_n(workspace.data(), workspace.size(), std::numeric_limits<T>::quiet_NaN());
  }

  AttentionOperands operands() {
    const void* mask =
        s_.mask == AttentionMask::flags ? static_cast<const void*>(flags.data()) : addends.data();
    return {.query = query.data.data(),
            .key = key.data.data(),
            .value = value.data.data(),
            .result = result.data.data(),
            .log_sum_exp = logs.data.data(),
            .mask = s_.mask == AttentionMask::none ? nullptr : mask,
            .seed = &seed,
            .step = &step,
            .cotangent = cotangent.data.data(),
            .query_cotangent = query_cotangent.data.data(),
            .key_cotangent = key_cotangent.data.data(),
            .value_cotangent = value_cotangent.data.data(),
            .mask_cotangent = s_.mask_gradient ? mask_cotangent.data.data() : nullptr,
            .workspace = workspace.data()};
  }

  /// Runs the forward pass by the loops below; `result` and `logs` then hold the rounded results, for a
  /// gradient.
  void computeForward() {
    forRows([&](int64_t b, int64_t h, int64_t t) {
      double largest = -INFINITY, sum = 0, size = 0;
      for (int64_t k = 0; k < s_.keys; ++k) {
        const double x = score(b, h, t, k);
        largest = std::isnan(x) || x > largest ? x : largest;
        if (x != -INFINITY) size = std::max(size, scoreSize(b, h, t, k));
      }
      for (int64_t k = 0; k < s_.keys && largest != -INFINITY; ++k)
        sum += std::exp(score(b, h, t, k) - largest);
      const bool none = largest == -INFINITY;
      logs.add(b, h, t, 0, none ? -INFINITY : largest + std::log(sum), none ? 0 : 1 + size);
      for (int64_t k = 0; k < s_.keys; ++k) {
        const double p = none ? 0 : std::exp(score(b, h, t, k) - largest) / sum * factor(b, h, t, k);
        for (int64_t e = 0; e < s_.value_width; ++e) {
          const double term = p * value.at(b, group(h), k, e);
          result.add(b, h, t, e, term, std::abs(term) * (1 + size));
        }
      }
    });
  }

  void roundForward() {
    forRows([&](int64_t b, int64_t h, int64_t t) {
      logs.at(b, h, t, 0) = static_cast<T>(logs.expected[logs.index(b, h, t, 0)]);
      for (int64_t e = 0; e < s_.value_width; ++e)
        result.at(b, h, t, e) = static_cast<T>(result.expected[result.index(b, h, t, e)]);
    });
  }

  void computeGradient() {
    forRows([&](int64_t b, int64_t h, int64_t t) {
      const double log = logs.at(b, h, t, 0), shift = log == -INFINITY ? 0 : log;
      double delta = 0, delta_size = 0;
      for (int64_t e = 0; e < s_.value_width; ++e) {
        const double term = static_cast<double>(cotangent.at(b, h, t, e)) * result.at(b, h, t, e);
        delta += term;
        delta_size += std::abs(term);
      }
      for (int64_t k = 0; k < s_.keys; ++k) addGradient(b, h, t, k, shift, delta, delta_size);
    });
  }

  /// "" if all of the kind's results are within 64 · ε · Σ|terms| of what they should be.
  std::string firstError() {
    std::map<std::string, Tensor*> results = {{"result", &result}, {"log_sum_exp", &logs}};
    if (s_.kind == AttentionKind::gradient)
      results = {{"query's", &query_cotangent}, {"key's", &key_cotangent}, {"value's", &value_cotangent}};
    if (s_.mask_gradient) results["mask's"] = &mask_cotangent;
    for (auto& [name, tensor] : results)
      if (std::string error = firstErrorOf(*tensor); !error.empty()) return name + ": " + error;
    return "";
  }

  /// The bits of everything that is written.
  std::vector<T> results() {
    std::vector<T> all;
    for (Tensor* tensor :
         {&result, &logs, &query_cotangent, &key_cotangent, &value_cotangent, &mask_cotangent})
      all.insert(all.end(), tensor->data.data(), tensor->data.data() + tensor->data.size());
    return all;
  }

  int64_t workspaceBytes() const { return attentionWorkspaceBytes(s_); }

 private:
  int64_t group(int64_t h) const { return h / s_.headsPerGroup(); }

  int64_t maskCount() const {
    const int64_t extents[] = {s_.batch, s_.heads, s_.queries, s_.keys};
    int64_t count = 1;
    for (int dim = 0; dim < 4; ++dim) count += (extents[dim] - 1) * s_.mask_strides[dim];
    return count;
  }
  int64_t maskIndex(int64_t b, int64_t h, int64_t t, int64_t k) const {
    return b * s_.mask_strides[0] + h * s_.mask_strides[1] + t * s_.mask_strides[2] + k * s_.mask_strides[3];
  }

  template <typename Visit>
  void forRows(Visit visit) {
    for (int64_t b = 0; b < s_.batch; ++b)
      for (int64_t h = 0; h < s_.heads; ++h)
        for (int64_t t = 0; t < s_.queries; ++t) visit(b, h, t);
  }

  double score(int64_t b, int64_t h, int64_t t, int64_t k) {
    const int64_t index = maskIndex(b, h, t, k);
    if ((s_.causal && k > t) || (s_.mask == AttentionMask::flags && !flags[index])) return -INFINITY;
    double sum = 0;
    for (int64_t d = 0; d < s_.width; ++d)
      sum += static_cast<double>(query.at(b, h, t, d)) * key.at(b, group(h), k, d);
    return sum * s_.scale + (s_.mask == AttentionMask::addends ? static_cast<double>(addends[index]) : 0);
  }

  /// What a score is added up from.
  double scoreSize(int64_t b, int64_t h, int64_t t, int64_t k) {
    double sum = s_.mask == AttentionMask::addends ? std::abs(addends[maskIndex(b, h, t, k)]) : 0;
    for (int64_t d = 0; d < s_.width; ++d)
      sum += std::abs(s_.scale * query.at(b, h, t, d) * key.at(b, group(h), k, d));
    return sum;
  }

  double factor(int64_t b, int64_t h, int64_t t, int64_t k) const {
    if (s_.dropout == 0) return 1;
    const auto element = static_cast<uint64_t>(((b * s_.heads + h) * s_.queries + t) * s_.keys + k);
    const auto [low, high] = philoxKey(static_cast<uint64_t>(seed));
    const PhiloxCounter words =
        philox4x32({static_cast<uint32_t>(element / 4), static_cast<uint32_t>(element >> 34),
                    static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32)},
                   {low ^ high, static_cast<uint32_t>(s_.id)});
    return uniformFloat(words[element % 4]) >= static_cast<float>(s_.dropout) ? 1 / (1 - s_.dropout) : 0;
  }

  void addGradient(int64_t b, int64_t h, int64_t t, int64_t k, double shift, double delta,
                   double delta_size) {
    const int64_t g = group(h);
    const double x = score(b, h, t, k), p = std::exp(x - shift), drop = factor(b, h, t, k);
    const double size = x == -INFINITY ? 0 : 1 + scoreSize(b, h, t, k) + std::abs(shift);
    // A probability below the least one counts as 0.
    const double p_size =
        p + (sizeof(T) == 8 ? 0x1p-256 : 0x1p-64) / (64 * std::numeric_limits<T>::epsilon());
    double dp = 0, dp_size = 0;
    for (int64_t e = 0; e < s_.value_width; ++e) {
      const double ct = drop * cotangent.at(b, h, t, e), term = ct * value.at(b, g, k, e);
      dp += term;
      dp_size += std::abs(term);
      value_cotangent.add(b, g, k, e, p * ct, std::abs(p_size * ct) * size);
    }
    const double slope = p * (dp - delta), slope_size = p_size * (dp_size + delta_size) * size;
    for (int64_t d = 0; d < s_.width; ++d) {
      const double q = s_.scale * query.at(b, h, t, d), c = s_.scale * key.at(b, g, k, d);
      query_cotangent.add(b, h, t, d, slope * c, slope_size * std::abs(c));
      key_cotangent.add(b, g, k, d, slope * q, slope_size * std::abs(q));
    }
    mask_cotangent.add(0, 0, 0, maskIndex(b, h, t, k), slope, slope_size);
  }

  std::string firstErrorOf(Tensor& tensor) {
    constexpr double kEpsilon = std::numeric_limits<T>::epsilon();
    const int64_t batch =
        static_cast<int64_t>(tensor.expected.size()) / (tensor.heads * tensor.rows * tensor.width);
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < tensor.heads; ++h)
        for (int64_t row = 0; row < tensor.rows; ++row)
          for (int64_t i = 0; i < tensor.width; ++i) {
            const double found = tensor.at(b, h, row, i),
                         wanted = tensor.expected[tensor.index(b, h, row, i)];
            const double bound = 64 * kEpsilon * tensor.terms[tensor.index(b, h, row, i)] +
                                 std::numeric_limits<T>::min();  // denormals have no ε
            if (found == wanted || (std::isnan(found) && std::isnan(wanted)) ||
                std::abs(found - wanted) <= bound)
              continue;
            char text[200];
            std::snprintf(text, sizeof text, "[%ld, %ld, %ld, %ld] is %.9g, expected %.9g within %.3g",
                          long(b), long(h), long(row), long(i), found, wanted, bound);
            return text;
          }
    return "";
  }

  AttentionShape s_;
  int64_t mask_count_;

 public:
  Tensor query, key, value, result, logs, cotangent, query_cotangent, key_cotangent, value_cotangent,
      mask_cotangent;
  GuardedArray<T> addends;
  GuardedArray<uint8_t> flags;
  GuardedArray<T> workspace;
  int64_t seed = 0x123456789abcdef, step = 41;
};

}  // namespace gpuc
