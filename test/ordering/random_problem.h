// Problems from a seed, the same everywhere.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "passes/ordering/Problem.h"

namespace gpuc::ordering {

/// Commands that read and write buffers, with what must come before what.
class Writer {
 public:
  size_t addBuffer(int64_t bytes) {
    problem.buffers.push_back({bytes});
    uses_.emplace_back();
    return problem.buffers.size() - 1;
  }

  /// Returns the command. One that runs in place may write each result over each operand of its size.
  size_t addCommand(const std::vector<size_t>& reads, const std::vector<size_t>& writes,
                    bool in_place = false) {
    const size_t index = problem.commands.size();
    Command command;
    for (size_t buffer : reads) {
      addBefore(command, uses_[buffer].writer);
      uses_[buffer].readers.push_back(index);
      command.buffers.push_back(buffer);
    }
    for (size_t buffer : writes) {
      addBefore(command, uses_[buffer].writer);
      for (size_t reader : uses_[buffer].readers)
        if (reader != index) addBefore(command, {reader});
      uses_[buffer] = {{index}, {}};
      if (std::find(reads.begin(), reads.end(), buffer) == reads.end()) command.buffers.push_back(buffer);
    }
    for (size_t result : writes)
      for (size_t operand : reads)
        if (in_place && result != operand && problem.buffers[result].bytes == problem.buffers[operand].bytes)
          command.overlays.emplace_back(result, operand);
    problem.commands.push_back(std::move(command));
    return index;
  }

  Problem problem;

 private:
  struct Uses {
    std::vector<size_t> writer;  // the last, if there is one
    std::vector<size_t> readers;
  };

  static void addBefore(Command& command, const std::vector<size_t>& others) {
    for (size_t other : others)
      if (auto& before = command.predecessors; std::find(before.begin(), before.end(), other) == before.end())
        before.push_back(other);
  }

  std::vector<Uses> uses_;
};

class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}

  /// 0 … count - 1.
  size_t below(size_t count) { return bits_() % count; }
  bool oneIn(size_t count) { return below(count) == 0; }
  int64_t bytes(size_t most) { return 64 * static_cast<int64_t>(1 + below(most)); }

 private:
  std::mt19937_64 bits_;
};

/// Each command reads some of what was written before, mostly not long ago.
inline Problem randomMesh(uint64_t seed, size_t commands) {
  Random random(seed);
  Writer writer;
  std::vector<size_t> written;
  const bool is_local = random.oneIn(2);
  while (writer.problem.commands.size() < commands) {
    std::vector<size_t> reads;
    for (size_t left = written.empty() ? 0 : random.below(4); left > 0; --left) {
      const size_t back = 1 + random.below(is_local ? std::min<size_t>(written.size(), 6) : written.size());
      const size_t buffer = written[written.size() - back];
      if (std::find(reads.begin(), reads.end(), buffer) == reads.end()) reads.push_back(buffer);
    }
    const bool like = !reads.empty() && random.oneIn(2);
    const size_t result = writer.addBuffer(like ? writer.problem.buffers[reads[0]].bytes : random.bytes(60));
    writer.problem.buffers[result].to_end = random.oneIn(8);
    writer.addCommand(reads, {result}, random.oneIn(2));
    written.push_back(result);
  }
  return writer.problem;
}

/// Chains of one to five commands between a first and a last one.
inline Problem randomFan(uint64_t seed, size_t commands) {
  Random random(seed);
  Writer writer;
  const size_t root = writer.addBuffer(random.bytes(20));
  writer.addCommand({}, {root});
  std::vector<size_t> ends;
  while (writer.problem.commands.size() + 1 < commands) {
    size_t end = root;
    for (size_t left = std::min(1 + random.below(5), commands - 1 - writer.problem.commands.size()); left > 0;
         --left) {
      const size_t next = writer.addBuffer(random.bytes(left == 1 ? 10 : 50));
      writer.addCommand({end}, {next}, random.oneIn(2));
      end = next;
    }
    ends.push_back(end);
  }
  const size_t last = writer.addBuffer(random.bytes(10));
  writer.addCommand(ends, {last});
  writer.problem.buffers[last].to_end = true;
  return writer.problem;
}

/// A training step: layers forward and backward, each weight's gradient, and the updates at the end.
inline Problem randomLadder(uint64_t seed, size_t commands) {
  Random random(seed);
  Writer writer;
  std::vector<size_t> values = {writer.addBuffer(random.bytes(40))}, weights, gradients;
  writer.addCommand({}, {values[0]});
  auto like = [&](size_t buffer) { return writer.addBuffer(writer.problem.buffers[buffer].bytes); };
  for (size_t layer = 0; layer < std::max<size_t>(1, commands / 4); ++layer) {
    weights.push_back(writer.addBuffer(random.bytes(40)));
    writer.problem.buffers[weights.back()].from_start = writer.problem.buffers[weights.back()].to_end = true;
    const size_t value = random.oneIn(2) ? like(values.back()) : writer.addBuffer(random.bytes(40));
    writer.addCommand({values.back(), weights.back()}, {value}, random.oneIn(2));
    values.push_back(value);
  }
  size_t cotangent = like(values.back());
  writer.addCommand({values.back()}, {cotangent}, true);
  for (size_t layer = weights.size(); layer-- > 0;) {
    gradients.insert(gradients.begin(), like(weights[layer]));
    writer.addCommand({values[layer], cotangent}, {gradients.front()});
    if (layer == 0) break;
    const size_t next = like(values[layer]);
    writer.addCommand({cotangent, weights[layer], values[layer]}, {next}, random.oneIn(2));
    cotangent = next;
  }
  for (size_t layer = 0; layer < weights.size(); ++layer)
    writer.addCommand({weights[layer], gradients[layer]}, {weights[layer]}, true);
  return writer.problem;
}

}  // namespace gpuc::ordering
