//===- Graph.h - The module behind a ModelBuilder ---------------------------===//
//
// Everything of the builder that knows MLIR shares this: the module, where the next op goes, which layer it
// belongs to, and the first error. After an error nothing is added any more.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"
#include "frontend/Failure.h"
#include "frontend/builder/Losses.h"
#include "frontend/builder/Norms.h"
#include "frontend/builder/Tensor.h"
#include "runtime/base/status.h"

#include "llvm/ADT/StringMap.h"

template <> inline constexpr bool gpuc::kEmptyIsFailure<gpuc::nn::Tensor> = true;
template <> inline constexpr bool gpuc::kEmptyIsFailure<gpuc::nn::Loss> = true;
template <> inline constexpr bool gpuc::kEmptyIsFailure<gpuc::nn::Sorted> = true;
template <> inline constexpr bool gpuc::kEmptyIsFailure<gpuc::nn::BatchNormalized> = true;

namespace gpuc::nn::detail {

/// The shortest text that reads back to the same number: 0.1, 1e-05.
std::string numberText(double number);

/// A call of a layer in `predict`, for the summary. Calls are in order; a call's inner ones follow it, one
/// deeper. The first call, of depth 0, is the body of `predict`.
struct LayerCall {
  std::string path;
  std::string description;
  int64_t depth = 0;
  Shape output;           ///< Empty until the call ends.
  int64_t flops = 0;      ///< Of one sample, inner calls not counted.
  int64_t parameters = 0; ///< Elements of the parameters that it read first.
  int64_t frozen = 0;     ///< Those of them that are not trained.
  bool shared = false;    ///< It read parameters that an earlier call read first.
};

class Graph {
public:
  Graph(std::string name, DataType floats);

  //===-- Errors -----------------------------------------------------------===//

  /// Keeps the first error, with the layer before it: "fc2: …".
  Failure fail(const std::string &text);
  bool failed() const { return !error_.ok(); }
  const Status &error() const { return error_; }

  /// True if op `name` can be added on these: all valid, of this graph and of the function being built.
  bool usable(const char *name, llvm::ArrayRef<const Tensor *> operands);
  /// The graph of the operands if op `name` can be added on them, else null.
  static Graph *of(const char *name, llvm::ArrayRef<const Tensor *> operands);
  /// Whether x, which is usable, is of floating point, as op `name` wants it.
  bool isFloating(const char *name, const Tensor &x);
  /// Dimension `dim` of x from the front; none if x is not usable by op `name`, or has no such one.
  static std::optional<int64_t> dimension(const char *name, const Tensor &x, int64_t dim);

  //===-- Types ------------------------------------------------------------===//

  mlir::Type elementType(DataType type);
  mlir::RankedTensorType tensorType(const Shape &shape, DataType type);
  mlir::RankedTensorType scalarType(DataType type) { return tensorType({}, type); }

  //===-- Ops --------------------------------------------------------------===//

  /// Adds an op at the end of the function being built, under the name of the layer being called.
  template <typename OpType, typename... Args> OpType emit(Args &&...args) {
    auto op = OpType::create(builder, location(), std::forward<Args>(args)...);
    charge(op);
    return op;
  }
  /// Adds an op with one result.
  template <typename OpType, typename... Args> Tensor emitTensor(Args &&...args) {
    return wrap(emit<OpType>(std::forward<Args>(args)...)->getResult(0));
  }
  Tensor wrap(mlir::Value value) { return Tensor(this, value.getAsOpaquePointer()); }
  /// Null of a tensor that is left out.
  static mlir::Value unwrap(const Tensor &tensor) {
    return mlir::Value::getFromOpaquePointer(tensor.value());
  }

  /// Reads the parameter, declaring it the first time.
  /// Only `owner` may: a name is one module's.
  Tensor parameter(const Module *owner, const std::string &name, const Shape &shape,
                   const Initializer &initializer);
  /// The same for a variable of another type and kind.
  Tensor variable(const Module *owner, const std::string &name, mlir::RankedTensorType type,
                  const Initializer &initializer, llvm::StringRef kind);

  /// The layer is a block that is computed again for its gradients.
  void checkpoint(const std::string &layer);
  /// Has the module say so of each of them, before its recipe.
  void declareBlocks();

  /// The next id of a random op; ids are unique in the model and follow the order in which it is written.
  int64_t nextRandomId() { return randomIds_++; }

  /// The name of the layer being called, or else of the entry function.
  mlir::Location location();
  mlir::Location named(const std::string &name);

  /// While it lives, ops stand in a loop: they cost as often as it has steps.
  struct LoopScope {
    LoopScope(Graph &graph, int64_t steps) : graph(graph), outer(graph.repeats_) {
      graph.repeats_ *= steps;
      ++graph.loops_;
    }
    ~LoopScope() {
      graph.repeats_ = outer;
      --graph.loops_;
    }
    Graph &graph;
    int64_t outer;
  };

  //===-- Entry functions --------------------------------------------------===//

  /// Opens function `entry`; what is emitted goes into it until endFunction.
  mlir::func::FuncOp beginFunction(const std::string &entry, mlir::TypeRange arguments);
  /// Returns `results` from it under the names and sets its type.
  void endFunction(mlir::func::FuncOp function, mlir::ValueRange results,
                   llvm::ArrayRef<llvm::StringRef> names);

  mlir::MLIRContext context; // first: all else lives in it
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::OpBuilder builder;
  const std::string name;
  const DataType floats;
  std::vector<LayerCall> calls;
  std::vector<std::string> blocks;  ///< That are computed again, each once, as they are first called.
  std::vector<std::string> leftOut; ///< Frozen weights without an adapter, where others have one.
  mlir::func::FuncOp predict, loss, accuracy; ///< Null until they are built.
  ir::RecipeOp recipe;

private:
  friend class LayerScope;
  void charge(mlir::Operation *op);
  LayerCall *currentCall();

  struct Variable {
    mlir::RankedTensorType type;
    const Module *owner = nullptr;
    bool frozen = false;
  };
  Status error_;
  std::string entry_;              // the function being built
  std::vector<size_t> callStack_;  // indices into calls
  std::vector<std::string> paths_; // of the layers being called
  llvm::StringMap<Variable> variables_;
  mlir::Operation *lastVariable_ = nullptr; // variables stand before the functions
  int64_t randomIds_ = 0;
  int64_t loops_ = 0;   // around what is being built
  int64_t repeats_ = 1; // how often they execute it
};

/// While it lives, ops belong to the layer.
class LayerScope {
public:
  LayerScope(Graph &graph, std::string path, std::string description);
  ~LayerScope();
  void setOutput(const Tensor &output);

private:
  Graph &graph_;
  bool counted_;
};

} // namespace gpuc::nn::detail
