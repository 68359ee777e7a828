#include "runtime/cuda/command.h"

namespace gpuc::cuda {
namespace {

Status launch(const Driver& driver, const CudaCommand& command, CUstream stream) {
  const CudaCommand::Launch& launch = command.launch;
  return driver.check(driver.cuLaunchKernel(launch.function, launch.grid, 1, 1, launch.block, 1, 1, 0, stream,
                                            launch.parameters, nullptr),
                      "cuLaunchKernel");
}

/// Eight bytes at a time: the lower halves of all elements, then the upper.
Status fillWide(const Driver& driver, CUdeviceptr to, const LoweredFill& fill, CUstream stream) {
  auto lower = static_cast<uint32_t>(fill.pattern), upper = static_cast<uint32_t>(fill.pattern >> 32);
  if (lower == upper)
    return driver.check(driver.cuMemsetD32Async(to, lower, fill.bytes / 4, stream), "cuMemsetD32Async");
  GPUC_RETURN_IF_ERROR(
      driver.check(driver.cuMemsetD2D32Async(to, 8, lower, 1, fill.bytes / 8, stream), "cuMemsetD2D32Async"));
  return driver.check(driver.cuMemsetD2D32Async(to + 4, 8, upper, 1, fill.bytes / 8, stream),
                      "cuMemsetD2D32Async");
}

Status fill(const Driver& driver, const CudaCommand& command, CUstream stream) {
  const LoweredFill& fill = command.fill;
  CUdeviceptr to = command.operands[0];
  switch (fill.element_bytes) {
    case 1:
      return driver.check(
          driver.cuMemsetD8Async(to, static_cast<unsigned char>(fill.pattern), fill.bytes, stream),
          "cuMemsetD8Async");
    case 2:
      return driver.check(
          driver.cuMemsetD16Async(to, static_cast<unsigned short>(fill.pattern), fill.bytes / 2, stream),
          "cuMemsetD16Async");
    case 4:
      return driver.check(
          driver.cuMemsetD32Async(to, static_cast<uint32_t>(fill.pattern), fill.bytes / 4, stream),
          "cuMemsetD32Async");
    default:
      return fillWide(driver, to, fill, stream);
  }
}

Status copy(const Driver& driver, const CudaCommand& command, CUstream stream) {
  CUdeviceptr from = command.operands[0], to = command.operands[1];
  uint64_t bytes = command.copy.bytes;
  if (command.kind == CudaCommand::Kind::upload)
    return driver.check(driver.cuMemcpyHtoDAsync(to, reinterpret_cast<const void*>(from), bytes, stream),
                        "cuMemcpyHtoDAsync");
  if (command.kind == CudaCommand::Kind::download)
    return driver.check(driver.cuMemcpyDtoHAsync(reinterpret_cast<void*>(to), from, bytes, stream),
                        "cuMemcpyDtoHAsync");
  return driver.check(driver.cuMemcpyDtoDAsync(to, from, bytes, stream), "cuMemcpyDtoDAsync");
}

Status record(const Driver& driver, EventRing& event, CUstream stream) {
  CUevent entry = event.ring[event.records % event.ring.size()].get();
  ++event.records;
  return driver.check(driver.cuEventRecord(entry, stream), "cuEventRecord");
}

/// False, and nothing done, if the record to wait for is not enqueued yet.
Result<bool> wait(const Driver& driver, CudaCommand::Wait& wait, CUstream stream) {
  uint64_t execution = wait.executions + 1;
  if (execution > wait.distance) {
    uint64_t needed = execution - wait.distance;  // the needed-th record
    if (wait.event->records < needed) return false;
    CUevent entry = wait.event->ring[(needed - 1) % wait.event->ring.size()].get();
    GPUC_RETURN_IF_ERROR(driver.check(driver.cuStreamWaitEvent(stream, entry, 0), "cuStreamWaitEvent"));
  }
  wait.executions = execution;
  return true;
}

/// Moves operands on to the next iteration, or back to the first. True if the commands are to be repeated.
bool repeatAgain(CudaCommand::Repeat& repeat) {
  bool again = ++repeat.iteration < repeat.count;
  int64_t iterations = again ? 1 : -static_cast<int64_t>(repeat.count - 1);
  if (!again) repeat.iteration = 0;
  for (const MovingAddress& address : *repeat.moving)
    *address.entry += static_cast<CUdeviceptr>(address.stride * iterations);
  return again;
}

Status enqueue(const Driver& driver, CudaCommand& command, CUstream stream) {
  switch (command.kind) {
    case CudaCommand::Kind::launch:
      return launch(driver, command, stream);
    case CudaCommand::Kind::library:
    case CudaCommand::Kind::exchange:
      return command.library->enqueue(command.operands, stream);
    case CudaCommand::Kind::upload:
    case CudaCommand::Kind::download:
    case CudaCommand::Kind::copy:
      return copy(driver, command, stream);
    case CudaCommand::Kind::fill:
      return fill(driver, command, stream);
    case CudaCommand::Kind::record:
      return record(driver, *command.record, stream);
    default:
      return okStatus();  // waits, repeats and graphs decide what comes next: see below
  }
}

}  // namespace

Result<bool> enqueueStream(const Driver& driver, StreamCommands& work, size_t end, uint64_t slot,
                           CUstream stream) {
  size_t begin = work.next;
  bool jumped = false;
  while (work.next < end) {
    CudaCommand& command = work.commands[work.next];
    if (command.kind == CudaCommand::Kind::wait) {
      GPUC_ASSIGN_OR_RETURN(bool enqueued, wait(driver, command.wait, stream));
      if (!enqueued) break;
    } else if (command.kind == CudaCommand::Kind::repeat && repeatAgain(command.repeat)) {
      work.next = command.repeat.first;
      jumped = true;
      continue;
    } else if (command.kind == CudaCommand::Kind::graph && !command.graph.of_slot->empty()) {
      const std::vector<ExecutableGraph>& graphs = *command.graph.of_slot;
      CUgraphExec graph = graphs[slot % graphs.size()].get();
      GPUC_RETURN_IF_ERROR(driver.check(driver.cuGraphLaunch(graph, stream), "cuGraphLaunch"));
      work.next = command.graph.end;
      continue;
    } else {
      GPUC_RETURN_IF_ERROR(enqueue(driver, command, stream));
    }
    ++work.next;
  }
  return jumped || work.next != begin;
}

Status enqueueProgram(const Driver& driver, CudaProgram& program, std::span<const Stream> streams) {
  for (StreamCommands& work : program.streams) work.next = 0;
  for (bool finished = false; !finished;) {
    finished = true;
    bool moved = false;
    for (size_t s = 0; s < program.streams.size(); ++s) {
      StreamCommands& work = program.streams[s];
      if (work.next == work.commands.size()) continue;
      GPUC_ASSIGN_OR_RETURN(bool enqueued, enqueueStream(driver, work, work.commands.size(),
                                                         program.last_slot, streams[s].get()));
      moved |= enqueued;
      finished &= work.next == work.commands.size();
    }
    if (!finished && !moved) return errorf("the program's streams wait for one another without end");
  }
  return okStatus();
}

}  // namespace gpuc::cuda
