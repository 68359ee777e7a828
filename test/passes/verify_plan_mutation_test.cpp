//===- verify_plan_mutation_test.cpp - plan-verify against broken plans -----===//
//
// Correct plans are broken at random: an offset is moved, an event, a wait or a record removed, a distance
// changed, two commands swapped, a view or its stride moved, a repeat given another count. plan-verify must
// reject exactly those that an independent check finds broken. That check shares no code with the pass: a set
// of all that each command reaches instead of vector clocks, memory as an array of the ranges between any two
// places at which an operand begins or ends instead of an interval map, every iteration of every repeat
// executed, and each part of a parallel on a stream of its own. Parts may stay apart in ways that the pass
// does not see: there it may reject more.
//
//===----------------------------------------------------------------------===//

#include "dialects/plan/PlanOps.h"
#include "frontend/models/Zoo.h"
#include "passes/Compiler.h"
#include "passes/Passes.h"
#include "passes/codegen/Codegen.h"

#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

#include <array>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

using namespace mlir;

namespace gpuc {
namespace {

//===----------------------------------------------------------------------===//
// The independent check
//===----------------------------------------------------------------------===//

struct Node {
  Operation *command;
  std::string stream;
  int step;
  std::vector<int64_t> iterations;
  std::set<int> successors;
};

struct Piece {
  int64_t begin, end; // bytes of the arena; cells, once they are known
  Operation *owner;
};

class Oracle {
public:
  explicit Oracle(ModuleOp module) : module(module), arena(*module.getOps<plan::ArenaOp>().begin()) {}

  /// Whether every execution gives what one stream alone, with memory of its own for each buffer, would give.
  bool isCorrect() {
    std::vector<plan::ProgramOp> sequence;
    for (auto program : module.getOps<plan::ProgramOp>())
      sequence.insert(sequence.end(), arena.getSlots() + 1, program);
    for (auto program : module.getOps<plan::ProgramOp>())
      sequence.push_back(program);
    std::map<Operation *, int> runs;
    for (plan::ProgramOp program : sequence)
      if (!addStep(program, runs[program]++))
        return false;
    return connectEvents() && sort() && findPieces() && noRace() && contentsHold();
  }

private:
  bool addStep(plan::ProgramOp program, int run) {
    runOfStep.push_back(run);
    programOfStep.push_back(program);
    if (program != current) {
      current = program;
      barrier.clear();
      for (auto &[stream, node] : last)
        barrier.push_back(node);
    }
    for (auto stream : program.getBody().getOps<plan::StreamOp>())
      add(stream.getBody().front(), stream.getName().str(), {});
    return true;
  }

  void add(Block &block, const std::string &stream, std::vector<int64_t> iterations) {
    for (Operation &op : block) {
      if (auto repeat = dyn_cast<plan::RepeatOp>(op)) {
        for (int64_t i = 0; i < static_cast<int64_t>(repeat.getCount()); ++i) {
          std::vector<int64_t> inner = iterations;
          inner.push_back(i);
          add(repeat.getBody().front(), stream, inner);
        }
        continue;
      }
      if (auto parallel = dyn_cast<plan::ParallelOp>(op)) {
        addParts(parallel, stream);
        continue;
      }
      if (!isa<plan::CommandOpInterface>(op))
        continue;
      int index = nodes.size();
      nodes.push_back({&op, stream, static_cast<int>(runOfStep.size()) - 1, iterations, {}});
      if (last.contains(stream))
        nodes[last[stream]].successors.insert(index);
      for (int part : joins[stream])
        nodes[part].successors.insert(index);
      joins[stream].clear();
      for (int before : barrier)
        nodes[before].successors.insert(index);
      last[stream] = index;
    }
  }

  /// A fork, in front of which all that the stream has done lies, and a join.
  void addParts(plan::ParallelOp parallel, const std::string &stream) {
    std::vector<int> ends;
    for (int64_t part = 0; part < static_cast<int64_t>(parallel.getParts()); ++part) {
      const std::string own = stream + "/" + std::to_string(part);
      last.erase(own);
      if (last.contains(stream))
        last[own] = last[stream];
      joins[own] = joins[stream];
      add(parallel.getBody().front(), own, {part});
      ends.push_back(last[own]);
      last.erase(own);
    }
    joins[stream] = ends;
  }

