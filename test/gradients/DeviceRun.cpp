//===- DeviceRun.cpp - A function through the whole compiler, on a device ----===//

#include "test/gradients/DeviceRun.h"

#include "passes/Compiler.h"
#include "runtime/base/half.h"
#include "runtime/gpuc.h"
#include "runtime/plan/contents.h"
#include "test/gradients/CaseModule.h"

#include <cstdlib>
#include <cstring>

using namespace mlir;

namespace gpuc::gradients {

using reference::Element;
using reference::Tensor;

//===----------------------------------------------------------------------===//
// Elements as bytes
//===----------------------------------------------------------------------===//

static DataType dataTypeOf(Type element) {
  std::string name;
  llvm::raw_string_ostream(name) << element;
  return *parseDataType(name);
}

template <typename Number> static void put(std::byte *to, Number number) {
  std::memcpy(to, &number, sizeof(number));
}

template <typename Number> static Number get(const std::byte *from) {
  Number number;
  std::memcpy(&number, from, sizeof(number));
  return number;
}

static void store(std::byte *to, const Element &element, DataType type) {
  switch (type) {
  case DataType::f64:
    return put(to, element.real);
  case DataType::f32:
    return put(to, static_cast<float>(element.real));
  case DataType::f16:
    return put(to, floatToHalf(static_cast<float>(element.real)));
  case DataType::bf16:
    return put(to, floatToBfloat16(static_cast<float>(element.real)));
  default: // little-endian: the low bytes come first
    std::memcpy(to, &element.integer, static_cast<size_t>(sizeOf(type)));
  }
}

static Element load(const std::byte *from, DataType type, Type element) {
  switch (type) {
  case DataType::f64:
    return {get<double>(from), 0};
  case DataType::f32:
    return {get<float>(from), 0};
  case DataType::f16:
    return {reference::halfToDouble(get<uint16_t>(from)), 0};
  case DataType::bf16:
    return {bfloat16ToFloat(get<uint16_t>(from)), 0};
  default:
    int64_t integer = 0;
    std::memcpy(&integer, from, static_cast<size_t>(sizeOf(type)));
    // A byte of an i1 must be 0 or 1: anything else must not pass for 1.
    return {0, type == DataType::i1 ? integer : reference::wrapped(integer, element)};
  }
}

std::vector<std::byte> bytesOf(const Tensor &tensor) {
  DataType type = dataTypeOf(tensor.type.getElementType());
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.size() * sizeOf(type)));
  for (int64_t i = 0; i < tensor.size(); ++i)
    store(bytes.data() + i * sizeOf(type), tensor.elements[i], type);
  return bytes;
}

Tensor tensorOf(const std::byte *bytes, RankedTensorType type) {
  const DataType dataType = dataTypeOf(type.getElementType());
  Tensor tensor(type);
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.elements[i] = load(bytes + i * sizeOf(dataType), dataType, type.getElementType());
  return tensor;
}

//===----------------------------------------------------------------------===//
// Compile and run
//===----------------------------------------------------------------------===//

std::string testDevice() {
  const char *name = std::getenv("GPUC_TEST_DEVICE");
  return name ? name : "host";
}

Status findTestDevice() {
  Result<std::unique_ptr<Device>> device = openDevice(testDevice(), TargetKind::host);
  return device.ok() ? okStatus() : device.status();
}

std::function<void(ModuleOp, const Plan &)> &beforeLoading() {
  static std::function<void(ModuleOp, const Plan &)> hook = [](ModuleOp, const Plan &) {};
  return hook;
}

static Result<Plan> compile(const std::string &text, int optLevel) {
  Compiler compiler;
  CompilerOptions options;
  options.target = testDevice() == "host" ? "host" : "cuda:sm_90";
  options.optLevel = optLevel;
  options.train.fuse = optLevel > 0;
  // An @init makes it a module past its recipe, whose functions stay as they are.
  std::string whole = "module @case {\nfunc.func @init() {\nreturn\n}\n" + text + "}\n";
  GPUC_ASSIGN_OR_RETURN(OwningOpRef<ModuleOp> module, compiler.parse(whole, "case.mlir"));
  GPUC_RETURN_IF_ERROR(
      compiler.advance(*module, Stage::plan, options, [](PassManager &) { return okStatus(); }));
  GPUC_ASSIGN_OR_RETURN(std::string bytes, compiler.emit(*module, options));
  GPUC_ASSIGN_OR_RETURN(Plan plan, Plan::parse(std::move(bytes)));
  beforeLoading()(*module, plan);
  return plan;
}

static Status setCounter(Session &session, const char *name, int64_t value) {
  for (const VariableInfo &variable : session.plan().info().variables)
    if (variable.spec.name == name)
      return session.writeVariable(name, std::as_bytes(std::span(&value, 1)));
  return okStatus();
}

Result<std::vector<Tensor>> runOnDevice(const std::string &text, ArrayRef<Tensor> arguments,
                                        ArrayRef<RankedTensorType> resultTypes, int optLevel) {
  GPUC_ASSIGN_OR_RETURN(Plan plan, compile(text, optLevel));
  GPUC_ASSIGN_OR_RETURN([[maybe_unused]] bool isWhole, checkContents(plan.root()));
  const bool isHost = testDevice() == "host"; // whose memory can be guarded
  GPUC_ASSIGN_OR_RETURN(
      Session session, Session::create(plan, {.device = testDevice(), .threads = 1, .check_memory = isHost}));
  GPUC_RETURN_IF_ERROR(setCounter(session, "seed", seedValue));
  GPUC_RETURN_IF_ERROR(setCounter(session, "step", stepValue));
  GPUC_ASSIGN_OR_RETURN(ProgramId f, session.program("f"));

  std::vector<std::vector<std::byte>> buffers;
  std::vector<HostTensorView> inputs;
  for (const Tensor &argument : arguments) {
    buffers.push_back(bytesOf(argument));
    inputs.emplace_back(buffers.back().data(), dataTypeOf(argument.type.getElementType()),
                        std::span(argument.shape().data(), argument.shape().size()));
  }
  GPUC_RETURN_IF_ERROR(session.run(f, inputs));
  GPUC_RETURN_IF_ERROR(session.wait());

  std::vector<Tensor> results;
  for (auto [index, type] : llvm::enumerate(resultTypes)) {
    HostTensorView view = session.output(f, index);
    DataType dataType = dataTypeOf(type.getElementType());
    if (view.type != dataType ||
        !std::equal(view.shape.begin(), view.shape.end(), type.getShape().begin(), type.getShape().end()))
      return Status::error("output " + std::to_string(index) +
                           " is of another type than the function's result");
    results.push_back(tensorOf(static_cast<const std::byte *>(view.data), type));
  }
  return results;
}

} // namespace gpuc::gradients
