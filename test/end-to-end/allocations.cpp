// Says what a plan's process asks of the allocator, by a hook on every malloc and mmap of every thread:
// end_to_end_allocations PLAN DATA. memory_test.py reads the JSON on stdout:
//   arenas                 the length of each arena that the session maps
//   largest                the largest single allocation while a session is made; null where maps are not
//   counted steps_10, steps_1000   allocations while a trainer with loader threads runs so many steps planted
//   the same of 10 steps beside a thread that allocates once: else the hook is deaf
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "runtime/gpuc.h"
#include "runtime/host/arena.h"
#include "runtime/tooling/allocation_hook.h"
#include "runtime/train/trainer.h"

namespace {

using gpuc::Plan;
using gpuc::Result;
using gpuc::Session;
using gpuc::Trainer;

std::vector<uint64_t> arenas;
const std::atomic<bool> never_stop{false};

[[noreturn]] void fail(const std::string &message) {
  std::fprintf(stderr, "error: %s\n", message.c_str());
  std::exit(1);
}

/// Makes a session, and gives the largest allocation meanwhile.
int64_t largestOfSession(const std::string &path) {
  Result<Plan> plan = Plan::load(path);
  if (!plan.ok())
    fail(plan.message());
  arenas.reserve(16);
  gpuc::observeArenas([](uint64_t bytes) { arenas.push_back(bytes); });
  gpuc::resetLargestAllocation();
  Result<Session> session = Session::create(*plan, {.threads = 1}); // a thread's stack would be larger
  int64_t largest = gpuc::largestAllocation();
  gpuc::observeArenas(nullptr);
  if (!session.ok())
    fail(session.message());
  return largest;
}

int64_t allocationsOfTraining(const std::string &plan, const std::string &data, int64_t steps,
                              bool planted = false) {
  gpuc::TrainOptions options;
  options.plan = plan;
  options.data = data;
  options.steps = steps;
  options.threads = 2;
  options.workers = 2;
  options.log_every = 0;
  Result<std::unique_ptr<Trainer>> trainer = Trainer::create(options);
  if (!trainer.ok())
    fail(trainer.message());
  // The thread is made, and under way, before the count begins: sanitizers allocate when one starts.
  std::atomic<bool> runs = false, go = false;
  std::atomic<void *> kept = nullptr;
  std::thread other([&] {
    runs = true;
    runs.notify_one();
    go.wait(false);
    if (planted)
      kept = std::malloc(100);
  });
  runs.wait(false);
  int64_t before = gpuc::allocationCount().total();
  go = true;
  go.notify_one();
  auto outcome = (*trainer)->run(never_stop);
  other.join();
  int64_t after = gpuc::allocationCount().total();
  std::free(kept);
  if (!outcome.ok())
    fail(outcome.message());
  return after - before;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3)
    fail("usage: end_to_end_allocations PLAN DATA");
  largestOfSession(argv[1]); // memory for micro-kernels is mapped once in a process
  arenas.clear();
  int64_t largest = largestOfSession(argv[1]);
  allocationsOfTraining(argv[1], argv[2], 10); // whatever the process allocates once
  int64_t few = allocationsOfTraining(argv[1], argv[2], 10);
  int64_t many = allocationsOfTraining(argv[1], argv[2], 1000);
  int64_t planted = allocationsOfTraining(argv[1], argv[2], 10, true);
  std::printf("{\"arenas\": [");
  for (size_t i = 0; i < arenas.size(); ++i)
    std::printf("%s%" PRIu64, i == 0 ? "" : ", ", arenas[i]);
  std::string largestText = gpuc::kCountsMaps ? std::to_string(largest) : "null";
  std::printf("], \"largest\": %s, \"steps_10\": %" PRId64 ", \"steps_1000\": %" PRId64
              ", \"planted\": %" PRId64 "}\n",
              largestText.c_str(), few, many, planted);
}
