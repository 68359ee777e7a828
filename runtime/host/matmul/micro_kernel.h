// LIBXSMM's micro-kernels behind one function type; its header is included in micro_kernel.cpp alone.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/data_type.h"
#include "runtime/base/status.h"

namespace gpuc {

/// c[m, n] = op(a) · b, or c += op(a) · b; row-major with the leading dimensions it was made for. b comes
/// first: to the column-major LIBXSMM it is the left operand.
using MicroKernel = void (*)(const void* b, const void* a, void* c);

/// What a micro-kernel is generated for. Leading dimensions in elements.
struct MicroKernelShape {
  DataType type;
  int64_t m, n, k;
  int64_t lda, ldb, ldc;
  bool transpose_a;  // a is stored [k, m]
  bool accumulate;   // add to c instead of overwriting it
};

/// The micro-kernels of one matmul: whole blocks and those cut short at the end of rows, columns and k; of k
/// there may be a third length.
struct MicroKernelSet {
  MicroKernel kernels[2][2][3][2] = {};  // [rows cut short][columns cut short][k][accumulate]
  void (*after)() = nullptr;             // see afterMicroKernels
};

/// Zeroes the upper halves of the vector registers, which LIBXSMM 1.17 leaves in use: until that is done,
/// each piece of SSE code, and so most of what is compiled for any x86-64, costs about 0.1 us more (seen on a
/// Sapphire Rapids). To be called after micro-kernels, before anything else; null where they use no wide
/// registers.
void (*afterMicroKernels())();

/// LIBXSMM's version, "1.17.0".
std::string microKernelVersion();

/// Generates the micro-kernel or finds the one generated before; about 15 µs. It lives as long as the process
/// and may be called by any thread. An error where LIBXSMM has none for this CPU.
Result<MicroKernel> makeMicroKernel(const MicroKernelShape& shape);

/// The widest vectors, in bytes, that LIBXSMM generates code for here: 64, 32 or 16. The environment variable
/// LIBXSMM_TARGET (skx, hsw, wsm …) lowers it, which is how the narrower kernels are tested on a wide
/// machine.
int microKernelVectorBytes();

}  // namespace gpuc