  bool connectEvents() {
    std::map<void *, std::vector<int>> records;
    std::map<Operation *, int> waited;
    for (int index = 0; index < static_cast<int>(nodes.size()); ++index)
      if (auto record = dyn_cast<plan::RecordOp>(nodes[index].command))
        records[record.getEvent().getAsOpaquePointer()].push_back(index);
    for (int index = 0; index < static_cast<int>(nodes.size()); ++index) {
      auto wait = dyn_cast<plan::WaitOp>(nodes[index].command);
      if (!wait)
        continue;
      std::vector<int> &recorded = records[wait.getEvent().getAsOpaquePointer()];
      int wanted = waited[wait]++ - static_cast<int>(wait.getDistance());
      if (wanted < 0)
        continue;
      if (recorded.empty())
        return false; // waits for ever
      if (wanted < static_cast<int>(recorded.size()))
        nodes[recorded[wanted]].successors.insert(index);
    }
    return true;
  }

  /// Depth-first topological sort; false if there is a cycle.
  bool sort() {
    state.assign(nodes.size(), 0);
    for (int index = 0; index < static_cast<int>(nodes.size()); ++index)
      if (state[index] == 0 && !visit(index))
        return false;
    std::reverse(sorted.begin(), sorted.end());
    return true;
  }

  bool visit(int index) {
    state[index] = 1;
    for (int successor : nodes[index].successors) {
      if (state[successor] == 1 || (state[successor] == 0 && !visit(successor)))
        return false;
    }
    state[index] = 2;
    sorted.push_back(index);
    return true;
  }

  /// Of each node, all that it reaches.
  void findReached() {
    const size_t words = nodes.size() / 64 + 1;
    reached.assign(nodes.size(), std::vector<uint64_t>(words));
    for (auto node = sorted.rbegin(); node != sorted.rend(); ++node)
      for (int successor : nodes[*node].successors) {
        for (size_t word = 0; word < words; ++word)
          reached[*node][word] |= reached[successor][word];
        reached[*node][successor / 64] |= uint64_t{1} << successor % 64;
      }
  }

  bool reaches(int from, int to) const { return reached[from][to / 64] >> to % 64 & 1; }

  /// The bytes that an operand touches, or nothing if it lies outside.
  std::optional<Piece> pieceOf(const Node &node, Value value) {
    plan::Range range = plan::rangeOf(value);
    Operation *owner = range.buffer;
    if (auto use = dyn_cast<plan::UseOp>(owner))
      owner = SymbolTable::lookupSymbolIn(arena->getParentOp(), use.getSymbolAttr());
    auto place = owner->getAttrOfType<IntegerAttr>("place");
    int64_t address = (place ? place.getInt() : 0) + range.offset;
    if (auto input = dyn_cast<plan::InputOp>(*range.buffer))
      address += runOfStep[node.step] % arena.getSlots() * input.getSlotStride().value_or(0);
    int64_t begin = address - range.offset;
    for (size_t depth = 0; depth < std::min(range.strides.size(), node.iterations.size()); ++depth)
      address += range.strides[depth] * node.iterations[depth];
    if (address < begin || address + range.size > begin + plan::sizeInBytes(range.buffer))
      return std::nullopt; // leaves its buffer
    if (address < 0 || address + range.size > static_cast<int64_t>(arena.getBytes()))
      return std::nullopt;
    return Piece{address, address + range.size, owner};
  }

  /// What each node reads and writes, what each step leaves and what lasts, in cells.
  bool findPieces() {
    for (const Node &node : nodes) {
      auto command = cast<plan::CommandOpInterface>(node.command);
      std::array<std::vector<Piece>, 2> &pieces = piecesOf.emplace_back();
      for (bool write : {false, true})
        for (Value value : write ? command.getWrites() : command.getReads()) {
          std::optional<Piece> piece = pieceOf(node, value);
          if (!piece)
            return false;
          pieces[write].push_back(*piece);
        }
    }
    for (int step = 0; step < static_cast<int>(programOfStep.size()); ++step) {
      outputsOf.emplace_back();
      for (auto output : programOfStep[step].getBody().getOps<plan::OutputOp>()) {
        std::optional<Piece> piece = pieceOf({output, "", step, {}, {}}, output.getBuffer());
        if (!piece)
          return false;
        outputsOf.back().push_back(*piece);
      }
    }
    for (Operation &op : *module.getBody())
      if (isa<plan::VariableOp, plan::ConstantOp>(op)) {
        const int64_t begin = op.getAttrOfType<IntegerAttr>("place").getInt();
        Type type = isa<plan::VariableOp>(op) ? cast<plan::VariableOp>(op).getType()
                                              : Type(cast<plan::ConstantOp>(op).getValue().getType());
        lasting.push_back({begin, begin + ir::sizeInBytes(type), &op});
      }
    cutIntoCells();
    return true;
  }

