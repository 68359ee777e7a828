// What a warp computes together, as the PTX ISA says it: ldmatrix and mma.m16n8k16. Written from its tables
// of fragments, and from nothing that emits code.
#pragma once

#include <cstdint>

namespace gpuc::test {

enum class WarpInstruction {
  MultiplyBf16,   ///< mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
  MultiplyF16,    ///< mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
  LoadMatrices,   ///< ldmatrix.sync.aligned.m8n8.x4.shared.b16
  LoadTransposed, ///< ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
  RoundToBf16,    ///< cvt.rn.bf16x2.f32, of one thread alone
  RoundToF16,     ///< cvt.rn.f16x2.f32, likewise
  CopyAhead,      ///< cp.async.cg.shared.global of 16 bytes, likewise; done when it is waited for
  AwaitCopies,    ///< cp.async.wait_all, likewise
  PowerOfTwo,     ///< ex2.approx.ftz.f32, likewise; here without an error
};

/// An instruction of a warp: every thread gives, and then every thread takes. `words` are a thread's
/// registers: operands in the order of the instruction, of which `take` makes the result.
class WarpExchange {
public:
  void give(WarpInstruction instruction, int lane, const uint32_t *words);
  void take(WarpInstruction instruction, int lane, uint32_t *words) const;

private:
  void giveFragments(bool isF16, int lane, const uint32_t *words);
  void multiply(int lane, uint32_t *words) const;
  void loadMatrices(bool transposed, int lane, uint32_t *words) const;

  float a_[16][16], b_[16][8]; ///< [row][column]
  const uint16_t *rows_[32];   ///< Of matrices, that each thread gave.
};

} // namespace gpuc::test
