#include "runtime/host/spread_trial.h"

#include <algorithm>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/host/spread.h"

namespace gpuc {

SpreadTrial::SpreadTrial(HostProgram* program, int threads)
    : program_(program), ways_(waysOf(*program, threads)), trial_(ways_.size()) {
  if (!ways_.empty()) take(ways_.front());
}

std::vector<SpreadTrial::Way> SpreadTrial::waysOf(HostProgram& program, int threads) {
  if (program.streams.empty() || threads < 2) return {};
  std::vector<HostCommand>& commands = program.streams[0];
  std::vector<Way> ways;
  auto add = [&](Way way) {
    if (std::find(ways.begin(), ways.end(), way) == ways.end()) ways.push_back(std::move(way));
  };
  for (double bytes_per_ns : {kNearBytesPerNs, kFarBytesPerNs}) {
    chooseSpread(commands, program.accesses, threads, coreCacheBytes(), bytes_per_ns);
    Way way(commands.size());
    std::transform(commands.begin(), commands.end(), way.begin(),
                   [](const HostCommand& command) { return command.spread; });
    add(std::move(way));
  }
  add(Way(commands.size(), false));
  return ways;
}

void SpreadTrial::take(const Way& way) {
  std::vector<HostCommand>& commands = program_->streams[0];
  for (size_t c = 0; c < commands.size(); ++c) commands[c].spread = way[c];
}

void SpreadTrial::beginStep() {
  if (trial_.isTiming()) begin_ns_ = nowNs();
}

void SpreadTrial::endStep() {
  const int64_t ns = trial_.isTiming() ? nowNs() - begin_ns_ : 0;
  if (trial_.endStep(ns)) take(ways_[trial_.way()]);
}

}  // namespace gpuc
