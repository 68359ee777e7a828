//===- scan_unrolled_test.cpp - Loops against the same ops, one after another ---===//
//
// Every loop of the registry once as it is and once unrolled, before anything is differentiated: values,
// first and second derivatives are equal up to the order of sums. What leaves a loop (gpuc-hoist-from-scans)
// must not change them either.
//
//===----------------------------------------------------------------------===//

#include "test/gradients/Fixture.h"

#include "dialects/gpuc/GpucOps.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace gpuc::gradients {
namespace {

using Numbers = SmallVector<int64_t>;

/// Element `position` of the first dimension.
Value sliceOf(OpBuilder &builder, Location location, Value stack, int64_t position) {
  auto type = cast<RankedTensorType>(stack.getType());
  Numbers starts(type.getRank(), 0), limits(type.getShape()), strides(type.getRank(), 1);
  starts[0] = position;
  limits[0] = position + 1;
  Value slice = ir::SliceOp::create(builder, location, stack, starts, limits, strides);
  return ir::ReshapeOp::create(builder, location, ir::ScanOp::sliceType(type), slice);
}

Value stackOf(OpBuilder &builder, Location location, ArrayRef<Value> slices, Type type) {
  SmallVector<Value> rows;
  for (Value slice : slices)
    rows.push_back(
        ir::ReshapeOp::create(builder, location, ir::ScanOp::stackType(slice.getType(), 1), slice));
  return rows.size() == 1 ? rows[0] : ir::ConcatOp::create(builder, location, type, rows, 0).getResult();
}

void unroll(ir::ScanOp scan) {
  OpBuilder builder(scan);
  Location location = scan.getLoc();
  SmallVector<Value> carried(scan.getInits());
  std::vector<SmallVector<Value>> stacks(scan.getOutputs().size());
  int64_t trips = scan.getTripCount();
  for (SmallVector<Value> &stack : stacks)
    stack.resize(trips);
  for (int64_t step = 0; step < trips; ++step) {
    int64_t position = scan.getReverse() ? trips - 1 - step : step;
    SmallVector<Value> arguments;
    for (Value input : scan.getInputs())
      arguments.push_back(sliceOf(builder, location, input, position));
    llvm::append_range(arguments, carried);
    llvm::append_range(arguments, scan.getCaptures());
    IRMapping mapping;
    mapping.map(scan.getBlock().getArguments(), arguments);
    for (Operation &op : scan.getBlock().without_terminator())
      builder.clone(op, mapping);
    for (auto [value, next] : llvm::zip_equal(carried, scan.getNextCarries()))
      value = mapping.lookupOrDefault(next);
    for (auto [stack, slice] : llvm::zip_equal(stacks, scan.getOutputSlices()))
      stack[position] = mapping.lookupOrDefault(slice);
  }
  for (auto [stack, output] : llvm::zip_equal(stacks, scan.getOutputs()))
    carried.push_back(stackOf(builder, location, stack, output.getType()));
  scan->replaceAllUsesWith(carried);
  scan.erase();
}

void unrollAll(ModuleOp module) {
  while (true) {
    SmallVector<ir::ScanOp> scans;
    module.walk([&](ir::ScanOp scan) { scans.push_back(scan); });
    if (scans.empty())
      return;
    unroll(scans.back()); // outermost last
  }
}

class ScanTest : public CaseTest {
protected:
  /// `pipeline` over the loops and over their steps gives functions of equal results.
  void compare(const std::string &pipeline) {
    OwningOpRef<ModuleOp> loops = parse(gradientModule(GetParam())),
                          steps = parse(gradientModule(GetParam()));
    ASSERT_TRUE(loops && steps);
    unrollAll(*steps);
    runPasses(*loops, pipeline);
    runPasses(*steps, "gpuc-autodiff");
    ASSERT_FALSE(HasFailure());
    for (const char *function : {"f", "gradient", "second"}) {
      std::vector<Tensor> arguments = makeArguments(GetParam(), lookup(*loops, function));
      expectClose(interpret(*loops, function, arguments), interpret(*steps, function, arguments), 1e-12,
                  function);
    }
  }
};

TEST_P(ScanTest, EqualsItsSteps) { compare("gpuc-autodiff"); }

TEST_P(ScanTest, EqualsItsStepsSimplified) { compare("gpuc-autodiff,canonicalize,cse"); }

TEST_P(ScanTest, EqualsItsStepsHoisted) {
  compare("gpuc-hoist-from-scans,gpuc-autodiff,canonicalize,cse,gpuc-hoist-from-scans,canonicalize,cse");
}

INSTANTIATE_TEST_SUITE_P(Registry, ScanTest, testing::ValuesIn(casesWhere([](const Case &described) {
                           return described.op == "gpuc.scan";
                         })),
                         nameOfCase);

} // namespace
} // namespace gpuc::gradients
