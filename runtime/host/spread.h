// Which commands the threads share. A command that is spread is done in less time, but its data then lie in
// several cores' caches, and a core reads what another has written some ten times more slowly than what it
// has written itself. In a small step that costs more than is gained.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/host/command.h"

namespace gpuc {

/// How fast bytes move between cores that share a cache. Measured on two of a Xeon: 64 kB that the other core
/// has changed take 6 us to change again, else 1; 400 kB 22 us, else 4 to 7.
constexpr double kNearBytesPerNs = 8;
/// And between cores that do not, as of an EPYC: steps of GPT 2 layers and an MLP are quickest by this.
constexpr double kFarBytesPerNs = 3;

/// Sets `spread` of each command of the main stream so that a step takes least time by this model: a command
/// takes work / threads when it is spread, work otherwise; the parts of a parallel are taken by
/// threads, or all by one, unless it is better to share its commands one by one; and where a command that is
/// spread and one that is not touch the same bytes one after the other, in this step or across two steps,
/// those bytes move, unless `cache_bytes` or more came between. It never changes a result.
void chooseSpread(std::vector<HostCommand>& commands, const std::vector<CommandAccess>& accesses, int threads,
                  uint64_t cache_bytes, double moved_bytes_per_ns = kNearBytesPerNs);

/// Bytes of a core's own cache; 1 MiB where the system does not say.
uint64_t coreCacheBytes();

}  // namespace gpuc
