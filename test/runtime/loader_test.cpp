// The loader: the same batches in the same order whatever its threads do, and no allocation once it runs.
#include "runtime/data/loader.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "runtime/data/formats.h"
#include "test/runtime/allocation_hook.h"
#include "test/runtime/temporary_folder.h"

namespace gpuc {
namespace {

std::vector<InputSpec> inputsOf(int64_t batch) {
  return {{{"x", DataType::f32, {batch, 3, 5}}, 0}, {{"labels", DataType::i32, {batch}}, 10}};
}

BoundDataset syntheticData(int64_t size) { return {*makeSyntheticDataset(inputsOf(1), size, 5), {0, 1}}; }

Sampler samplerOf(int64_t size, int64_t batch, LastBatch last_batch = LastBatch::drop) {
  return *Sampler::create({.size = size, .batch = batch, .seed = 3, .last_batch = last_batch});
}

std::unique_ptr<Loader> makeLoader(int64_t size, int64_t batch, const LoaderOptions& options,
                                   LastBatch last_batch = LastBatch::drop) {
  Result<std::unique_ptr<Loader>> loader =
      Loader::create(syntheticData(size), inputsOf(batch), samplerOf(size, batch, last_batch), options);
  EXPECT_TRUE(loader.ok()) << loader.message();
  return *std::move(loader);
}

/// Everything that a batch says, as bytes.
std::string contentsOf(const Batch& batch, int64_t rows) {
  std::string text = std::to_string(batch.position.epoch) + ":" + std::to_string(batch.position.step) + ":" +
                     std::to_string(batch.rows) + ":";
  text.append(reinterpret_cast<const char*>(batch.fields[0]), static_cast<size_t>(rows) * 60);
  text.append(reinterpret_cast<const char*>(batch.fields[1]), static_cast<size_t>(rows) * 4);
  return text;
}

std::vector<std::string> take(Loader& loader, int count, int64_t rows) {
  std::vector<std::string> contents;
  for (int i = 0; i < count; ++i) {
    Result<const Batch*> batch = loader.next();
    EXPECT_TRUE(batch.ok()) << batch.message();
    contents.push_back(contentsOf(**batch, rows));
    loader.release();
  }
  return contents;
}

TEST(Loader, ServesTheSamplersRows) {
  std::unique_ptr<Loader> loader = makeLoader(50, 8, {.workers = 1});
  BoundDataset data = syntheticData(50);
  Sampler sampler = samplerOf(50, 8);
  for (LoaderPosition position; position.epoch < 3; position = sampler.following(position)) {
    const Batch& batch = **loader->next();
    ASSERT_EQ(batch.position, position);
    EXPECT_EQ(batch.rows, 8);
    std::vector<int64_t> indices(8);
    sampler.sampleIndices(position, indices);
    std::vector<float> x(8 * 15);
    ASSERT_TRUE(data.dataset->copyRows(indices, 0, reinterpret_cast<std::byte*>(x.data())).ok());
    EXPECT_EQ(std::memcmp(batch.fields[0], x.data(), x.size() * 4), 0);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(batch.fields[1]) % 64, 0u);
    loader->release();
  }
}

TEST(Loader, BytesAndOrderDoNotDependOnWorkersOrSlots) {
  std::vector<std::string> expected = take(*makeLoader(101, 8, {.workers = 0, .prefetch = 1}), 200, 8);
  for (int64_t workers : {0, 1, 2, 3, 7})
    for (int64_t prefetch : {1, 2, 3, 4, 9})
      EXPECT_EQ(take(*makeLoader(101, 8, {.workers = workers, .prefetch = prefetch}), 200, 8), expected)
          << workers << " workers, " << prefetch << " slots";
}

TEST(Loader, StartsAnywhere) {
  std::vector<std::string> all = take(*makeLoader(50, 8, {.workers = 2}), 30, 8);  // 6 steps an epoch
  for (int first : {1, 5, 6, 17}) {
    LoaderOptions options = {.workers = 2, .start = {first / 6, first % 6}};
    std::vector<std::string> rest = take(*makeLoader(50, 8, options), 30 - first, 8);
    EXPECT_EQ(rest, std::vector<std::string>(all.begin() + first, all.end())) << first;
  }
}

TEST(Loader, APaddedBatchSaysHowManyRowsCount) {
  std::unique_ptr<Loader> loader = makeLoader(20, 8, {.workers = 2}, LastBatch::pad);
  std::vector<int64_t> rows;
  for (int i = 0; i < 6; ++i) {
    const Batch& batch = **loader->next();
    rows.push_back(batch.rows);
    for (int64_t row = batch.rows; row < 8; ++row)
      EXPECT_EQ(std::memcmp(batch.fields[0], batch.fields[0] + row * 60, 60), 0);
    loader->release();
  }
  EXPECT_EQ(rows, (std::vector<int64_t>{8, 8, 4, 8, 8, 4}));
}

TEST(Loader, SeveralBatchesCanBeHeld) {
  std::unique_ptr<Loader> loader = makeLoader(50, 8, {.workers = 2, .prefetch = 4});
  std::vector<std::string> expected = take(*makeLoader(50, 8, {.workers = 0}), 40, 8);
  EXPECT_EQ(loader->mostHeld(), 2);
  std::vector<const Batch*> held = {*loader->next(), *loader->next()};
  for (size_t i = 0; i < 30; ++i) {
    held.push_back(*loader->next());
    for (size_t k = 0; k < 3; ++k) ASSERT_EQ(contentsOf(*held[k], 8), expected[i + k]);
    loader->release();
    held.erase(held.begin());
  }
  ASSERT_TRUE(loader->next().ok());
  expectError(loader->next(), "3 batches are held of 4 slots; release one");
}

/// Fails at one sample, sleeps before each copy.
class TroubledDataset : public Dataset {
 public:
  TroubledDataset(int64_t bad_sample, int64_t delay_us)
      : Dataset(64, {{{"x", DataType::i64, {}}, "trouble"}}), bad_sample_(bad_sample), delay_us_(delay_us) {}
  Status copySample(int64_t row, size_t, std::byte* destination) const override {
    std::this_thread::sleep_for(std::chrono::microseconds(delay_us_));
    if (row == bad_sample_) return Status::error("sample 17 cannot be read");
    std::memcpy(destination, &row, 8);
    return okStatus();
  }

