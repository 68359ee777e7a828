// What a device is to the rest of the runtime. A device prepares a plan once (arena, code, constants,
// commands resolved to addresses) and then runs its programs with nothing left to decide: the host walks a
// flat list of commands, CUDA enqueues them on CUDA streams. Streams and events are the plan's own, so they
// need no interface of their own here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

namespace gpuc {

namespace fb {
struct Command;
}
class Communicator;

struct DeviceInfo {
  TargetKind kind = TargetKind::host;
  int index = 0;
  std::string name;          // "Intel(R) Xeon(R) Processor", "NVIDIA H200"
  uint64_t identity = 0;     // of a GPU: another one for each in the world
  std::string architecture;  // "x86_64", "sm_90"
  uint64_t memory_bytes = 0;
  int threads = 0;                     // host: cores that this process may use
  std::vector<LibraryInfo> libraries;  // by which plans call matmul and the like
};

struct DeviceOptions {
  int threads = 0;            // that compute, or copy inputs, the caller's included; 0: one for each core
  bool check_memory = false;  // poison the arena; host: dead bytes too, and put an unreadable page behind it
  Communicator* communicator = nullptr;     // to the other ranks, if there are any
  std::optional<uint64_t> delay_seed = {};  // host: sleep at random before commands, on each stream
  size_t profile_events = 0;                // how many of the last commands of each stream to keep times of
};

/// One execution of one command.
struct ProfileEvent {
  const fb::Command* command = nullptr;
  uint32_t program = 0;
  uint32_t stream = 0;
  int64_t begin_ns = 0;  // of the steady clock
  int64_t end_ns = 0;
};

struct MemoryUse {
  uint64_t arena_bytes = 0;        // the length of the one allocation
  uint64_t arena_allocations = 0;  // made since the plan was prepared, that one included
  uint64_t touched_bytes = 0;      // with check_memory: up to the last byte that is not poison; else 0
  MemoryByCategory by_category;    // of arena_bytes, to which they add up

  // Beside the arena, in host memory.
  uint64_t staging_bytes = 0;  // through which inputs and outputs are copied; for a GPU it is pinned
  uint64_t code_bytes = 0;     // the plan's machine code, as it is loaded; a GPU has it in its own memory
  // What the libraries that a plan calls took by the time it was loaded. Host: code that LIBXSMM generated,
  // for all plans of the process. A GPU: by how much less was free then.
  uint64_t library_bytes = 0;
  // A GPU: by how much less was free when programs had been captured as CUDA graphs.
  uint64_t graph_bytes = 0;
};

/// A plan made ready on a device. Calls come from one thread at a time.
class Executable {
 public:
  virtual ~Executable() = default;

  /// Enqueues one run of program `program`. inputs[p] points to the bytes of input port p (an index into
  /// Program.inputs, the hidden rows included); they are no longer needed when this returns. Runs of one
  /// session follow one another.
  virtual Status run(size_t program, std::span<const void* const> inputs) = 0;

  /// Returns when all that was enqueued is done.
  virtual Status wait() = 0;

  // The rest is called after wait().

  /// `bytes` of the arena from `offset`, which the caller has checked.
  virtual Status read(uint64_t offset, void* to, uint64_t bytes) = 0;
  virtual Status write(uint64_t offset, const void* from, uint64_t bytes) = 0;

  /// Where the arena lies in the memory of this process; null if it does not.
  virtual std::byte* hostArena() { return nullptr; }

  /// The bytes of output `output` as the last run of `program` left them, in host memory, valid until the
  /// next run.
  virtual const void* output(size_t program, size_t output) = 0;

  virtual MemoryUse memory() const = 0;
  virtual std::vector<ProfileEvent> profile() const = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;

  /// Bytes of its memory that an arena could have now.
  virtual Result<uint64_t> freeMemory() const = 0;

  /// Allocates the arena, loads code and constants, resolves commands. Errors: the device lacks what the code
  /// needs, the arena does not fit, a library call that nothing here can do. `plan` is kept alive by the
  /// executable.
  virtual Result<std::unique_ptr<Executable>> prepare(const Plan& plan, const DeviceOptions& options) = 0;
};

// The implementations; which ones are linked decides what there is.
std::unique_ptr<Device> openHostDevice();
/// What MemoryUse will call library_bytes on this CPU, where no other plan is loaded and no product is cut by
/// threads. Errors: what the host has no kernel for.
Result<uint64_t> hostLibraryBytes(const Plan& plan);
Result<std::unique_ptr<Device>> openCudaDevice(int index);
std::vector<DeviceInfo> listCudaDevices();
/// Error: none, and why.
Result<int> countCudaDevices();

}  // namespace gpuc
