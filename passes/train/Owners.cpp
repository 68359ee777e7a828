//===- Owners.cpp - Trained variables, each of which one rank owns -------------===//

#include "passes/train/Owners.h"

#include "passes/recipe/StepBuilder.h"

#include "runtime/plan/header.h"

#include "llvm/ADT/MapVector.h"

namespace gpuc {

using namespace mlir;
using ir::Expr;

SmallVector<SmallVector<unsigned>> groupForOwners(ArrayRef<ir::VariableOp> trained,
                                                  const ParameterGroups &groups, int64_t ranks) {
  struct Group {
    Type type;
    Optimizer optimizer;
    SmallVector<unsigned> members;
  };
  std::vector<Group> all;
  for (unsigned number = 0; number < trained.size(); ++number) {
    ir::VariableOp variable = trained[number];
    const Optimizer optimizer = groups.optimizerOf(variable);
    const Type type = variable.getType();
    if (!optimizer.needsWhole() ||
        ir::sizeInBytes(cast<RankedTensorType>(type)) < static_cast<int64_t>(kBufferAlignment))
      continue;
    // What is next to it is computed at about the same time.
    auto open = llvm::find_if(all, [&](const Group &group) {
      return group.type == type && group.optimizer == optimizer &&
             static_cast<int64_t>(group.members.size()) < ranks;
    });
    if (open == all.end())
      open = all.insert(all.end(), {type, optimizer, {}});
    open->members.push_back(number);
  }
  SmallVector<SmallVector<unsigned>> kept;
  for (Group &group : all)
    if (const auto members = static_cast<int64_t>(group.members.size()); members >= 2 && 2 * members >= ranks)
      kept.push_back(std::move(group.members));
  return kept;
}

ir::VariableOp declareOwned(ArrayRef<ir::VariableOp> members, int64_t ranks) {
  ir::VariableOp first = members.front();
  auto module = first->getParentOfType<ModuleOp>();
  Builder attributes(module.getContext());
  ir::VariableOp owned =
      declareVariable(module, first.getLoc(), (first.getSymName() + "/owned").str(),
                      cast<RankedTensorType>(first.getType()), first.getInitializer(), first.getKind());
  owned.setShards(ranks);
  owned.setOwnersAttr(attributes.getStrArrayAttr(
      llvm::map_to_vector(members, [](ir::VariableOp member) { return member.getSymName(); })));
  return owned;
}

static bool areOneNumber(ArrayRef<Value> values) {
  auto first = values.front().getDefiningOp<ir::ConstantOp>();
  return first && llvm::all_of(values, [&](Value value) {
           auto constant = value.getDefiningOp<ir::ConstantOp>();
           return constant && constant.getValue() == first.getValue();
         });
}

Value initialOfOwners(OpBuilder &builder, ir::VariableOp owned, const llvm::StringMap<Value> &values) {
  if (!owned.getOwners())
    return {};
  SmallVector<Value> initial;
  for (StringRef name : owned.getOwnersAttr().getAsValueRange<StringAttr>())
    if (Value value = values.lookup(name))
      initial.push_back(value);
    else
      return {};
  if (areOneNumber(initial))
    return initial.front();
  auto module = owned->getParentOfType<ModuleOp>();
  StepBuilder ops(builder, initial.front().getLoc());
  Expr rank = ops.read(module.lookupSymbol<ir::VariableOp>("rank"));
  Expr value = ops.at(initial.back());
  for (size_t owner = initial.size() - 1; owner-- > 0;)
    value = choose(rank == static_cast<double>(owner), ops.at(initial[owner]), value);
  return value;
}

//===----------------------------------------------------------------------===//
// Who reads them
//===----------------------------------------------------------------------===//

namespace {
/// A read of what the rank `owner` has there.
struct OwnedRead {
  ir::ReadOp read;
  unsigned owner;
};
} // namespace

/// At the first of them.
static void gatherOnce(ir::VariableOp owned, ArrayRef<OwnedRead> reads, Block &body) {
  Operation *first = nullptr;
  for (OwnedRead entry : reads) {
    Operation *here = body.findAncestorOpInBlock(*entry.read.getOperation());
    if (!first || here->isBeforeInBlock(first))
      first = here;
  }
  OpBuilder builder(first);
  Value own = ir::ReadOp::create(builder, first->getLoc(), owned.getType(), owned.getSymName());
  const SmallVector<Type> types(owned.getOwnersAttr().size(), owned.getType());
  auto gather = ir::GatherFromOwnersOp::create(builder, first->getLoc(), types, own, *owned.getShards());
  for (OwnedRead entry : reads) {
    ir::ReadOp read = entry.read;
    read.replaceAllUsesWith(gather.getWholes()[entry.owner]);
    read.erase();
  }
}

void gatherOwned(ModuleOp module) {
  llvm::StringMap<std::pair<ir::VariableOp, unsigned>> owners;
  for (auto variable : module.getOps<ir::VariableOp>())
    if (variable.getOwners())
      for (auto [owner, name] : llvm::enumerate(variable.getOwnersAttr().getAsValueRange<StringAttr>()))
        owners[name] = {variable, owner};
  if (owners.empty())
    return;
  for (auto function : module.getOps<func::FuncOp>()) {
    llvm::MapVector<Operation *, SmallVector<OwnedRead>> reads;
    function.walk([&](ir::ReadOp read) {
      if (auto found = owners.find(read.getVariable()); found != owners.end())
        reads[found->second.first].push_back({read, found->second.second});
    });
    for (auto &[owned, ofOwned] : reads)
      gatherOnce(cast<ir::VariableOp>(owned), ofOwned, function.getBody().front());
  }
}

llvm::StringSet<> ownedNames(ModuleOp module) {
  llvm::StringSet<> names;
  for (auto variable : module.getOps<ir::VariableOp>())
    if (variable.getOwners())
      for (StringRef name : variable.getOwnersAttr().getAsValueRange<StringAttr>())
        names.insert(name);
  return names;
}

void eraseOwned(ModuleOp module) {
  const llvm::StringSet<> names = ownedNames(module);
  for (auto variable : llvm::make_early_inc_range(module.getOps<ir::VariableOp>()))
    if (names.contains(variable.getSymName()))
      variable.erase();
}

} // namespace gpuc
