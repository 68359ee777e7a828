// A plan's session, for Python: tensors come in by DLPack or as buffers, and are read where they lie;
// variables and outputs go out the same way.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "python/bindings/errors.h"
#include "python/bindings/gil.h"
#include "python/bindings/ranks.h"
#include "runtime/exec/devices.h"
#include "runtime/gpuc.h"
#include "runtime/report/inspect.h"
#include "runtime/report/nonfinite.h"
#include "runtime/weights/shared_variables.h"
#include "runtime/weights/variable_store.h"

namespace gpuc {
namespace nb = nanobind;

using Given = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Array = nb::ndarray<nb::array_api, nb::device::cpu>;
inline constexpr int32_t kAllRows = -1;
/// Name, element type, shape.
using Signature = std::tuple<std::string, std::string, std::vector<int64_t>>;

inline nb::dlpack::dtype dtypeOf(DataType type) {
  using Code = nb::dlpack::dtype_code;
  auto make = [&](Code code) {
    return nb::dlpack::dtype{static_cast<uint8_t>(code), static_cast<uint8_t>(8 * sizeOf(type)), 1};
  };
  if (type == DataType::i1) return make(Code::Bool);
  if (type == DataType::bf16) return make(Code::Bfloat);
  if (isFloat(type)) return make(Code::Float);
  return make(type == DataType::ui8 ? Code::UInt : Code::Int);
}

inline std::optional<DataType> dataTypeOf(nb::dlpack::dtype dtype) {
  for (int i = 0; i < kDataTypeCount; ++i)
    if (dtypeOf(static_cast<DataType>(i)) == dtype) return static_cast<DataType>(i);
  return std::nullopt;
}

inline Signature signatureOf(const TensorSpec& spec) { return {spec.name, nameOf(spec.type), spec.shape}; }

/// An array over memory that `owner` holds.
inline Array arrayOf(const void* data, const TensorSpec& spec, std::shared_ptr<const void> owner) {
  auto* hold = new std::shared_ptr<const void>(std::move(owner));
  nb::capsule capsule(
      hold, [](void* pointer) noexcept { delete static_cast<std::shared_ptr<const void>*>(pointer); });
  std::vector<size_t> shape(spec.shape.begin(), spec.shape.end());
  return Array(const_cast<void*>(data), shape.size(), shape.data(), capsule, nullptr, dtypeOf(spec.type));
}

/// Without torch's lazy negation, which DLPack does not tell.
inline nb::object resolved(nb::handle tensor) {
  return nb::hasattr(tensor, "resolve_neg") ? nb::object(tensor.attr("resolve_neg")()) : nb::borrow(tensor);
}

/// A program of a session: what a call of it reads is checked once more by the session.
class PySession {
 public:
  /// `join`: gives the ranks, or None, of a plan that is of one rank among others.
  PySession(nb::bytes plan, const std::string& device, int threads, std::optional<uint64_t> seed,
            const nb::callable& join)
      : file_(plan.c_str(), plan.size()),
        plan_(check(Plan::parse(file_))),
        ranks_(isDataParallel(plan_.info()) ? join() : nb::none()),
        session_(check(open(device, threads, seed))) {
    for (const ProgramInfo& program : plan_.info().programs) {
      const ProgramId id = ids_[program.name] = check(session_.program(program.name));
      if (!program.checks.empty()) nonfinite_.emplace(program.name, Nonfinite(session_, id));
    }
  }

  void initialize() { check(session_.initialize()); }

  /// None: this one is alone.
  nb::object ranks() const { return ranks_; }
  /// The first rank's are those of all.
  void shareVariables() {
    if (PyRanks* ranks = joined())
      check(withoutGil([&] { return gpuc::shareVariables(session_, ranks->ranks()); }));
  }

  Session& session() { return session_; }

  /// The session for this thread alone, until it is left: it has one arena, and outputs stay until its next
  /// run. Another thread waits, and leaves Python's lock to others.
  using Turn = std::unique_lock<std::recursive_mutex>;
  Turn takeTurn() {
    Turn turn(turns_, std::try_to_lock);
    if (!turn) withoutGil([&] { turn.lock(); });
    return turn;
  }
  void enter() { takeTurn().release(); }
  void exit(nb::args) { turns_.unlock(); }

  /// A number for what the plan trains; 0 where it does not say.
  uint64_t trainingDigest() const { return plan_.info().training_digest; }

  uint64_t seed() {
    uint64_t seed = 0;
    check(session_.readVariable("seed", std::as_writable_bytes(std::span(&seed, 1))));
    return seed;
  }
  std::vector<std::string> warnings() const { return session_.warnings(); }
  nb::bytes plan() const { return nb::bytes(file_.data(), file_.size()); }
  std::string html() const { return inspectHtml(plan_); }
  uint64_t arenaBytes() const { return plan_.info().arena_bytes; }

