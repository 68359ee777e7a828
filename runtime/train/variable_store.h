// All variables of a session, in and out of files.
#pragma once

#include <string>
#include <vector>

#include "runtime/gpuc.h"
#include "runtime/state/safetensors.h"

namespace gpuc {

/// The variables' values outside the session, in memory that is allocated once, at the first use.
class VariableStore {
 public:
  /// `session` must outlive the store.
  explicit VariableStore(Session& session) : session_(&session) {}

  /// Copies every variable out of the session, which must have no run under way. The views are valid until
  /// the next call.
  Result<std::vector<TensorView>> read();

  /// Replaces the file by all variables.
  Status save(const std::string& path);

  /// Writes every variable from the file, which must hold just those.
  Status restore(const SafetensorsFile& file);

  /// Starts from weights: after the session's initialize(), writes what the file has. Every parameter must be
  /// there; statistics and optimizer state keep their first values if they are not. The counter `step` comes
  /// along if the file has all of the optimizer's state, which then continues; `seed` never does. Not minded
  /// in the file: state of another optimizer (`<variable>/<slot>`). Errors list what is missing, of another
  /// shape or type, or unknown.
  Status start(const SafetensorsFile& file);

 private:
  Session* session_;
  std::vector<std::vector<std::byte>> values_;
};

}  // namespace gpuc
