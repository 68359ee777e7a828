//===- StepTimes.cpp - What a step takes in the long run, and why -----------===//

#include "passes/simulate/StepTimes.h"

#include "passes/simulate/Simulator.h"

#include <algorithm>
#include <tuple>

namespace gpuc {

Result<double> meanStep(const Schedule &schedule, const World &world, int64_t steps) {
  Simulator simulator(schedule, world);
  for (int64_t step = warmUpSteps(schedule); step > 0; --step)
    GPUC_RETURN_IF_ERROR(simulator.step());
  const double begin = simulator.now();
  for (int64_t step = 0; step < steps; ++step)
    GPUC_RETURN_IF_ERROR(simulator.step());
  return (simulator.now() - begin) / static_cast<double>(steps);
}

Result<StepTimes> stepTimes(const Schedule &schedule, const World &world, int64_t steps) {
  World calm = world;
  calm.disturbance = {};
  StepTimes times;
  GPUC_ASSIGN_OR_RETURN(times.compute, meanStep(schedule.withoutExchanges(), calm, steps));
  GPUC_ASSIGN_OR_RETURN(const double undisturbed, meanStep(schedule, calm, steps));
  GPUC_ASSIGN_OR_RETURN(times.step, meanStep(schedule, world, steps));
  times.exposed = undisturbed - times.compute;
  times.waiting = times.step - undisturbed;
  return times;
}

Result<std::vector<Limit>> limitsOf(const Schedule &schedule, const std::vector<Relief> &reliefs,
                                    int64_t steps) {
  std::vector<Limit> limits;
  for (const Relief &relief : reliefs) {
    GPUC_ASSIGN_OR_RETURN(const double step, meanStep(schedule, relief.world, steps));
    limits.push_back({relief.name, step});
  }
  std::sort(limits.begin(), limits.end(), [](const Limit &a, const Limit &b) {
    return std::tie(a.step, a.name) < std::tie(b.step, b.name);
  });
  return limits;
}

std::vector<Relief> calmed(const World &world) {
  std::vector<Relief> reliefs;
  auto add = [&](bool applies, const char *name, auto &&calm) {
    if (!applies)
      return;
    reliefs.push_back({name, world});
    calm(reliefs.back().world.disturbance);
  };
  const Disturbance &now = world.disturbance;
  add(now.stragglers > 0, "stragglers", [](Disturbance &calm) { calm.stragglers = 0; });
  add(now.computeJitter > 0, "jitter of ranks", [](Disturbance &calm) { calm.computeJitter = 0; });
  add(now.linkJitter > 0, "jitter of links", [](Disturbance &calm) { calm.linkJitter = 0; });
  return reliefs;
}

} // namespace gpuc
