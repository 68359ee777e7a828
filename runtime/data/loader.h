// Batches, gathered ahead of time by worker threads into slots that are allocated once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/data/data_spec.h"
#include "runtime/data/dataset.h"
#include "runtime/data/sampler.h"

namespace gpuc {

struct LoaderOptions {
  int64_t workers = 1;        // threads that gather; 0: the thread that calls next()
  int64_t prefetch = 4;       // slots
  LoaderPosition start = {};  // the first batch, for resuming
};

/// One batch; valid until it is released.
struct Batch {
  std::span<const std::byte* const> fields;  // in the order of the plan's inputs
  int64_t rows = 0;                          // that count; the rest of the batch is padding (see Sampler)
  LoaderPosition position;
  double wait_us = 0;  // how long next() blocked for it
};

/// Delivers the batches of a sampler in order, epoch after epoch, without end: which bytes come in which
/// batch does not depend on the number of workers. After construction no thread of it allocates.
///
/// One thread calls next() and release(). Worker w takes the next number t off a shared counter, fills slot t
/// mod prefetch once that is free, and takes the next. A worker that finds every slot full sleeps until about
/// half of them are free, so that a fast consumer pays for a wake now and then and not at each step; hence
/// next() may be called with at most mostHeld() batches unreleased.
class Loader {
 public:
  /// `inputs` are the plan's, with batches of sampler.options().batch rows. Errors: a batch extent that is
  /// not the sampler's, options below their least values, a start outside the epoch, no memory, no threads.
  static Result<std::unique_ptr<Loader>> create(BoundDataset data, std::vector<InputSpec> inputs,
                                                const Sampler& sampler, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Blocks until the next batch is there. Errors: reading its samples failed, too many batches are held.
  Result<const Batch*> next();

  /// Gives the oldest batch that is held back to the workers.
  void release();

  const Sampler& sampler() const { return sampler_; }
  /// Bytes of all slots together.
  size_t slotBytes() const { return memory_bytes_; }
  int64_t mostHeld() const { return depth() - 1 - wake_distance_; }

 private:
  struct alignas(64) Slot {
    // Use n of the slot: 2n while it is free for it, 2n + 1 once it is filled. Wraps around.
    std::atomic<uint32_t> turn{0};
    Batch batch;
    Status status;
    std::vector<std::byte*> fields;
    std::vector<int64_t> indices;
  };

  Loader(BoundDataset data, std::vector<InputSpec> inputs, const Sampler& sampler,
         const LoaderOptions& options);
  Status allocateSlots();
  Status startWorkers(int64_t count);
  void work();
  void fill(Slot& slot, uint64_t number);
  bool waitUntilFree(uint64_t number);
  bool waitForTurn(uint64_t number, uint32_t filled, int spins);
  int64_t depth() const { return static_cast<int64_t>(slots_.size()); }
  Slot& slotOf(uint64_t number) { return slots_[number % slots_.size()]; }

  BoundDataset data_;
  std::vector<InputSpec> inputs_;
  Sampler sampler_;
  bool has_workers_;
  uint64_t first_step_;    // steps from the very start to batch number 0
  int64_t wake_distance_;  // a sleeping worker wakes when this many slots beyond its own are free too
  std::vector<Slot> slots_;
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  size_t memory_bytes_ = 0;
  std::atomic<uint64_t> next_to_fill_{0};
  std::atomic<bool> stopped_{false};
  std::atomic<int64_t> running_{0};  // workers that have begun
  uint64_t next_to_deliver_ = 0;
  uint64_t next_to_release_ = 0;
  std::vector<std::thread> workers_;
};

}  // namespace gpuc