  void cutIntoCells() {
    std::vector<Piece *> pieces;
    auto collect = [&](std::vector<Piece> &some) {
      for (Piece &piece : some)
        pieces.push_back(&piece);
    };
    for (auto &[reads, writes] : piecesOf) {
      collect(reads);
      collect(writes);
    }
    for (std::vector<Piece> &outputs : outputsOf)
      collect(outputs);
    collect(lasting);
    std::vector<int64_t> edges;
    for (Piece *piece : pieces)
      edges.insert(edges.end(), {piece->begin, piece->end});
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    cellCount = edges.size();
    auto cellAt = [&](int64_t byte) {
      return std::lower_bound(edges.begin(), edges.end(), byte) - edges.begin();
    };
    for (Piece *piece : pieces)
      *piece = {cellAt(piece->begin), cellAt(piece->end), piece->owner};
  }

  bool noRace() {
    struct Touch {
      int node;
      bool write;
    };
    findReached();
    std::map<std::string, std::vector<std::vector<Touch>>> cellsOf; // by stream
    for (int index = 0; index < static_cast<int>(nodes.size()); ++index) {
      std::vector<std::vector<Touch>> &cells = cellsOf[nodes[index].stream];
      cells.resize(cellCount);
      for (bool write : {false, true})
        for (const Piece &piece : piecesOf[index][write])
          for (int64_t cell = piece.begin; cell < piece.end; ++cell)
            cells[cell].push_back({index, write});
    }
    for (auto first = cellsOf.begin(); first != cellsOf.end(); ++first)
      for (auto second = std::next(first); second != cellsOf.end(); ++second)
        for (size_t cell = 0; cell < cellCount; ++cell)
          for (const Touch &a : first->second[cell])
            for (const Touch &b : second->second[cell])
              if ((a.write || b.write) && !reaches(a.node, b.node) && !reaches(b.node, a.node))
                return false;
    return true;
  }

  bool contentsHold() {
    std::vector<std::pair<Operation *, int>> cells(cellCount, {nullptr, -1});
    for (const Piece &piece : lasting)
      for (int64_t cell = piece.begin; cell < piece.end; ++cell)
        cells[cell] = {piece.owner, 0};
    auto holds = [&](const Piece &piece, int step) {
      const bool lasts = isa<plan::VariableOp, plan::ConstantOp>(piece.owner);
      for (int64_t cell = piece.begin; cell < piece.end; ++cell)
        if (cells[cell].first != piece.owner || (!lasts && cells[cell].second != step))
          return false;
      return true;
    };
    int step = -1;
    auto outputsHold = [&]() {
      return step < 0 ||
             llvm::all_of(outputsOf[step], [&](const Piece &piece) { return holds(piece, step); });
    };
    for (int index : sorted) {
      const Node &node = nodes[index];
      if (step >= 0 && programOfStep[step] != programOfStep[node.step] && !outputsHold())
        return false;
      step = node.step;
      if (!executes(index, cells, holds))
        return false;
    }
    return outputsHold();
  }

  template <typename Cells, typename Holds> bool executes(int index, Cells &cells, Holds holds) {
    const Node &node = nodes[index];
    const auto &[reads, writes] = piecesOf[index];
    for (const Piece &read : reads)
      if (!holds(read, node.step))
        return false;
    for (size_t w = 0; w < writes.size(); ++w) {
      for (size_t r = 0; r < reads.size(); ++r)
        if (overlap(reads[r], writes[w]) && !inPlace(node.command, reads[r], r, writes[w], w))
          return false;
      for (size_t other = 0; other < w; ++other)
        if (overlap(writes[other], writes[w]))
          return false;
    }
    for (const Piece &write : writes)
      for (int64_t cell = write.begin; cell < write.end; ++cell)
        cells[cell] = {write.owner, node.step};
    return true;
  }

  static bool overlap(const Piece &a, const Piece &b) { return a.begin < b.end && b.begin < a.end; }

