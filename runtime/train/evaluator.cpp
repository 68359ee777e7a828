#include "runtime/train/evaluator.h"

namespace gpuc {
namespace {

/// A sum and what it is divided by, over the batches.
struct Mean {
  double sum = 0;
  double count = 0;
  bool is_known = false;

  void add(const std::optional<Number>& part, const std::optional<Number>& parts) {
    if (!part || !parts) return;
    sum += part->value;
    count += parts->value;
    is_known = true;
  }
  std::optional<double> value() const { return is_known ? std::optional(sum / count) : std::nullopt; }
};

}  // namespace

Result<Evaluator> Evaluator::create(const Session& session, const std::string& data,
                                    const LoaderOptions& options) {
  GPUC_ASSIGN_OR_RETURN(ProgramId program, session.program("eval_step"));
  GPUC_ASSIGN_OR_RETURN(EvalOutputs outputs, EvalOutputs::find(session, program));
  const PlanInfo& plan = session.plan().info();
  GPUC_ASSIGN_OR_RETURN(Feed feed, Feed::open(plan.programs[program.index], data));
  GPUC_RETURN_IF_ERROR(
      feed.start({.batch = plan.batch, .shuffle = false, .last_batch = LastBatch::pad}, options));
  return Evaluator(program, outputs, std::move(feed));
}

Result<std::optional<Evaluation>> Evaluator::run(Session& session, const std::atomic<bool>& stop) {
  Mean loss, accuracy;
  for (int64_t step = 0; step < feed_.sampler().stepsPerEpoch(); ++step) {
    if (stop) return std::optional<Evaluation>();
    GPUC_ASSIGN_OR_RETURN(FeedBatch batch, feed_.next());
    GPUC_RETURN_IF_ERROR(session.run(program_, batch.inputs, batch.run_rows));
    feed_.release();
    GPUC_RETURN_IF_ERROR(session.wait());
    loss.add(outputs_.loss_sum.read(session), outputs_.count.read(session));
    accuracy.add(outputs_.correct.read(session), outputs_.correct_count.read(session));
  }
  return std::optional(Evaluation{loss.value(), accuracy.value()});
}

}  // namespace gpuc
