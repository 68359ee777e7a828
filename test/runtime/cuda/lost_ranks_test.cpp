// Ranks whose GPUs wait for one that fails, is lost, or does not come: each says so in one line, and ends.
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "runtime/exec/rank_device.h"
#include "test/runtime/cuda/ranks_plan.h"

namespace gpuc::test {
namespace {

using std::chrono::milliseconds;

Status train(Communicator& communicator, const BeforeStep& before = {}) {
  std::vector<float> outputs;
  return trainOn(stepPlan(), &communicator, outputs, before);
}

void expectOneLine(const std::string& error, const std::string& part) {
  EXPECT_NE(error.find(part), std::string::npos) << error;
  EXPECT_EQ(error.find('\n'), std::string::npos) << error;
}

/// Ranks that add up, or share out, equally or not.
struct Training {
  PlanBuilder plan;
  int ranks;

  Status on(Communicator& communicator) const {
    std::vector<float> outputs;
    return trainOn(plan, &communicator, outputs);
  }
};

/// How often each call is made by a rank.
std::map<std::string, size_t> callsOf(const Training& training, int rank) {
  std::map<std::string, size_t> calls;
  runOnFakeRanks(ranksOf(training.ranks), [&](Communicator& communicator, FakeGpu& gpu) {
    const Status status = training.on(communicator);
    if (communicator.rank() == rank)
      for (const FakeGpu::Call& call : gpu.calls) ++calls[call.name];
    return status;
  });
  return calls;
}

/// Of questions that are asked again and again, some: how often they are depends on the other ranks.
size_t timesToFail(const std::string& call, size_t count) {
  return call == "ncclCommGetAsyncError" || call.find("Query") != std::string::npos
             ? std::min<size_t>(count, 6)
             : count;
}

bool isOfRanks(const std::string& call) {
  return call.starts_with("nccl") || call == "cuStreamQuery" || call == "cuEventQuery" ||
         call == "cuDeviceGetUuid";
}

/// Rank `culprit`'s `number`-th call of this name fails.
void failOne(const Training& training, int culprit, const std::string& call, size_t number) {
  SCOPED_TRACE("rank " + std::to_string(culprit) + " of " + std::to_string(training.ranks) + ", call " +
               std::to_string(number) + " of " + call);
  FakeRanks ranks = ranksOf(training.ranks, number);
  const bool is_end = call == "ncclCommDestroy" || call == "ncclCommFinalize";
  bool has_failed = false;
  ranks.prepare = [&](int rank, FakeGpu& gpu) {
    defineTestKernels(gpu);
    gpu.may_leak = call == "ncclCommDestroy";
    if (rank != culprit) return;
    if (call.starts_with("nccl"))
      gpu.failNccl(call, ncclSystemError, number);
    else
      gpu.fail(call, CUDA_ERROR_LAUNCH_FAILED, number);
  };
  const auto said = runOnFakeRanks(ranks, [&](Communicator& communicator, FakeGpu& gpu) {
    const Status status = training.on(communicator);
    if (communicator.rank() == culprit) has_failed = gpu.hasFailed();
    return status;
  });
  if (is_end || !has_failed) {  // an end that fails is no one's business
    for (const std::string& error : said) EXPECT_EQ(error, "");
    return;
  }
  expectOneLine(said[static_cast<size_t>(culprit)], call + ": ");
  // Of two others the one may hear of the other before it hears of the culprit.
  const std::string name = "rank " + std::to_string(culprit) + " ended with status 1";
  size_t name_it = 0;
  for (int rank = 0; rank < training.ranks; ++rank) {
    const std::string& error = said[static_cast<size_t>(rank)];
    if (rank != culprit) expectOneLine(error, "ended with status 1");
    name_it += rank != culprit && error.find(name) != std::string::npos;
  }
  EXPECT_GE(name_it, 1u);
}

/// How many calls there were to fail.
size_t failEach(const Training& training) {
  size_t cases = 0;
  for (int culprit : {0, 1})
    for (const auto& [call, count] : callsOf(training, culprit)) {
      if (!isOfRanks(call)) continue;
      for (size_t number = 1; number <= timesToFail(call, count); ++number, ++cases)
        failOne(training, culprit, call, number);
    }
  return cases;
}

TEST(LostRanks, EveryCallThatFailsIsNamedAndEndsAll) { EXPECT_GT(failEach({stepPlan(), 2}), 60u); }

TEST(LostRanks, EveryCallOfSharesThatFailsIsNamedAndEndsAll) {
  EXPECT_GT(failEach({sharedStepPlan(2), 2}), 100u);
  EXPECT_GT(failEach({sharedStepPlan(3), 3}), 100u);
}

TEST(LostRanks, OneThatTheNetworkKeepsAwayIsMissedInTheLimit) {
  FakeRanks ranks = ranksOf(3);
  ranks.limit = milliseconds(300);
  ranks.prepare = [](int rank, FakeGpu& gpu) {
    defineTestKernels(gpu);
    gpu.nccl_never_joins = rank == 1;
  };
  const auto start = std::chrono::steady_clock::now();
  const auto said =
      runOnFakeRanks(ranks, [](Communicator& communicator, FakeGpu&) { return train(communicator); });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  const auto expected = [](int rank) {
    return "rank " + std::to_string(rank) +
           ": ncclCommInitRankConfig has not ended in 300 ms: another rank's GPU does not come, or the "
           "network "
           "keeps them apart (NCCL_DEBUG=INFO says what NCCL does)";
  };
  // Who is late to give up may hear of another that has.
  int late = 0;
  for (int rank = 0; rank < 3; ++rank) late += said[static_cast<size_t>(rank)] == expected(rank);
  EXPECT_GE(late, 1) << said[0];
  for (const std::string& error : said) EXPECT_NE(error, "");
}

/// Sessions of ranks that were killed: nobody ends them.
std::vector<Session*>& killed() {
  static std::vector<Session*> sessions;
  return sessions;
}

TEST(LostRanks, OneThatIsKilledInTheMiddleIsNamed) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto said =
        runOnFakeRanks(ranksOf(3, seed), [](Communicator& communicator, FakeGpu& gpu) -> Status {
          if (communicator.rank() != 1) return train(communicator);
          gpu.may_leak = true;
          Result<Session> session = Session::create(stepPlan().parse(), {.communicator = &communicator});
          EXPECT_TRUE(session.ok()) << session.message();
          killed().push_back(new Session(*std::move(session)));
          const std::vector<float> ones(64, 1.0f);
          const HostTensorView x = viewOf(ones, DataType::f32, kShape);
          const ProgramId step = programOf(*killed().back(), "step");
          for (int run = 0; run < 2; ++run) GPUC_RETURN_IF_ERROR(killed().back()->run(step, {&x, 1}));
          return Status::error("killed");
        });
    for (size_t rank : {0, 2})
      expectOneLine(said[rank],
                    "rank " + std::to_string(rank) +
                        " waits for its GPU, which waits for all ranks, but rank 1 ended with status 1");
  }
}

