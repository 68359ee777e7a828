// The plan reader: a value or one line of error. The checksum is made right first, so that what is tested is
// what stands behind it; and what passes must run without leaving its arena, whose end is guarded.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "runtime/gpuc.h"
#include "runtime/plan/access.h"
#include "runtime/plan/header.h"
#include "runtime/plan/seal.h"

namespace gpuc {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

/// How much work a run of these commands is: executions, and bytes moved.
double costOf(const flatbuffers::Vector<flatbuffers::Offset<fb::Command>>* commands) {
  double cost = 0;
  for (const fb::Command* command : each(commands)) {
    cost += 1;
    if (const std::optional<CommandLoop> loop = loopOf(*command))
      cost += static_cast<double>(loop->count) * (1 + costOf(loop->commands));
    if (const fb::Conv* conv = command->work_as_Conv())  // products, many at a time
      cost += 0.05 *
              static_cast<double>((conv->kind() == fb::ConvKind::forward ? conv->c() : conv->a())->size()) *
              static_cast<double>(conv->in_channels() * conv->height()->kernel() * conv->width()->kernel());
    if (const fb::Attention* attention = command->work_as_Attention())
      cost += static_cast<double>(attention->batch() * attention->heads() * attention->queries()) *
              static_cast<double>(attention->keys()) *
              (10 + 0.2 * static_cast<double>(attention->width() + attention->value_width()));
    if (const fb::Copy* copy = command->work_as_Copy())
      cost += static_cast<double>((copy->from() ? copy->from() : copy->to())->size());
    if (const fb::Fill* fill = command->work_as_Fill()) cost += static_cast<double>(fill->to()->size());
  }
  return cost;
}

/// Code is trusted, so plans with code are only read. What a mutation made too long is not run.
bool mayRun(const Plan& plan) {
  if (countOf(plan.root().code()) > 0 || plan.root().arena_bytes() > (1 << 20)) return false;
  double cost = 0;
  for (const fb::Program* program : each(plan.root().programs()))
    for (const fb::Stream* stream : each(program->streams())) cost += costOf(stream->commands());
  return cost < 1e5;
}

void runAll(const Plan& plan) {
  Result<Session> session = Session::create(plan, {.device = "host", .threads = 1, .check_memory = true});
  if (!session.ok()) return;
  const PlanInfo& info = plan.info();
  for (uint32_t p = 0; p < info.programs.size(); ++p) {
    std::vector<std::vector<std::byte>> data;
    std::vector<HostTensorView> inputs;
    for (const InputInfo& input : info.programs[p].inputs)
      inputs.emplace_back(data.emplace_back(static_cast<size_t>(input.spec.sizeBytes())).data(), input.spec);
    for (int run = 0; run < 3; ++run) require(session->run({p}, inputs).ok());
  }
}

}  // namespace
}  // namespace gpuc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gpuc;
  std::string file(reinterpret_cast<const char*>(data), size);
  Result<Plan> as_it_is = Plan::parse(file);
  require(as_it_is.ok() || !as_it_is.message().empty());
  if (size < sizeof(PlanHeader)) return 0;
  Result<Plan> plan = Plan::parse(sealPlan(std::string_view(file).substr(sizeof(PlanHeader))));
  if (!plan.ok()) {
    require(plan.message().find('\n') == std::string::npos);
    return 0;
  }
  if (mayRun(*plan)) runAll(*plan);
  return 0;
}
