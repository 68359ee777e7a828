#include "runtime/data/loader.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <system_error>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gpuc {
namespace {

constexpr size_t kAlignment = 64;  // a cache line, and the widest vector

// The consumer has work to do at once, and waking a sleeper costs about 50 us; a worker is ahead of its time
// and must not take the core from those who compute.
constexpr int kConsumerSpins = 1000;
constexpr int kWorkerSpins = 20;

void pauseBriefly() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

size_t alignUp(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

double microsecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

Status checkOptions(const std::vector<InputSpec>& inputs, const Sampler& sampler,
                    const LoaderOptions& options) {
  if (options.workers < 0 || options.workers > 1024)
    return errorf("%lld loader workers, expected 0 to 1024", static_cast<long long>(options.workers));
  if (options.prefetch < 1 || options.prefetch > 65536)
    return errorf("prefetch of %lld batches, expected 1 to 65536", static_cast<long long>(options.prefetch));
  if (options.start.epoch < 0 || options.start.step < 0 || options.start.step >= sampler.stepsPerEpoch())
    return errorf("cannot start at step %lld of epoch %lld: an epoch has %lld steps",
                  static_cast<long long>(options.start.step), static_cast<long long>(options.start.epoch),
                  static_cast<long long>(sampler.stepsPerEpoch()));
  for (const InputSpec& input : inputs)
    if (input.tensor.shape.empty() || input.tensor.shape[0] != sampler.options().batch)
      return errorf("input %s: %s does not take batches of %lld rows", input.tensor.name.c_str(),
                    input.tensor.str().c_str(), static_cast<long long>(sampler.options().batch));
  return okStatus();
}

}  // namespace

Result<std::unique_ptr<Loader>> Loader::create(BoundDataset data, std::vector<InputSpec> inputs,
                                               const Sampler& sampler, const LoaderOptions& options) {
  GPUC_RETURN_IF_ERROR(checkOptions(inputs, sampler, options));
  std::unique_ptr<Loader> loader(new Loader(std::move(data), std::move(inputs), sampler, options));
  GPUC_RETURN_IF_ERROR(loader->allocateSlots());
  GPUC_RETURN_IF_ERROR(loader->startWorkers(options.workers));
  return loader;
}

Loader::Loader(BoundDataset data, std::vector<InputSpec> inputs, const Sampler& sampler,
               const LoaderOptions& options)
    : data_(std::move(data)),
      inputs_(std::move(inputs)),
      sampler_(sampler),
      has_workers_(options.workers > 0),
      first_step_(static_cast<uint64_t>(options.start.epoch * sampler.stepsPerEpoch() + options.start.step)),
      wake_distance_(std::max<int64_t>(0, (options.prefetch - 2) / 2)),
      slots_(static_cast<size_t>(options.prefetch)) {}

Loader::~Loader() {
  stopped_ = true;
  for (Slot& slot : slots_) {
    // Any change of the word ends a wait; what it says no longer matters.
    slot.turn.fetch_add(1u << 30);
    slot.turn.notify_all();
  }
  for (std::thread& worker : workers_) worker.join();
}

Status Loader::allocateSlots() {
  size_t slot_bytes = 0;
  for (const InputSpec& input : inputs_) slot_bytes += alignUp(static_cast<size_t>(input.tensor.sizeBytes()));
  const bool is_countable = !__builtin_mul_overflow(slot_bytes, slots_.size(), &memory_bytes_);
  memory_bytes_ = std::max(kAlignment, memory_bytes_);  // of a model without inputs, too
  if (is_countable) memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, memory_bytes_)));
  if (!memory_)
    return errorf("no memory for %zu batches of %zu bytes; lower --prefetch or --batch", slots_.size(),
                  slot_bytes);
  std::memset(memory_.get(), 0, memory_bytes_);  // pages in, before the first step is timed
  std::byte* place = memory_.get();
  for (Slot& slot : slots_) {
    slot.indices.resize(static_cast<size_t>(sampler_.options().batch));
    for (const InputSpec& input : inputs_) {
      slot.fields.push_back(place);
      place += alignUp(static_cast<size_t>(input.tensor.sizeBytes()));
    }
    slot.batch.fields = slot.fields;
  }
  return okStatus();
}