  std::vector<std::string> programs() const {
    std::vector<std::string> names;
    for (const ProgramInfo& program : plan_.info().programs) names.push_back(program.name);
    return names;
  }

  std::vector<Signature> inputs(const std::string& program) const {
    std::vector<Signature> inputs;
    for (const InputInfo& input : infoOf(program).inputs) inputs.push_back(signatureOf(input.spec));
    return inputs;
  }

  /// Whether it can be told how many rows of the batch hold samples.
  bool countsRows(const std::string& program) const { return infoOf(program).counts_rows; }

  /// Whether its loss is a sum over the batch, however many ranks and parts have rows of it.
  bool countsOnce(const std::string& program) const { return infoOf(program).counts_once; }

  std::vector<Signature> outputs(const std::string& program) const {
    std::vector<Signature> outputs;
    for (const TensorSpec& output : infoOf(program).outputs) outputs.push_back(signatureOf(output));
    return outputs;
  }

  /// And kind, and whether it is trained.
  std::vector<std::tuple<std::string, std::string, std::vector<int64_t>, std::string, bool>> variables()
      const {
    std::vector<std::tuple<std::string, std::string, std::vector<int64_t>, std::string, bool>> all;
    for (const VariableInfo& variable : plan_.info().variables)
      all.emplace_back(variable.spec.name, nameOf(variable.spec.type), variable.spec.shape,
                       nameOf(variable.kind), variable.trainable);
    return all;
  }

  /// Runs a program and waits for it; other Python threads go on meanwhile.
  void run(const std::string& program, nb::args tensors) {
    const ProgramId id = idOf(program);
    std::vector<Given> given;  // holds what the views show
    std::vector<HostTensorView> views;
    std::vector<std::vector<int64_t>> shapes(tensors.size());
    given.reserve(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      Given tensor;
      if (!nb::try_cast<Given>(resolved(tensors[i]), tensor, /*convert=*/false))
        raise("Error", describe(program, i) +
                           "is no contiguous tensor in the host's memory: pass x.cpu().contiguous()");
      const std::optional<DataType> type = dataTypeOf(tensor.dtype());
      if (!type) raise("Error", describe(program, i) + "has an element type that gpuc does not have");
      for (size_t d = 0; d < tensor.ndim(); ++d) shapes[i].push_back(static_cast<int64_t>(tensor.shape(d)));
      views.emplace_back(tensor.data(), *type, shapes[i]);
      given.push_back(std::move(tensor));
    }
    runViews(id, views);
  }

  /// The same of tensors that the caller knows to have the types and shapes of the program's inputs, and to
  /// lie dense at these addresses of the host's memory; returns the mean that the first two outputs, a sum
  /// and a count, say.
  double meanAt(const std::string& program, nb::args addresses) {
    return meanOfRows(program, kAllRows, std::move(addresses));
  }

  /// Of a batch whose first `rows` rows hold samples; the others are padding, which counts nothing.
  double meanOfRows(const std::string& program, int32_t rows, nb::args addresses) {
    const ProgramId id = idOf(program);
    const std::vector<InputInfo>& inputs = plan_.info().programs[id.index].inputs;
    std::vector<HostTensorView> views;
    views.reserve(addresses.size());
    if (addresses.size() != inputs.size())
      raise("Error", "program '" + program + "' takes " + std::to_string(inputs.size()) + " inputs, not " +
                         std::to_string(addresses.size()));
    for (size_t i = 0; i < addresses.size(); ++i)
      views.emplace_back(reinterpret_cast<const void*>(nb::cast<uintptr_t>(addresses[i])), inputs[i].spec);
    return meanOf(id, views, rows);
  }

  double meanOf(ProgramId id, const std::vector<HostTensorView>& views, int32_t rows = kAllRows) {
    const Turn turn = takeTurn();
    runViews(id, views, rows);
    return number(id, 0) / number(id, 1);
  }

  /// What the last run of a program gave, until the next run.
  Array output(const std::string& program, size_t index) {
    const ProgramInfo& info = infoOf(program);
    if (index >= info.outputs.size())
      raise("Error", "program '" + program + "' has no output " + std::to_string(index));
    OutputView view = session_.output(idOf(program), index);
    return arrayOf(view.data, info.outputs[index], view.memory);
  }

  /// A floating-point output of one number.
  double number(const std::string& program, size_t index) { return number(idOf(program), index); }

  /// The variable itself.
  Array variable(const std::string& name) {
    VariableView view = check(session_.variable(name));
    return arrayOf(view.data, *view.spec, view.memory);
  }

  /// Those that ranks share out, which no rank has whole.
  std::vector<std::string> shares() const {
    std::vector<std::string> names;
    for (const VariableInfo& each : plan_.info().variables)
      if (each.is_share || each.owner >= 0) names.push_back(each.spec.name);
    return names;
  }

