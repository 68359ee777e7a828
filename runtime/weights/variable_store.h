// All variables of a session, in and out of files.
#pragma once

#include <string>
#include <vector>

#include "runtime/gpuc.h"
#include "runtime/state/named_tensors.h"
#include "runtime/weights/weights_selection.h"

namespace gpuc {

/// Which variables go into a file.
enum class Saved {
  all,
  trained,  // what training changes: all but frozen parameters
};

/// The variables' values outside the session, in memory that is allocated once, at the first use.
class VariableStore {
 public:
  /// `session` must outlive the store.
  explicit VariableStore(Session& session) : session_(&session) {}

  /// Copies the variables out of the session, once no run is under way. The views are valid until the next
  /// call.
  Result<std::vector<TensorView>> read(Saved saved = Saved::all);

  /// Replaces the file.
  Status save(const std::string& path, Saved saved = Saved::all);

  /// Writes every variable from the file, which must hold just those.
  Status restore(const SafetensorsFile& file);

  /// Starts from weights: initialises all variables, then writes what the files have. Every parameter must be
  /// there; but where some are frozen, those that are trained may be missing, and so may what a file with
  /// frozen ones has in their place under another shape: new adapters, and the head of a new task, on old
  /// weights. They begin as `init` makes them. Statistics keep their first values if they are not there. If
  /// all of the optimizer's state is there, it and the counter `step` come along and training goes on;
  /// otherwise they begin anew, running means of weights (`<variable>/ema`) with these weights. No error in
  /// the files: state of another optimizer (`<variable>/<slot>`). Returns warnings for people: what begins
  /// anew though files are there, and what of them is left unused. Errors list what is missing, of another
  /// shape or type, or unknown.
  Result<std::vector<std::string>> start(const NamedTensors& files, SeedFrom seed = SeedFrom::session);

  /// The same from the files at `paths`; the warnings go to stderr.
  Status startFrom(std::span<const std::string> paths, SeedFrom seed = SeedFrom::session);

 private:
  Session* session_;
  std::vector<std::vector<std::byte>> values_;
};

}  // namespace gpuc
