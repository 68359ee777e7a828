// The order of samples: a permutation, sound as chance goes, and pinned.
#include "runtime/data/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "runtime/data/permutation.h"
#include "test/runtime/temporary_folder.h"

namespace gpuc {
namespace {

std::vector<int64_t> orderOf(int64_t size, uint64_t seed, uint64_t epoch) {
  Permutation permutation(size, seed, epoch);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < size; ++i) order.push_back(permutation(i));
  return order;
}

/// (observed - expected)^2 / expected, summed, as standard deviations from what chance would give.
double chiSquareDeviation(double chi_square, double degrees_of_freedom) {
  return (chi_square - degrees_of_freedom) / std::sqrt(2 * degrees_of_freedom);
}

TEST(Permutation, VisitsEachSampleOnce) {
  std::vector<int64_t> sizes = {1000, 1023, 1024, 1025, 4096, 10000, 60000, 65537, 99999};
  for (int64_t size = 1; size <= 300; ++size) sizes.push_back(size);
  for (int64_t size : sizes) {
    std::vector<int64_t> order = orderOf(size, 7, 3);
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < size; ++i) ASSERT_EQ(order[static_cast<size_t>(i)], i) << "size " << size;
  }
}

TEST(Permutation, StaysInsideHugeSizes) {
  constexpr int64_t kSize = (int64_t{1} << 62) + 12345;
  Permutation permutation(kSize, 1, 1);
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 1000; ++i) {
    int64_t sample = permutation(kSize - 1 - i);
    EXPECT_GE(sample, 0);
    EXPECT_LT(sample, kSize);
    seen.insert(sample);
  }
  EXPECT_EQ(seen.size(), 1000u);
}

TEST(Permutation, DiffersBySeedAndEpoch) {
  std::set<std::vector<int64_t>> orders;
  for (uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32})
    for (uint64_t epoch : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32})
      orders.insert(orderOf(100, seed, epoch));
  EXPECT_EQ(orders.size(), 9u);
}

// Computed with an independent implementation of the rule in permutation.h (docs/data.md has it in Python).
// Changing these numbers changes which samples every recorded run saw: they are part of the contract.
TEST(Permutation, KnownAnswers) {
  EXPECT_EQ(orderOf(10, 0, 0), (std::vector<int64_t>{8, 3, 9, 1, 0, 5, 7, 2, 6, 4}));
  EXPECT_EQ(orderOf(10, 42, 1), (std::vector<int64_t>{2, 4, 1, 9, 3, 5, 6, 0, 7, 8}));
  Permutation mnist(60000, 0, 0);
  std::vector<int64_t> first;
  for (int64_t i = 0; i < 8; ++i) first.push_back(mnist(i));
  EXPECT_EQ(first, (std::vector<int64_t>{1370, 39894, 5985, 37620, 19224, 54338, 55904, 37053}));
}

// All size! orders, each expected 200 times. Without the coin, sizes of odd x odd pairs such as 7 fail.
TEST(Permutation, SmallSizesTakeEveryOrderEquallyOften) {
  for (int size = 2; size <= 7; ++size) {
    double orders = std::tgamma(size + 1);
    std::map<std::vector<int64_t>, int> count;
    for (int epoch = 0; epoch < 200 * orders; ++epoch)
      ++count[orderOf(size, 5, static_cast<uint64_t>(epoch))];
    double chi_square = (orders - static_cast<double>(count.size())) * 200;
    for (const auto& [order, times] : count) chi_square += (times - 200.0) * (times - 200.0) / 200;
    EXPECT_LT(std::abs(chiSquareDeviation(chi_square, orders - 1)), 4) << "size " << size;
  }
}

// Each sample at each place expected `times` times, and each distance between neighbours `times * size`
// times.
TEST(Permutation, LargerSizesAreUniformInPlacesAndNeighbours) {
  for (auto [size, times] :
       {std::pair<int64_t, int64_t>{10, 100}, {16, 100}, {60, 100}, {257, 40}, {1100, 10}}) {
    std::vector<int64_t> place_count(static_cast<size_t>(size * size)),
        distance_count(static_cast<size_t>(size));
    for (int64_t epoch = 0; epoch < times * size; ++epoch) {
      std::vector<int64_t> order = orderOf(size, 9, static_cast<uint64_t>(epoch));
      for (int64_t i = 0; i < size; ++i) {
        int64_t sample = order[static_cast<size_t>(i)];
        ++place_count[static_cast<size_t>(i * size + sample)];
        if (i > 0)
          ++distance_count[static_cast<size_t>((sample - order[static_cast<size_t>(i - 1)] + size) % size)];
      }
    }
    double n = static_cast<double>(size), expected = static_cast<double>(times), places = 0, distances = 0;
    for (int64_t count : place_count) places += std::pow(static_cast<double>(count) - expected, 2) / expected;
    for (size_t i = 1; i < distance_count.size(); ++i)
      distances += std::pow(static_cast<double>(distance_count[i]) - expected * n, 2) / (expected * n);
    EXPECT_LT(std::abs(chiSquareDeviation(places, (n - 1) * (n - 1))), 4) << "size " << size;
    EXPECT_LT(std::abs(chiSquareDeviation(distances, n - 2)), 4) << "size " << size;
  }
}

