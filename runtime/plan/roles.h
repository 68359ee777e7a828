// What commands do with their operands: for each kind one table, which the compiler's dialect, the reader,
// the listings and all who execute a plan ask. A kind's operands have the order of its table everywhere.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace gpuc {

enum class Role : uint8_t {
  read,
  write,
  accumulate,  // added to: read and written
  workspace,   // written before it is read, within the command
};

constexpr bool isRead(Role role) { return role == Role::read || role == Role::accumulate; }
constexpr bool isWritten(Role role) { return role != Role::read; }

/// What a kind of command does with one of its operands.
struct OperandUse {
  const char* name;  // in messages
  Role role = Role::read;
  bool optional = false;
  bool by_rows = false;   // the i-th of n parts of a command's rows touches the i-th part of it alone
  bool in_place = false;  // may lie where the command writes: each element is read before it is written
};

/// What becomes of a product: it is stored, added to what is stored, or handed to a weight's update.
enum class MatmulResult : uint8_t { stored, added, updating };

/// c = a · b and what follows each element. The rows are those of a, c and the mask. Behind these come the
/// operands of an update, if there is one: what its kernel reads, then what it writes.
constexpr std::array<OperandUse, 7> matmulOperands(MatmulResult result) {
  return {{{.name = "a", .by_rows = true},
           {.name = "b"},
           {.name = "c",
            .role = result == MatmulResult::added ? Role::accumulate : Role::write,
            .optional = result == MatmulResult::updating,
            .by_rows = true},
           {.name = "bias", .optional = true},
           {.name = "workspace", .role = Role::workspace, .optional = true},
           {.name = "mask", .optional = true, .by_rows = true},
           {.name = "squares", .role = Role::write, .optional = true}}};
}
/// Rows that may be computed apart: those of the one matrix c, each from its own of a. None of what
/// `is_whole`: has a workspace, an update or squares.
constexpr uint64_t rowsOfMatmul(uint64_t batch, uint64_t m, bool transposes_a, bool is_whole) {
  return batch == 1 && !transposes_a && !is_whole ? m : 0;
}
inline constexpr auto kMatmulOperands = matmulOperands(MatmulResult::stored);
inline constexpr auto kAccumulatingMatmulOperands = matmulOperands(MatmulResult::added);
inline constexpr auto kUpdatingMatmulOperands = matmulOperands(MatmulResult::updating);
inline constexpr OperandUse kUpdateRead = {.name = "operand of its update", .in_place = true};
inline constexpr OperandUse kUpdateWrite = {.name = "result of its update", .role = Role::write};

/// c is what the kind computes of a and b. Behind these come the operands of an update, as of a product.
constexpr std::array<OperandUse, 7> convOperands(bool is_updating) {
  return {{{.name = "a"},
           {.name = "b"},
           {.name = "c", .role = Role::write, .optional = is_updating},
           {.name = "bias", .optional = true},
           {.name = "workspace", .role = Role::workspace, .optional = true},
           {.name = "mask", .optional = true},
           {.name = "squares", .role = Role::write, .optional = true}}};
}
inline constexpr auto kConvOperands = convOperands(false);
inline constexpr auto kUpdatingConvOperands = convOperands(true);

/// Of attention, which has no cotangents, or of its gradient, which reads what attention wrote.
constexpr std::array<OperandUse, 14> attentionOperands(bool is_gradient) {
  const Role computed = is_gradient ? Role::read : Role::write;
  return {{{.name = "query"},
           {.name = "key"},
           {.name = "value"},
           {.name = "result", .role = computed},
           {.name = "log_sum_exp", .role = computed},
           {.name = "mask", .optional = true},
           {.name = "seed", .optional = true},
           {.name = "step", .optional = true},
           {.name = "cotangent", .optional = !is_gradient},
           {.name = "query's cotangent", .role = Role::write, .optional = !is_gradient},
           {.name = "key's cotangent", .role = Role::write, .optional = !is_gradient},
           {.name = "value's cotangent", .role = Role::write, .optional = !is_gradient},
           {.name = "mask's cotangent", .role = Role::write, .optional = true},
           {.name = "workspace", .role = Role::workspace, .optional = true}}};
}
inline constexpr auto kAttentionOperands = attentionOperands(false);
inline constexpr auto kAttentionGradientOperands = attentionOperands(true);

/// Those from the first on that attention itself may have.
inline constexpr size_t kForwardAttentionOperands = 8;

inline constexpr std::array<OperandUse, 2> kSumOperands = {
    {{.name = "parts"}, {.name = "result", .role = Role::write}}};

inline constexpr std::array<OperandUse, 2> kAllReduceOperands = {
    {{.name = "part"}, {.name = "result", .role = Role::write}}};

/// Of several tensors at once: all that is read, then all that is written.
inline constexpr std::array<OperandUse, 2> kReduceScatterOperands = {
    {{.name = "whole"}, {.name = "share", .role = Role::write}}};
inline constexpr std::array<OperandUse, 2> kAllGatherOperands = {
    {{.name = "share"}, {.name = "whole", .role = Role::write}}};

/// Of copies and fills; those from and to the host have one of them in the arena.
inline constexpr OperandUse kSource = {.name = "source", .by_rows = true};
inline constexpr OperandUse kDestination = {.name = "destination", .role = Role::write, .by_rows = true};

}  // namespace gpuc
