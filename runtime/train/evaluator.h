// Loss and accuracy over a whole data set, each sample counted exactly once.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "runtime/train/feed.h"
#include "runtime/train/step_outputs.h"

namespace gpuc {

struct Evaluation {
  std::optional<double> loss;      // the mean over all that counts
  std::optional<double> accuracy;  // from 0 to 1
};

class Evaluator {
 public:
  /// For the plan's eval_step. Ranks share the data out, if `ranks` is not null. Errors: it has none, the
  /// data do not fit it.
  static Result<Evaluator> create(const Session& session, const std::string& data,
                                  const LoaderOptions& options, Communicator* ranks = nullptr);

  /// By which other data are told apart: see sampleChecksum.
  Result<uint32_t> checksum() const { return feed_.checksum(); }

  /// See Dataset::classes.
  std::span<const std::string> classes() const { return feed_.classes(); }

  /// One pass in the order of the data; sums are in f64, of all ranks. None if `stop` turned true on the way,
  /// on one of them. Allocates nothing.
  Result<std::optional<Evaluation>> run(Session& session, const std::atomic<bool>& stop);

 private:
  Evaluator(ProgramId program, EvalOutputs outputs, Feed feed, Communicator* ranks)
      : program_(program), outputs_(outputs), feed_(std::move(feed)), ranks_(ranks) {}

  const ProgramInfo& info(const Session& session) const;

  /// That training would make of these data: by which a loss that is a sum over one is on average the same,
  /// however many ranks and microbatches have parts of one.
  double globalBatches(const Session& session) const;

  Result<bool> isStopWanted(const Session& session, const std::atomic<bool>& stop);

  ProgramId program_;
  EvalOutputs outputs_;
  Feed feed_;
  Communicator* ranks_;
};

}  // namespace gpuc
