//===- CostModel.cpp - What commands take, by prediction -------------------------===//

#include "passes/cost/CostModel.h"

using namespace mlir;

namespace gpuc {

CostModel CostModel::ofHost(StringRef cpu, const std::optional<HostRates> &rates) {
  const bool isHere = rates && (cpu.empty() || cpu == "native" || cpu == rates->target);
  return isHere ? CostModel(kHostDescription, *rates) : CostModel(kHostDescription);
}

/// Products of 16 bits, and those in TF32, are computed by tensor cores, where there are some.
double CostModel::flopsPerNanosecond(const Work &work) const {
  const bool hasTensorCores = device_.tensorFlopsPerNanosecond > 0;
  if (hasTensorCores && work.precision == ProductPrecision::half)
    return device_.tensorFlopsPerNanosecond;
  if (hasTensorCores && work.precision == ProductPrecision::tf32)
    return device_.tensorFlopsPerNanosecond / 2;
  if (hasTensorCores && work.precision == ProductPrecision::halfAttention)
    return device_.tensorFlopsPerNanosecond / 4; // beside exponentials, and waiting for what they multiply
  return device_.flopsPerNanosecond;
}

double CostModel::aloneNanoseconds(const Work &work) const {
  if (rates_)
    return rates_->nanoseconds(work);
  return device_.commandNanoseconds +
         std::max(static_cast<double>(work.flops) / flopsPerNanosecond(work),
                  static_cast<double>(work.bytes()) / device_.bytesPerNanosecond);
}

double CostModel::nanosecondsOf(Work work) const {
  if (!rates_)
    return aloneNanoseconds(work);
  const int64_t bytes = work.bytes();
  const Unit place = bytes <= rates_->caches.near  ? Unit::near
                     : bytes <= rates_->caches.far ? Unit::far
                                                   : Unit::memory;
  work[place] = static_cast<double>(bytes);
  return sharedNanoseconds(aloneNanoseconds(work), work.parts);
}

double CostModel::sharedNanoseconds(double alone, int64_t parts) const {
  const bool isWhole = parts == 1;
  if (threads() == 1 || isWhole)
    return alone;
  const double speedup = parts == 0 ? rates_->speedup : std::min(rates_->speedup, static_cast<double>(parts));
  return std::min(alone, alone / speedup + rates_->forkNanoseconds);
}

double CostModel::inPartsNanoseconds(double alone, int64_t parts) const {
  const int64_t side = std::min<int64_t>(threads(), parts);
  if (side < 2)
    return alone;
  // Parts that are no multiple of the threads leave some of them idle in the last round.
  const double rounds = static_cast<double>((parts + side - 1) / side) * static_cast<double>(side);
  const double ideal = alone * rounds / static_cast<double>(parts) / static_cast<double>(side);
  return ideal * static_cast<double>(threads()) / rates_->speedup;
}

} // namespace gpuc
