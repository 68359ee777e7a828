// Host memory that a GPU copies from and to, which the compiler states and the runtime allocates: both count
// it here.
#pragma once

#include <cstdint>

#include "runtime/plan/access.h"
#include "runtime/plan/header.h"

namespace gpuc {

/// Bytes of pinned memory for a tensor of `size` bytes.
constexpr uint64_t pinnedTensorBytes(uint64_t size) {
  return (size + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

/// Of one program: each input once for each slot, each output once.
inline uint64_t pinnedBytes(const fb::Plan& plan, const fb::Program& program) {
  uint64_t bytes = 0;
  for (const fb::Input* input : each(program.inputs()))
    bytes += plan.input_slots() * pinnedTensorBytes(plan.buffers()->Get(input->buffer())->size());
  for (const fb::Output* output : each(program.outputs()))
    bytes += pinnedTensorBytes(plan.buffers()->Get(output->buffer())->size());
  return bytes;
}

/// Of all programs; what Plan.pinned_bytes says of a plan for CUDA.
inline uint64_t pinnedBytes(const fb::Plan& plan) {
  uint64_t bytes = 0;
  for (const fb::Program* program : each(plan.programs())) bytes += pinnedBytes(plan, *program);
  return bytes;
}

}  // namespace gpuc