Sampler makeSampler(const SamplerOptions& options) {
  Result<Sampler> sampler = Sampler::create(options);
  EXPECT_TRUE(sampler.ok()) << sampler.message();
  return *sampler;
}

std::vector<int64_t> indicesOf(const Sampler& sampler, LoaderPosition position) {
  std::vector<int64_t> indices(static_cast<size_t>(sampler.options().batch));
  sampler.sampleIndices(position, indices);
  return indices;
}

TEST(Sampler, WithoutShufflingTheOrderIsTheFiles) {
  Sampler sampler = makeSampler({.size = 10, .batch = 4, .shuffle = false});
  EXPECT_EQ(sampler.stepsPerEpoch(), 2);  // 8, 9 are dropped
  EXPECT_EQ(indicesOf(sampler, {0, 0}), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(indicesOf(sampler, {5, 1}), (std::vector<int64_t>{4, 5, 6, 7}));
}

TEST(Sampler, PaddingRepeatsTheFirstSampleOfTheGlobalBatch) {
  Sampler sampler = makeSampler({.size = 10, .batch = 4, .shuffle = false, .last_batch = LastBatch::pad});
  EXPECT_EQ(sampler.stepsPerEpoch(), 3);
  EXPECT_EQ(sampler.validRows(1), 4);
  EXPECT_EQ(sampler.validRows(2), 2);
  EXPECT_EQ(indicesOf(sampler, {0, 2}), (std::vector<int64_t>{8, 9, 8, 8}));
}

TEST(Sampler, ARankCanBeAllPadding) {
  SamplerOptions options = {
      .size = 10, .batch = 2, .rank = 1, .world_size = 4, .shuffle = false, .last_batch = LastBatch::pad};
  Sampler sampler = makeSampler(options);
  EXPECT_EQ(sampler.stepsPerEpoch(), 2);
  EXPECT_EQ(sampler.validRows(0), 2);
  EXPECT_EQ(sampler.validRows(1), 0);
  EXPECT_EQ(indicesOf(sampler, {0, 0}), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(indicesOf(sampler, {0, 1}), (std::vector<int64_t>{8, 8}));
}

TEST(Sampler, AnEpochHasEachSampleOnceOverAllRanks) {
  for (LastBatch last_batch : {LastBatch::drop, LastBatch::pad}) {
    std::multiset<int64_t> seen;
    for (int64_t rank = 0; rank < 3; ++rank) {
      Sampler sampler = makeSampler(
          {.size = 100, .batch = 7, .rank = rank, .world_size = 3, .seed = 1, .last_batch = last_batch});
      for (int64_t step = 0; step < sampler.stepsPerEpoch(); ++step) {
        std::vector<int64_t> indices = indicesOf(sampler, {2, step});
        seen.insert(indices.begin(), indices.begin() + sampler.validRows(step));
      }
    }
    EXPECT_EQ(seen.size(), last_batch == LastBatch::drop ? 84u : 100u);  // 4 global batches of 21
    EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), seen.size());
  }
}

TEST(Sampler, TheGlobalBatchDoesNotDependOnTheRanks) {
  std::vector<int64_t> alone = indicesOf(makeSampler({.size = 100, .batch = 12, .seed = 3}), {1, 2});
  std::vector<int64_t> shared;
  for (int64_t rank = 0; rank < 3; ++rank)
    for (int64_t index :
         indicesOf(makeSampler({.size = 100, .batch = 4, .rank = rank, .world_size = 3, .seed = 3}), {1, 2}))
      shared.push_back(index);
  EXPECT_EQ(alone, shared);
}

TEST(Sampler, PositionsRunOnIntoTheNextEpoch) {
  Sampler sampler = makeSampler({.size = 10, .batch = 4});
  EXPECT_EQ(sampler.following({0, 0}), (LoaderPosition{0, 1}));
  EXPECT_EQ(sampler.following({0, 1}), (LoaderPosition{1, 0}));
  EXPECT_EQ(sampler.positionOf(5), (LoaderPosition{2, 1}));
}

TEST(Sampler, RefusesWhatCannotWork) {
  expectError(Sampler::create({.size = 0, .batch = 4}), "0 samples, expected at least 1");
  expectError(Sampler::create({.size = 10, .batch = 0}), "batch of 0 rows");
  expectError(Sampler::create({.size = 10, .batch = 4, .rank = 2, .world_size = 2}), "rank 2 of 2 ranks");
  expectError(Sampler::create({.size = 10, .batch = INT64_MAX / 3, .world_size = 2}), "too large");
  expectError(Sampler::create({.size = 10, .batch = 6, .world_size = 2}),
              "10 samples, fewer than one global batch of 12 rows; compile with a smaller --batch or pass "
              "--last-batch=pad");
}

}  // namespace
}  // namespace gpuc
