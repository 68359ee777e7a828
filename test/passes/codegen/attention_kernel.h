// One of attention's three kernels as the text of a fused region.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace gpuc::test {

/// One of attention's three kernels.
struct AttentionKernelCase {
  enum class Part { Forward, Query, KeyValue };

  std::string name;
  Part part;
  std::string element = "f32";
  int64_t batch = 2, heads = 4, groups = 2, queries = 200, keys = 128, width = 64, valueWidth = 64;
  std::string attributes = ""; ///< With dropout the seed and the step are arguments.
  std::string mask = "";       ///< Its type.

  std::string tensor(std::initializer_list<int64_t> shape, const std::string &type) const {
    std::string text = "tensor<";
    for (int64_t extent : shape)
      text += std::to_string(extent) + "x";
    return text + type + ">";
  }
  std::string q() const { return tensor({batch, heads, queries, width}, element); }
  std::string k() const { return tensor({batch, groups, keys, width}, element); }
  std::string v() const { return tensor({batch, groups, keys, valueWidth}, element); }
  std::string y() const { return tensor({batch, heads, queries, valueWidth}, element); }
  std::string log() const { return tensor({batch, heads, queries}, "f32"); }

  /// As docs/cuda.md says, "Attention".
  bool onTensorCores() const {
    const bool drops = attributes.find("dropout") != std::string::npos, isForward = part == Part::Forward;
    const bool isWide = std::max(width, valueWidth) > 64, isInChunks = width % 8 == 0 && valueWidth % 8 == 0;
    if (element == "f32" || (drops && !isForward))
      return false;
    if (isForward)
      return !isWide || isInChunks || !drops;
    return !isWide || (isInChunks && (part == Part::Query || mask.empty()));
  }

  std::vector<std::string> arguments() const {
    std::vector<std::string> types = {q(), k(), v()};
    if (part != Part::Forward)
      types.insert(types.end(), {y(), y(), log()});
    if (!mask.empty())
      types.push_back(mask);
    if (attributes.find("dropout") != std::string::npos)
      types.insert(types.end(), {"tensor<i64>", "tensor<i64>"});
    return types;
  }
  std::vector<std::string> results() const {
    return part == Part::Forward ? std::vector{y(), log()}
           : part == Part::Query ? std::vector{q()}
                                 : std::vector{k(), v()};
  }
  std::string body() const {
    std::string type = mask.empty() ? "" : ", " + mask;
    if (part == Part::Forward)
      return "%0, %1 = gpuc.attention %a0, %a1, %a2" + std::string(mask.empty() ? "" : " mask %a3") + " " +
             attributes + " : (" + q() + ", " + k() + ", " + v() + type + ") -> (" + y() + ", " + log() +
             ")\ngpuc.yield %0, %1 : " + y() + ", " + log();
    bool isCotangent = !mask.empty() && mask.find("xi1") == std::string::npos;
    std::string op = std::string("%0, %1, %2") + (isCotangent ? ", %3" : "") +
                     " = gpuc.attention_gradient %a3 of %a4, %a5 query %a0 key %a1 value %a2" +
                     (mask.empty() ? "" : " mask %a6") + " " + attributes + " : (" + y() + ", " + y() + ", " +
                     log() + ", " + q() + ", " + k() + ", " + v() + type + ") -> (" + q() + ", " + k() +
                     ", " + v() + (isCotangent ? type : "") + ")\n";
    return op + (part == Part::Query ? "gpuc.yield %0 : " + q() : "gpuc.yield %1, %2 : " + k() + ", " + v());
  }
};

} // namespace gpuc::test
