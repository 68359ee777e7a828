// What is enqueued: a program as flat lists of small commands, every address resolved when the plan is
// loaded; and its way from the plan (lower.cpp) onto CUDA's streams (enqueue.cpp), a run of commands as one
// graph where that can be (graph.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/library_call.h"
#include "runtime/hal/lowering.h"

namespace gpuc::cuda {

/// An event of the plan: its n-th record is in the ring until the (n + size)-th takes its place. Who waits
/// for a record that was replaced waits for the later one: longer than it must, never less.
struct EventRing {
  std::vector<Event> ring;
  uint64_t records = 0;  // enqueued in the life of the session
};

/// An address that moves: by `stride` bytes in each iteration of a repeat.
struct MovingAddress {
  CUdeviceptr* entry;
  int64_t stride;
};

struct CudaCommand {
  enum class Kind : uint8_t {
    launch,
    library,
    exchange,
    upload,
    download,
    copy,
    fill,
    record,
    wait,
    repeat,
    graph
  };

  struct Launch {
    CUfunction function;
    void** parameters;  // the addresses of the operands' entries, which lie one after another: kernels of
                        // many operands take them as one array, from the first
    uint32_t grid;
    uint32_t block;
  };
  struct Copy {
    uint64_t bytes;  // operands: from, to
  };
  struct Wait {
    EventRing* event;
    uint64_t distance;
    uint64_t executions;  // so far, in the life of the session
  };
  /// Stands behind the repeated commands.
  struct Repeat {
    uint64_t count;
    uint64_t iteration;
    size_t first;  // of the repeated commands
    const std::vector<MovingAddress>* moving;
  };
  /// Stands before the commands whose place it takes once they are captured.
  struct Graph {
    std::vector<ExecutableGraph>* of_slot;  // none before; one if all slots have the same addresses
    size_t end;                             // of those commands
  };

  Kind kind = Kind::launch;
  CUdeviceptr* operands = nullptr;  // into the address table
  union {
    Launch launch = {};
    const LibraryCall* library;  // of an exchange, too
    Copy copy;
    LoweredFill fill;
    EventRing* record;
    Wait wait;
    Repeat repeat;
    Graph graph;
  };
};

/// The commands of one stream, and how far a run has enqueued them.
struct StreamCommands {
  std::vector<CudaCommand> commands;
  size_t next = 0;
  bool uploads = false;  // from pinned memory
};

/// A program ready to run. Nothing in it may move once commands point to it.
struct CudaProgram {
  /// An entry that is set at the start of each run, to its place in the run's slot.
  struct SlotAddress {
    CUdeviceptr* entry;
    CUdeviceptr base;
    uint64_t slot_stride;
  };
  /// Pinned memory for one input: a place for each slot.
  struct Staging {
    std::byte* data;
    uint64_t slot_stride;
    uint64_t bytes;
  };
  /// An input that no command copies: it is copied before a run begins.
  struct DirectInput {
    uint32_t port;
    CUdeviceptr to;
    uint64_t slot_stride;
  };
  struct Output {
    CUdeviceptr data;
    uint64_t slot_stride;
    uint64_t bytes;
    std::byte* staging;       // pinned
    bool downloaded = false;  // by a command of the program
  };

  std::vector<StreamCommands> streams;
  std::vector<CUdeviceptr> addresses;  // the address table; host addresses of pinned memory stand in it, too
  std::vector<void*> parameters;       // parameters[i] points to addresses[i]
  std::vector<SlotAddress> slot_addresses;
  std::vector<Staging> inputs;
  std::vector<DirectInput> direct_inputs;
  std::vector<Output> outputs;
  std::deque<EventRing> events;
  std::vector<std::unique_ptr<LibraryCall>> library_calls;
  std::deque<std::vector<MovingAddress>> moving;  // one for each repeat
  std::deque<std::vector<ExecutableGraph>> graphs;
  // For each slot and stream: its last upload from the slot's staging.
  std::vector<std::vector<Event>> staging_read;
  uint64_t runs = 0;
  uint64_t last_slot = 0;

  /// What runs of this slot read and write.
  void takeSlot(uint64_t slot) {
    last_slot = slot;
    for (const SlotAddress& address : slot_addresses)
      *address.entry = address.base + slot * address.slot_stride;
  }
};

/// What the programs of a plan share.
struct LoweringContext {
  const Driver& driver;
  const Libraries& libraries;
  CUdeviceptr arena;
  std::span<const CUfunction> kernels;  // in the plan's order
};

/// Resolves a program. `pinned`: pinnedBytes(plan, program) bytes for its inputs and outputs. Errors: what no
/// library computes, a copy onto itself; named by their layer.
Result<std::unique_ptr<CudaProgram>> lowerProgram(const fb::Plan& plan, const fb::Program& program,
                                                  std::byte* pinned, const LoweringContext& context);

/// Enqueues every command once, repeats as often as they say. streams[s] takes the program's stream s.
///
/// CUDA waits for the record of an event that was enqueued last, so a wait may only be enqueued behind the
/// record that it means: streams take turns, each going on until it meets a record that another has not
/// enqueued yet. Error: none can go on, or the driver's own; the session cannot go on then. Allocates
/// nothing.
Status enqueueProgram(const Driver& driver, CudaProgram& program, std::span<const Stream> streams);

/// Enqueues a stream's commands from work.next on, up to `end`, or to a wait that must wait. True if anything
/// was enqueued. `slot`: of the run.
Result<bool> enqueueStream(const Driver& driver, StreamCommands& work, size_t end, uint64_t slot,
                           CUstream stream);

/// Marks the commands that can be graphs: those that follow one another on a stream, whole repeats among
/// them, and neither join streams nor upload a batch nor wait for ranks. What is too short stays as it is,
/// and so does a program that unrolls to more than kMostGraphNodes commands.
void markGraphs(CudaProgram& program);
constexpr uint64_t kMostGraphNodes = 20000;

/// Captures what is marked, for each of `slots`; it is launched as graphs from the next run on. Every command
/// must have been enqueued before: libraries load and allocate what they need when they are first called,
/// which no capture may see. No stream may wait for ranks, or the driver could wait for these. By how much
/// less of the GPU's memory is free then. Error: the driver's; the program then goes on command by command.
Result<uint64_t> captureGraphs(const Driver& driver, CudaProgram& program, std::span<const Stream> streams,
                               uint64_t slots);

}  // namespace gpuc::cuda
