// Target, buffers, variables, constants, kernels, code: what programs refer to.
#include <algorithm>
#include <cinttypes>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/base/data_type.h"
#include "runtime/base/shares.h"
#include "runtime/plan/header.h"
#include "runtime/plan/verify.h"

namespace gpuc {
namespace {

using NameSet = std::unordered_set<std::string_view>;

Status verifyHeadline(const fb::Plan& plan) {
  GPUC_RETURN_IF_ERROR(verifyName(plan.name(), "plan"));
  if (!plan.target()) return errorf("plan without a target");
  GPUC_RETURN_IF_ERROR(verifyName(plan.target()->name(), "target"));
  if (plan.target()->kind() > fb::TargetKind::MAX)
    return errorf("unknown target kind %d", int(plan.target()->kind()));
  for (const flatbuffers::String* feature : each(plan.target()->features()))
    GPUC_RETURN_IF_ERROR(verifyName(feature, "target feature"));
  for (const fb::Library* library : each(plan.libraries())) {
    GPUC_RETURN_IF_ERROR(verifyName(library->name(), "library"));
    GPUC_RETURN_IF_ERROR(verifyText(library->version(), "a library's version"));
  }
  if (plan.compiler_version()) GPUC_RETURN_IF_ERROR(verifyName(plan.compiler_version(), "compiler version"));
  if (plan.batch() > INT32_MAX || plan.global_batch() > INT64_MAX)
    return errorf("batch of %" PRIu64 " rows, global batch of %" PRIu64 " rows: too many", plan.batch(),
                  plan.global_batch());
  return okStatus();
}

Status verifyArena(const fb::Plan& plan) {
  uint64_t alignment = plan.alignment();
  if (alignment < kBufferAlignment || alignment > kMostAlignment || (alignment & (alignment - 1)) != 0)
    return errorf("alignment of %" PRIu64 " bytes: expected a power of two from %" PRIu64 " to %" PRIu64,
                  alignment, kBufferAlignment, kMostAlignment);
  if (plan.arena_bytes() > kMostArenaBytes || plan.arena_bytes() % alignment != 0)
    return errorf("arena of %" PRIu64 " bytes: expected a multiple of %" PRIu64 " up to %" PRIu64,
                  plan.arena_bytes(), alignment, kMostArenaBytes);
  if (plan.input_slots() == 0 || plan.input_slots() > kMostInputSlots)
    return errorf("%" PRIu32 " input slots: expected 1 to %" PRIu32, plan.input_slots(), kMostInputSlots);
  return okStatus();
}

/// The bytes of a tensor, or false if they do not fit.
bool tensorBytes(const fb::Buffer& buffer, uint64_t& bytes) {
  bytes = static_cast<uint64_t>(sizeOf(static_cast<DataType>(buffer.type())));
  for (int64_t extent : each(buffer.shape()))
    if (extent <= 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes)) return false;
  return true;
}

Status verifyBuffer(const fb::Plan& plan, const fb::Buffer& buffer) {
  GPUC_RETURN_IF_ERROR(verifyName(buffer.name(), "buffer"));
  GPUC_RETURN_IF_ERROR(verifyText(buffer.location(), "a buffer's location"));
  GPUC_RETURN_IF_ERROR(verifyText(buffer.source(), "a buffer's source"));
  const flatbuffers::String* name = buffer.name();
  if (buffer.type() > fb::DataType::MAX || buffer.category() > fb::Category::MAX)
    return errorf("buffer %s: unknown element type %d or category %d", quoted(name).c_str(),
                  int(buffer.type()), int(buffer.category()));
  if (!elementsAligned(buffer.shape())) return errorf("buffer %s: a misaligned shape", quoted(name).c_str());
  uint64_t bytes = 0;
  if (countOf(buffer.shape()) > kMostRank || !tensorBytes(buffer, bytes))
    return errorf("buffer %s: a shape of rank %" PRIu32 " with extents that are not positive or do not fit",
                  quoted(name).c_str(), countOf(buffer.shape()));
  if (bytes != buffer.size())
    return errorf("buffer %s: %" PRIu64 " bytes, its shape and type take %" PRIu64, quoted(name).c_str(),
                  buffer.size(), bytes);
  const uint64_t alignment = bytes < kBufferAlignment ? leastAlignment(bytes) : plan.alignment();
  if (buffer.offset() % alignment != 0 || buffer.slot_stride() % alignment != 0)
    return errorf("buffer %s: offset %" PRIu64 " or slot stride %" PRIu64 " is not aligned to %" PRIu64,
                  quoted(name).c_str(), buffer.offset(), buffer.slot_stride(), alignment);
  if (buffer.slot_stride() != 0 && buffer.slot_stride() < buffer.size())
    return errorf("buffer %s: slots of %" PRIu64 " bytes every %" PRIu64 " bytes overlap",
                  quoted(name).c_str(), buffer.size(), buffer.slot_stride());
  uint64_t end = 0;
  bool fits = !__builtin_mul_overflow(uint64_t{plan.input_slots() - 1}, buffer.slot_stride(), &end) &&
              !__builtin_add_overflow(end, buffer.offset(), &end) &&
              !__builtin_add_overflow(end, buffer.size(), &end);
  if (!fits || end > plan.arena_bytes())
    return errorf("buffer %s: offset %" PRIu64 ", %" PRIu64 " bytes in each of %" PRIu32
                  " slots end outside the arena of %" PRIu64 " bytes",
                  quoted(name).c_str(), buffer.offset(), buffer.size(),
                  buffer.slot_stride() ? plan.input_slots() : 1, plan.arena_bytes());
  return okStatus();
}

Status verifyPersistentBuffer(const fb::Plan& plan, uint32_t index, const char* what) {
  if (index >= countOf(plan.buffers()))
    return errorf("%s refers to buffer %" PRIu32 " of %" PRIu32, what, index, countOf(plan.buffers()));
  const fb::Buffer& buffer = *plan.buffers()->Get(index);
  if (buffer.slot_stride() != 0)
    return errorf("%s buffer %s has input slots", what, quoted(buffer.name()).c_str());
  return okStatus();
}

/// A rank's share of a variable is of the length that the whole shape and the number of ranks say.
Status verifyShare(const fb::Plan& plan, const fb::Variable& variable) {
  if (!variable.is_share()) return okStatus();
  const fb::Buffer& buffer = *plan.buffers()->Get(variable.buffer());
  uint64_t elements = 1;
  bool fits = true;
  for (const int64_t extent : each(variable.whole_shape()))
    fits &= extent > 0 && !__builtin_mul_overflow(elements, static_cast<uint64_t>(extent), &elements);
  const auto element = static_cast<size_t>(sizeOf(static_cast<DataType>(buffer.type())));
  const std::optional<Shares> shares =
      fits ? Shares::of({&elements, 1}, plan.world_size(), element) : std::nullopt;
  if (shares && shares->elements * element == buffer.size() && countOf(buffer.shape()) == 1)
    return okStatus();
  return errorf("variable %s: %" PRIu64 " bytes are no share of it among %" PRIu32 " ranks",
                quoted(variable.name()).c_str(), buffer.size(), plan.world_size());
}

/// Of a variable that is another one on each rank: the first of its names is its own.
Status verifyOwned(const fb::Plan& plan, const fb::Variable& variable) {
  const uint32_t owners = countOf(variable.owned_names());
  if (owners == 0) return okStatus();
  if (owners > plan.world_size() || variable.is_share())
    return errorf("variable %s: has %" PRIu32 " owners among %" PRIu32 " ranks%s",
                  quoted(variable.name()).c_str(), owners, plan.world_size(),
                  variable.is_share() ? ", and is a share" : "");
  for (const flatbuffers::String* name : each(variable.owned_names()))
    GPUC_RETURN_IF_ERROR(verifyName(name, "variable"));
  if (textOf(variable.owned_names()->Get(0)) == textOf(variable.name())) return okStatus();
  return errorf("variable %s: the first of its owners has %s", quoted(variable.name()).c_str(),
                quoted(variable.owned_names()->Get(0)).c_str());
}

Status verifyVariables(const fb::Plan& plan, std::vector<const fb::Buffer*>& persistent) {
  NameSet names;
  for (const fb::Variable* variable : each(plan.variables())) {
    GPUC_RETURN_IF_ERROR(verifyName(variable->name(), "variable"));
    GPUC_RETURN_IF_ERROR(verifyText(variable->initializer(), "a variable's initializer"));
    GPUC_RETURN_IF_ERROR(verifyOwned(plan, *variable));
    const flatbuffers::String* name = variable->name();
    for (uint32_t owner = 0; owner < std::max<uint32_t>(1, countOf(variable->owned_names())); ++owner) {
      const flatbuffers::String* owned = owner == 0 ? name : variable->owned_names()->Get(owner);
      if (!names.insert(textOf(owned)).second)
        return errorf("two variables are called %s", quoted(owned).c_str());
    }
    if (variable->kind() > fb::VariableKind::MAX)
      return errorf("variable %s: unknown kind %d", quoted(name).c_str(), int(variable->kind()));
    GPUC_RETURN_IF_ERROR(verifyPersistentBuffer(plan, variable->buffer(), "variable"));
    GPUC_RETURN_IF_ERROR(verifyShare(plan, *variable));
    persistent.push_back(plan.buffers()->Get(variable->buffer()));
  }
  return okStatus();
}

Status verifyConstants(const fb::Plan& plan, std::vector<const fb::Buffer*>& persistent) {
  for (const fb::Constant* constant : each(plan.constants())) {
    GPUC_RETURN_IF_ERROR(verifyPersistentBuffer(plan, constant->buffer(), "constant"));
    const fb::Buffer* buffer = plan.buffers()->Get(constant->buffer());
    if (countOf(constant->data()) != buffer->size())
      return errorf("constant %s: %" PRIu32 " bytes of data for %" PRIu64, quoted(buffer->name()).c_str(),
                    countOf(constant->data()), buffer->size());
    persistent.push_back(buffer);
  }
  return okStatus();
}

/// Variables and constants live through all programs: no two may share a byte.
Status verifyDisjoint(std::vector<const fb::Buffer*>& buffers) {
  std::sort(buffers.begin(), buffers.end(),
            [](const fb::Buffer* a, const fb::Buffer* b) { return a->offset() < b->offset(); });
  for (size_t i = 1; i < buffers.size(); ++i) {
    const fb::Buffer &a = *buffers[i - 1], &b = *buffers[i];
    if (a.offset() + a.size() > b.offset())
      return errorf("variables or constants %s and %s overlap at offset %" PRIu64, quoted(a.name()).c_str(),
                    quoted(b.name()).c_str(), b.offset());
  }
  return okStatus();
}

Status verifyCode(const fb::Plan& plan) {
  bool host = plan.target()->kind() == fb::TargetKind::host;
  uint32_t host_objects = 0;
  for (const fb::Code* code : each(plan.code())) {
    if (code->kind() > fb::CodeKind::MAX) return errorf("unknown kind of code %d", int(code->kind()));
    if ((code->kind() == fb::CodeKind::host_object) != host)
      return errorf("plan for target %s holds %s code", quoted(plan.target()->name()).c_str(),
                    fb::EnumNameCodeKind(code->kind()));
    GPUC_RETURN_IF_ERROR(verifyText(code->architecture(), "the code's architecture"));
    if (countOf(code->data()) == 0) return errorf("an empty %s", fb::EnumNameCodeKind(code->kind()));
    host_objects += code->kind() == fb::CodeKind::host_object;
  }
  if (host_objects > 1) return errorf("%" PRIu32 " host objects, expected one", host_objects);
  if (countOf(plan.kernels()) > 0 && countOf(plan.code()) == 0)
    return errorf("%" PRIu32 " kernels and no code", countOf(plan.kernels()));
  return okStatus();
}

Status verifyKernels(const fb::Plan& plan) {
  // Equal kernels share their code, which takes as many operands for each of them.
  std::unordered_map<std::string_view, uint32_t> operands;
  for (const fb::Kernel* kernel : each(plan.kernels())) {
    GPUC_RETURN_IF_ERROR(verifyName(kernel->name(), "kernel"));
    GPUC_RETURN_IF_ERROR(verifyName(kernel->symbol(), "kernel symbol"));
    GPUC_RETURN_IF_ERROR(verifyText(kernel->location(), "a kernel's location"));
    const flatbuffers::String* symbol = kernel->symbol();
    uint32_t known = operands.try_emplace(textOf(symbol), kernel->operands()).first->second;
    if (known != kernel->operands())
      return errorf("two kernels have the symbol %s, one with %" PRIu32 " operands, one with %" PRIu32,
                    quoted(symbol).c_str(), known, kernel->operands());
  }
  return okStatus();
}

}  // namespace

Status verifyTables(const fb::Plan& plan) {
  GPUC_RETURN_IF_ERROR(verifyHeadline(plan));
  GPUC_RETURN_IF_ERROR(verifyArena(plan));
  for (const fb::Buffer* buffer : each(plan.buffers())) GPUC_RETURN_IF_ERROR(verifyBuffer(plan, *buffer));
  std::vector<const fb::Buffer*> persistent;
  GPUC_RETURN_IF_ERROR(verifyVariables(plan, persistent));
  GPUC_RETURN_IF_ERROR(verifyConstants(plan, persistent));
  GPUC_RETURN_IF_ERROR(verifyDisjoint(persistent));
  GPUC_RETURN_IF_ERROR(verifyCode(plan));
  return verifyKernels(plan);
}

}  // namespace gpuc
