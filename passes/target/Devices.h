//===- Devices.h - GPUs by name -----------------------------------------------===//
//
// What is known of a GPU that is not there: by what its maker promises. A name says how much memory there is,
// for which architecture a plan is made, and how long it is predicted to take; nothing that decides a bit.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/target/TargetDescription.h"

namespace gpuc {

/// A GPU that can be named.
struct NamedDevice {
  const char *name;         ///< As on the command line.
  const char *title;        ///< As the driver calls it.
  const char *architecture; ///< That plans for it are made for.
  int64_t
      mebibytes; ///< Of memory: what nvidia-smi calls its total, error correction on where it is by default.

  // Of the source: at most, and without sparsity.
  double bytesPerNanosecond;
  double flopsPerNanosecond;       ///< Of f32.
  double tensorFlopsPerNanosecond; ///< Of bf16 and f16, summed in f32; half of it for TF32.
  int64_t multiprocessors;
  const char *source;
};

inline constexpr NamedDevice kDevices[] = {
    {"l4", "NVIDIA L4", "sm_89", 23034, 300, 30'300, 121'000, 58, "NVIDIA L4 data sheet"},
    {"l40s", "NVIDIA L40S", "sm_89", 46068, 864, 91'600, 362'000, 142, "NVIDIA L40S data sheet"},
    {"rtx4090", "NVIDIA GeForce RTX 4090", "sm_89", 24564, 1008, 82'600, 165'200, 128,
     "NVIDIA Ada GPU architecture white paper"},
    {"a100-40gb", "NVIDIA A100-SXM4-40GB", "sm_80", 40960, 1555, 19'500, 312'000, 108,
     "NVIDIA A100 data sheet"},
    {"a100", "NVIDIA A100-SXM4-80GB", "sm_80", 81920, 2039, 19'500, 312'000, 108, "NVIDIA A100 data sheet"},
    {"h100-pcie", "NVIDIA H100 PCIe", "sm_90", 81559, 2000, 51'000, 756'000, 114, "NVIDIA H100 data sheet"},
    {"h100", "NVIDIA H100 80GB HBM3", "sm_90", 81559, 3350, 67'000, 989'500, 132, "NVIDIA H100 data sheet"},
    {"h200", "NVIDIA H200", "sm_90", 143771, 4800, 67'000, 989'500, 132, "NVIDIA H200 data sheet"},
    {"b200", "NVIDIA B200", "sm_100", 183359, 7700, 75'000, 2'250'000, 148,
     "NVIDIA HGX B200 data sheet, by the GPU"},
};

/// What is no arena's: the driver keeps 0.4 to 0.9 GiB of that total, as the difference to what it lets a
/// process allocate says (PyTorch prints that when memory runs out); a context and libraries take the rest,
/// of which an idle one was seen to take 0.6 GiB.
inline constexpr int64_t kReservedMebibytes = 1536;

/// Of what a GPU that is there has free, with a context: what cuBLASLt and cuDNN may load. A guess.
inline constexpr int64_t kLibraryMebibytes = 512;

/// What a plan's arena may take.
constexpr int64_t arenaBytesOf(const NamedDevice &device) {
  return (device.mebibytes - kReservedMebibytes) << 20;
}

/// That of the H200, by which choices are made for every GPU, with the rates of another: by as much less than
/// its maker promises as is taken for granted of an H200.
constexpr TargetDescription describe(const NamedDevice &device) {
  constexpr NamedDevice h200 = kDevices[7];
  TargetDescription description = kCudaDescription;
  auto scale = [](double &rate, double promised, double ofH200) { rate *= promised / ofH200; };
  scale(description.bytesPerNanosecond, device.bytesPerNanosecond, h200.bytesPerNanosecond);
  scale(description.flopsPerNanosecond, device.flopsPerNanosecond, h200.flopsPerNanosecond);
  scale(description.tensorFlopsPerNanosecond, device.tensorFlopsPerNanosecond, h200.tensorFlopsPerNanosecond);
  description.cores = device.multiprocessors;
  return description;
}

} // namespace gpuc
