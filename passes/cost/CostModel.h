//===- CostModel.h - What commands take, by prediction ---------------------------===//
//
// Predictions decide which values are computed again for a budget, and what reports say. No bit of a result
// hangs on them: what does, goes by TargetDescription alone.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/cost/Profile.h"
#include "passes/cost/Rates.h"
#include "passes/target/TargetDescription.h"

#include <memory>
#include <optional>

namespace gpuc {

class CostModel {
public:
  /// By the few figures of a description: a command's fixed cost, and the longer of computing and moving, on
  /// one core.
  CostModel(const TargetDescription &device) : device_(device) {}

  /// By rates that were measured.
  CostModel(const TargetDescription &device, HostRates rates) : device_(device), rates_(std::move(rates)) {}

  /// Of a CPU, by the rates if they are its own; an empty name or `native` is the machine's at hand.
  static CostModel ofHost(llvm::StringRef cpu, const std::optional<HostRates> &rates);

  /// What was seen in a run goes before what is reckoned.
  void setProfile(std::shared_ptr<const Profile> profile) { profile_ = std::move(profile); }
  const Profile *profile() const { return profile_.get(); }

  const TargetDescription &device() const { return device_; }
  const std::optional<HostRates> &rates() const { return rates_; }

  /// Threads that predictions are for.
  int threads() const { return rates_ ? rates_->threads : 1; }

  /// On one thread, with bytes where work.amounts has them.
  double aloneNanoseconds(const Work &work) const;

  /// The same of an op of which it is not known where its bytes lie: in the smallest cache that holds all of
  /// them.
  double nanosecondsOf(Work work) const;

  /// Of a command that threads may share, by what it takes alone and into how many parts it can be cut; 0:
  /// into enough.
  double sharedNanoseconds(double alone, int64_t parts = 0) const;

  /// Of what stands in a `plan.parallel` of so many parts, and of the fork itself.
  double inPartsNanoseconds(double alone, int64_t parts) const;
  double forkNanoseconds() const { return threads() > 1 ? rates_->forkNanoseconds : 0; }

  /// Beside their commands, of a step, and of a loop each time that it goes on.
  double stepNanoseconds() const { return rates_ ? rates_->stepNanoseconds : 0; }
  double iterationNanoseconds() const { return rates_ ? rates_->iterationNanoseconds : 0; }

private:
  double flopsPerNanosecond(const Work &work) const;

  TargetDescription device_;
  std::optional<HostRates> rates_;
  std::shared_ptr<const Profile> profile_;
};

} // namespace gpuc
