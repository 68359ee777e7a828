// A reader that verifies before it believes. Three layers: the structure of the FlatBuffer, then the tables
// (verify_tables.cpp), then the programs (verify_programs.cpp, verify_events.cpp). Each error is one line
// that names the culprit and both numbers. Time and memory are linear in the size of the file, whatever
// stands in it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/base/data_type.h"
#include "runtime/base/status.h"
#include "runtime/plan/access.h"

namespace gpuc {

// What a plan may ask for. Far above what a compiler writes, low enough that sums and products of what passes
// stay within 64 bits.
inline constexpr uint64_t kMostArenaBytes = uint64_t{1} << 48;
inline constexpr uint64_t kMostAlignment = uint64_t{1} << 21;   // a huge page
inline constexpr uint64_t kMostExecutions = uint64_t{1} << 40;  // of one command in one run of its program
inline constexpr uint64_t kMostEventExecutions =
    uint64_t{1} << 20;  // records and waits in a run of each program, together
inline constexpr uint32_t kMostRepeatDepth = 8;
inline constexpr uint32_t kMostInputSlots = 64;
inline constexpr uint32_t kMostPrograms = 1024;
inline constexpr uint32_t kMostStreams = 64;
inline constexpr uint32_t kMostDistance = 1024;
inline constexpr uint32_t kMostRank = 16;
inline constexpr uint32_t kMostNameBytes = 4096;

/// Every offset within the payload leads to a whole table, vector or string, and nothing required is missing.
Status verifyStructure(std::string_view payload);

/// Everything else. `plan` has passed verifyStructure.
Status verifyPlan(const fb::Plan& plan);

// The parts of verifyPlan, in their order; each relies on those before it.
Status verifyTables(const fb::Plan& plan);
Status verifyProgram(const fb::Plan& plan, const fb::Program& program);
/// `executions` adds up, over all programs, the records and waits of which a run is played.
Status verifyEvents(const fb::Program& program, uint64_t& executions);

/// A parallel, within repeats of `counts`, outermost first, whose commands have passed: its parts wait for
/// nothing and do not touch one another.
Status verifyParallel(const fb::Plan& plan, const fb::Parallel& parallel, std::span<const uint64_t> counts);

/// What attention says of itself. Its operands lie in their buffers.
Status verifyAttention(const fb::Attention& attention);

/// A convolution whose operands lie within their buffers: its numbers, that the operands have just the bytes
/// that they say, and that the target computes it.
Status verifyConv(const fb::Plan& plan, const fb::Conv& conv);

/// The squares of a product's tiles, of elements of `type`; what takes the tiles. `what` names the command.
Status verifySquares(const fb::Plan& plan, const fb::Operand& squares, DataType type, const char* what);
Status verifyUpdate(const fb::Plan& plan, const fb::Update& update, const char* what);

/// TF32 is how tensor cores multiply f32. `what` names the command.
template <typename Product>
Status verifyTf32(const Product& product, const char* what, fb::TargetKind target) {
  if (!product.tf32()) return okStatus();
  if (product.type() != fb::DataType::f32) return errorf("%s: rounds to TF32 what is not f32", what);
  if (target != fb::TargetKind::cuda)
    return errorf("%s: in TF32, which the host does not compute; compile for cuda, or without tf32", what);
  return okStatus();
}

/// A name that will be shown or looked up: there, not empty, of sane length, printable. `what` says whose it
/// is.
Status verifyName(const flatbuffers::String* name, const char* what);

/// Text that will be shown, and may be missing: printable.
Status verifyText(const flatbuffers::String* text, const char* what);

/// Whether the buffer of a library's workspace, if there is one, begins where the target's libraries take it.
/// `what` names the command.
Status verifyWorkspace(const fb::Plan& plan, const fb::Operand* workspace, const char* what);

/// Whether an operand of elements of `type` begins at one of them, in each iteration of the repeats around
/// it. Its buffer does.
bool beginsAtElement(const fb::Operand& operand, DataType type);

/// FlatBuffers' verifier aligns the length of a vector, which is 4 bytes, and not elements of 8.
bool elementsAligned(const flatbuffers::Vector<int64_t>* vector);

/// 'name', for messages.
std::string quoted(const flatbuffers::String* name);

}  // namespace gpuc