  bool inPlace(Operation *command, const Piece &read, size_t input, const Piece &write, size_t output) {
    if (isa<plan::AllReduceOp>(command))
      return read.begin == write.begin;
    if (auto product = dyn_cast<plan::ProductOpInterface>(command))
      return updatesInPlace(product, read, input, write, output);
    auto launch = dyn_cast<plan::LaunchOp>(command);
    if (!launch || read.begin != write.begin ||
        plan::rangeOf(launch.getInputs()[input]).size != plan::rangeOf(launch.getOutputs()[output]).size)
      return false;
    auto kernel = module.lookupSymbol<plan::KernelOp>(launch.getKernel());
    return canUpdateInPlace(kernel.getBody().front(), input, output);
  }

  /// By a product's update, element by element; never over a factor, nor by the workspace or the squares.
  bool updatesInPlace(plan::ProductOpInterface product, const Piece &read, size_t input, const Piece &write,
                      size_t output) {
    const size_t own = (product.getWorkspace() ? 1 : 0) + (product.getSquares() ? 1 : 0);
    if (!product.getUpdateAttr() || input < 2 || output < own || read.begin != write.begin)
      return false;
    Value from = product.getUpdateInputs()[input - 2], to = product.getUpdateOutputs()[output - own];
    auto kernel = module.lookupSymbol<plan::KernelOp>(product.getUpdateAttr());
    return plan::rangeOf(from).size == plan::rangeOf(to).size &&
           canUpdateInPlace(kernel.getBody().front(), input - 1, output - own);
  }

  ModuleOp module;
  plan::ArenaOp arena;
  std::vector<Node> nodes;
  std::map<std::string, int> last;
  std::map<std::string, std::vector<int>> joins; // ends of parts that a stream's next command follows
  std::vector<int> barrier, runOfStep, state, sorted;
  std::vector<plan::ProgramOp> programOfStep;
  std::vector<std::vector<uint64_t>> reached;
  std::vector<std::array<std::vector<Piece>, 2>> piecesOf; // of each node: what it reads, and what it writes
  std::vector<std::vector<Piece>> outputsOf;               // of each step
  std::vector<Piece> lasting;
  size_t cellCount = 0;
  plan::ProgramOp current;
};

//===----------------------------------------------------------------------===//
// Mutations
//===----------------------------------------------------------------------===//

template <typename Op> std::vector<Operation *> all(ModuleOp module) {
  std::vector<Operation *> ops;
  module.walk([&](Op op) { ops.push_back(op); });
  return ops;
}

/// By which places are moved.
constexpr int64_t kCell = 64;

class Mutator {
public:
  Mutator(ModuleOp module, uint32_t seed) : module(module), random(seed) {}

  /// Changes one thing; returns what, or nothing if the module has no such thing.
  std::string mutate() {
    if (!all<plan::RepeatOp>(module).empty() && random() % 2)
      return mutateRepeat();
    if (!all<plan::ParallelOp>(module).empty() && random() % 4 == 0)
      return changeParts();
    switch (random() % 6) {
    case 0:
    case 1:
      return moveOffset();
    case 2:
      return erase<plan::WaitOp>("wait");
    case 3:
      return erase<plan::RecordOp>("record");
    case 4:
      return changeDistance();
    default:
      return swapCommands();
    }
  }

private:
  Operation *pick(const std::vector<Operation *> &ops) {
    return ops.empty() ? nullptr : ops[random() % ops.size()];
  }

  std::string moveOffset() {
    std::vector<Operation *> placed;
    module.walk([&](Operation *op) {
      if (op->hasAttr("place"))
        placed.push_back(op);
    });
    Operation *op = pick(placed);
    int64_t bytes = (*module.getOps<plan::ArenaOp>().begin()).getBytes();
    int64_t place = random() % (bytes / kCell) * kCell;
    if (random() % 4 == 0)
      place = op->getAttrOfType<IntegerAttr>("place").getInt() + (random() % 2 ? kCell : -kCell);
    op->setAttr("place", IntegerAttr::get(IntegerType::get(op->getContext(), 64), place));
    return "place " + std::to_string(place);
  }

  std::string mutateRepeat() {
    switch (random() % 4) {
    case 0:
      return changeCount();
    case 1:
      return moveView();
    default:
      return changeStride();
    }
  }

