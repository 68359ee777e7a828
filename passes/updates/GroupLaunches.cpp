//===- GroupLaunches.cpp - Many small launches of one kind as one ------------===//
//
// Horizontal fusion. A launch may stand further back in its stream if nothing between needs what it does;
// what dies in it then lives for longer. From the last launch to the first, each joins the last group of its
// kind that it can reach without the sum of live bytes growing beyond what it was at its peak: the lower
// bound of the placement stays. The kernel of a group is segmented (codegen/Segments.h); an element's
// arithmetic is what it was, and so are all bits.
//
// Three kinds are worth it, of which a step has one for each parameter: updates, the sums of a gradient's
// norm, and the parts of such sums. They are short, and alone each would begin and end on one core. In
// repeats nothing is grouped.
//
// The host's threads share a group as they share any launch: each takes a part of its tiles. Weights that are
// long enough to be shared on their own are then cut elsewhere than in the products that read them and that
// make their gradients, and what one core wrote another reads. There such launches stay alone.
//
// A GPU spreads any launch over all of its cores, so that there no number of bytes is too large, not even
// where an update then waits for the last sum over ranks and not for its own: with those above 8 MiB kept in
// front of waits for other streams, gpuc-simulate has as much of gpt2-124M's exchange exposed on 8 and 64
// H200, and the step 0.02 and 0.03 ms longer, of 22.4 and 23.6, by the launches that come on top.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/base/Target.h"
#include "passes/codegen/Codegen.h"
#include "passes/codegen/KernelText.h"
#include "passes/plan/CommandGraph.h"
#include "passes/plan/LiveBuffers.h"
#include "passes/plan/PlanAccess.h"
#include "passes/updates/Updates.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/ADT/StringExtras.h"

#include <map>
#include <optional>
#include <tuple>

#define DEBUG_TYPE "plan-group-launches"

using namespace mlir;

namespace gpuc {

ALWAYS_ENABLED_STATISTIC(groupLooks, "Looks whether a launch can stand where a group does");

uint64_t launchGroupLooks() { return groupLooks; }

#define GEN_PASS_DEF_GROUPLAUNCHESPASS
#include "passes/Passes.h.inc"

namespace {

/// The kernels of a module, and how many launches each has.
struct Kernels {
  SymbolTable symbols;
  DenseMap<Operation *, unsigned> launches;

  explicit Kernels(ModuleOp module) : symbols(module) {
    module.walk([&](plan::LaunchOp launch) { ++launches[of(launch)]; });
  }

  plan::KernelOp of(plan::LaunchOp launch) const {
    return symbols.lookup<plan::KernelOp>(launch.getKernel());
  }

  void drop(plan::KernelOp kernel) {
    if (--launches[kernel] == 0)
      symbols.erase(kernel);
  }
};

//===----------------------------------------------------------------------===//
// Kinds
//===----------------------------------------------------------------------===//

bool folds(Block &body) {
  return llvm::any_of(body, [](Operation &op) { return isReduction(&op); });
}

/// Whether the kernel folds what it reads to one row of one element.
bool foldsToOne(Block &body) {
  return folds(body) && llvm::all_of(body.getTerminator()->getOperands(),
                                     [](Value result) { return ir::elementCount(result.getType()) == 1; });
}

/// Whether what the launch folds is folded on to one element, and read by nobody else.
bool makesPartsOfSums(const Kernels &kernels, plan::LaunchOp launch, Block &body) {
  return folds(body) && llvm::all_of(launch.getOutputs(), [&](Value parts) {
           return llvm::all_of(parts.getUsers(), [&](Operation *user) {
             auto reader = dyn_cast<plan::LaunchOp>(user);
             return user == launch || (reader && foldsToOne(kernels.of(reader).getBody().front()));
           });
         });
}

/// What only launches of the same kind have, in the order in which kinds are grouped: what follows makes room
/// for what comes before it. A gradient's norm may be taken as late as its update, a part as late as its sum.
struct Kind {
  enum Role { Update, Sum, Part } role;
  std::string work;

