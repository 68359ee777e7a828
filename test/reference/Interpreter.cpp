//===- Interpreter.cpp - Walks functions, regions and calls ------------------===//

#include "test/reference/Interpreter.h"

#include "test/reference/OpTable.h"
#include "test/reference/RunningError.h"

#include "mlir/IR/SymbolTable.h"

#include <cmath>

using namespace mlir;

namespace gpuc::reference {

static const OpTable &opTable() {
  static const OpTable table = [] {
    OpTable cases;
    addElementwiseOps(cases);
    addLogicOps(cases);
    addShapeOps(cases);
    addIndexedOps(cases);
    addReduceOps(cases);
    addSortOps(cases);
    addContractOps(cases);
    addConvOps(cases);
    addNetworkOps(cases);
    addNormOps(cases);
    addAttentionOps(cases);
    addLossOps(cases);
    addLinearLossOps(cases);
    addRandomOps(cases);
    addUpdateOps(cases);
    return cases;
  }();
  return table;
}

bool isInterpreted(StringRef name) {
  static constexpr StringRef structure[] = {"gpuc.read", "gpuc.assign", "gpuc.fused", "gpuc.scan",
                                            "gpuc.yield"};
  return llvm::is_contained(structure, name) || opTable().find(name);
}

Result<std::vector<Tensor>> Interpreter::run(func::FuncOp function, ArrayRef<Tensor> arguments) {
  if (function.isExternal())
    return Status::error("@" + function.getName().str() + " has no body to interpret");
  if (function.getNumArguments() != arguments.size())
    return Status::error("@" + function.getName().str() + " takes " +
                         std::to_string(function.getNumArguments()) + " arguments, not " +
                         std::to_string(arguments.size()));
  std::vector<Tensor> values;
  for (const Tensor &argument : arguments)
    values.push_back(given(argument));
  return runBlock(function.getBody().front(), values);
}

/// What comes from outside is its own one term.
Tensor Interpreter::given(Tensor tensor) const {
  if (countsTerms && tensor.isFloat())
    for (Element &element : tensor.elements)
      element.terms = std::abs(element.real);
  return tensor;
}

Result<std::vector<Tensor>> Interpreter::runBlock(Block &block, ArrayRef<Tensor> arguments) {
  llvm::DenseMap<Value, Tensor> values;
  for (auto [argument, tensor] : llvm::zip_equal(block.getArguments(), arguments)) {
    if (argument.getType() != tensor.type)
      return Status::error("argument " + std::to_string(argument.getArgNumber()) +
                           " is of another type than its value");
    values[argument] = tensor;
  }
  for (Operation &op : block) {
    std::vector<Tensor> operands;
    for (Value operand : op.getOperands())
      operands.push_back(values.lookup(operand));
    if (op.hasTrait<OpTrait::IsTerminator>())
      return operands;
    GPUC_ASSIGN_OR_RETURN(std::vector<Tensor> results, runOp(&op, operands));
    for (auto [value, tensor] : llvm::zip_equal(op.getResults(), results))
      values[value] = std::move(tensor);
  }
  return Status::error("a block without a terminator");
}

Result<std::vector<Tensor>> Interpreter::runOp(Operation *op, ArrayRef<Tensor> operands) {
  if (auto call = dyn_cast<func::CallOp>(op)) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
    return runBlock(callee.getBody().front(), operands);
  }
  if (auto fused = dyn_cast<ir::FusedOp>(op))
    return runBlock(fused.getBody().front(), operands);
  if (auto scan = dyn_cast<ir::ScanOp>(op))
    return runScan(scan, operands);
  if (auto read = dyn_cast<ir::ReadOp>(op)) {
    auto found = variables.find(read.getVariable().str());
    if (found == variables.end())
      return Status::error("variable @" + read.getVariable().str() + " was given no value");
    return std::vector<Tensor>{given(found->second)};
  }
  if (auto assign = dyn_cast<ir::AssignOp>(op)) {
    assigned[assign.getVariable().str()] = operands.front();
    return std::vector<Tensor>{};
  }
  StringRef name = op->getName().getStringRef();
  const OpTable::Case *known = opTable().find(name);
  if (!known)
    return Status::error("'" + name.str() + "' has no case in the reference interpreter");
  std::vector<Tensor> results = (*known)(op, operands, *this);
  for (Tensor &result : results)
    keepPrecision(result);
  if (countsTerms)
    GPUC_RETURN_IF_ERROR(countTerms(op, operands, results,
                                    [&](ArrayRef<Tensor> others) { return (*known)(op, others, *this); }));
  return results;
}

/// Elements `position` of the first dimension.
static ArrayRef<Element> sliceOf(const Tensor &stack, int64_t position) {
  int64_t size = stack.size() / stack.shape().front();
  return ArrayRef<Element>(stack.elements).slice(position * size, size);
}

Result<std::vector<Tensor>> Interpreter::runScan(ir::ScanOp scan, ArrayRef<Tensor> operands) {
  if (scan.getBatchFirst())
    return Status::error("gpuc.scan with batch_first: gpuc-specialize-batch comes before it is interpreted");
  size_t inputs = scan.getInputs().size(), carries = scan.getInits().size();
  std::vector<Tensor> carried(operands.slice(inputs, carries)), stacks;
  for (Value output : scan.getOutputs())
    stacks.emplace_back(typeOf(output));
  int64_t trips = inputs ? operands.front().shape().front() : static_cast<int64_t>(*scan.getCount());
  for (int64_t step = 0; step < trips; ++step) {
    int64_t position = scan.getReverse() ? trips - 1 - step : step;
    std::vector<Tensor> arguments;
    for (size_t i = 0; i < inputs; ++i) {
      Tensor &slice = arguments.emplace_back(typeOf(scan.getBlock().getArgument(i)));
      slice.elements = sliceOf(operands[i], position).vec();
    }
    arguments.insert(arguments.end(), carried.begin(), carried.end());
    arguments.insert(arguments.end(), operands.begin() + inputs + carries, operands.end());
    GPUC_ASSIGN_OR_RETURN(std::vector<Tensor> yielded, runBlock(scan.getBlock(), arguments));
    carried.assign(yielded.begin(), yielded.begin() + carries);
    for (size_t i = 0; i < stacks.size(); ++i)
      llvm::copy(yielded[carries + i].elements,
                 stacks[i].elements.begin() + position * yielded[carries + i].size());
  }
  carried.insert(carried.end(), stacks.begin(), stacks.end());
  return carried;
}

void Interpreter::keepPrecision(Tensor &tensor) {
  if (!tensor.isFloat())
    return;
  for (Element &element : tensor.elements) {
    if (precision == Precision::typed)
      element.real = rounded(element.real, tensor.type.getElementType());
    if (std::isfinite(element.real))
      largest = std::max(largest, std::abs(element.real));
  }
}

} // namespace gpuc::reference
