//===- Network.cpp - Machines of devices, and what joins them ----------------===//

#include "passes/cost/Network.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace gpuc {

Status Network::checkFilledBy(int64_t ranks) const {
  if (ranks <= devicesPerMachine || ranks % devicesPerMachine == 0)
    return okStatus();
  const std::string devices = std::to_string(devicesPerMachine);
  return Status::error(std::to_string(ranks) + " ranks do not fill machines of " + devices +
                       " devices: name a multiple of " + devices +
                       ", or other machines with --devices-per-machine");
}

int64_t Network::machinesOf(int64_t ranks) const { return std::max<int64_t>(ranks / devicesPerMachine, 1); }

double Network::allReduceNanoseconds(int64_t bytes, int64_t ranks) const {
  const int64_t devices = std::min(ranks, devicesPerMachine), machines = machinesOf(ranks);
  const double share = static_cast<double>(bytes) / static_cast<double>(devices);
  // Of many ranks the faster of the two, as libraries choose.
  return within.allReduceNanoseconds(bytes, devices) +
         std::min(ringNanoseconds(between, share, machines), treeNanoseconds(between, share, machines));
}

/// By a sum of no bytes, and one of very many.
Link Network::asOneLink(int64_t ranks) const {
  constexpr int64_t kMany = 256 << 20;
  if (machinesOf(ranks) == 1)
    return within;
  Link link = within;
  const double latency = allReduceNanoseconds(0, ranks);
  link.latencyNanoseconds = latency / 2;
  link.bytesPerNanosecond = 2 * static_cast<double>(kMany) / (allReduceNanoseconds(kMany, ranks) - latency);
  return link;
}

double ringNanoseconds(const Link &link, double bytes, int64_t ranks) {
  const auto count = static_cast<double>(ranks);
  return 2 * (count - 1) * (link.latencyNanoseconds + bytes / count / link.bytesPerNanosecond);
}

double treeNanoseconds(const Link &link, double bytes, int64_t ranks) {
  const auto levels = static_cast<double>(llvm::Log2_64_Ceil(static_cast<uint64_t>(ranks)));
  return ranks <= 1 ? 0 : 2 * (levels * link.latencyNanoseconds + bytes / link.bytesPerNanosecond);
}

} // namespace gpuc
