// A plan's programs in the order in which people ask for them.
#pragma once

#include <algorithm>
#include <vector>

#include "runtime/plan/access.h"

namespace gpuc {

inline std::vector<const fb::Program*> trainStepFirst(const fb::Plan& plan) {
  std::vector<const fb::Program*> programs;
  for (const fb::Program* program : each(plan.programs())) programs.push_back(program);
  const auto step = std::find_if(programs.begin(), programs.end(), [](const fb::Program* program) {
    return textOf(program->name()) == "train_step";
  });
  if (step != programs.end()) std::rotate(programs.begin(), step, step + 1);
  return programs;
}

}  // namespace gpuc