Status Loader::startWorkers(int64_t count) {
  try {
    for (int64_t i = 0; i < count; ++i) workers_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    return errorf("cannot start loader worker %zu: %s; lower --workers", workers_.size(), error.what());
  }
  // A thread's first moments may allocate on its behalf; they belong to construction.
  for (int64_t running = 0; running < count; running = running_.load()) running_.wait(running);
  return okStatus();
}

void Loader::work() {
  ++running_;
  running_.notify_one();
  while (!stopped_.load(std::memory_order_relaxed)) {
    uint64_t number = next_to_fill_.fetch_add(1, std::memory_order_relaxed);
    if (!waitUntilFree(number)) return;
    Slot& slot = slotOf(number);
    fill(slot, number);
    slot.turn.fetch_add(1, std::memory_order_release);
    slot.turn.notify_all();
  }
}

void Loader::fill(Slot& slot, uint64_t number) {
  slot.batch.position = sampler_.positionOf(static_cast<int64_t>(first_step_ + number));
  slot.batch.rows = sampler_.validRows(slot.batch.position.step);
  slot.batch.wait_us = 0;
  slot.status = okStatus();
  sampler_.sampleIndices(slot.batch.position, slot.indices);
  for (size_t i = 0; i < inputs_.size() && slot.status.ok(); ++i)
    slot.status = data_.dataset->copyRows(slot.indices, data_.field_of_input[i], slot.fields[i]);
}

/// False if the loader is being taken down.
bool Loader::waitUntilFree(uint64_t number) {
  uint32_t free = static_cast<uint32_t>(number / slots_.size() * 2);
  if (slotOf(number).turn.load(std::memory_order_acquire) == free) return !stopped_;
  // Slots become free in order: once the later one is, so is this one.
  return waitForTurn(number + static_cast<uint64_t>(wake_distance_), 0, kWorkerSpins) &&
         waitForTurn(number, 0, kWorkerSpins);
}

/// Waits until batch `number` may be filled (filled = 0) or is filled (filled = 1), or until either has
/// passed. False if the loader is being taken down.
bool Loader::waitForTurn(uint64_t number, uint32_t filled, int spins) {
  std::atomic<uint32_t>& turn = slotOf(number).turn;
  uint32_t wanted = static_cast<uint32_t>(number / slots_.size() * 2) + filled;
  while (true) {
    uint32_t seen = turn.load(std::memory_order_acquire);
    if (stopped_.load(std::memory_order_acquire)) return false;
    if (static_cast<int32_t>(seen - wanted) >= 0) return true;  // the difference survives wrapping around
    if (spins-- > 0)
      pauseBriefly();
    else
      turn.wait(seen, std::memory_order_acquire);
  }
}

Result<const Batch*> Loader::next() {
  int64_t held = static_cast<int64_t>(next_to_deliver_ - next_to_release_);
  if (held > mostHeld())
    return errorf("%lld batches are held of %lld slots; release one before the next, or raise --prefetch",
                  static_cast<long long>(held), static_cast<long long>(depth()));
  Slot& slot = slotOf(next_to_deliver_);
  uint32_t filled = static_cast<uint32_t>(next_to_deliver_ / slots_.size() * 2 + 1);
  double wait_us = 0;
  if (!has_workers_ || slot.turn.load(std::memory_order_acquire) != filled) {
    auto start = std::chrono::steady_clock::now();
    if (has_workers_) {
      waitForTurn(next_to_deliver_, 1, kConsumerSpins);
    } else {
      fill(slot, next_to_deliver_);
      slot.turn.fetch_add(1, std::memory_order_relaxed);
    }
    wait_us = microsecondsSince(start);
  }
  slot.batch.wait_us = wait_us;
  ++next_to_deliver_;
  if (!slot.status.ok()) return slot.status;
  return static_cast<const Batch*>(&slot.batch);
}

void Loader::release() {
  if (next_to_release_ == next_to_deliver_) return;
  Slot& slot = slotOf(next_to_release_++);
  slot.turn.fetch_add(1, std::memory_order_release);
  slot.turn.notify_all();
}

}  // namespace gpuc
