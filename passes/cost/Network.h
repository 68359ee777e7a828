//===- Network.h - Machines of devices, and what joins them ------------------===//
#pragma once

#include "passes/cost/Link.h"

namespace gpuc {

/// Machines of equally many devices, with a rank on each. The devices of a machine are joined by one link,
/// and each has one of the other kind to the other machines.
struct Network {
  Link within, between;
  int64_t devicesPerMachine = 8;

  /// An error unless so many ranks fill their machines.
  Status checkFilledBy(int64_t ranks) const;
  int64_t machinesOf(int64_t ranks) const;

  /// In three turns: the devices of a machine add up a share each, each share is added up over machines by
  /// its owners, and then the shares are gathered within machines.
  double allReduceNanoseconds(int64_t bytes, int64_t ranks) const;

  /// What all of it comes to for so many ranks, as one link: by this gpuc-compile should cut buckets.
  Link asOneLink(int64_t ranks) const;
};

/// Each rank passes pieces on to the next one, twice around.
double ringNanoseconds(const Link &link, double bytes, int64_t ranks);

/// Pieces go up a tree of ranks and down again.
double treeNanoseconds(const Link &link, double bytes, int64_t ranks);

} // namespace gpuc
