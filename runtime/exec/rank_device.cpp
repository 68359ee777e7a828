#include "runtime/exec/rank_device.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/base/descriptor.h"
#include "runtime/base/parse.h"
#include "runtime/comm/life_watch.h"
#include "runtime/exec/devices.h"

namespace gpuc {
namespace {

/// What all ranks tell one another.
struct Place {
  uint64_t machine = 0;
  int64_t gpus = 0;       // that this rank sees
  uint64_t identity = 0;  // of the one that it has
};

Result<std::vector<Place>> gather(Communicator& ranks, const Place& mine) {
  std::vector<Place> all(static_cast<size_t>(ranks.size()));
  GPUC_RETURN_IF_ERROR(
      ranks.gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all))));
  return all;
}

/// Ranks of the same machine, as far as the `end`-th.
int64_t countRanks(const std::vector<Place>& places, uint64_t machine, size_t end) {
  return std::count_if(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(end),
                       [&](const Place& place) { return place.machine == machine; });
}

Status tooFew(int64_t ranks, int64_t gpus) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return errorf(
      "%lld ranks on one machine, and %lld GPU%s to be seen there%s%s: each rank needs one of its own: "
      "start %lld, or make more GPUs visible",
      static_cast<long long>(ranks), static_cast<long long>(gpus), gpus == 1 ? "" : "s",
      visible ? " by CUDA_VISIBLE_DEVICES=" : "", visible ? visible : "", static_cast<long long>(gpus));
}

/// Where a launcher lets each rank see but one GPU, that is its own; whether it is, distinguish() finds out.
Result<int> chooseGpu(Communicator& ranks, uint64_t machine) {
  GPUC_ASSIGN_OR_RETURN(const int gpus, countCudaDevices());
  GPUC_ASSIGN_OR_RETURN(const std::vector<Place> places, gather(ranks, {machine, gpus}));
  for (const Place& place : places) {
    const int64_t on_machine = countRanks(places, place.machine, places.size());
    if (place.gpus > 1 && place.gpus < on_machine) return tooFew(on_machine, place.gpus);
  }
  return gpus == 1 ? 0 : static_cast<int>(countRanks(places, machine, static_cast<size_t>(ranks.rank())));
}

/// The error if two ranks have one GPU.
Status distinguish(Communicator& ranks, const Place& mine) {
  GPUC_ASSIGN_OR_RETURN(const std::vector<Place> places, gather(ranks, mine));
  for (auto one = places.begin(); one != places.end(); ++one)
    for (auto other = one + 1; other != places.end(); ++other) {
      if (one->identity != other->identity) continue;
      if (one->gpus == 1) return tooFew(countRanks(places, one->machine, places.size()), 1);
      return errorf(
          "ranks %lld and %lld have the same GPU: give --device=cuda, and each takes one of its own",
          static_cast<long long>(one - places.begin()), static_cast<long long>(other - places.begin()));
    }
  return okStatus();
}

/// What is written until the other end is closed.
std::string readAll(const Descriptor& file) {
  std::string text;
  std::array<char, 512> part = {};
  for (ssize_t length = 0; (length = ::read(file.get(), part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<size_t>(length));
  return text;
}

/// The number, or why there is none.
[[noreturn]] void sayGpus(const Descriptor& to) {
  const Result<int> count = countCudaDevices();
  const std::string said = count.ok() ? std::to_string(*count) : count.message();
  const bool is_said = ::write(to.get(), said.data(), said.size()) == static_cast<ssize_t>(said.size());
  ::_exit(count.ok() && is_said ? 0 : 1);
}

}  // namespace

Result<int64_t> countGpusForRanks() {
  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Status::error("no pipe to count GPUs by");
  const Descriptor from(ends[0]);
  Descriptor to(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) sayGpus(to);
  if (child < 0) return Status::error("no process to count GPUs by");
  to = Descriptor();
  const std::string said = readAll(from);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return parseInt64(said);
  return Status::error(said.empty() ? "NVIDIA's driver ends the process that asks it for GPUs" : said);
}

Result<std::unique_ptr<Device>> openDeviceOfRank(const std::string& name, TargetKind target,
                                                 Communicator& ranks) {
  if (name == "host" || (name == "auto" && target == TargetKind::host)) return openDevice(name, target);
  GPUC_RETURN_IF_ERROR(checkDeviceName(name));
  Place mine{.machine = Life::ofThisProcess().machine};
  std::string chosen = name;
  if (name == "auto" || name == "cuda") {
    GPUC_ASSIGN_OR_RETURN(const int index, chooseGpu(ranks, mine.machine));
    chosen = "cuda:" + std::to_string(index);
  }
  GPUC_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, openDevice(chosen, target));
  GPUC_ASSIGN_OR_RETURN(const int gpus, countCudaDevices());
  mine.gpus = gpus;
  mine.identity = device->info().identity;
  GPUC_RETURN_IF_ERROR(distinguish(ranks, mine));
  return device;
}

}  // namespace gpuc
