#include "tools/simulation.h"

#include <algorithm>
#include <bit>
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

World worldOf(int64_t ranks, Network network, const SimulationOptions& options) {
  auto exchange = [=](int64_t bytes) { return network.allReduceNanoseconds(bytes, ranks); };
  return {ranks, std::move(exchange), options.disturbance, options.copyNanosecondsPerByte};
}

World worldOf(int64_t ranks, const SimulationOptions& options) {
  return worldOf(ranks, options.network, options);
}

/// The world without one thing that is in its way, for each that there is.
std::vector<Relief> reliefsOf(int64_t ranks, const SimulationOptions& options) {
  std::vector<Relief> reliefs = calmed(worldOf(ranks, options));
  auto add = [&](const char* name, Link Network::* link, bool isLatency) {
    Network network = options.network;
    if (isLatency)
      (network.*link).latencyNanoseconds = 0;
    else
      (network.*link).bytesPerNanosecond = std::numeric_limits<double>::infinity();
    reliefs.push_back({name, worldOf(ranks, network, options)});
  };
  if (ranks == 1) return reliefs;
  if (options.copyNanosecondsPerByte > 0) {
    reliefs.push_back({"copies of what is exchanged", worldOf(ranks, options)});
    reliefs.back().world.copyNanosecondsPerByte = 0;
  }
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
    GPUC_RETURN_IF_ERROR(check(worldOf(ranks, options)));
    GPUC_RETURN_IF_ERROR(options.network.checkFilledBy(ranks));
  }
  return okStatus();
}

/// Powers of two, of which the largest is enough for all that is exchanged.
static std::vector<int64_t> bucketSizes(const Schedule& schedule) {
  constexpr int kSizes = 8;
  const auto most = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(schedule.exchangedBytes())));
  std::vector<int64_t> sizes;
  for (int size = kSizes - 1; size >= 0; --size) sizes.push_back(std::max<int64_t>(most >> size, 1));
  return sizes;
}

static Status tuneBuckets(const SimulatedPlans& plans, const SimulationOptions& options,
                          SimulatedWorld& world) {
  for (int64_t bytes : bucketSizes(world.schedule)) {
    GPUC_ASSIGN_OR_RETURN(Schedule schedule, plans.planFor(world.ranks, world.link, bytes));
    GPUC_ASSIGN_OR_RETURN(double step, meanStep(schedule, worldOf(world.ranks, options), options.steps));
    world.buckets.push_back({bytes, schedule.exchanges(), step});
  }
  return okStatus();
}

/// What a plan for ranks does more than one for a rank alone is in the way, too.
static Status findLimits(const SimulationOptions& options, SimulatedWorld& world) {
  GPUC_ASSIGN_OR_RETURN(world.limits,
                        limitsOf(world.schedule, reliefsOf(world.ranks, options), options.steps));
  const double added = world.times.compute - world.ofOneRank;
  if (added <= 0) return okStatus();
  const Limit limit = {"commands that ranks add", world.times.step - added};
  auto isBetter = [](const Limit& a, const Limit& b) { return a.step < b.step; };
  world.limits.insert(std::upper_bound(world.limits.begin(), world.limits.end(), limit, isBetter), limit);
  return okStatus();
}

const SimulatedBuckets* SimulatedWorld::bestBuckets() const {
  auto best = std::min_element(buckets.begin(), buckets.end(),
                               [](const auto& a, const auto& b) { return a.step < b.step; });
  return best == buckets.end() ? nullptr : &*best;
}

Result<std::vector<SimulatedWorld>> simulate(const SimulatedPlans& plans, const SimulationOptions& options) {
  std::vector<SimulatedWorld> worlds;
  for (int64_t ranks : options.ranks) {
    SimulatedWorld world;
    world.ranks = ranks;
    world.machines = options.network.machinesOf(ranks);
    world.link = options.network.asOneLink(ranks);
    GPUC_ASSIGN_OR_RETURN(world.schedule, plans.planFor(ranks, world.link, options.bucketBytes));
    GPUC_ASSIGN_OR_RETURN(world.times, stepTimes(world.schedule, worldOf(ranks, options), options.steps));
    world.ofOneRank = world.times.compute;
    if (plans.ofOneRank) {
      const World one = worldOf(1, options.network, {});
      GPUC_ASSIGN_OR_RETURN(world.ofOneRank, meanStep(*plans.ofOneRank, one, options.steps));
    }
    GPUC_RETURN_IF_ERROR(findLimits(options, world));
    if (options.tunesBuckets) GPUC_RETURN_IF_ERROR(tuneBuckets(plans, options, world));
    worlds.push_back(std::move(world));
  }
  return worlds;
}

std::string limitOf(const SimulatedWorld& world) {
  constexpr double kLeastShare = 0.01;
  const bool isCompute = world.limits.empty() || shareSavedBy(world.limits.front(), world) < kLeastShare;
  return isCompute ? "compute" : world.limits.front().name;
}

static std::string describeLimit(const SimulatedWorld& world) {
  const std::string limit = limitOf(world);
  if (limit == "compute") return limit;
  return limit + number(-100 * shareSavedBy(world.limits.front(), world), " (%.0f% without)");
}

