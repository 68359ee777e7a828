// What traces call the commands of libraries: by what they compute and its extents. The compiler asks too, to
// find commands of a plan in a trace.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

namespace gpuc {

/// What follows each element of a product: " + bias, relu", or ", masked".
struct EpilogueName {
  bool bias = false, relu = false, mask = false;

  std::string text() const {
    return std::string(bias ? " + bias" : "") + (relu ? ", relu" : "") + (mask ? ", masked" : "");
  }
};

/// ", fc1.weight.sgd_update": what takes the result.
inline std::string behind(const std::string& update) { return update.empty() ? "" : ", " + update; }

/// "12x64x64": extents.
template <typename Extents>
std::string joinExtents(const Extents& extents) {
  std::string text;
  for (const auto extent : extents) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

struct MatmulName {
  uint64_t batch = 1, m = 1, n = 1, k = 1;
  bool tf32 = false, accumulate = false;
  EpilogueName epilogue;
  std::string update = {};  // the kernel's name; empty: none

  /// "64x128x784": rows, columns, inner extent, after the batch if there is one.
  std::string shape() const {
    const std::initializer_list<uint64_t> one = {m, n, k}, several = {batch, m, n, k};
    return joinExtents(batch == 1 ? one : several);
  }

  std::string text() const {
    return "matmul " + shape() + (tf32 ? " tf32" : "") + (accumulate ? " added" : "") + epilogue.text() +
           behind(update);
  }
};

/// "conv 64→128 3x3 on 32x56x56": channels, kernel, images of the input.
struct ConvName {
  int kind = 0;  // as the plan numbers them
  uint64_t in_channels = 1, out_channels = 1, kernel_height = 1, kernel_width = 1;
  uint64_t batch = 1, height = 1, width = 1;
  bool channels_last = false, tf32 = false;
  EpilogueName epilogue;
  std::string update = {};  // as of a product

  std::string text() const {
    constexpr const char* kKinds[] = {"conv ", "conv input gradient ", "conv filter gradient "};
    const std::initializer_list<uint64_t> kernel = {kernel_height, kernel_width},
                                          images = {batch, height, width};
    return kKinds[kind] + std::to_string(in_channels) + "→" + std::to_string(out_channels) + " " +
           joinExtents(kernel) + " on " + joinExtents(images) + (channels_last ? " channels last" : "") +
           (tf32 ? " tf32" : "") + epilogue.text() + behind(update);
  }
};

/// "attention gradient 12x4x64x64x32": batch, heads, queries, keys, elements of a key.
struct AttentionName {
  bool gradient = false;
  uint64_t batch = 1, heads = 1, queries = 1, keys = 1, width = 1;

  std::string text() const {
    const std::initializer_list<uint64_t> extents = {batch, heads, queries, keys, width};
    return (gradient ? "attention gradient " : "attention ") + joinExtents(extents);
  }
};

}  // namespace gpuc
