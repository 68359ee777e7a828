//===- TargetDescription.h - What the compiler takes for granted of a device ===//
#pragma once

#include <cstdint>
#include <limits>

namespace gpuc {

/// Figures by which the compiler weighs one choice against another, each in the unit that its name ends in.
/// Those of rates decide speed alone; where a sum is cut by one of the others, it decides last bits, too.
struct TargetDescription {
  //===--------------------------------------------------------------------===//
  // Rates
  //===--------------------------------------------------------------------===//

  double commandNanoseconds;     ///< What each command costs before it does anything.
  double flopsPerNanosecond;     ///< f32 contractions.
  double bytesPerNanosecond;     ///< What kernels read and write.
  double coreBytesPerNanosecond; ///< The same of one core.
  double costlyNanoseconds;      ///< For one element of exp and its like.
  double handoffNanoseconds;     ///< From one stream to another one that waits for it.
  double worthFewerExchanges;    ///< The share of their time that fewer exchanges beside commands are worth.
  double residualMoves;          ///< The price of a byte kept for the backward pass: of so many moved.
  double tensorFlopsPerNanosecond; ///< Dense products of 16-bit floats on tensor cores; half of it for TF32.
  double unalignedSlowdown;        ///< Of those, where rows are no multiple of tensorBytes.

  //===--------------------------------------------------------------------===//
  // Cores and caches
  //===--------------------------------------------------------------------===//

  int64_t cores;            ///< CPU cores that a plan is likely to find, multiprocessors of a GPU.
  double spreadNanoseconds; ///< The least work that is worth another core.
  double tileNanoseconds;   ///< Of a tile: short, so that cores find in their caches what they have written.
  int64_t cacheBytes;       ///< What a kernel finds again, of what a core read before.
  int64_t residentBytes; ///< So much of the forward pass is still in a cache when the backward pass reads it.
  int64_t keptBytes;     ///< What a kernel keeps of a row that it will need again.
  int64_t tensorBytes;   ///< What tensor cores load at once.
  /// Kernels take as long as what they move: reductions that need nothing of one another are one sweep, and
  /// cheap ops are computed again where that saves a load.
  bool boundByMemory = false;

  //===--------------------------------------------------------------------===//
  // Thresholds
  //===--------------------------------------------------------------------===//

  int64_t launchOperands; ///< Buffers that a launch takes.
  int64_t groupedBytes;   ///< Of the buffers of a launch that may join a group.
  int64_t inputSlots;     ///< Batches on their way at once.
  int64_t leastMatmulWorkspaceBytes, mostMatmulWorkspaceBytes; ///< That a library's product may use.

  int64_t mostSlices;           ///< Of a recurrent network's batch, for threads to take side by side.
  int64_t leastSliceRows;       ///< Of each.
  int64_t leastSliceSteps;      ///< Of a loop over time that is worth it.
  int64_t mostSliceWeightBytes; ///< Each slice reads all weights and writes as many sums.

  int64_t mostPreTransposedRows;   ///< Of products for which a loop's weights are transposed before it.
  int64_t leastPreTransposedTrips; ///< Of such a loop.

  int64_t leastLossRows; ///< Of a linear layer and the loss of its logits, that are computed at once.

