// What a tool says beside its work, where nothing is wrong yet.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpuc {

/// "warning: …" on stderr, one line, printable: names in it may come from any file.
void warn(std::string_view text);

/// As long as it lives, what this thread warns of is kept here, too: for a process whose stderr nobody reads.
class KeptWarnings {
 public:
  KeptWarnings();
  KeptWarnings(const KeptWarnings&) = delete;
  ~KeptWarnings();

  const std::vector<std::string>& lines() const { return lines_; }

 private:
  friend void warn(std::string_view text);
  KeptWarnings* const former_;
  std::vector<std::string> lines_;
};

}  // namespace gpuc
