// From the FlatBuffer to the plain facts that users and tools read.
#pragma once

#include "runtime/plan/access.h"
#include "runtime/plan/plan.h"

namespace gpuc {

/// `plan` has passed verifyPlan.
PlanInfo describePlan(const fb::Plan& plan);

/// The tensor that a buffer holds, under the name by which a program or variable calls it.
TensorSpec describeTensor(const fb::Buffer& buffer, std::string_view name);

}  // namespace gpuc
