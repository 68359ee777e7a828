// The 32 bytes before a plan's payload. They are read first and believed last: only when magic, format, size
// and checksum agree is the FlatBuffer behind them looked at.
#pragma once

#include <bit>
#include <cstdint>

namespace gpuc {

inline constexpr char kPlanMagic[8] = {'g', 'p', 'u', 'c', 'p', 'l', 'a', 'n'};

/// Grows with every change of plan.fbs that an older runtime would misread.
inline constexpr uint32_t kPlanFormatVersion = 5;

/// Where and how much every buffer is aligned, and with it the arena: a cache line, and what vector loads
/// like.
inline constexpr uint64_t kBufferAlignment = 64;

/// Of a buffer of so many bytes at least: what is shorter than a line may share one with others, and begins
/// at a multiple of the power of two that holds it.
constexpr uint64_t leastAlignment(uint64_t bytes) {
  return bytes < kBufferAlignment ? std::bit_ceil(bytes) : kBufferAlignment;
}

/// What cuBLASLt asks of a workspace's address on an H100, whatever the algorithm; it says INVALID_VALUE of
/// any other.
inline constexpr uint64_t kGpuWorkspaceAlignment = 256;

struct PlanHeader {
  char magic[8];
  uint32_t format_version;
  uint32_t reserved;       // 0
  uint64_t payload_bytes;  // of the FlatBuffer that follows
  uint64_t checksum;       // XXH3, 64 bits, of the payload with payload_bytes as seed
};
static_assert(sizeof(PlanHeader) == 32);

}  // namespace gpuc