  std::string changeCount() {
    auto repeat = cast<plan::RepeatOp>(pick(all<plan::RepeatOp>(module)));
    repeat.setCount(std::max<int64_t>(1, repeat.getCount() + (random() % 2 ? 1 : -1)));
    return "count " + std::to_string(repeat.getCount());
  }

  std::string changeParts() {
    auto parallel = cast<plan::ParallelOp>(pick(all<plan::ParallelOp>(module)));
    parallel.setParts(parallel.getParts() + (random() % 2 ? 1 : -1));
    return "parts " + std::to_string(parallel.getParts());
  }

  std::string moveView() {
    auto view = cast<plan::ViewOp>(pick(all<plan::ViewOp>(module)));
    view.setOffset(std::max<int64_t>(0, view.getOffset() + (random() % 2 ? kCell : -kCell)));
    return "view at " + std::to_string(view.getOffset());
  }

  std::string changeStride() {
    auto view = cast<plan::ViewOp>(pick(all<plan::ViewOp>(module)));
    std::vector<int64_t> strides(view.getStrides().begin(), view.getStrides().end());
    if (strides.empty())
      return "";
    int64_t &stride = strides[random() % strides.size()];
    switch (random() % 3) {
    case 0:
      stride = 0;
      break;
    case 1:
      stride = -stride;
      break;
    default:
      stride += random() % 2 ? kCell : -kCell;
    }
    view.setStrides(strides);
    return "stride " + std::to_string(stride);
  }

  template <typename Op> std::string erase(const char *what) {
    Operation *op = pick(all<Op>(module));
    if (!op)
      return "";
    op->erase();
    return std::string(what) + " removed";
  }

  std::string changeDistance() {
    Operation *op = pick(all<plan::WaitOp>(module));
    if (!op)
      return "";
    auto wait = cast<plan::WaitOp>(op);
    wait.setDistance(random() % 2 ? wait.getDistance() + 1 : (wait.getDistance() + 2) / 2 - 1);
    return "distance " + std::to_string(wait.getDistance());
  }

  std::string swapCommands() {
    std::vector<Operation *> commands;
    module.walk([&](plan::CommandOpInterface op) {
      if (op->getNextNode() && isa<plan::CommandOpInterface>(op->getNextNode()))
        commands.push_back(op);
    });
    Operation *op = pick(commands);
    if (!op)
      return "";
    op->moveAfter(op->getNextNode());
    return "commands swapped";
  }

