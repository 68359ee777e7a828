// How far apart two cores are, and so what it costs to share a step, no model knows: of a virtual machine it
// changes while it runs. So small steps are tried as the model would share them between cores that are near
// and far, and on one thread. It never changes a result.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/host/lower.h"
#include "runtime/host/step_trial.h"

namespace gpuc {

/// Sets `spread` of a program's commands, anew as its steps show what is quickest.
class SpreadTrial {
 public:
  /// `program` lives longer than this.
  SpreadTrial(HostProgram* program, int threads);

  void beginStep();
  void endStep();

 private:
  using Way = std::vector<bool>;  // of each command: whether it is spread

  static std::vector<Way> waysOf(HostProgram& program, int threads);
  void take(const Way& way);

  HostProgram* program_;
  std::vector<Way> ways_;  // all different; none if there is nothing to share
  StepTrial trial_;
  int64_t begin_ns_ = 0;
};

}  // namespace gpuc
