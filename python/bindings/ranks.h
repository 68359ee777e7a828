// The ranks that a launcher has started, of which this process is one.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "python/bindings/errors.h"
#include "python/bindings/gil.h"
#include "runtime/comm/cores.h"
#include "runtime/comm/join.h"

namespace gpuc {

/// What of them the session does not say, as plain bytes.
class PyRanks {
 public:
  PyRanks() {
    const std::optional<Launcher> launcher = check(findLauncher());
    if (!launcher) raise("Error", "no launcher has started several processes, of which this is one");
    joined_ = check(withoutGil([&] { return JoinedRanks::join(*launcher, {}); }));
    ranks_on_these_cores_ = check(withoutGil([&] { return shareCores(ranks()); })).ranks;
  }

  Communicator& ranks() { return joined_->ranks(); }
  int64_t rank() { return ranks().rank(); }
  int64_t size() { return ranks().size(); }
  /// Of so many, by itself, this rank takes its share.
  int threads(int all) const { return std::max<int>(1, all / static_cast<int>(ranks_on_these_cores_)); }

  /// Each rank's bytes; a collective.
  std::vector<nanobind::bytes> gather(const nanobind::bytes& mine) {
    std::vector<uint64_t> lengths(static_cast<size_t>(size()));
    const uint64_t length = mine.size();
    check(withoutGil([&] {
      return ranks().gather(std::as_bytes(std::span(&length, 1)), std::as_writable_bytes(std::span(lengths)));
    }));
    const size_t most = *std::max_element(lengths.begin(), lengths.end());
    std::vector<std::byte> padded(most), all(most * lengths.size());
    std::memcpy(padded.data(), mine.data(), mine.size());
    check(withoutGil([&] { return ranks().gather(padded, all); }));
    std::vector<nanobind::bytes> each;
    for (size_t rank = 0; rank < lengths.size(); ++rank)
      each.emplace_back(all.data() + rank * most, lengths[rank]);
    return each;
  }

  void end() {
    check(withoutGil([&] { return joined_->end(); }));
  }
  /// The others' next steps are errors that say why.
  void giveUp(const std::string& why) {
    withoutGil([&] { return joined_->giveUp(why); });
  }
  void leave() {
    withoutGil([&] { joined_->leave(); });
  }

 private:
  std::unique_ptr<JoinedRanks> joined_;
  int64_t ranks_on_these_cores_ = 1;
};

}  // namespace gpuc
