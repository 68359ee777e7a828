//===- StepSchedule.cpp - What simulate/ has to know of a plan's step --------===//

#include "passes/report/StepSchedule.h"

#include "dialects/plan/PlanOps.h"
#include "passes/base/Locations.h"
#include "passes/report/KernelReport.h"
#include "passes/report/Report.h"
#include "passes/report/TraceName.h"
#include "runtime/plan/verify.h"

using namespace mlir;

namespace gpuc {
namespace {

/// Of all streams together.
constexpr size_t kMostCommands = 1 << 20;

class ScheduleBuilder {
public:
  ScheduleBuilder(plan::ProgramOp program, const CostModel &cost)
      : program_(program), prediction_(program, cost) {
    schedule_.timesBy = sourceOf(cost);
    schedule_.stepNanoseconds = cost.stepNanoseconds();
    schedule_.handoffNanoseconds = cost.device().handoffNanoseconds;
  }

  FailureOr<Schedule> build() {
    for (auto stream : program_.getBody().getOps<plan::StreamOp>()) {
      schedule_.streams.push_back({stream.getName().str(), {}});
      if (failed(add(stream.getBody().front())))
        return failure();
    }
    schedule_.events = events_.size();
    return failed(checkExchanges()) ? FailureOr<Schedule>() : std::move(schedule_);
  }

private:
  static bool isSeenByOthers(Operation *op) {
    return isa<plan::RecordOp, plan::WaitOp, plan::CollectiveOpInterface>(op);
  }

  LogicalResult add(Block &block) {
    for (auto command : block.getOps<plan::CommandOpInterface>()) {
      auto repeat = dyn_cast<plan::RepeatOp>(*command);
      const bool isUnrolled =
          repeat && repeat.getBody()
                        .walk([](Operation *op) { return WalkResult(failure(isSeenByOthers(op))); })
                        .wasInterrupted();
      if (failed(isUnrolled ? unroll(repeat) : addOne(command)))
        return failure();
    }
    return success();
  }

  LogicalResult unroll(plan::RepeatOp repeat) {
    for (int64_t count = repeat.getCount(); count > 0; --count)
      if (failed(add(repeat.getBody().front())))
        return failure();
    push(repeat, {.nanoseconds = prediction_.nanosecondsOf(cast<plan::CommandOpInterface>(*repeat))});
    return success();
  }

  LogicalResult addOne(plan::CommandOpInterface command) {
    if (++commands_ > kMostCommands)
      return command->emitOpError("comes after ")
             << kMostCommands << " others, each iteration counted: that is more than can be simulated";
    Schedule::Command entry{.nanoseconds = nanosecondsOf(command)};
    if (auto record = dyn_cast<plan::RecordOp>(*command)) {
      entry.kind = Schedule::Kind::record;
      entry.event = numberOf(record.getEvent());
    } else if (auto wait = dyn_cast<plan::WaitOp>(*command)) {
      entry.kind = Schedule::Kind::wait;
      entry.event = numberOf(wait.getEvent());
      entry.distance = static_cast<int64_t>(wait.getDistance());
      if (wait.getDistance() > kMostDistance)
        return wait.emitOpError("reaches back over ")
               << wait.getDistance() << " executions, at most " << kMostDistance;
      entry.ordinal = executed_[wait]++;
    } else if (auto collective = dyn_cast<plan::CollectiveOpInterface>(*command)) {
      entry.kind = Schedule::Kind::exchange;
      entry.bytes = plan::summedBytes(collective);
      exchanging_.insert(schedule_.streams.size());
      lastExchange_ = collective;
    }
    push(command, entry);
    return success();
  }

  /// With all that is in a loop, for each time that it is executed.
  double nanosecondsOf(plan::CommandOpInterface command) {
    double nanoseconds = 0;
    command->walk([&](plan::CommandOpInterface inner) {
      nanoseconds +=
          static_cast<double>(executionsOf(inner) / executionsOf(command)) * prediction_.nanosecondsOf(inner);
    });
    return nanoseconds;
  }

  unsigned numberOf(Value event) { return events_.try_emplace(event, events_.size()).first->second; }

  void push(plan::CommandOpInterface command, Schedule::Command entry) {
    auto [label, isNew] = labels_.try_emplace(command, schedule_.labels.size());
    if (isNew) {
      const std::string name = traceNameOf(command), kind = command->getName().stripDialect().str();
      schedule_.labels.push_back({name.empty() ? kind : name, kind, layerName(command.getLoc())});
    }
    entry.label = label->second;
    schedule_.streams.back().commands.push_back(entry);
  }

  LogicalResult checkExchanges() {
    if (exchanging_.size() > 1)
      return lastExchange_->emitOpError("is one of several streams' exchanges, which ranks could meet in any "
                                        "order: put all on one");
    return success();
  }

  plan::ProgramOp program_;
  const Prediction prediction_;
  Schedule schedule_;
  DenseMap<Value, unsigned> events_;
  DenseMap<Operation *, unsigned> labels_;
  DenseMap<Operation *, int64_t> executed_;
  DenseSet<size_t> exchanging_; ///< Streams.
  Operation *lastExchange_ = nullptr;
  size_t commands_ = 0;
};

} // namespace

FailureOr<Schedule> stepScheduleOf(ModuleOp module, const CostModel &cost) {
  auto step = module.lookupSymbol<plan::ProgramOp>("train_step");
  if (!step)
    return module.emitError("has no @train_step to simulate: give the model a recipe with a loss and an "
                            "optimizer"),
           failure();
  FailureOr<Schedule> schedule = ScheduleBuilder(step, cost).build();
  auto target = module->getAttrOfType<plan::TargetAttr>(plan::kTargetAttr);
  if (succeeded(schedule) && target) // The host's streams are joined behind each step.
    schedule->joins = target.getKind() == plan::TargetKind::host;
  return schedule;
}

} // namespace gpuc
