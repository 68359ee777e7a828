//===- World.cpp - The ranks of a simulation ---------------------------------===//

#include "passes/simulate/World.h"

#include <string>

namespace gpuc {

Status check(const World &world) {
  const std::string ranks = std::to_string(world.ranks);
  if (world.ranks < 1 || world.ranks > kMostSimulatedRanks)
    return Status::error(ranks + " ranks: from 1 to " + std::to_string(kMostSimulatedRanks) +
                         " can be simulated");
  if (world.disturbance.stragglers > world.ranks)
    return Status::error(std::to_string(world.disturbance.stragglers) + " stragglers among " + ranks +
                         " ranks: name at most as many");
  return okStatus();
}

} // namespace gpuc
