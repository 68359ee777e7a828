// The table of gpuc-mixed-precision against PyTorch's autocast lists (autocast_lists.py), and against the
// dialect: each op has a row.
#include "dialects/gpuc/GpucOps.h"
#include "passes/precision/PrecisionLists.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

namespace gpuc {
namespace {

using llvm::StringRef;

/// PyTorch's names and their classes.
class Autocast {
public:
  Autocast() {
    auto text = llvm::MemoryBuffer::getFile(GPUC_AUTOCAST_LISTS);
    auto parsed = llvm::json::parse(text ? (*text)->getBuffer() : "");
    EXPECT_TRUE(bool(parsed)) << GPUC_AUTOCAST_LISTS;
    for (StringRef list : {"lower", "f32", "promote"})
      for (const llvm::json::Value &name : *parsed->getAsObject()->getArray(list))
        lists_[*name.getAsString()] = list;
  }

  /// lower or f32; promote for all that is in neither list.
  StringRef classOf(StringRef name) const {
    auto found = lists_.find(name);
    return found == lists_.end() ? "promote" : found->second;
  }
  size_t size() const { return lists_.size(); }

private:
  llvm::StringMap<StringRef> lists_;
};

/// What autocast would call a rule's class. To compute in f32 and store as the operand is to follow it.
StringRef classOf(const PrecisionRule &rule) {
  switch (rule.kind) {
  case PrecisionClass::lower:
    return "lower";
  case PrecisionClass::f32:
    return "f32";
  case PrecisionClass::promote:
  case PrecisionClass::wide:
    return "promote";
  case PrecisionClass::fixed:
    return "fixed";
  }
  return "";
}

TEST(PrecisionLists, EveryOpHasARule) {
  mlir::MLIRContext context;
  context.loadDialect<ir::GpucDialect>();
  llvm::StringSet<> known;
  for (mlir::RegisteredOperationName name : context.getRegisteredOperationsByDialect("gpuc")) {
    known.insert(name.stripDialect());
    EXPECT_NE(findPrecisionRule(name.stripDialect()), nullptr)
        << name.getStringRef().str() << " has no row in passes/precision/PrecisionLists.cpp";
  }
  for (const PrecisionRule &rule : precisionRules())
    EXPECT_TRUE(known.contains(rule.op)) << rule.op.str() << " is no op of the dialect";
}

TEST(PrecisionLists, NoOpHasTwo) {
  llvm::StringSet<> seen;
  for (const PrecisionRule &rule : precisionRules())
    EXPECT_TRUE(seen.insert(rule.op).second) << rule.op.str();
}

TEST(PrecisionLists, AgreesWithAutocastOrSaysWhyNot) {
  Autocast autocast;
  ASSERT_GT(autocast.size(), 60u);
  int compared = 0;
  for (const PrecisionRule &rule : precisionRules()) {
    llvm::SmallVector<StringRef> names;
    rule.torch.split(names, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    bool differs = false;
    for (StringRef name : names) {
      ++compared;
      StringRef theirs = autocast.classOf(name), ours = classOf(rule);
      bool same = theirs == ours;
      differs |= !same;
      EXPECT_TRUE(same || !rule.difference.empty())
          << rule.op.str() << " is " << ours.str() << ", but PyTorch's " << name.str() << " is "
          << theirs.str();
    }
    EXPECT_EQ(differs, !rule.difference.empty())
        << rule.op.str() << " gives a reason for a difference that is none";
  }
  EXPECT_GT(compared, 80);
}

} // namespace
} // namespace gpuc
