// What devices do alike when they lower a plan's commands to their own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/base/data_type.h"
#include "runtime/base/shares.h"
#include "runtime/base/status.h"
#include "runtime/plan/access.h"

namespace gpuc {

/// A fill whose destination is known.
struct LoweredFill {
  uint64_t bytes;
  uint64_t pattern;        // the element, repeated to 8 bytes
  uint32_t element_bytes;  // 1, 2, 4 or 8
};

/// Of one of `parts` equal parts of the destination.
inline LoweredFill lowerFill(const fb::Fill& fill, uint64_t parts = 1) {
  const uint32_t element = countOf(fill.pattern());
  uint8_t bytes[8] = {};
  for (uint32_t i = 0; element != 0 && i < sizeof(bytes); ++i) bytes[i] = fill.pattern()->Get(i % element);
  LoweredFill lowered{fill.to()->size() / parts, 0, std::max<uint32_t>(1, element)};
  std::memcpy(&lowered.pattern, bytes, sizeof(bytes));
  return lowered;
}

/// Calls lower(command) for each, up to the first error, which then names the command's layer.
template <typename Lower>
Status lowerEach(const Commands* commands, Lower lower) {
  for (const fb::Command* command : each(commands)) {
    Status status = lower(*command);
    if (status.ok()) continue;
    std::string location(textOf(command->location()));
    return location.empty() ? status : Status::error(status.message() + " (" + location + ")");
  }
  return okStatus();
}

/// What a command shares out or gathers among so many ranks, a ReduceScatter or an AllGather.
template <typename Collective>
Shares sharesOf(const Collective& collective, int64_t world_size) {
  const auto element = static_cast<size_t>(sizeOf(static_cast<DataType>(collective.type())));
  std::vector<uint64_t> tensors;
  for (const fb::Operand* whole : each(collective.wholes())) tensors.push_back(whole->size() / element);
  return *Shares::of(tensors, static_cast<uint64_t>(world_size), element,
                     collective.owners());  // the file was verified
}

/// How far the input slots of a buffer lie apart; 0 if there is but one.
inline uint64_t slotStrideOf(const fb::Plan& plan, const fb::Buffer& buffer) {
  return plan.input_slots() > 1 ? buffer.slot_stride() : 0;
}

}  // namespace gpuc
