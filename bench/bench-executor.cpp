// Times what the host's executor adds to the work itself, per command, with plans of kernels that do nothing:
//   one stream       1,000 launches
//   repeat           100 launches, repeated 10 times, with a moving operand
//   two streams      500 launches on each, joined by 100 pairs of events
//   bench-executor
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "runtime/base/tool_main.h"
#include "runtime/gpuc.h"
#include "test/runtime/plan_builder.h"

namespace {

using namespace gpuc;
using test::CommandList;
using test::PlanBuilder;

struct Bench {
  PlanBuilder builder;
  uint32_t data = builder.buffer("data", DataType::f32, {10, 16});
  uint32_t nothing = builder.kernel("test_nothing", 2);

  void launches(CommandList& list, int count, const test::OperandOf& to) {
    for (int i = 0; i < count; ++i) builder.launch(list, nothing, {{data}}, {to});
  }
};

void addOneStream(Bench& bench) {
  bench.launches(bench.builder.program("one stream").streams[0]->commands, 1000, {bench.data});
}

void addRepeat(Bench& bench) {
  CommandList& body = PlanBuilder::repeat(bench.builder.program("repeat").streams[0]->commands, 10);
  bench.launches(body, 100, {bench.data, 0, 64, {64}});
}

void addTwoStreams(Bench& bench) {
  fb::ProgramT& program = bench.builder.program("two streams", 2);
  for (uint32_t pair = 0; pair < 100; ++pair) {
    program.events.push_back("event" + std::to_string(pair));
    // The streams take turns in waiting.
    CommandList& first = program.streams[pair % 2]->commands;
    CommandList& second = program.streams[1 - pair % 2]->commands;
    bench.launches(first, 5, {bench.data});
    PlanBuilder::record(first, pair);
    PlanBuilder::wait(second, pair);
    bench.launches(second, 5, {bench.data});
  }
}

Status run() {
  Bench bench;
  addOneStream(bench);
  addRepeat(bench);
  addTwoStreams(bench);
  GPUC_ASSIGN_OR_RETURN(Plan plan, Plan::parse(bench.builder.seal()));
  GPUC_ASSIGN_OR_RETURN(Session session, Session::create(plan, {.threads = 1}));
  constexpr int kCommands[] = {1000, 1000, 1200};
  for (uint32_t p = 0; p < 3; ++p) {
    std::vector<double> times_us;
    for (int i = 0; i < 2000; ++i) {
      auto begin = std::chrono::steady_clock::now();
      GPUC_RETURN_IF_ERROR(session.run({p}, {}));
      times_us.push_back(
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    }
    std::sort(times_us.begin(), times_us.end());
    double median = times_us[times_us.size() / 2];
    std::printf("%-12s %8.1f us for %d commands: %.3f us each (fastest %.3f)\n",
                plan.info().programs[p].name.c_str(), median, kCommands[p], median / kCommands[p],
                times_us[0] / kCommands[p]);
  }
  return okStatus();
}

}  // namespace

int main() { return exitStatus(run()); }
