//===- Profile.h - What commands took in a run -----------------------------------===//
#pragma once

#include "runtime/base/status.h"

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringMap.h"

#include <string>

namespace gpuc {

/// What a trace that `gpuc-run --profile` wrote says of the commands of `train_step`, by their names.
class Profile {
public:
  /// Errors begin with `name`, the file's, and end with the cure.
  static Result<Profile> parse(llvm::StringRef text, const std::string &name);

  struct Command {
    double nanoseconds = 0; ///< Of one execution: a median, without what taking the time takes.
    int64_t events = 0;     ///< How often it was seen.
  };
  /// Null if it was not seen.
  const Command *find(llvm::StringRef command) const;

  const std::string &name() const { return name_; }

private:
  std::string name_;
  llvm::StringMap<Command> commands_;
};

} // namespace gpuc