static Row rowOf(const SimulatedWorld& world) {
  const StepTimes& times = world.times;
  Row row = {std::to_string(world.ranks),
             std::to_string(world.machines),
             std::to_string(world.schedule.exchanges()),
             milliseconds(times.step),
             milliseconds(times.compute),
             milliseconds(times.exposed),
             milliseconds(times.waiting),
             number(100 * world.efficiency(), "%.1f%%"),
             describeLimit(world)};
  if (const SimulatedBuckets* best = world.bestBuckets())
    row.insert(row.end(),
               {number(static_cast<double>(best->bytes) / (1 << 20), "%g MiB"), milliseconds(best->step)});
  return row;
}

std::string tableOf(const SimulatedPlans& plans, const std::vector<SimulatedWorld>& worlds) {
  const Schedule& schedule = worlds.front().schedule;
  std::string text =
      number(static_cast<double>(schedule.exchangedBytes()) / 1e6, "%.1f MB are exchanged in a step; ");
  if (plans.ofOneRank) text += "one rank alone takes " + milliseconds(worlds.front().ofOneRank) + " ms; ";
  text += "times of commands are " + schedule.timesBy + "\n\n";
  Row head = {"ranks",   "machines", "exchanges",  "step, ms",  "compute",
              "exposed", "waiting",  "efficiency", "limited by"};
  if (!worlds.front().buckets.empty()) head.insert(head.end(), {"best buckets", "step, ms"});
  auto rows = [&](const AddRow& add) {
    add(head);
    for (const SimulatedWorld& world : worlds) add(rowOf(world));
  };
  writeTable(rows, [&](std::string_view line) { text += line; }, {0, 1, 2, 3, 4, 5, 6, 7, 9, 10});
  return text;
}

static llvm::json::Object jsonOf(const Link& link) {
  return llvm::json::Object{{"name", link.name},
                            {"bytes_per_ns", link.bytesPerNanosecond},
                            {"latency_us", link.latencyNanoseconds / 1000}};
}

static llvm::json::Object jsonOf(const SimulatedWorld& world) {
  llvm::json::Array limits, buckets;
  for (const Limit& limit : world.limits)
    limits.push_back(llvm::json::Object{{"without", limit.name}, {"step_us", limit.step / 1000}});
  for (const SimulatedBuckets& tried : world.buckets)
    buckets.push_back(llvm::json::Object{
        {"bytes", tried.bytes}, {"exchanges", tried.exchanges}, {"step_us", tried.step / 1000}});
  llvm::json::Object entry{{"ranks", world.ranks},
                           {"machines", world.machines},
                           {"link", textOf(world.link)},
                           {"streams", static_cast<int64_t>(world.schedule.streams.size())},
                           {"exchanges", world.schedule.exchanges()},
                           {"exchanged_bytes", world.schedule.exchangedBytes()},
                           {"step_us", world.times.step / 1000},
                           {"compute_us", world.times.compute / 1000},
                           {"exposed_us", world.times.exposed / 1000},
                           {"waiting_us", world.times.waiting / 1000},
                           {"one_rank_us", world.ofOneRank / 1000},
                           {"efficiency", world.efficiency()},
                           {"limited_by", limitOf(world)},
                           {"limits", std::move(limits)}};
  if (!world.buckets.empty()) entry["buckets"] = std::move(buckets);
  return entry;
}

std::string jsonOf(const SimulationOptions& options, const std::vector<SimulatedWorld>& worlds) {
  const Disturbance& disturbance = options.disturbance;
  llvm::json::Array list;
  for (const SimulatedWorld& world : worlds) list.push_back(jsonOf(world));
  llvm::json::Object report{{"rates_source", worlds.front().schedule.timesBy},
                            {"link", jsonOf(options.network.within)},
                            {"network", jsonOf(options.network.between)},
                            {"devices_per_machine", options.network.devicesPerMachine},
                            {"copy_ns_per_byte", options.copyNanosecondsPerByte},
                            {"jitter", disturbance.computeJitter},
                            {"link_jitter", disturbance.linkJitter},
                            {"stragglers", disturbance.stragglers},
                            {"slowdown", disturbance.slowdown},
                            {"seed", disturbance.seed},
                            {"steps", options.steps},
                            {"worlds", std::move(list)}};
  return llvm::formatv("{0:2}\n", llvm::json::Value(std::move(report))).str();
}

Result<std::string> traceOf(const SimulatedWorld& world, const SimulationOptions& options) {
  const Schedule& schedule = world.schedule;
  const bool areAlike = options.disturbance.stragglers == 0 && options.disturbance.computeJitter == 0;
  std::vector<int64_t> shown = {0};
  if (world.ranks > 1 && !areAlike) shown.push_back(world.ranks - 1);
  std::vector<TraceLine> lines;
  for (int64_t rank : shown)
    for (const Schedule::Stream& stream : schedule.streams)
      lines.push_back({stream.name, "rank " + std::to_string(rank), rank});

  Simulator simulator(schedule, worldOf(world.ranks, options));
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
