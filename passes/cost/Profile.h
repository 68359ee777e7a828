//===- Profile.h - What commands took in a run -----------------------------------===//
#pragma once

#include "runtime/base/status.h"

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace gpuc {

/// What a trace that `gpuc-run --profile` wrote says of the commands of `train_step`, by their names.
class Profile {
public:
  /// Errors begin with `name`, the file's, and end with the cure.
  static Result<Profile> parse(llvm::StringRef text, const std::string &name);

  /// Commands of a name that read and write so many bytes: those of another model, or another batch, may have
  /// the name, but not the time.
  using Key = std::pair<std::string, int64_t>;

  struct Command {
    double nanoseconds = 0; ///< Of one execution: a median, without what taking the time takes.
    int64_t events = 0;     ///< How often it was seen.
  };
  /// Null if it was not seen.
  const Command *find(const Key &command) const;
  /// Whether a command of the name was, with whatever bytes.
  bool hasName(const std::string &name) const;

  const std::string &name() const { return name_; }

private:
  std::string name_;
  std::map<Key, Command> commands_;
};

} // namespace gpuc
