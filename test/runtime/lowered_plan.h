// A plan's first program as the host would execute it, to be looked at.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "runtime/host/exchange.h"
#include "runtime/host/lower.h"
#include "runtime/host/spread.h"
#include "test/runtime/plan_builder.h"

namespace gpuc::test {

struct Lowered {
  explicit Lowered(const PlanBuilder& builder, int threads,
                   const std::vector<KernelFunction>& kernels = std::vector<KernelFunction>(2))
      : plan(builder.parse()) {
    Result<Arena> mapped = Arena::map(plan.root().arena_bytes(), false);
    EXPECT_TRUE(mapped.ok()) << mapped.message();
    arena = *std::move(mapped);
    auto lowered = lowerProgram(plan, 0, arena, kernels, ranks, threads);
    EXPECT_TRUE(lowered.ok()) << lowered.message();
    program = *std::move(lowered);
    chooseSpread(program->streams[0], program->accesses, threads, coreCacheBytes());
  }
  std::vector<HostCommand>& commands() { return program->streams[0]; }

  Plan plan;
  Arena arena;
  Ranks ranks{nullptr};
  std::unique_ptr<HostProgram> program;
};

}  // namespace gpuc::test
