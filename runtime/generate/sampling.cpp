#include "runtime/generate/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/base/philox.h"

namespace gpuc {
namespace {

Status checkLogits(std::span<const double> logits) {
  bool any = false;
  for (size_t token = 0; token < logits.size(); ++token) {
    if (std::isnan(logits[token]) || logits[token] == INFINITY)
      return errorf("the model's logit of token %zu is %s: was training stable?", token,
                    std::isnan(logits[token]) ? "NaN" : "infinite");
    any = any || std::isfinite(logits[token]);
  }
  return any ? okStatus() : Status::error("all of the model's logits are -infinity: no token is possible");
}

}  // namespace

Result<int64_t> TokenSampler::draw(std::span<const double> logits) {
  GPUC_RETURN_IF_ERROR(checkLogits(logits));
  order_.resize(logits.size());
  std::iota(order_.begin(), order_.end(), 0);
  auto at = [&](int64_t token) { return logits[static_cast<size_t>(token)]; };
  std::sort(order_.begin(), order_.end(),
            [&](int64_t a, int64_t b) { return at(a) != at(b) ? at(a) > at(b) : a < b; });
  uint64_t draw = draws_++;
  if (options_.temperature == 0) return order_[0];
  if (options_.top_k > 0 && static_cast<size_t>(options_.top_k) < order_.size())
    order_.resize(static_cast<size_t>(options_.top_k));

  auto weight = [&](int64_t token) { return std::exp((at(token) - at(order_[0])) / options_.temperature); };
  double total = 0;
  for (int64_t token : order_) total += weight(token);
  PhiloxCounter bits =
      philox4x32({static_cast<uint32_t>(draw), static_cast<uint32_t>(draw >> 32), 0, 0x6765'6e00},
                 philoxKey(options_.seed));
  double left = total * ((static_cast<uint64_t>(bits[0]) << 21 | bits[1] >> 11) * 0x1p-53);
  for (int64_t token : order_) {
    left -= weight(token);
    if (left < 0) return token;
  }
  return order_[0];  // the last step's rounding: as likely as 2^-53
}

}  // namespace gpuc
