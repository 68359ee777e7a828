// The file in which metrics are kept, and how it continues when training does.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/descriptor.h"
#include "runtime/base/status.h"
#include "runtime/train/metrics.h"

namespace gpuc {

/// Appends lines through a buffer that is allocated once. Whole lines are written at least once a second, so
/// that the file can be followed while training runs.
class MetricsFile {
 public:
  /// Empties `path` ("-" is stdout).
  static Result<MetricsFile> create(const std::string& path);

  /// Goes on after `step` updates: keeps the lines up to that step and appends. Cut are lines of later steps,
  /// an evaluation after that very step (it is made again, since it may not have been finished), the line
  /// that says that training ended, and a line that was not written to its end. A file that is not there is
  /// made.
  static Result<MetricsFile> resume(const std::string& path, int64_t step);

  MetricsFile(MetricsFile&&) = default;
  /// Writes what is left.
  ~MetricsFile() { (void)flush().ok(); }  // nobody is left to tell

  Status write(const MetricsLine& line);
  /// Hands all lines to the system: they outlive the process. Where it does not take all, whole lines stay.
  Status flush();

 private:
  MetricsFile(const std::string& path, int descriptor);
  void dropCutLine(off_t begin);

  std::string name_;
  Descriptor file_;
  std::vector<char> buffer_;  // its room never changes
  std::chrono::steady_clock::time_point last_flush_ = std::chrono::steady_clock::now();
};

/// The last step of which a file of metrics tells: 0 if it is empty or not there, or no regular file. An
/// error if it holds anything else: a file of the user's that is not to be replaced.
Result<int64_t> lastMetricsStep(const std::string& path);

/// How many bytes at the beginning of a metrics file MetricsFile::resume keeps.
size_t keptMetricsBytes(std::string_view text, int64_t step);

}  // namespace gpuc