  /// A copy; of what ranks share out a collective.
  Array read(const std::string& name) {
    const TensorSpec& spec = specOf(name);
    auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(spec.sizeBytes()));
    check(withoutGil([&] { return session_.readVariable(name, *bytes); }));
    return arrayOf(bytes->data(), spec, bytes);
  }

  /// A whole tensor, of which a rank takes its share if they share it out.
  void write(const std::string& name, Given tensor) {
    const TensorSpec& spec = specOf(name);
    const std::span shape(tensor.shape_ptr(), tensor.ndim());
    if (tensor.dtype() != dtypeOf(spec.type) || !std::ranges::equal(shape, spec.shape))
      raise("Error",
            "variable '" + name + "' is " + spec.str() + ": give it a tensor of that type and shape");
    check(session_.writeVariable(name, {static_cast<const std::byte*>(tensor.data()), tensor.nbytes()}));
  }

  /// The same of what the first rank gives; a collective.
  void writeOfFirst(const std::string& name, Given tensor) {
    std::vector<std::byte> bytes(tensor.nbytes());
    std::memcpy(bytes.data(), tensor.data(), bytes.size());
    if (PyRanks* ranks = joined())
      check(withoutGil([&] { return ranks->ranks().broadcast(bytes, /*root=*/0); }));
    check(session_.writeVariable(name, bytes));
  }

  /// All variables; a collective if ranks share some out. Who does not write reads alone.
  void save(const std::string& path, const Metadata& metadata, bool writes) {
    if (!writes && shares().empty()) return;
    VariableStore store(session_);
    std::vector<TensorView> tensors = check(withoutGil([&] { return store.read(); }));
    if (writes) check(writeSafetensors(path, std::move(tensors), metadata));
  }
  void restore(const std::string& path) {
    SafetensorsFile file = check(SafetensorsFile::open(path));
    check(VariableStore(session_).restore(file));
  }

 private:
  double number(ProgramId id, size_t index) {
    const OutputView view = session_.output(id, index);
    if (view.type == DataType::f64) return *static_cast<const double*>(view.data);
    if (view.type == DataType::f32) return *static_cast<const float*>(view.data);
    raise("Error", "output " + std::to_string(index) + " of program '" +
                       plan_.info().programs[id.index].name + "' is no f32 or f64");
  }

  const TensorSpec& specOf(const std::string& name) const {
    for (const VariableInfo& each : plan_.info().variables)
      if (each.spec.name == name) return each.spec;
    raise("Error", "the plan has no variable '" + name + "'");
  }

  ProgramId idOf(const std::string& program) const {
    auto found = ids_.find(program);
    return found != ids_.end() ? found->second : check(session_.program(program));
  }

  void runViews(ProgramId id, const std::vector<HostTensorView>& views, int32_t rows = kAllRows) {
    const Turn turn = takeTurn();
    const Status status = withoutGil([&]() -> Status {
      GPUC_RETURN_IF_ERROR(session_.run(id, views, rows));
      GPUC_RETURN_IF_ERROR(session_.wait());
      return nonfinite_.empty() ? okStatus() : takeNonfinite(id);
    });
    if (!status.ok() && status.message().find(", outside its range [") != std::string::npos)
      raise("RangeError", status.message());
    check(status);
  }

  /// Of a plan with checks: the error names the op that made NaN or an infinity.
  Status takeNonfinite(ProgramId id) {
    auto found = nonfinite_.find(plan_.info().programs[id.index].name);
    if (found == nonfinite_.end()) return okStatus();
    int64_t step = 0;
    GPUC_RETURN_IF_ERROR(session_.readVariable("step", std::as_writable_bytes(std::span(&step, 1))));
    return found->second.take(session_, step);
  }

  const ProgramInfo& infoOf(const std::string& program) const {
    return plan_.info().programs[idOf(program).index];
  }

  std::string describe(const std::string& program, size_t index) const {
    const ProgramInfo& info = infoOf(program);
    return "program '" + program + "', input " +
           (index < info.inputs.size() ? "'" + info.inputs[index].spec.name + "' "
                                       : std::to_string(index) + " ");
  }

  PyRanks* joined() const { return ranks_.is_none() ? nullptr : nb::cast<PyRanks*>(ranks_); }

  Result<Session> open(const std::string& device, int threads, std::optional<uint64_t> seed) {
    PyRanks* ranks = joined();
    if (ranks && threads == 0) threads = ranks->threads(static_cast<int>(openHostDevice()->info().threads));
    return Session::create(plan_, {.device = device,
                                   .threads = threads,
                                   .seed = seed,
                                   .communicator = ranks ? &ranks->ranks() : nullptr});
  }

  std::string file_;
  Plan plan_;
  nb::object ranks_;  // which the session speaks to, if it is not None
  Session session_;
  std::recursive_mutex turns_;
  std::map<std::string, ProgramId> ids_;
  std::map<std::string, Nonfinite> nonfinite_;  // of programs with checks
};

}  // namespace gpuc
