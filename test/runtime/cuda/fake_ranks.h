// Ranks that are threads, each with a GPU that is not there.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "runtime/comm/communicator.h"
#include "test/runtime/cuda/fake_gpu.h"

namespace gpuc::test {

struct FakeRanks {
  int count = 2;
  uint64_t seed = 0;  // of the first rank's streams; the others' follow
  std::chrono::milliseconds limit = std::chrono::seconds(60);
  std::function<void(int rank, FakeGpu&)> prepare = {};  // before a rank's body
};

/// What becomes of a rank whose body has ended: those that wait for it hear of an error, as from who started
/// them.
using FakeRankBody = std::function<Status(Communicator&, FakeGpu&)>;

/// Runs `body` on each rank; what each said, empty where nothing failed.
std::vector<std::string> runOnFakeRanks(const FakeRanks& ranks, const FakeRankBody& body);

}  // namespace gpuc::test