/// One that ends in order has had its part in all that others wait for.
TEST(LostRanks, OneThatHasEndedInOrderIsNotMissed) {
  const auto said = runOnFakeRanks(ranksOf(2, 1), [](Communicator& communicator, FakeGpu&) {
    if (communicator.rank() == 0) std::this_thread::sleep_for(milliseconds(1));
    return train(communicator, [&](int step) {
      if (communicator.rank() == 0 && step == kSteps - 1) std::this_thread::sleep_for(milliseconds(60));
      return okStatus();
    });
  });
  for (const std::string& error : said) EXPECT_EQ(error, "");
}

TEST(LostRanks, WhatNcclsThreadsMeetWithEndsARank) {
  const auto said = runOnFakeRanks(ranksOf(2), [](Communicator& communicator, FakeGpu& gpu) {
    return train(communicator, [&](int step) {
      if (step != 3) return okStatus();
      if (communicator.rank() == 0)
        gpu.nccl_async_error = ncclRemoteError;
      else
        std::this_thread::sleep_for(milliseconds(200));
      return okStatus();
    });
  });
  expectOneLine(
      said[0],
      "NCCL: remote process exited or there was a network error: another rank has ended, or the network "
      "is down");
  expectOneLine(said[1], "rank 0 ended with status 1");
}

