//===- Importer.h - From an ONNX graph to functions of the gpuc dialect -----===//
//
// One walk over the nodes in the file's order, which is a topological one. A node whose inputs are all known
// is computed at once (shapes are made this way); any other is lowered by its record in the OpTable. A node
// that cannot be lowered is reported and the walk goes on, so that one run lists everything.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/onnx/Loop.h"
#include "frontend/onnx/NodeScope.h"
#include "frontend/onnx/Onnx.h"
#include "frontend/onnx/Unmerge.h"

#include "mlir/IR/OwningOpRef.h"

namespace gpuc::onnx {

/// What names stand for, in the graph or in a function or branch inside of it.
class NameScope {
public:
  explicit NameScope(NameScope *parent = nullptr) : parent_(parent) {}
  Operand *find(const std::string &name);
  /// Null if the name is taken.
  Operand *define(const std::string &name, Operand operand);

private:
  NameScope *parent_;
  std::map<std::string, Operand> operands_;
};

class Importer {
public:
  Importer(const Model &model, const ImportOptions &options);

  /// `unmerged`: what was done to the model before.
  ImportedModel run(const Unmerged &unmerged);

  int64_t opset() const { return model_.opset; }
  Exporter exporter() const { return origins_.exporter(); }
  Origin originOf(const std::string &initializer) const { return origins_.of(initializer); }
  bool isOutput(const std::string &name) const;

  /// The operand as a value, made at the first call: a weight is read, what is known becomes a constant.
  Tensor materialize(Operand &operand);
  /// Says that the operand, if it is an input of the graph, holds integers below `extent`, or `ignored`;
  /// false if it is not.
  bool limitRange(const Operand &operand, int64_t extent, std::optional<int64_t> ignored = {});
  /// Marks a weight as one that is not trained but may be assigned in training: a running statistic.
  void markStatistic(Operand &operand);
  /// Gives a statistic the value that it has after a training step, and to what reads it from here on.
  void assign(Operand &operand, const Tensor &value);
  /// Reports, once for each name, what was decided about a weight without being told.
  void say(const std::string &decision, const std::string &name);
  /// The counter `name` of the plan: seed or step.
  Tensor readCounter(const std::string &name);
  /// For an op that draws: another one at each call.
  int64_t nextRandomId() { return randomIds_++; }
  /// Runs the nodes of a branch whose condition is known, and gives its outputs.
  std::vector<Operand> runBranch(const Graph &branch);
  /// Whether nodes become ops of a loop's body, which neither draws nor assigns.
  bool inLoop() const { return loops_ > 0; }
  /// Runs a loop: the body gets the states, then slices of the inputs, and gives the next states, then slices
  /// of the outputs.
  LoopValues runLoop(const Graph &body, const std::vector<Tensor> &states, const std::vector<Tensor> &inputs,
                     LoopOptions options);

private:
  Failure report(std::string text, std::set<std::string> unknown = {});

  void checkExternalFiles();
  void bindInitializers(const Graph &graph, NameScope &scope);
  void bindInputs();
  std::optional<Shape> inputShape(const ValueInfo &input);
  void define(NameScope &scope, const std::string &name, Operand operand, const std::string &by);

  void runNodes(const std::vector<Node> &nodes, NameScope &scope);
  void runNode(const Node &node, NameScope &scope);
  bool check(const Node &node, const Function *function);
  void checkInside(const Node &node, const Function *function);
  bool gatherInputs(const Node &node, NameScope &scope, std::vector<Operand *> &inputs);
  void call(const Function &function, NodeScope &scope);
  std::vector<std::string> capture(const Graph &body, NameScope &names, std::vector<Tensor> &captures);
  LoopValues runBody(const Graph &body, NameScope &names, size_t states);
  const Function *findFunction(const Node &node) const;
  void bindOutputs(NodeScope &node, bool sound, NameScope &names);

  Tensor readVariable(const Operand &operand);
  ir::VariableOp declareVariable(const Operand &operand);
  ir::VariableOp addVariable(mlir::Operation *after, const std::string &name, mlir::Type type,
                             ir::SpecAttr initializer, bool frozen, llvm::StringRef kind);
  ir::SpecAttr initializerOf(const HostTensor &tensor);
  bool isVariable(const std::string &name, const HostTensor &tensor, Origin origin);
  bool isFrozen(const Operand &operand);
  bool isFrozenByItself(const Operand &operand);
  bool isNamed(const std::vector<std::string> &patterns, const Operand &operand,
               std::map<std::string, std::vector<HostTensorPtr>> &found);
  void checkFrozen();
  void checkTrained();
  void reportDecisions(const Unmerged &unmerged);
  void refuseTraining(const std::string &text);
  std::string suggestWeight(const std::string &pattern);
  void finishPredict();
  void checkExtents();
  Status addLoss();
  void listVariables();

  const Model &model_;
  const Origins origins_;
  const ImportOptions &options_;
  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  mlir::OpBuilder builder_;
  Emitter emitter_;
  ImportedModel out_;

  NameScope globals_;
  NameScope *current_ = &globals_;
  std::string prefix_;                  ///< Of node names: the calls that lead here.
  int depth_ = 0;                       ///< How many calls, branches and loops.
  std::vector<const Function *> calls_; ///< That lead here.
  std::set<const Function *> checked_;  ///< Without being run.
  int loops_ = 0;
  int64_t nodes_ = 0; ///< How many have been run.
  const std::vector<Node> *running_ = nullptr;

  mlir::func::FuncOp predict_;
  std::vector<std::string> argumentNames_;
  std::map<unsigned, int64_t> ranges_;  ///< By argument.
  std::map<unsigned, int64_t> ignored_; ///< By argument: a value besides those.
  std::optional<std::string> batch_;    ///< The name of the dimension that is the batch.
  int64_t randomIds_ = 0;
  mlir::Operation *lastVariable_ = nullptr;
  std::set<std::string> variables_;
  /// By pattern of `freeze` and of `train`: what it names.
  std::map<std::string, std::vector<HostTensorPtr>> frozenBy_, trainedBy_;
  std::set<std::string> computed_; ///< What the exporter computed of parameters, as far as it is read.
  /// Names, by what was decided without being told.
  std::map<std::string, std::vector<std::string>> decided_;
  std::map<HostTensorPtr, ir::VariableOp> declared_;
  std::map<mlir::Operation *, ir::AssignOp> assigns_; ///< By variable.
};

/// Names for a message, the first few of many.
std::string someOf(const std::vector<std::string> &names);

} // namespace gpuc::onnx