 private:
  int64_t bad_sample_, delay_us_;
};

std::unique_ptr<Loader> troubledLoader(int64_t bad_sample, int64_t delay_us, const LoaderOptions& options) {
  Sampler sampler = *Sampler::create({.size = 64, .batch = 8, .shuffle = false});
  return *Loader::create({std::make_shared<TroubledDataset>(bad_sample, delay_us), {0}},
                         {{{"x", DataType::i64, {8}}, 0}}, sampler, options);
}

TEST(Loader, AnErrorComesWithItsBatch) {
  for (int64_t workers : {0, 3}) {
    std::unique_ptr<Loader> loader = troubledLoader(17, 0, {.workers = workers});
    EXPECT_TRUE(loader->next().ok());
    loader->release();
    EXPECT_TRUE(loader->next().ok());
    loader->release();
    expectError(loader->next(), "sample 17 cannot be read");
    loader->release();
    EXPECT_TRUE(loader->next().ok());
  }
}

TEST(Loader, WaitingIsMeasured) {
  std::unique_ptr<Loader> loader = troubledLoader(-1, 20000, {.workers = 1, .prefetch = 2});
  EXPECT_GT((*loader->next())->wait_us, 1000);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ((*loader->next())->wait_us, 0);  // it was there already
  loader->release();
  std::unique_ptr<Loader> own = troubledLoader(-1, 2000, {.workers = 0});
  EXPECT_GE((*own->next())->wait_us, 2000);
}

TEST(Loader, CanBeTakenDownAtAnyTime) {
  for (int round = 0; round < 300; ++round) {
    std::unique_ptr<Loader> loader = makeLoader(50, 8, {.workers = round % 4, .prefetch = 1 + round % 5});
    for (int i = 0; i < round % 7; ++i) {
      ASSERT_TRUE(loader->next().ok());
      if (i + 1 < round % 7) loader->release();
    }
  }
}

TEST(Loader, SaysWhatItsSlotsTake) {
  // x: 8 * 15 * 4 = 480, aligned 512; labels: 32, aligned 64.
  EXPECT_EQ(makeLoader(50, 8, {.prefetch = 3})->slotBytes(), 3u * (512 + 64));
}

TEST(Loader, RefusesWhatCannotWork) {
  auto create = [](const LoaderOptions& options, int64_t input_batch = 8) {
    return Loader::create(syntheticData(50), inputsOf(input_batch), samplerOf(50, 8), options);
  };
  expectError(create({.workers = -1}), "-1 loader workers, expected 0 to 1024");
  expectError(create({.prefetch = 0}), "prefetch of 0 batches, expected 1 to 65536");
  expectError(create({.start = {0, 6}}), "cannot start at step 6 of epoch 0: an epoch has 6 steps");
  expectError(create({}, 9), "input x: 9x3x5xf32 does not take batches of 8 rows");
}

TEST(Loader, SlotsOfMoreBytesThanThereAreAreNoMemory) {
  std::vector<InputSpec> inputs = inputsOf(8);
  inputs[0].tensor.shape = {8, int64_t{1} << 50};  // 2^55 bytes, in 2^16 slots
  expectError(Loader::create(syntheticData(50), inputs, samplerOf(50, 8), {.prefetch = 65536}),
              "no memory for 65536 batches of ");
}

TEST(AllocationHook, SeesEveryWayToAllocate) {
  int64_t before = allocationCount().heap;
  void* volatile memory = std::malloc(10);
  std::free(memory);
  memory = ::operator new(10);
  ::operator delete(memory);
  memory = std::aligned_alloc(64, 64);
  std::free(memory);
  memory = std::calloc(2, 5);
  memory = std::realloc(memory, 5000);
  std::free(memory);
  int64_t seen = allocationCount().heap - before;
  // The thread sanitizer's hook does not see realloc.
  EXPECT_GE(seen, kCountsMaps ? 5 : 4);
  EXPECT_LE(seen, 5);
}

TEST(AllocationHook, SeesOtherThreads) {
  int64_t before = allocationCount().heap;
  std::thread([] {
    for (int i = 0; i < 100; ++i) {
      void* volatile memory = std::malloc(10);
      std::free(memory);
    }
  }).join();
  EXPECT_GE(allocationCount().heap - before, 100);
}

TEST(AllocationHook, SeesMaps) {
  if (!kCountsMaps) GTEST_SKIP() << "a sanitizer owns the allocator";
  AllocationCount before = allocationCount();
  resetLargestAllocation();
  void* memory = ::mmap(nullptr, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ::munmap(memory, 1 << 20);
  EXPECT_EQ(allocationCount().maps - before.maps, 1);
  EXPECT_EQ(largestAllocation(), 1 << 20);
}

TEST(Loader, SteadyStateAllocatesNothingInAnyThread) {
  for (int64_t workers : {0, 1, 3}) {
    std::unique_ptr<Loader> loader = makeLoader(500, 8, {.workers = workers}, LastBatch::pad);
    auto step = [&] {
      ASSERT_TRUE(loader->next().ok());
      loader->release();
    };
    for (int i = 0; i < 10; ++i) step();
    int64_t before = allocationCount().total();
    for (int i = 10; i < 1000; ++i) step();  // 63 steps an epoch: many epochs' ends lie within
    EXPECT_EQ(allocationCount().total() - before, 0) << workers << " workers";
  }
}

}  // namespace
}  // namespace gpuc
