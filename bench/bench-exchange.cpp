// What a sum over ranks takes between processes of this machine, and the link that it comes to.
//
//   bench-exchange [RANKS] [ROUNDS]
//
// Under a launcher by what it gives, `bench-exchange 0 ROUNDS messages` by messages even on one machine; the
// sums of 4 KiB, 1 MiB and 64 MiB are told apart from the fit.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "runtime/base/tool_main.h"
#include "runtime/comm/join.h"

namespace {

using Clock = std::chrono::steady_clock;

/// Of one sum, in nanoseconds: the median of the rounds, each of which repeats short ones.
gpuc::Result<double> measure(gpuc::Communicator& ranks, size_t elements, int rounds) {
  std::vector<float> part(elements, 1.0F);
  auto* bytes = reinterpret_cast<std::byte*>(part.data());
  const int repeat =
      static_cast<int>(std::clamp<size_t>((size_t{4} << 20) / (elements * sizeof(float)), 1, 200));
  std::vector<double> found;
  for (int round = -1; round < rounds; ++round) {  // the first warms up
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < repeat; ++i)
      GPUC_RETURN_IF_ERROR(ranks.allReduce(gpuc::DataType::f32, elements, bytes, bytes));
    const std::chrono::duration<double, std::nano> taken = Clock::now() - begin;
    if (round >= 0) found.push_back(taken.count() / repeat);
  }
  std::sort(found.begin(), found.end());
  return found[found.size() / 2];
}

/// Bytes, and nanoseconds of their sum.
using Measured = std::vector<std::pair<size_t, double>>;

struct Figures {
  double latency = 0, bandwidth = 0;
};

/// As cost/Link reckons it: the median of what is short, and the mean (geometric) of what is not.
Figures fit(const Measured& found, double share) {
  constexpr size_t kShort = 1024, kLong = 65536;
  std::vector<double> latencies, logarithms;
  for (auto [bytes, nanoseconds] : found)
    if (bytes <= kShort) latencies.push_back(nanoseconds / 2);
  std::sort(latencies.begin(), latencies.end());
  const double latency = latencies[latencies.size() / 2];
  for (auto [bytes, nanoseconds] : found)
    if (bytes >= kLong)
      logarithms.push_back(std::log(2 * share * static_cast<double>(bytes) / (nanoseconds - 2 * latency)));
  const double sum = std::accumulate(logarithms.begin(), logarithms.end(), 0.0);
  return {latency, std::exp(sum / static_cast<double>(logarithms.size()))};
}

/// Ranks that compute have a core each: on one together they would wake one another sooner.
void stayOnACore(int64_t rank) {
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  int64_t left = rank % CPU_COUNT(&allowed);
  int core = 0;
  while (!CPU_ISSET(core, &allowed) || left-- > 0) ++core;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  sched_setaffinity(0, sizeof one, &one);
}

gpuc::Result<int> measureAll(gpuc::Communicator& ranks, int rounds) {
  stayOnACore(ranks.rank());
  constexpr size_t kLeast = 1, kMost = size_t{4} << 20;
  const double share = static_cast<double>(ranks.size() - 1) / static_cast<double>(ranks.size());
  Measured found;
  for (size_t elements = kLeast; elements <= kMost; elements *= 4) {
    GPUC_ASSIGN_OR_RETURN(double nanoseconds, measure(ranks, elements, rounds));
    found.push_back({elements * sizeof(float), nanoseconds});
  }
  if (ranks.rank() != 0) return 0;
  const auto [latency, bandwidth] = fit(found, share);
  std::printf("| bytes | measured, us | by the link, us |\n| ---: | ---: | ---: |\n");
  for (auto [bytes, nanoseconds] : found)
    std::printf("| %zu | %.1f | %.1f |\n", bytes, nanoseconds / 1000,
                2 * (latency + share * static_cast<double>(bytes) / bandwidth) / 1000);
  std::printf("--link=memory:bandwidth=%.0fMB,latency=%.1f\n", bandwidth * 1000, latency / 1000);
  return 0;
}

/// What launchers are compared by, in lines of three numbers.
gpuc::Result<int> measureSome(gpuc::Communicator& ranks, int rounds) {
  stayOnACore(ranks.rank());
  for (size_t bytes : {size_t{4} << 10, size_t{1} << 20, size_t{64} << 20}) {
    GPUC_ASSIGN_OR_RETURN(double nanoseconds, measure(ranks, bytes / sizeof(float), rounds));
    if (ranks.rank() == 0) std::printf("%zu bytes %.1f us\n", bytes, nanoseconds / 1000);
  }
  return 0;
}

int bench(int argc, char** argv) {
  const int64_t ranks = argc > 1 ? std::atoll(argv[1]) : 2;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 21;
  const bool by_messages = argc > 3 && std::strcmp(argv[3], "messages") == 0;
  const gpuc::Result<std::optional<gpuc::Launcher>> launcher = gpuc::findLauncher();
  if (!launcher.ok()) return gpuc::exitStatus(launcher.status());
  if (*launcher)
    return gpuc::joinRanks(
        **launcher, {.shares_memory = !by_messages},
        [&](gpuc::Communicator& communicator) { return measureSome(communicator, rounds); });
  gpuc::Result<int> status = gpuc::launchRanks(
      {.ranks = ranks}, [&](gpuc::Communicator& communicator) { return measureAll(communicator, rounds); });
  return status.ok() ? *status : gpuc::exitStatus(status.status());
}

}  // namespace

int main(int argc, char** argv) { return gpuc::runTool(argc, argv, bench); }
