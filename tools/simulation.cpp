#include "tools/simulation.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "passes/simulate/Simulator.h"
#include "runtime/base/text_table.h"
#include "runtime/report/chrome_trace.h"

namespace gpuc {
namespace {

World worldOf(int64_t ranks, Network network, const Disturbance& disturbance) {
  auto exchange = [=](int64_t bytes) { return network.allReduceNanoseconds(bytes, ranks); };
  return {ranks, std::move(exchange), disturbance};
}

/// The world without one thing that is in its way, for each that there is.
std::vector<Relief> reliefsOf(int64_t ranks, const SimulationOptions& options) {
  std::vector<Relief> reliefs = calmed(worldOf(ranks, options.network, options.disturbance));
  auto add = [&](const char* name, Link Network::* link, bool isLatency) {
    Network network = options.network;
    if (isLatency)
      (network.*link).latencyNanoseconds = 0;
    else
      (network.*link).bytesPerNanosecond = std::numeric_limits<double>::infinity();
    reliefs.push_back({name, worldOf(ranks, network, options.disturbance)});
  };
  if (ranks == 1) return reliefs;
  add("bandwidth within a machine", &Network::within, /*isLatency=*/false);
  add("latency within a machine", &Network::within, /*isLatency=*/true);
  if (options.network.machinesOf(ranks) == 1) return reliefs;
  add("bandwidth between machines", &Network::between, /*isLatency=*/false);
  add("latency between machines", &Network::between, /*isLatency=*/true);
  return reliefs;
}

std::string number(double value, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// Of nanoseconds.
std::string milliseconds(double value) { return number(value / 1e6, "%.3f"); }

double shareSavedBy(const Limit& limit, const SimulatedWorld& world) {
  return 1 - limit.step / world.times.step;
}

}  // namespace

Status check(const SimulationOptions& options) {
  for (int64_t ranks : options.ranks) {
    GPUC_RETURN_IF_ERROR(check(worldOf(ranks, options.network, options.disturbance)));
    GPUC_RETURN_IF_ERROR(options.network.checkFilledBy(ranks));
  }
  return okStatus();
}

Result<std::vector<SimulatedWorld>> simulate(const Schedule& schedule, const SimulationOptions& options) {
  std::vector<SimulatedWorld> worlds;
  for (int64_t ranks : options.ranks) {
    SimulatedWorld world{ranks, options.network.machinesOf(ranks), {}, {}};
    GPUC_ASSIGN_OR_RETURN(
        world.times,
        stepTimes(schedule, worldOf(ranks, options.network, options.disturbance), options.steps));
    GPUC_ASSIGN_OR_RETURN(world.limits, limitsOf(schedule, reliefsOf(ranks, options), options.steps));
    worlds.push_back(std::move(world));
  }
  return worlds;
}

std::string limitOf(const SimulatedWorld& world) {
  constexpr double kLeastShare = 0.01;
  const bool isCompute = world.limits.empty() || shareSavedBy(world.limits.front(), world) < kLeastShare;
  return isCompute ? "compute" : world.limits.front().name;
}

std::string tableOf(const Schedule& schedule, const std::vector<SimulatedWorld>& worlds) {
  std::string text =
      llvm::formatv("{0} exchange{4} of {1:f1} MB in all a step; a rank computes for {2} ms, {3}\n\n",
                    schedule.exchanges(), static_cast<double>(schedule.exchangedBytes()) / 1e6,
                    milliseconds(worlds.front().times.compute), schedule.timesBy,
                    schedule.exchanges() == 1 ? "" : "s")
          .str();
  auto rows = [&](const AddRow& add) {
    add({"ranks", "machines", "step, ms", "exposed", "waiting", "efficiency", "limited by"});
    for (const SimulatedWorld& world : worlds) {
      std::string limit = limitOf(world);
      if (limit != "compute")
        limit += number(-100 * shareSavedBy(world.limits.front(), world), " (%.0f% without)");
      add({std::to_string(world.ranks), std::to_string(world.machines), milliseconds(world.times.step),
           milliseconds(world.times.exposed), milliseconds(world.times.waiting),
           number(100 * world.times.efficiency(), "%.1f%%"), limit});
    }
  };
  writeTable(rows, [&](std::string_view line) { text += line; }, {0, 1, 2, 3, 4, 5});
  return text;
}

static llvm::json::Object jsonOf(const Link& link) {
  return llvm::json::Object{{"name", link.name},
                            {"bytes_per_ns", link.bytesPerNanosecond},
                            {"latency_us", link.latencyNanoseconds / 1000}};
}

static llvm::json::Object jsonOf(const SimulatedWorld& world) {
  llvm::json::Array limits;
  for (const Limit& limit : world.limits)
    limits.push_back(llvm::json::Object{{"without", limit.name}, {"step_us", limit.step / 1000}});
  return llvm::json::Object{{"ranks", world.ranks},
                            {"machines", world.machines},
                            {"step_us", world.times.step / 1000},
                            {"compute_us", world.times.compute / 1000},
                            {"exposed_us", world.times.exposed / 1000},
                            {"waiting_us", world.times.waiting / 1000},
                            {"efficiency", world.times.efficiency()},
                            {"limited_by", limitOf(world)},
                            {"limits", std::move(limits)}};
}

std::string jsonOf(const Schedule& schedule, const SimulationOptions& options,
                   const std::vector<SimulatedWorld>& worlds) {
  const Disturbance& disturbance = options.disturbance;
  llvm::json::Array list;
  for (const SimulatedWorld& world : worlds) list.push_back(jsonOf(world));
  llvm::json::Object report{{"rates_source", schedule.timesBy},
                            {"streams", static_cast<int64_t>(schedule.streams.size())},
                            {"exchanges", schedule.exchanges()},
                            {"exchanged_bytes", schedule.exchangedBytes()},
                            {"link", jsonOf(options.network.within)},
                            {"network", jsonOf(options.network.between)},
                            {"devices_per_machine", options.network.devicesPerMachine},
                            {"jitter", disturbance.computeJitter},
                            {"link_jitter", disturbance.linkJitter},
                            {"stragglers", disturbance.stragglers},
                            {"slowdown", disturbance.slowdown},
                            {"seed", disturbance.seed},
                            {"steps", options.steps},
                            {"worlds", std::move(list)}};
  return llvm::formatv("{0:2}\n", llvm::json::Value(std::move(report))).str();
}

Result<std::string> traceOf(const Schedule& schedule, const SimulationOptions& options) {
  const int64_t ranks = options.ranks.back();
  const bool areAlike = options.disturbance.stragglers == 0 && options.disturbance.computeJitter == 0;
  std::vector<int64_t> shown = {0};
  if (ranks > 1 && !areAlike) shown.push_back(ranks - 1);
  std::vector<TraceLine> lines;
  for (int64_t rank : shown)
    for (const Schedule::Stream& stream : schedule.streams)
      lines.push_back({stream.name, "rank " + std::to_string(rank), rank});

  Simulator simulator(schedule, worldOf(ranks, options.network, options.disturbance));
  for (int64_t step = warmUpSteps(schedule); step > 0; --step) GPUC_RETURN_IF_ERROR(simulator.step());
  std::vector<TraceEvent> events;
  simulator.observe(shown, [&](const Executed& executed) {
    const Schedule::Label& label = schedule.labels[executed.command->label];
    const size_t line = (executed.rank == 0 ? 0 : schedule.streams.size()) + executed.stream;
    events.push_back({line, label.name, label.kind, "train_step", label.layer, executed.begin, executed.end});
  });
  for (int step = 0; step < 2; ++step) GPUC_RETURN_IF_ERROR(simulator.step());
  return chromeTrace(lines, events);
}

}  // namespace gpuc
