// What becomes of each tensor in files of weights when a plan starts from them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/plan/plan.h"
#include "runtime/state/named_tensors.h"

namespace gpuc {

/// Where the random numbers' seed comes from.
enum class SeedFrom { session, file };

/// A parameter that training leaves as it is.
bool isFrozen(const VariableInfo& variable);

/// Whether the session alone knows the variable's value, which tells ranks apart: no file holds it.
bool isOfSession(const VariableInfo& variable);

/// Whether the plan's step is that of one rank among others.
bool isDataParallel(const PlanInfo& plan);

/// See VariableStore::start for the rules. `plan` and `files` must outlive it.
class WeightsSelection {
 public:
  WeightsSelection(const PlanInfo& plan, const NamedTensors& files, SeedFrom seed);

  /// Whether the optimizer goes on from where the files left it.
  bool continues() const { return continues_; }

  /// Whether the variable must come from the files.
  bool wants(const VariableInfo& variable) const;

  /// Whether a tensor of this name may lie in the files without being read: what the plan keeps and begins
  /// anew, what another optimizer keeps. Of anything else the file is not the plan's.
  bool mayIdle(std::string_view name) const;

  /// The plan's variable of this name, or null.
  const VariableInfo* find(std::string_view name) const;

  /// What a user may not have meant, a line each: all that begins anew though there are files, and every
  /// tensor of the files that is not read, but for the seed.
  std::vector<std::string> warnings() const;

 private:
  void findFresh(const TensorSpec& wanted);
  bool holdsFrozen(const SafetensorsFile& file);
  void warnOfFresh(std::vector<std::string>& warnings) const;
  void warnOfMissing(std::vector<std::string>& warnings) const;
  void warnOfUnused(std::vector<std::string>& warnings) const;

  const PlanInfo& plan_;
  const NamedTensors& files_;
  SeedFrom seed_;
  std::unordered_map<std::string_view, const VariableInfo*> variables_;
  size_t trained_ = 0, misfits_ = 0;   // parameters; those that a file has under another shape
  int state_ = 0, missing_state_ = 0;  // tensors of the optimizer
  // What is trained and begins anew; why, if it is not missing.
  std::map<std::string_view, std::string> fresh_;
  std::map<const SafetensorsFile*, bool> holds_frozen_;  // of the files that were asked about
  bool freezes_ = false;
  bool continues_;  // has the optimizer's state
};

}  // namespace gpuc