  int64_t leastLongSumElements = 32 << 10; ///< Shorter sums are done before a second launch would have begun.
  int64_t leastLongSumParts = 16;          ///< Fewer would leave a core idle.
  int64_t leastLongColumnsElements = 4
                                     << 20; ///< The same of sums of rows, each of which reads other numbers.
  int64_t mostLongColumns = 0;              ///< With more there are blocks enough.
};

/// One core of a CPU with AVX-512, a Sapphire Rapids, as measured on two of them by bench/ unless it is said
/// otherwise.
inline constexpr TargetDescription kHostDescription = {
    .commandNanoseconds = 200,
    .flopsPerNanosecond = 150,
    .bytesPerNanosecond = 20,
    .coreBytesPerNanosecond = 20,
    .costlyNanoseconds = 0.5,
    .handoffNanoseconds = 50'000, // to wake a thread that sleeps
    // Of two ranks on two cores each exchange of a backward pass took 2 to 4 ms more than its link: the
    // thread that waits for the other rank gets its turn late. With 51 exchanges of 104 MB a step took 0.99
    // s, with 27 0.94 s.
    .worthFewerExchanges = 0.004,
    // tanh, as in a gelu, takes 0.35 ns once more, its f32 0.4 ns to store and to load: a step of gpt2 (12 x
    // 64 tokens) took as long with 41 MiB as with 35.
    .residualMoves = 2,
    .tensorFlopsPerNanosecond = 0,
    .unalignedSlowdown = 1,
    .cores = 8, // a guess
    .spreadNanoseconds = 10'000,
    .tileNanoseconds = 500,
    // Of 2 MiB of second-level cache. With 256 KiB the gradient of a batch norm whose channel takes 786 kB is
    // five kernels, not one that sweeps twice, and a step of MobileNetV2 took 1.09 times as long.
    .cacheBytes = 1536 << 10,
    .residentBytes = 2 << 20,
    // Beside the row in the second-level cache, and of a thread's stack.
    .keptBytes = 64 << 10,
    .tensorBytes = 0,
    .launchOperands = std::numeric_limits<int64_t>::max(),
    .groupedBytes = 256 << 10, // what two threads share gladly: some 2.5 µs in a core's cache
    .inputSlots = 1,           // inputs are read where the caller has them
    .leastMatmulWorkspaceBytes = 0,
    .mostMatmulWorkspaceBytes = 0,
    .mostSlices = 4,
    // An LSTM of 64 units takes half as long for 8 rows as for 16, but 0.54 times as long for 4 as for 8.
    .leastSliceRows = 8,
    // A loop of fewer steps is little of the whole: an LSTM of 128 units took 2.05 times as long with one
    // step, 0.65 with eight, but on one thread 1.17 times; with 28 steps as long on one thread.
    .leastSliceSteps = 16,
    .mostSliceWeightBytes = 512 << 10, // weights and sums are to stay in a core's cache
    // 16 x 256 x 64 takes 2.6 us instead of 3.6, 8 rows 1.4 instead of 2.9, 64 rows 10.7 instead of 12.2.
    .mostPreTransposedRows = 64,
    .leastPreTransposedTrips = 16, // to transpose 256 x 64 weights takes as long as a few products
    .leastLossRows = 1,            // of a chunk in a core's cache
};

/// An H200, by NVIDIA's data sheet and what cuBLAS and PTX say of themselves.
inline constexpr TargetDescription kCudaDescription = {
    .commandNanoseconds = 2000,
    .flopsPerNanosecond = 50'000,
    .bytesPerNanosecond = 4000,
    .coreBytesPerNanosecond = 30,
    .costlyNanoseconds = 0.002, // less than gelu's tanh, at 2.8 ps on an H100
    .handoffNanoseconds = 5'000,
    .worthFewerExchanges = 0.002,
    .residualMoves = 2,
    .tensorFlopsPerNanosecond = 800'000,
    .unalignedSlowdown = 2,
    .cores = 132,
    .spreadNanoseconds = 0,
    .tileNanoseconds = 0,
    .cacheBytes = 128 << 10,
    .residentBytes = 0, // computing takes next to nothing
    .keptBytes = 0,     // what is needed again is computed again
    .tensorBytes = 16,
    .boundByMemory = true,
    .launchOperands = 4095, // a pointer each, in the 32,764 bytes that PTX gives parameters
    .groupedBytes = std::numeric_limits<int64_t>::max(),
    .inputSlots = 2, // copies run beside compute
    // cuBLASLt splits K over partial results; 32 MiB is what cuBLAS itself takes on Hopper.
    .leastMatmulWorkspaceBytes = 64 << 10,
    .mostMatmulWorkspaceBytes = 32 << 20,
    .mostSlices = 1, // a GPU is busy with all rows at once
    .leastSliceRows = 1,
    .leastSliceSteps = 1,
    .mostSliceWeightBytes = 0,
    .mostPreTransposedRows = 0,
    .leastPreTransposedTrips = 1,
    // Each chunk reads and writes the gradient of the layer's weight: of 50,257 classes in 768 features 0.15
    // ms on an H100. 256 rows leave half of its multiprocessors idle.
    .leastLossRows = 1024,
    // On an H100 8,192 rows of 768 numbers of 16 bits took 14 us by 96 blocks, which is 0.9 TB/s.
    .mostLongColumns = 16 << 10,
};

} // namespace gpuc