TEST(LostRanks, AreNotWaitedForWithAnotherPlan) {
  const auto said = runOnFakeRanks(ranksOf(2), [](Communicator& communicator, FakeGpu&) {
    PlanBuilder builder = stepPlan();
    if (communicator.rank() == 1)
      for (auto& command : builder.plan.programs[0]->streams[1]->commands)
        if (fb::AllReduceT* reduce = command->work.AsAllReduce())
          reduce->part->size = reduce->result->size = 128;
    return Session::create(builder.parse(), {.communicator = &communicator}).status();
  });
  for (const std::string& error : said)
    EXPECT_EQ(error, "ranks 0 and 1 exchange other things: all must run the same plan");
}

TEST(LostRanks, AreNotWaitedForWithOtherShares) {
  const auto said = runOnFakeRanks(ranksOf(2), [](Communicator& communicator, FakeGpu&) {
    PlanBuilder builder = sharedStepPlan(2);
    if (communicator.rank() == 1)
      for (auto& command : builder.plan.programs[0]->streams[1]->commands)
        if (fb::AllGatherT* gather = command->work.AsAllGather()) {
          gather->shares.pop_back();
          gather->wholes.pop_back();
        }
    return Session::create(builder.parse(), {.communicator = &communicator}).status();
  });
  for (const std::string& error : said)
    EXPECT_EQ(error, "ranks 0 and 1 exchange other things: all must run the same plan");
}

std::vector<std::string> errorsOf(int ranks, int devices, const std::string& device) {
  FakeRanks wish = ranksOf(ranks);
  wish.prepare = [=](int, FakeGpu& gpu) { gpu.devices = devices; };
  return runOnFakeRanks(wish, [&](Communicator& communicator, FakeGpu&) {
    return Session::create(stepPlan().parse(), {.device = device, .communicator = &communicator}).status();
  });
}

TEST(RanksOnGpus, AreNoMoreThanGpus) {
  for (const std::string& error : errorsOf(3, 2, "cuda"))
    EXPECT_EQ(error,
              "3 ranks on one machine, and 2 GPUs to be seen there: each rank needs one of its own: start 2, "
              "or make "
              "more GPUs visible");
  for (const std::string& error : errorsOf(2, 1, "auto"))
    EXPECT_EQ(error,
              "2 ranks on one machine, and 1 GPU to be seen there: each rank needs one of its own: start 1, "
              "or make "
              "more GPUs visible");
  ::setenv("CUDA_VISIBLE_DEVICES", "4,7", 1);
  for (const std::string& error : errorsOf(4, 2, "cuda"))
    EXPECT_NE(error.find("2 GPUs to be seen there by CUDA_VISIBLE_DEVICES=4,7: "), std::string::npos)
        << error;
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  for (const std::string& error : errorsOf(2, 2, "cuda:1"))
    EXPECT_EQ(error, "ranks 0 and 1 have the same GPU: give --device=cuda, and each takes one of its own");
}

/// By another process, since children of one that has called the driver cannot.
TEST(RanksOnGpus, AreCountedBeforeAnyIsStarted) {
  FakeGpu gpu;
  gpu.devices = 5;
  EXPECT_EQ(*countGpusForRanks(), 5);
  gpu.devices = 0;
  EXPECT_EQ(countGpusForRanks().status().message(),
            "no CUDA device: NVIDIA's driver is there, but it finds no GPU");
  EXPECT_TRUE(gpu.calls.empty());
}

/// As where a launcher lets each rank see but its own.
TEST(RanksOnGpus, MayEachSeeButOne) {
  FakeRanks wish = ranksOf(2);
  wish.prepare = [](int rank, FakeGpu& gpu) {
    defineTestKernels(gpu);
    gpu.devices = 1;
    gpu.first_device = rank;
  };
  for (const std::string& error :
       runOnFakeRanks(wish, [](Communicator& communicator, FakeGpu&) { return train(communicator); }))
    EXPECT_EQ(error, "");
}

}  // namespace
}  // namespace gpuc::test
