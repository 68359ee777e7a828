#include "runtime/plan/verify.h"

#include <cinttypes>
#include <unordered_set>

#include "runtime/base/quote.h"
#include "runtime/plan/header.h"
#include "runtime/plan/reach.h"

namespace gpuc {

Status verifyStructure(std::string_view payload) {
  constexpr flatbuffers::uoffset_t kMostDepth = 2 * kMostRepeatDepth + 16;
  if (payload.size() >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return errorf("plan of %zu bytes: a FlatBuffer holds less than 2 GiB", payload.size());
  // First: FlatBuffers' verifier, as all that comes after it, goes to each part as often as it is reached.
  GPUC_ASSIGN_OR_RETURN(Reach reach, reachOf(payload, kMostDepth));
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(payload.data()), payload.size(), kMostDepth,
                                 static_cast<flatbuffers::uoffset_t>(reach.parts) + 1);
  if (payload.size() < 8 || !fb::VerifyPlanBuffer(verifier))
    return errorf("damaged plan: its FlatBuffer of %zu bytes is not well-formed", payload.size());
  return okStatus();
}

Status verifyName(const flatbuffers::String* name, const char* what) {
  if (!name || name->size() == 0) return errorf("%s without a name", what);
  if (name->size() > kMostNameBytes)
    return errorf("%s with a name of %" PRIu32 " bytes, at most %" PRIu32, what, name->size(),
                  kMostNameBytes);
  return isPrintable(textOf(name))
             ? okStatus()
             : errorf("%s %s with a control character in its name", what, inQuotes(textOf(name)).c_str());
}

Status verifyText(const flatbuffers::String* text, const char* what) {
  return isPrintable(textOf(text))
             ? okStatus()
             : errorf("%s %s with a control character", what, inQuotes(textOf(text)).c_str());
}

Status verifyWorkspace(const fb::Plan& plan, const fb::Operand* workspace, const char* what) {
  if (!workspace || plan.target()->kind() != fb::TargetKind::cuda) return okStatus();
  const uint64_t place = plan.buffers()->Get(workspace->buffer())->offset() + workspace->offset();
  bool stays = workspace->offset() % kGpuWorkspaceAlignment == 0;
  for (int64_t stride : each(workspace->strides()))
    stays = stays && stride % static_cast<int64_t>(kGpuWorkspaceAlignment) == 0;
  if (stays && place % kGpuWorkspaceAlignment == 0) return okStatus();
  return errorf("%s: its workspace lies at %" PRIu64 ", which is no multiple of the %" PRIu64
                " bytes that the GPU's libraries ask for: compile the model again",
                what, place, kGpuWorkspaceAlignment);
}

bool beginsAtElement(const fb::Operand& operand, DataType type) {
  const int64_t size = sizeOf(type);
  if (operand.offset() % static_cast<uint64_t>(size) != 0) return false;
  for (int64_t stride : each(operand.strides()))
    if (stride % size != 0) return false;
  return true;
}

bool elementsAligned(const flatbuffers::Vector<int64_t>* vector) {
  return countOf(vector) == 0 || reinterpret_cast<uintptr_t>(vector->Data()) % sizeof(int64_t) == 0;
}

std::string quoted(const flatbuffers::String* name) { return "'" + std::string(textOf(name)) + "'"; }

Status verifyPlan(const fb::Plan& plan) {
  GPUC_RETURN_IF_ERROR(verifyTables(plan));
  if (countOf(plan.programs()) > kMostPrograms)
    return errorf("%" PRIu32 " programs, at most %" PRIu32, countOf(plan.programs()), kMostPrograms);
  std::unordered_set<std::string_view> names;
  uint64_t event_executions = 0;
  for (const fb::Program* program : each(plan.programs())) {
    GPUC_RETURN_IF_ERROR(verifyName(program->name(), "program"));
    if (!names.insert(textOf(program->name())).second)
      return Status::error("two programs are called " + quoted(program->name()));
    Status status = verifyProgram(plan, *program);
    if (status.ok()) status = verifyEvents(*program, event_executions);
    if (!status.ok()) return Status::error("program " + quoted(program->name()) + ": " + status.message());
  }
  return okStatus();
}

}  // namespace gpuc
