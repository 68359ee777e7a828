#include "passes/placement/Siblings.h"

#include <algorithm>
#include <random>

namespace gpuc::placement {
namespace {

class Joiner {
 public:
  Joiner(const Instance& instance, uint64_t seed, Budget& budget)
      : budget_(budget), random_(seed), starts_(instance.sectionCount() + 1), ends_(starts_.size()) {
    // From none to half of the pairs are left alone.
    left_alone_ = random_() % (kShares / 2);
    for (size_t i = 0; i < instance.size(); ++i) items_.push_back(instance[i]);
    for (size_t i = 0; i < items_.size(); ++i) insert(i);
    for (size_t i = 0; i < items_.size(); ++i) findPairs(i);
  }

  void run() {
    while (!budget_.exhausted() && !(in_time_.empty() && in_memory_.empty())) {
      const bool in_memory = in_time_.empty();
      auto [a, b] = takeAny(in_memory ? in_memory_ : in_time_);
      if (random_() % kShares < left_alone_ || !alive_[a] || !alive_[b]) continue;
      if (in_memory && !fillsGap(items_[a], items_[a].size + items_[b].size)) continue;
      join(a, b, in_memory);
    }
  }

  Siblings take() {
    Siblings result;
    result.buffer_of.assign(items_.size(), Siblings::kNone);
    for (size_t i = 0; i < items_.size(); ++i) {
      const Item& item = items_[i];
      result.sizes.push_back(item.size);
      if (!alive_[i]) continue;
      result.buffer_of[i] = result.problem.buffers.size();
      result.problem.buffers.push_back({"", item.first, item.last, item.size, item.alignment});
    }
    result.joined = std::move(joined_);
    return result;
  }

 private:
  using Pair = std::pair<size_t, size_t>;
  static constexpr uint64_t kShares = 1000;

  /// Of very many alike, some do.
  static void add(Pair pair, std::vector<Pair>& pairs) {
    constexpr size_t kMostPairs = 100'000;
    if (pairs.size() < kMostPairs) pairs.push_back(pair);
  }

  Pair takeAny(std::vector<Pair>& pairs) {
    std::swap(pairs[random_() % pairs.size()], pairs.back());
    Pair pair = pairs.back();
    pairs.pop_back();
    return pair;
  }

  void join(size_t a, size_t b, bool in_memory) {
    Item item = items_[a];
    item.last = items_[b].last;
    if (in_memory) item.size += items_[b].size;
    remove(a);
    remove(b);
    joined_.push_back({a, b, in_memory});
    items_.push_back(item);
    insert(items_.size() - 1);
    findPairs(items_.size() - 1);
  }

  void insert(size_t item) {
    alive_.push_back(true);
    starts_[items_[item].first].push_back(item);
    ends_[items_[item].last].push_back(item);
  }

  void remove(size_t item) {
    alive_[item] = false;
    std::erase(starts_[items_[item].first], item);
    std::erase(ends_[items_[item].last], item);
  }

  /// All pairs that the item is part of, or is the neighbour in time of.
  void findPairs(size_t item) {
    const Item it = items_[item];
    if (!spend(ends_[it.first].size() + starts_[it.last].size() + starts_[it.first].size())) return;
    for (size_t other : ends_[it.first])
      if (isLike(items_[other], it, it.size)) add({other, item}, in_time_);
    for (size_t other : starts_[it.last])
      if (isLike(items_[other], it, it.size)) add({item, other}, in_time_);
    for (size_t other : starts_[it.first])
      if (other != item && items_[other].last == it.last && items_[other].alignment == it.alignment &&
          fillsGap(it, it.size + items_[other].size))
        add({other, item}, in_memory_);
    findPairsBeside(it, ends_[it.first]);
    findPairsBeside(it, starts_[it.last]);
  }

  /// Pairs of one lifetime whose sizes are together that of their neighbour `it`.
  void findPairsBeside(const Item& it, const std::vector<size_t>& neighbours) {
    for (size_t k = 0; k < neighbours.size(); ++k) {
      const Item& a = items_[neighbours[k]];
      if (a.size >= it.size || a.alignment != it.alignment) continue;
      if (!spend(neighbours.size() - k)) return;
      for (size_t l = k + 1; l < neighbours.size(); ++l) {
        const Item& b = items_[neighbours[l]];
        if (a.first == b.first && a.last == b.last && isLike(b, it, it.size - a.size))
          add({neighbours[k], neighbours[l]}, in_memory_);
      }
    }
  }

  /// Whether some item ends where `it` begins, or begins where it ends, and has so many bytes.
  bool fillsGap(const Item& it, int64_t size) {
    if (!spend(ends_[it.first].size() + starts_[it.last].size())) return false;
    auto fills = [&](size_t other) { return isLike(items_[other], it, size); };
    return std::any_of(ends_[it.first].begin(), ends_[it.first].end(), fills) ||
           std::any_of(starts_[it.last].begin(), starts_[it.last].end(), fills);
  }

  static bool isLike(const Item& item, const Item& other, int64_t size) {
    return item.size == size && item.alignment == other.alignment;
  }

  bool spend(size_t looked_at) {
    constexpr int64_t kWork = 20, kWorkPerItem = 3;
    return budget_.spend(kWork + kWorkPerItem * static_cast<int64_t>(looked_at));
  }

  Budget& budget_;
  std::mt19937_64 random_;
  uint64_t left_alone_;
  std::vector<Item> items_;
  std::vector<char> alive_;
  std::vector<std::vector<size_t>> starts_, ends_;  // section → items alive that begin, or end, where it does
  std::vector<Pair> in_time_, in_memory_;
  std::vector<Joined> joined_;
};

}  // namespace

std::vector<int64_t> Siblings::toItems(const std::vector<int64_t>& buffer_offsets) const {
  std::vector<int64_t> offsets(sizes.size(), 0);
  for (size_t i = 0; i < sizes.size(); ++i)
    if (buffer_of[i] != kNone) offsets[i] = buffer_offsets[buffer_of[i]];
  const size_t originals = sizes.size() - joined.size();
  for (size_t i = sizes.size(); i-- > originals;) {
    const Joined& parts = joined[i - originals];
    offsets[parts.first] = offsets[i];
    offsets[parts.second] = offsets[i] + (parts.in_memory ? sizes[parts.first] : 0);
  }
  offsets.resize(originals);
  return offsets;
}

Siblings joinSiblings(const Instance& instance, uint64_t seed, Budget& budget) {
  Joiner joiner(instance, seed, budget);
  joiner.run();
  return joiner.take();
}

}  // namespace gpuc::placement
