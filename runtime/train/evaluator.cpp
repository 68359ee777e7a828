#include "runtime/train/evaluator.h"

#include "runtime/comm/communicator.h"

namespace gpuc {
namespace {

/// A sum and what it is divided by, over the batches.
struct Mean {
  double sum = 0;
  double count = 0;
  double parts = 0;  // 0: nothing is known of it

  void add(const std::optional<Number>& part, const std::optional<Number>& of_part) {
    if (!part || !of_part) return;
    sum += part->value;
    count += of_part->value;
    ++parts;
  }
  std::optional<double> value() const { return parts > 0 ? std::optional(sum / count) : std::nullopt; }
};

/// What a pass over the data adds up; numbers alone, which ranks can add up in turn.
struct Sums {
  Mean loss, accuracy;
  double stopped = 0;  // ranks that did not come to the end of their data

  Status addRanks(Communicator& ranks) {
    static_assert(sizeof(Sums) % sizeof(double) == 0);
    auto* bytes = reinterpret_cast<std::byte*>(this);
    return ranks.allReduce(DataType::f64, sizeof(Sums) / sizeof(double), bytes, bytes);
  }
};

}  // namespace

Result<Evaluator> Evaluator::create(const Session& session, const std::string& data,
                                    const LoaderOptions& options, Communicator* ranks) {
  GPUC_ASSIGN_OR_RETURN(ProgramId program, session.program("eval_step"));
  GPUC_ASSIGN_OR_RETURN(EvalOutputs outputs, EvalOutputs::find(session, program));
  const PlanInfo& plan = session.plan().info();
  GPUC_ASSIGN_OR_RETURN(Feed feed, Feed::open(plan.programs[program.index], data));
  GPUC_RETURN_IF_ERROR(feed.start({.batch = plan.batch,
                                   .rank = ranks ? ranks->rank() : 0,
                                   .world_size = ranks ? ranks->size() : 1,
                                   .shuffle = false,
                                   .last_batch = LastBatch::pad},
                                  options));
  return Evaluator(program, outputs, std::move(feed), ranks);
}

/// Ranks that share variables out gather them for each batch, and so stop together.
Result<bool> Evaluator::isStopWanted(const Session& session, const std::atomic<bool>& stop) {
  int32_t wishes = stop.load() ? 1 : 0;
  auto* bytes = reinterpret_cast<std::byte*>(&wishes);
  if (session.plan().info().world_size > 1)
    GPUC_RETURN_IF_ERROR(ranks_->allReduce(DataType::i32, 1, bytes, bytes));
  return wishes > 0;
}

Result<std::optional<Evaluation>> Evaluator::run(Session& session, const std::atomic<bool>& stop) {
  Sums sums;
  const bool is_together = session.plan().info().world_size > 1;
  for (int64_t step = 0; step < feed_.sampler().stepsPerEpoch(); ++step) {
    GPUC_ASSIGN_OR_RETURN(const bool is_stopped, isStopWanted(session, stop));
    if (is_stopped) {
      sums.stopped = 1;
      break;
    }
    GPUC_ASSIGN_OR_RETURN(FeedBatch batch, feed_.next());
    // Who has no rows computes all the same where the others would wait, and what comes of it counts as
    // nothing.
    const int32_t rows = batch.own_rows > 0 ? batch.own_run_rows : -1;
    if (batch.own_rows > 0 || is_together) GPUC_RETURN_IF_ERROR(session.run(program_, batch.inputs, rows));
    feed_.release();
    if (batch.own_rows > 0 || is_together) GPUC_RETURN_IF_ERROR(session.wait());
    if (batch.own_rows == 0) continue;  // the other ranks have the rest of the data
    sums.loss.add(outputs_.loss_sum.read(session), outputs_.count.read(session));
    sums.accuracy.add(outputs_.correct.read(session), outputs_.correct_count.read(session));
  }
  if (ranks_) GPUC_RETURN_IF_ERROR(sums.addRanks(*ranks_));
  if (sums.stopped > 0) return std::optional<Evaluation>();
  if (info(session).counts_once && sums.loss.parts > 0) sums.loss.count = globalBatches(session);
  return std::optional(Evaluation{sums.loss.value(), sums.accuracy.value()});
}

const ProgramInfo& Evaluator::info(const Session& session) const {
  return session.plan().info().programs[program_.index];
}

double Evaluator::globalBatches(const Session& session) const {
  const int64_t rows = session.plan().info().global_batch * feed_.sampler().options().world_size;
  return static_cast<double>((feed_.sampler().options().size + rows - 1) / rows);
}

}  // namespace gpuc