  bool operator<(const Kind &other) const { return std::tie(role, work) < std::tie(other.role, other.work); }
};

/// Of all that the launch reads and writes.
int64_t touchedBytes(const Kernels &kernels, plan::LaunchOp launch) {
  Block &body = kernels.of(launch).getBody().front();
  int64_t bytes = 0;
  for (Type type : llvm::concat<const Type>(body.getArgumentTypes(), body.getTerminator()->getOperandTypes()))
    bytes += ir::sizeInBytes(type);
  return bytes;
}

std::optional<Kind> kindOf(const Kernels &kernels, plan::LaunchOp launch) {
  Block &body = kernels.of(launch).getBody().front();
  if (isUpdate(launch, body))
    return Kind{Kind::Update, ""};
  if (foldsToOne(body))
    return Kind{Kind::Sum, codegen::textWithoutShapes(body)};
  if (makesPartsOfSums(kernels, launch, body))
    return Kind{Kind::Part, codegen::textWithoutShapes(body)};
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

struct Group {
  unsigned last; ///< Where it stands among the stream's commands.
  SmallVector<plan::LaunchOp> members;
  SetVector<Value> inputs; ///< Each once.
  size_t outputs = 0;
};

/// `fc1.weight.sgd_update_3` → `fc1.weight` and `sgd_update`: the number only makes the name its own.
std::pair<StringRef, StringRef> layerAndWork(StringRef name) {
  auto [head, number] = name.rsplit('_');
  if (!number.empty() && llvm::all_of(number, llvm::isDigit))
    name = head;
  return name.contains('.') ? name.rsplit('.') : std::make_pair(StringRef(), name);
}

/// The pieces that both begin with, or `fromEnd` end with.
std::string commonPieces(StringRef a, StringRef b, StringRef separator, bool fromEnd) {
  SmallVector<StringRef> left, right, common;
  a.split(left, separator);
  b.split(right, separator);
  if (fromEnd) {
    std::reverse(left.begin(), left.end());
    std::reverse(right.begin(), right.end());
  }
  for (auto [piece, other] : llvm::zip(left, right)) {
    if (piece != other)
      break;
    common.push_back(piece);
  }
  if (fromEnd)
    std::reverse(common.begin(), common.end());
  return llvm::join(common, separator);
}

/// What the members' names have in common: the layer that all of theirs are in, or `update` or `sums`, and
/// the last ops.
std::string nameOf(const Group &group, Kind::Role role) {
  std::string layer, work;
  for (plan::LaunchOp member : group.members) {
    auto [memberLayer, memberWork] = layerAndWork(member.getKernel());
    bool first = member == group.members.front();
    layer = first ? memberLayer.str() : commonPieces(layer, memberLayer, ".", /*fromEnd=*/false);
    work = first ? memberWork.str() : commonPieces(work, memberWork, "_", /*fromEnd=*/true);
  }
  if (role == Kind::Update)
    layer = "update";
  if (layer.empty())
    layer = "sums";
  return layer + "." + (work.empty() ? "several" : work);
}

class Grouping {
public:
  Grouping(Kernels &kernels, plan::ProgramOp program, plan::StreamOp stream, LiveBuffers &live,
           int64_t mostOperands, int64_t mostBytes)
      : kernels_(kernels), program_(program), graph_(commandsOf(stream.getBody().front())), live_(live),
        mostOperands_(mostOperands), mostBytes_(mostBytes) {
    for (plan::CommandOpInterface command : graph_.commands)
      positions_.push_back(positions_.back() + positionsOf(command));
    llvm::append_range(places_, llvm::seq<unsigned>(0, graph_.commands.size()));
    findWhatRecordsHold(stream);
  }

  void run() {
    std::map<Kind, SmallVector<unsigned>> kinds;
    for (auto [index, command] : llvm::enumerate(graph_.commands))
      if (auto launch = dyn_cast<plan::LaunchOp>(*command);
          launch && !launch->hasAttr(kRecomputedAttr) && touchedBytes(kernels_, launch) <= mostBytes_)
        if (std::optional<Kind> kind = kindOf(kernels_, launch))
          kinds[*kind].push_back(index);
    for (auto &[kind, launches] : kinds)
      for (const Group &group : groupsOf(launches))
        if (group.members.size() > 1)
          build(group, kind.role);
  }

private:
  /// Of each record on the stream, what other streams touch behind the waits for it.
  void findWhatRecordsHold(plan::StreamOp stream) {
    for (auto [index, command] : llvm::enumerate(graph_.commands)) {
      auto record = dyn_cast<plan::RecordOp>(*command);
      if (!record)
        continue;
      DenseSet<const void *> &held = held_.emplace_back(index, DenseSet<const void *>()).second;
      for (auto other : program_.getBody().getOps<plan::StreamOp>())
        if (other != stream)
          noteTouchedBehind(record.getEvent(), other, held);
    }
  }

  static void noteTouchedBehind(Value event, plan::StreamOp stream, DenseSet<const void *> &touched) {
    bool isBehind = false;
    for (auto command : stream.getBody().getOps<plan::CommandOpInterface>()) {
      auto wait = dyn_cast<plan::WaitOp>(*command);
      isBehind |= wait && wait.getEvent() == event;
      if (isBehind)
        for (Value value : llvm::concat<Value>(command.getReads(), command.getWrites()))
          touched.insert(plan::identityOf(plan::bufferOf(value)));
    }
  }

  /// Whether another stream is told between the two places that what the launch touches is its own.
  bool isHeldBetween(plan::LaunchOp launch, unsigned from, unsigned to) const {
    return llvm::any_of(held_, [&](const auto &record) {
      return from < record.first && record.first < to &&
             llvm::any_of(
                 launch->getOperands(),
                 [&](Value value) {
                   return record.second.contains(plan::identityOf(plan::bufferOf(value)));
                 });
    });
  }

  /// Groups begin ever earlier, and where a launch can stand, it can anywhere before that.
  std::vector<Group> groupsOf(ArrayRef<unsigned> launches) {
    std::vector<Group> groups;
    for (unsigned index : llvm::reverse(launches)) {
      auto launch = cast<plan::LaunchOp>(*graph_.commands[index]);
      auto reached =
          llvm::partition_point(groups, [&](const Group &group) { return !canStandAt(index, group.last); });
      auto found =
          std::find_if(reached, groups.end(), [&](const Group &group) { return hasRoom(group, launch); });
      const bool isNew = found == groups.end();
      join(index, isNew ? groups.emplace_back(Group{index, {}, {}, 0}) : *found);
    }
    for (Group &group : groups)
      std::reverse(group.members.begin(), group.members.end());
    return groups;
  }

  /// Whether nothing between needs what the launch does, and bytes allow for it.
  bool canStandAt(unsigned index, unsigned place) {
    ++groupLooks;
    auto launch = cast<plan::LaunchOp>(*graph_.commands[index]);
    return llvm::all_of(graph_.successors[index],
                        [&](unsigned successor) { return places_[successor] > place; }) &&
           !isHeldBetween(launch, index, place) &&
           live_.canExtend(plan::CommandOpInterface(launch), positions_[index], positions_[place]);
  }

  bool hasRoom(const Group &group, plan::LaunchOp launch) const {
    llvm::SmallDenseSet<Value, 8> added;
    for (Value input : launch.getInputs())
      if (!group.inputs.contains(input))
        added.insert(input);
    const size_t operands = group.inputs.size() + added.size() + group.outputs + launch.getOutputs().size();
    return static_cast<int64_t>(operands) <= mostOperands_;
  }

  void join(unsigned index, Group &group) {
    auto launch = cast<plan::LaunchOp>(*graph_.commands[index]);
    live_.extend(plan::CommandOpInterface(launch), positions_[index], positions_[group.last]);
    group.members.push_back(launch);
    places_[index] = group.last;
    group.inputs.insert_range(launch.getInputs());
    group.outputs += launch.getOutputs().size();
  }

  /// Puts one launch in the place of the last member.
  void build(const Group &group, Kind::Role role) {
    std::string name = nameOf(group, role);
    Location location =
        NameLoc::get(StringAttr::get(program_.getContext(), StringRef(name).rsplit('.').first));
    OpBuilder unattached(program_.getContext());
    auto kernel = plan::KernelOp::create(unattached, location, name);
    Block &body = kernel.getBody().emplaceBlock();
    llvm::MapVector<std::pair<Value, Type>, Value> arguments; // what members share is one
    SmallVector<Value> inputs, outputs, results;
    for (plan::LaunchOp member : group.members) {
      SmallVector<Value> own;
      for (auto [input, argument] :
           llvm::zip_equal(member.getInputs(), kernels_.of(member).getBody().getArguments())) {
        Value &known = arguments[{input, argument.getType()}];
        if (!known) {
          known = body.addArgument(argument.getType(), argument.getLoc());
          inputs.push_back(input);
        }
        own.push_back(known);
      }
      llvm::append_range(results, addSegment(body, member, own).getResults());
      llvm::append_range(outputs, member.getOutputs());
    }
    OpBuilder end = OpBuilder::atBlockEnd(&body);
    ir::YieldOp::create(end, location, results);
    OpBuilder builder(group.members.back());
    SmallVector<plan::KernelOp> parts =
        llvm::map_to_vector(group.members, [&](plan::LaunchOp member) { return kernels_.of(member); });
    for (plan::KernelOp part : parts)
      kernels_.drop(part);
    kernels_.symbols.insert(kernel, Block::iterator(program_)); // renames it if the name is taken
    plan::LaunchOp::create(builder, location, FlatSymbolRefAttr::get(kernel.getSymNameAttr()), inputs,
                           outputs);
    for (plan::LaunchOp member : group.members)
      member.erase();
  }

  ir::FusedOp addSegment(Block &body, plan::LaunchOp member, ValueRange operands) {
    plan::KernelOp kernel = kernels_.of(member);
    OpBuilder builder = OpBuilder::atBlockEnd(&body);
    auto segment = ir::FusedOp::create(builder, kernel.getLoc(),
                                       kernel.getBody().front().getTerminator()->getOperandTypes(),
                                       kernel.getSymName(), operands);
    IRMapping mapping;
    kernel.getBody().cloneInto(&segment.getBody(), mapping);
    return segment;
  }

  Kernels &kernels_;
  plan::ProgramOp program_;
  CommandGraph graph_;
  SmallVector<unsigned> places_; ///< Where each command stands by now.
  LiveBuffers &live_;
  int64_t mostOperands_, mostBytes_;
  std::vector<int64_t> positions_ = {0};                          ///< Of each command, and the end.
  SmallVector<std::pair<unsigned, DenseSet<const void *>>> held_; ///< By each record, and its place.
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

struct GroupLaunches : impl::GroupLaunchesPassBase<GroupLaunches> {
  using GroupLaunchesPassBase::GroupLaunchesPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto target = module->getAttrOfType<plan::TargetAttr>(plan::kTargetAttr);
    const TargetDescription &device = target ? describe(target) : kHostDescription;
    int64_t operands = mostOperands > 0 ? mostOperands : device.launchOperands;
    int64_t bytes = mostBytes > 0 ? mostBytes : device.groupedBytes;
    Kernels kernels(module);
    for (auto program : module.getOps<plan::ProgramOp>())
      if (failed(group(module, program, kernels, operands, bytes)))
        return signalPassFailure();
  }

  static LogicalResult group(ModuleOp module, plan::ProgramOp program, Kernels &kernels, int64_t mostOperands,
                             int64_t mostBytes) {
    auto streams = program.getBody().getOps<plan::StreamOp>();
    if (streams.empty())
      return program.emitOpError("has no streams: plan-assign-streams comes before plan-group-launches");
    FailureOr<Lifetimes> lifetimes = computeLifetimes(program);
    if (failed(lifetimes))
      return failure();
    LiveBuffers live(module, program, *lifetimes);
    Grouping(kernels, program, *streams.begin(), live, mostOperands, mostBytes).run();
    return success();
  }
};

} // namespace
} // namespace gpuc
