#include "runtime/plan/plan.h"

#include <cstring>

#include "runtime/base/exceptions.h"
#include "runtime/base/file.h"
#include "runtime/plan/access.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/header.h"
#include "runtime/plan/seal.h"
#include "runtime/plan/verify.h"

namespace gpuc {

Result<Plan> Plan::load(const std::string& path) {
  GPUC_ASSIGN_OR_RETURN(std::string file, readFile(path));
  Result<Plan> plan = parse(std::move(file));
  if (!plan.ok()) return Status::error(path + ": " + plan.message());
  return plan;
}

uint64_t Plan::checksum() const {
  PlanHeader header;
  std::memcpy(&header, contents_->file.data(), sizeof(header));
  return header.checksum;
}

Result<Plan> Plan::parse(std::string file) {
  return withoutExceptions("cannot read the plan", [&]() -> Result<Plan> {
    auto contents = std::make_shared<Contents>();
    contents->file = std::move(file);
    GPUC_ASSIGN_OR_RETURN(std::string_view payload, openSeal(contents->file));
    GPUC_RETURN_IF_ERROR(verifyStructure(payload));
    contents->root = fb::GetPlan(payload.data());
    GPUC_RETURN_IF_ERROR(verifyPlan(*contents->root));
    contents->info = describePlan(*contents->root);
    return Plan(std::move(contents));
  });
}

}  // namespace gpuc
