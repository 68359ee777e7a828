// Commands as CUDA graphs. What launches of small kernels cost the host, and the libraries' own work at each
// call, is paid once: a program's commands are captured, and then launched with one call.
//
// A graph is what stands between two events of one stream. Events themselves, and uploads of the batch, stay
// outside: so the next batch is uploaded beside this step, as without graphs, and no graph has to say which
// entry of a ring it means. So do exchanges between ranks, which whoever enqueues them waits for. Addresses
// of a graph are those of its capture: where they go by the input slot, there is one for each.
#include <algorithm>

#include "runtime/cuda/command.h"

namespace gpuc::cuda {
namespace {

using Kind = CudaCommand::Kind;

constexpr uint64_t kFewestNodes = 4;  // a guess: a graph is a launch, too, and takes memory

/// Commands that follow one another, and how many they are with repeats unrolled.
struct Span {
  size_t begin, end;
  uint64_t nodes;
  bool stays_outside;  // of graphs
};

/// At most a little more than kMostGraphNodes.
uint64_t unrolled(uint64_t nodes, uint64_t count) {
  return nodes > 0 && count > kMostGraphNodes / nodes ? kMostGraphNodes + 1 : nodes * count;
}

void append(std::vector<Span>& spans, const Span& next) {
  if (spans.empty() || spans.back().stays_outside || next.stays_outside) return spans.push_back(next);
  spans.back().end = next.end;
  spans.back().nodes = std::min(spans.back().nodes + next.nodes, kMostGraphNodes + 1);
}

/// All commands of a stream. A repeat with anything in it that stays outside does so as a whole.
std::vector<Span> spansOf(const std::vector<CudaCommand>& commands) {
  std::vector<Span> parts;  // commands, and repeats that are complete
  for (size_t i = 0; i < commands.size(); ++i) {
    const Kind kind = commands[i].kind;
    const bool outside =
        kind == Kind::record || kind == Kind::wait || kind == Kind::upload || kind == Kind::exchange;
    Span part = {i, i + 1, kind == Kind::repeat ? 0u : 1u, outside};
    if (kind == Kind::repeat) {
      for (part.begin = commands[i].repeat.first; !parts.empty() && parts.back().begin >= part.begin;) {
        part.nodes = std::min(part.nodes + parts.back().nodes, kMostGraphNodes + 1);
        part.stays_outside |= parts.back().stays_outside;
        parts.pop_back();
      }
      part.nodes = unrolled(part.nodes, commands[i].repeat.count);
    }
    parts.push_back(part);
  }
  std::vector<Span> spans;
  for (const Span& part : parts) append(spans, part);
  std::erase_if(spans, [](const Span& span) { return span.stays_outside || span.nodes < kFewestNodes; });
  return spans;
}

/// Puts a graph before each of the spans.
void insertGraphs(CudaProgram& program, std::vector<CudaCommand>& commands, const std::vector<Span>& spans) {
  std::vector<CudaCommand> all;
  auto placeOf = [&](size_t index) {  // with the graphs before it
    auto behind = std::find_if(spans.begin(), spans.end(), [&](const Span& s) { return s.begin > index; });
    return index + static_cast<size_t>(behind - spans.begin());
  };
  auto span = spans.begin();
  for (size_t i = 0; i < commands.size(); ++i) {
    if (span != spans.end() && span->begin == i) {
      CudaCommand& graph = all.emplace_back();
      graph.kind = Kind::graph;
      graph.graph = {.of_slot = &program.graphs.emplace_back(), .end = placeOf(span->end - 1) + 1};
      ++span;
    }
    if (commands[i].kind == Kind::repeat) commands[i].repeat.first = placeOf(commands[i].repeat.first);
    all.push_back(commands[i]);
  }
  commands = std::move(all);
}

/// Where the operands of the commands before this one end: entries are handed out in the order of commands.
const CUdeviceptr* endOfOperands(const CudaProgram& program, size_t stream, size_t index) {
  for (; stream < program.streams.size(); ++stream, index = 0)
    for (const std::vector<CudaCommand>& commands = program.streams[stream].commands; index < commands.size();
         ++index)
      if (commands[index].operands) return commands[index].operands;
  return program.addresses.data() + program.addresses.size();
}

/// Back to the first iterations, from wherever the commands were left.
void rewind(StreamCommands& work, size_t first, size_t end) {
  for (size_t i = first; i < end; ++i) {
    CudaCommand& command = work.commands[i];
    if (command.kind != Kind::repeat) continue;
    for (const MovingAddress& address : *command.repeat.moving)
      *address.entry -= static_cast<CUdeviceptr>(address.stride) * command.repeat.iteration;
    command.repeat.iteration = 0;
  }
}

Result<ExecutableGraph> capture(const Driver& driver, StreamCommands& work, size_t first, size_t end,
                                uint64_t slot, CUstream stream) {
  GPUC_RETURN_IF_ERROR(driver.check(driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                                    "cuStreamBeginCapture"));
  work.next = first;
  const Status enqueued = enqueueStream(driver, work, end, slot, stream).status();
  rewind(work, first, end);
  CUgraph captured = nullptr;
  const Status ended = driver.check(driver.cuStreamEndCapture(stream, &captured), "cuStreamEndCapture");
  const Graph graph(captured, captured ? driver.cuGraphDestroy : nullptr);
  GPUC_RETURN_IF_ERROR(enqueued);
  GPUC_RETURN_IF_ERROR(ended);
  CUgraphExec made = nullptr;
  GPUC_RETURN_IF_ERROR(driver.check(driver.cuGraphInstantiate(&made, graph.get(), 0), "cuGraphInstantiate"));
  ExecutableGraph executable(made, driver.cuGraphExecDestroy);
  GPUC_RETURN_IF_ERROR(driver.check(driver.cuGraphUpload(made, stream), "cuGraphUpload"));
  return executable;
}

/// One graph for each slot, if any address goes by it.
Result<std::vector<ExecutableGraph>> captureSlots(const Driver& driver, CudaProgram& program, size_t s,
                                                  size_t index, CUstream stream, uint64_t slots) {
  StreamCommands& work = program.streams[s];
  const size_t end = work.commands[index].graph.end;
  const CUdeviceptr *low = endOfOperands(program, s, index + 1), *high = endOfOperands(program, s, end);
  const bool moves = std::any_of(program.slot_addresses.begin(), program.slot_addresses.end(),
                                 [&](const auto& a) { return a.entry >= low && a.entry < high; });
  std::vector<ExecutableGraph> graphs;
  for (uint64_t slot = 0; slot < (moves ? slots : 1); ++slot) {
    program.takeSlot(slot);
    GPUC_ASSIGN_OR_RETURN(ExecutableGraph graph, capture(driver, work, index + 1, end, slot, stream));
    graphs.push_back(std::move(graph));
  }
  return graphs;
}

Result<uint64_t> captureAll(const Driver& driver, CudaProgram& program, std::span<const Stream> streams,
                            uint64_t slots) {
  GPUC_ASSIGN_OR_RETURN(const uint64_t free_before, freeBytes(driver));
  for (size_t s = 0; s < program.streams.size(); ++s)
    for (size_t i = 0; i < program.streams[s].commands.size(); ++i) {
      const CudaCommand& command = program.streams[s].commands[i];
      if (command.kind != Kind::graph) continue;
      GPUC_ASSIGN_OR_RETURN(*command.graph.of_slot,
                            captureSlots(driver, program, s, i, streams[s].get(), slots));
    }
  GPUC_ASSIGN_OR_RETURN(const uint64_t free_after, freeBytes(driver));
  return free_before - std::min(free_before, free_after);
}

}  // namespace

void markGraphs(CudaProgram& program) {
  std::vector<std::vector<Span>> spans;
  uint64_t nodes = 0;
  for (const StreamCommands& stream : program.streams)
    for (const Span& span : spans.emplace_back(spansOf(stream.commands))) nodes += span.nodes;
  if (nodes > kMostGraphNodes) return;
  for (size_t s = 0; s < program.streams.size(); ++s)
    insertGraphs(program, program.streams[s].commands, spans[s]);
}

Result<uint64_t> captureGraphs(const Driver& driver, CudaProgram& program, std::span<const Stream> streams,
                               uint64_t slots) {
  Result<uint64_t> bytes = captureAll(driver, program, streams, slots);
  if (!bytes.ok())
    for (std::vector<ExecutableGraph>& graphs : program.graphs) graphs.clear();
  return bytes;
}

}  // namespace gpuc::cuda