  ModuleOp module;
  std::mt19937 random;
};

bool passAccepts(ModuleOp module) {
  ScopedDiagnosticHandler silent(module.getContext(), [](Diagnostic &) { return success(); });
  PassManager passes(module.getContext());
  passes.addPass(createVerifyPlanPass());
  return succeeded(passes.run(module));
}

/// Slots, two streams and a repeat that fills a stack piece by piece.
constexpr const char *kHandWritten = R"(
  plan.arena 960 bytes, variables at 0x0, workspace at 0x40, inputs at 0x340, slots 2, lower_bound 960
  plan.variable @w : tensor<16xf32> "parameter" init zeros at 0x0
  plan.kernel @copy (%a: tensor<16xf32>) { gpuc.yield %a : tensor<16xf32> }
  plan.kernel @sum (%a: tensor<64xf32>, %b: tensor<16xf32>) {
    %0 = gpuc.slice %a starts [48] limits [64] strides [1] : (tensor<64xf32>) -> tensor<16xf32>
    %1 = gpuc.add %0, %b : tensor<16xf32>
    gpuc.yield %1 : tensor<16xf32>
  }
  plan.program @train_step {
    %x = plan.input "x" : tensor<16xf32> at 0x340 stride 64
    %w = plan.use @w : tensor<16xf32> parameter
    %stack = plan.buffer "stack" : tensor<64xf32> activation at 0x40
    %y = plan.buffer "y" : tensor<16xf32> activation at 0x140
    %piece = plan.view %stack[0] strides [64] : tensor<16xf32>
    %ready = plan.event "batch_ready"
    %free = plan.event "slot_free"
    plan.stream "compute" {
      plan.wait %ready
      plan.repeat 4 { plan.launch @copy(%x) -> (%piece) }
      plan.record %free
      plan.launch @sum(%stack, %w) -> (%y)
      plan.launch @copy(%y) -> (%w)
    }
    plan.stream "copy" {
      plan.wait %free distance 2
      plan.upload %x
      plan.record %ready
    }
    plan.output "y" %y
  }
)";

/// A loop as training needs it: h carried through a stack of 9, c in place, a value that lives in one
/// iteration only and lies where another one did, then the way back over the stack, with its sum in place.
constexpr const char *kLoops = R"(
  plan.arena 1536 bytes, variables at 0x0, workspace at 0x40, inputs at 0x400, slots 1, lower_bound 1536
  plan.variable @w : tensor<16xf32> "parameter" init zeros at 0x0
  plan.kernel @copy (%a: tensor<16xf32>) { gpuc.yield %a : tensor<16xf32> }
  plan.kernel @add (%a: tensor<16xf32>, %b: tensor<16xf32>) {
    %0 = gpuc.add %a, %b : tensor<16xf32>
    gpuc.yield %0 : tensor<16xf32>
  }
  plan.program @train_step {
    %x = plan.input "x" : tensor<8x16xf32> at 0x400 stride 512
    %w = plan.use @w : tensor<16xf32> parameter
    %h = plan.buffer "h" : tensor<9x16xf32> activation at 0x40
    %c = plan.buffer "c" : tensor<16xf32> activation at 0x280
    %s = plan.buffer "s" : tensor<16xf32> activation at 0x2C0
    %t = plan.buffer "t" : tensor<16xf32> activation at 0x2C0
    %d = plan.buffer "d" : tensor<16xf32> gradient at 0x300
    %first = plan.view %h[0] : tensor<16xf32>
    %last = plan.view %h[512] : tensor<16xf32>
    plan.stream "compute" {
      plan.upload %x
      plan.launch @copy(%w) -> (%first)
      plan.launch @copy(%w) -> (%c)
      plan.repeat 8 {
        %xi = plan.view %x[0] strides [64] : tensor<16xf32>
        %hi = plan.view %h[0] strides [64] : tensor<16xf32>
        %hn = plan.view %h[64] strides [64] : tensor<16xf32>
        plan.launch @add(%xi, %hi) -> (%s)
        plan.launch @add(%c, %s) -> (%c)
        plan.launch @add(%c, %hi) -> (%t)
        plan.launch @copy(%t) -> (%hn)
      }
      plan.launch @copy(%last) -> (%d)
      plan.repeat 8 {
        %hr = plan.view %h[448] strides [-64] : tensor<16xf32>
        plan.launch @add(%d, %hr) -> (%d)
        plan.repeat 4 {
          %xr = plan.view %x[448] strides [-64, 0] : tensor<16xf32>
          plan.launch @add(%d, %xr) -> (%d)
        }
      }
      plan.launch @add(%w, %d) -> (%w)
    }
    plan.output "d" %d
  }
)";

/// Four parts with places of their own in three buffers, one of them of two halves, and a loop in each; then
/// the sum of what they leave.
constexpr const char *kParallel = R"(
  plan.arena 1408 bytes, variables at 0x0, workspace at 0x40, inputs at 0x480, slots 1, lower_bound 1408
  plan.variable @w : tensor<16xf32> "parameter" init zeros at 0x0
  plan.kernel @copy (%a: tensor<16xf32>) { gpuc.yield %a : tensor<16xf32> }
  plan.kernel @add (%a: tensor<16xf32>, %b: tensor<16xf32>) {
    %0 = gpuc.add %a, %b : tensor<16xf32>
    gpuc.yield %0 : tensor<16xf32>
  }
  plan.program @train_step {
    %x = plan.input "x" : tensor<4x16xf32> at 0x480 stride 256
    %w = plan.use @w : tensor<16xf32> parameter
    %t = plan.buffer "t" : tensor<4x16xf32> activation at 0x40
    %u = plan.buffer "u" : tensor<4x32xf32> activation at 0x140
    %y = plan.buffer "y" : tensor<4x16xf32> gradient at 0x340
    %g = plan.buffer "g" : tensor<16xf32> gradient at 0x440
    plan.stream "compute" {
      plan.upload %x
      plan.parallel 4 {
        %xi = plan.view %x[0] strides [64] : tensor<16xf32>
        %ti = plan.view %t[0] strides [64] : tensor<16xf32>
        %ui = plan.view %u[0] strides [128] : tensor<32xf32>
        %u0 = plan.view %ui[0] : tensor<16xf32>
        %u1 = plan.view %ui[64] : tensor<16xf32>
        %yi = plan.view %y[192] strides [-64] : tensor<16xf32>
        plan.launch @add(%xi, %w) -> (%ti)
        plan.launch @copy(%ti) -> (%u0)
        plan.launch @add(%u0, %xi) -> (%u1)
        plan.repeat 2 {
          %half = plan.view %ui[0] strides [0, 64] : tensor<16xf32>
          plan.launch @add(%ti, %half) -> (%ti)
        }
        plan.launch @copy(%ti) -> (%yi)
      }
      plan.sum %y -> %g : f32
      plan.launch @add(%w, %g) -> (%w)
    }
    plan.output "g" %g
  }
)";

