// What the host executes: a program as flat lists of small commands, every address resolved when the plan is
// loaded.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <list>
#include <memory>
#include <vector>

#include "runtime/hal/lowering.h"
#include "runtime/host/arena.h"
#include "runtime/host/code.h"
#include "runtime/host/library_kernel.h"
#include "runtime/plan/dead_bytes.h"

namespace gpuc {

/// An event: how often its record was executed in the life of the session.
struct EventCounter {
  alignas(64) std::atomic<uint64_t> records{0};
};

/// An entry of the pointer table that moves: by `stride` bytes in each iteration of a repeat.
struct MovingPointer {
  void** entry;
  int64_t stride;
};

/// The fewest tiles that are worth a thread, of a command that is worth spreading at all (see spread.h):
/// about 0.7 us of work. With 1.25 an update of 24,576 weights stayed with one thread, which fetched half of
/// the gradients from the other: 8.4 us instead of 5.2.
constexpr int64_t partGrain(double tile_ns) {
  return std::max<int64_t>(1, static_cast<int64_t>(700 / tile_ns));
}

/// A copy is cut into tiles as well, at 10 bytes a nanosecond.
inline constexpr uint64_t kCopyTileBytes = 4096;
inline constexpr double kCopyTileNs = 410;

struct HostCommand {
  enum class Kind : uint8_t { launch, library, copy, fill, record, wait, repeat, fork, poison };

  struct Launch {
    KernelFunction function;
    int64_t first_tile;
    int64_t tiles;
    double tile_ns;
  };
  struct Copy {
    uint64_t bytes;
    bool of_read_input;  // which is read in place, if it is aligned
  };
  struct Wait {
    EventCounter* event;
    uint64_t distance;
    uint64_t executions;  // so far, in the life of the session
  };
  /// Stands behind the repeated commands.
  struct Repeat {
    uint64_t count;
    uint64_t iteration;
    uint32_t first;  // of the repeated commands
    const std::vector<MovingPointer>* moving;
  };
  /// Stands in front of the commands of a parallel. If it is spread, threads take the lists of its parts
  /// instead.
  struct Fork {
    std::vector<std::vector<HostCommand>>* lists;
    uint32_t last;  // of the commands that are not executed then
    bool by_rows;   // a list has some of the rows of all commands
  };

  /// Stands behind a command of the plan where memory is checked.
  struct Poison {
    Arena* arena;
    const std::vector<ByteRange>* dead;
  };

  Kind kind = Kind::launch;
  bool spread = false;                  // whether the pool's threads share it (see spread.h)
  const fb::Command* source = nullptr;  // for profiles
  void** operands = nullptr;            // into the pointer table: as many as the kind takes
  union {
    Launch launch = {};
    const LibraryKernel* library;
    Copy copy;
    LoweredFill fill;
    EventCounter* record;
    Wait wait;
    Repeat repeat;
    Fork fork;
    Poison poison;
  };
};

/// What a command touches: `bytes` of them somewhere in [begin, end) of the arena, which is longer in a
/// repeat that moves the operand.
struct CommandAccess {
  uint32_t command, operand;
  uint64_t begin, end, bytes;
  bool written;
  bool by_rows = false;  // parts of the command's rows touch their part of it alone
};

/// Zeros that take no memory before they are written to: a plan may name one large buffer as many outputs.
class StagingMemory {
 public:
  /// data() is null where there is no memory.
  explicit StagingMemory(size_t bytes)
      : data_(static_cast<std::byte*>(std::calloc(std::max<size_t>(1, bytes), 1))), bytes_(bytes) {}

  std::byte* data() const { return data_.get(); }
  size_t size() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t bytes_;
};

/// A program ready to run. Nothing in it may move once commands point to it.
struct HostProgram {
  /// An entry that is set at the start of each run: to its place in the slot, or in the caller's input.
  struct SlotPointer {
    void** entry;
    std::byte* base;
    uint64_t slot_stride;
  };
  struct InputPointer {
    void** entry;
    uint32_t port;
    uint64_t offset;
  };
  /// An input. If commands only read it, they find the caller's own bytes where those are aligned as the
  /// arena's buffers are; otherwise its place in the arena.
  struct InputPlace {
    struct Reader {
      void** entry;
      uint64_t offset;
    };
    uint32_t port;
    std::byte* place;
    uint64_t slot_stride;
    uint64_t bytes;
    bool only_read;
    bool copied;                  // into the arena, by a command
    std::vector<Reader> readers;  // all that points into it
  };
  struct OutputPlace {
    const std::byte* data;
    uint64_t slot_stride;
  };

  std::vector<std::vector<HostCommand>> streams;
  std::vector<CommandAccess> accesses;  // of the first stream
  std::vector<void*> pointers;          // the pointer table
  std::vector<SlotPointer> slot_pointers;
  std::vector<InputPointer> input_pointers;
  std::vector<InputPlace> inputs;
  std::vector<OutputPlace> outputs;
  std::vector<EventCounter> events;
  std::vector<std::unique_ptr<LibraryKernel>> library_kernels;
  std::list<std::vector<MovingPointer>> moving;                 // one for each loop
  std::list<std::vector<std::vector<HostCommand>>> part_lists;  // of each parallel that has some
  std::list<std::vector<void*>> part_pointers;                  // the pointer tables of these lists
  std::list<StagingMemory> staging;                             // outputs that are copied out of the arena
  DeadBytes dead;                                               // where memory is checked
  uint64_t runs = 0;
  uint64_t last_slot = 0;
};

}  // namespace gpuc
