#include "test/runtime/cuda/fake_ranks.h"

#include <gtest/gtest.h>

#include <thread>

#include "runtime/comm/shared_memory.h"

namespace gpuc::test {

std::vector<std::string> runOnFakeRanks(const FakeRanks& ranks, const FakeRankBody& body) {
  Result<SharedRanks> shared = SharedRanks::create(ranks.count);
  EXPECT_TRUE(shared.ok()) << shared.message();
  std::vector<std::string> said(static_cast<size_t>(ranks.count));
  auto be = [&](int rank) {
    FakeGpu gpu(ranks.seed + static_cast<uint64_t>(rank));
    gpu.devices = ranks.count;
    if (ranks.prepare) ranks.prepare(rank, gpu);
    SharedCommunicator communicator(*shared, rank, ranks.limit);
    const Status status = body(communicator, gpu);
    if (status.ok()) return shared->lose(rank, "ended with status 0", SharedRanks::Loss::in_order);
    said[static_cast<size_t>(rank)] = status.message();
    shared->lose(rank, "ended with status 1");
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks.count; ++rank) threads.emplace_back(be, rank);
  for (std::thread& thread : threads) thread.join();
  return said;
}

}  // namespace gpuc::test