class VerifyPlanMutation : public testing::Test {
protected:
  Compiler compiler;

  /// The zoo's mlp, made small so that the cells of its arena are few, as a plan for a target.
  OwningOpRef<ModuleOp> compiledMlp(const std::string &target, bool isDataParallel = false,
                                    const std::string &input = "8", const std::string &hidden = "8,8") {
    return compiled("mlp", {"input=" + input, "pixels=false", "hidden=" + hidden, "batch=4"}, target,
                    isDataParallel);
  }

  OwningOpRef<ModuleOp> compiled(const std::string &name, const std::vector<std::string> &keys,
                                 const std::string &target, bool isDataParallel = false) {
    Result<nn::Model> model = models::buildZooModel(name, keys);
    EXPECT_TRUE(model.ok()) << model.message();
    auto module = compiler.parse(model->text(), name + ".mlir");
    EXPECT_TRUE(module.ok()) << module.message();
    CompilerOptions options;
    options.target = target;
    if (isDataParallel)
      options.train.recipe.emplace_back("data_parallel", "true");
    Status status =
        compiler.advance(**module, Stage::plan, options, [](PassManager &) { return okStatus(); });
    EXPECT_TRUE(status.ok()) << status.message();
    return std::move(*module);
  }

  /// A model of the zoo as one rank's plan, whose sums over ranks travel on a stream of their own.
  OwningOpRef<ModuleOp> compiledBeside(const std::string &name, const std::vector<std::string> &keys,
                                       const std::vector<std::pair<std::string, std::string>> &recipe = {}) {
    Result<nn::Model> model = models::buildZooModel(name, keys);
    EXPECT_TRUE(model.ok()) << model.message();
    auto module = compiler.parse(model->text(), name + ".mlir");
    EXPECT_TRUE(module.ok()) << module.message();
    CompilerOptions options;
    options.target = "host";
    options.train.recipe.emplace_back("data_parallel", "true");
    options.train.recipe.insert(options.train.recipe.end(), recipe.begin(), recipe.end());
    Status status =
        compiler.advance(**module, Stage::trainStep, options, [](PassManager &) { return okStatus(); });
    EXPECT_TRUE(status.ok()) << status.message();
    PassManager passes((**module)->getContext());
    passes.addPass(createToPlanPass({"host"}));
    passes.addPass(createOrderPass());
    passes.addPass(createBucketAllReducesPass({"ethernet", /*bucketBytes=*/4096, /*alwaysBeside=*/true}));
    passes.addPass(createAssignStreamsPass());
    passes.addPass(createGroupLaunchesPass());
    passes.addPass(createPlaceBuffersPass());
    passes.addPass(createParallelizePass());
    EXPECT_TRUE(succeeded(passes.run(**module)));
    return std::move(*module);
  }

  /// Where the pass may be `careful` it may reject what is correct, but not most of it.
  void checkMutations(ModuleOp module, int count, int leastRejected, bool careful = false) {
    ASSERT_TRUE(passAccepts(module));
    ASSERT_TRUE(Oracle(module).isCorrect());
    int rejected = 0, harmless = 0, accepts = 0;
    for (uint32_t seed = 0; rejected + harmless < count; ++seed) {
      OwningOpRef<ModuleOp> mutant = module.clone();
      std::string mutation = Mutator(*mutant, seed).mutate();
      if (mutation.empty())
        continue;
      bool correct = Oracle(*mutant).isCorrect(), accepted = passAccepts(*mutant);
      if (!careful || accepted)
        EXPECT_EQ(accepted, correct) << "seed " << seed << ": " << mutation;
      accepts += accepted;
      ++(correct ? harmless : rejected);
    }
    std::printf("%d mutations: %d rejected, %d harmless by the independent check\n", count, rejected,
                harmless);
    EXPECT_GE(rejected, leastRejected);
    EXPECT_GE(accepts, harmless * 3 / 4);
  }
};

TEST_F(VerifyPlanMutation, HandWritten) {
  auto module = compiler.parse(kHandWritten, "hand-written.mlir");
  ASSERT_TRUE(module.ok()) << module.message();
  checkMutations(**module, 400, 200);
}

TEST_F(VerifyPlanMutation, Loops) {
  auto module = compiler.parse(kLoops, "loops.mlir");
  ASSERT_TRUE(module.ok()) << module.message();
  checkMutations(**module, 600, 200);
}

TEST_F(VerifyPlanMutation, Parallel) {
  auto module = compiler.parse(kParallel, "parallel.mlir");
  ASSERT_TRUE(module.ok()) << module.message();
  checkMutations(**module, 600, 200, /*careful=*/true);
}

TEST_F(VerifyPlanMutation, MlpOnHost) { checkMutations(*compiledMlp("host"), 300, 100); }

TEST_F(VerifyPlanMutation, MlpOfOneRankAmongOthers) {
  checkMutations(*compiledMlp("host", /*isDataParallel=*/true), 300, 100);
}

/// How many mutations a plan of several streams gets.
int mutationsOfStreams() {
  const char *given = std::getenv("GPUC_MUTATIONS");
  return given ? std::atoi(given) : 100;
}

TEST_F(VerifyPlanMutation, Gpt2WithCollectives) {
  checkMutations(*compiledBeside("gpt2", {"layers=2", "heads=2", "width=16", "length=8", "vocabulary=24",
                                          "dropout=0.1", "batch=2"}),
                 mutationsOfStreams(), mutationsOfStreams() / 4);
}

/// Of how many tensors the largest exchange of a kind is.
template <typename Command> size_t mostTensors(ModuleOp module) {
  size_t most = 0;
  module.walk([&](Command command) { most = std::max<size_t>(most, command.getWholes().size()); });
  return most;
}

TEST_F(VerifyPlanMutation, Gpt2WithShares) {
  auto module = compiledBeside(
      "gpt2", {"layers=1", "heads=2", "width=16", "length=8", "vocabulary=24", "dropout=0.1", "batch=2"},
      {{"shard", "optimizer"}, {"world_size", "2"}});
  EXPECT_GT(mostTensors<plan::AllGatherOp>(*module), 1u);
  EXPECT_GT(mostTensors<plan::ReduceScatterOp>(*module), 1u);
  checkMutations(*module, mutationsOfStreams(), mutationsOfStreams() / 4);
}

TEST_F(VerifyPlanMutation, MlpWithSharesOfMicrobatches) {
  auto module = compiledBeside("mlp", {"input=8", "pixels=false", "hidden=8,8", "batch=4"},
                               {{"shard", "gradients"}, {"world_size", "2"}, {"accumulate", "2"}});
  EXPECT_GT(mostTensors<plan::ReduceScatterOp>(*module), 1u);
  checkMutations(*module, mutationsOfStreams(), mutationsOfStreams() / 4);
}

TEST_F(VerifyPlanMutation, ResNet18WithCollectives) {
  checkMutations(*compiledBeside("resnet18", {"size=32", "width=4", "classes=4", "batch=2"}),
                 mutationsOfStreams(), mutationsOfStreams() / 4);
}

/// Weights of 16 KiB, which are updated in the products of their gradients.
TEST_F(VerifyPlanMutation, MlpWithUpdatesInProducts) {
  auto module = compiledMlp("host", /*isDataParallel=*/false, "64", "64,64");
  unsigned updates = 0;
  module->walk([&](plan::MatmulOp product) { updates += product.getUpdate().has_value(); });
  EXPECT_EQ(updates, 2u);
  checkMutations(*module, 400, 100);
}

/// Filters of 16 KiB likewise.
TEST_F(VerifyPlanMutation, ConvnetWithUpdatesInConvolutions) {
  auto module = compiled("convnet", {"size=12", "batch=3"}, "host");
  unsigned updates = 0;
  module->walk([&](plan::ConvOp product) { updates += product.getUpdate().has_value(); });
  EXPECT_EQ(updates, 1u);
  checkMutations(*module, 400, 100);
}

TEST_F(VerifyPlanMutation, MlpOnCuda) { checkMutations(*compiledMlp("cuda:sm_90"), 300, 100); }

} // namespace
} // namespace gpuc
