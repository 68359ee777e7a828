// gpuc._runtime: plans and sessions, without LLVM. Tensors come in by DLPack or as buffers, and are read
// where they lie; variables and outputs go out the same way.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <tuple>

#include "python/bindings/checkpoints.h"
#include "python/bindings/errors.h"
#include "python/bindings/exchange.h"
#include "python/bindings/gil.h"
#include "python/bindings/ranks.h"
#include "python/bindings/step_watch.h"
#include "runtime/exec/devices.h"
#include "runtime/gpuc.h"
#include "runtime/report/inspect.h"
#include "runtime/report/nonfinite.h"
#include "runtime/weights/shared_variables.h"
#include "runtime/weights/variable_store.h"

namespace nb = nanobind;

namespace gpuc {
namespace {

using Given = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Array = nb::ndarray<nb::array_api, nb::device::cpu>;
constexpr int32_t kAllRows = -1;
/// Name, element type, shape.
using Signature = std::tuple<std::string, std::string, std::vector<int64_t>>;

nb::dlpack::dtype dtypeOf(DataType type) {
  using Code = nb::dlpack::dtype_code;
  auto make = [&](Code code) {
    return nb::dlpack::dtype{static_cast<uint8_t>(code), static_cast<uint8_t>(8 * sizeOf(type)), 1};
  };
  if (type == DataType::i1) return make(Code::Bool);
  if (type == DataType::bf16) return make(Code::Bfloat);
  if (isFloat(type)) return make(Code::Float);
  return make(type == DataType::ui8 ? Code::UInt : Code::Int);
}

std::optional<DataType> dataTypeOf(nb::dlpack::dtype dtype) {
  for (int i = 0; i < kDataTypeCount; ++i)
    if (dtypeOf(static_cast<DataType>(i)) == dtype) return static_cast<DataType>(i);
  return std::nullopt;
}

Signature signatureOf(const TensorSpec& spec) { return {spec.name, nameOf(spec.type), spec.shape}; }

/// An array over memory that `owner` holds.
Array arrayOf(const void* data, const TensorSpec& spec, std::shared_ptr<const void> owner) {
  auto* hold = new std::shared_ptr<const void>(std::move(owner));
  nb::capsule capsule(
      hold, [](void* pointer) noexcept { delete static_cast<std::shared_ptr<const void>*>(pointer); });
  std::vector<size_t> shape(spec.shape.begin(), spec.shape.end());
  return Array(const_cast<void*>(data), shape.size(), shape.data(), capsule, nullptr, dtypeOf(spec.type));
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
      if (!nb::try_cast<Given>(tensors[i], tensor, /*convert=*/false))
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

  void save(const std::string& path, const Metadata& metadata) {
    check(writeSafetensors(path, check(VariableStore(session_).read()), metadata));
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

  ProgramId idOf(const std::string& program) const {
    auto found = ids_.find(program);
    return found != ids_.end() ? found->second : check(session_.program(program));
  }

  void runViews(ProgramId id, const std::vector<HostTensorView>& views, int32_t rows = kAllRows) {
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
  std::map<std::string, ProgramId> ids_;
  std::map<std::string, Nonfinite> nonfinite_;  // of programs with checks
};

/// The step of a module where all is as it was compiled, told by C alone.
class PyQuickStep {
 public:
  /// `type`: of the tensors that are taken, which has the exchange API; the rest as StepWatch has it.
  PyQuickStep(nb::handle session, nb::handle type, const nb::object& net, const nb::list& watched,
              const nb::list& rates, const nb::list& numbers, const nb::object& optimizer, size_t period)
      : owner_(nb::borrow(session)),
        session_(nb::cast<PySession&>(session)),
        step_(check(session_.session().program("train_step"))),
        type_(nb::borrow(type)),
        exchange_(TensorExchange::of(type)),
        period_(period) {
    if (!exchange_) raise("Error", "the type of tensors has no exchange API of DLPack 1");
    watch_.emplace(*exchange_, net, watched, rates, numbers, optimizer);
    for (const InputInfo& input : inputs()) {
      types_.push_back(dtypeOf(input.spec.type));
      views_.emplace_back(nullptr, input.spec);
    }
  }

  static bool serves(nb::handle type) { return TensorExchange::of(type) != nullptr; }

  /// The mean loss of an update; None, and nothing has run, if something is not as it was: the batch, rates
  /// and numbers of the optimizer, the module's mode, or, looked at each `period` steps, all of its tensors
  /// and modules.
  nb::object call(const nb::tuple& batch) {
    if (!watch_ || !takesBatch(batch.ptr()) || !watch_->isTraining() || !watch_->areRatesWritten() ||
        !watch_->areGroupsAsTheyWere(steps) || (steps % period_ == 0 && !watch_->areAllAsTheyWere()))
      return nb::none();
    ++steps;
    return nb::float_(session_.meanOf(step_, views_));
  }

  size_t steps = 0;  // that were made, by this or in another way

  static int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    const auto* step = nb::inst_ptr<PyQuickStep>(self);
    Py_VISIT(step->owner_.ptr());
    Py_VISIT(step->type_.ptr());
    return step->watch_ ? step->watch_->traverse(visit, arg) : 0;
  }
  static int clear(PyObject* self) {
    nb::inst_ptr<PyQuickStep>(self)->watch_.reset();
    return 0;
  }

 private:
  const std::vector<InputInfo>& inputs() {
    return session_.session().plan().info().programs[step_.index].inputs;
  }

  bool takesBatch(PyObject* batch) {
    if (PyTuple_GET_SIZE(batch) != static_cast<Py_ssize_t>(views_.size())) return false;
    nb::dlpack::dltensor seen;
    for (size_t i = 0; i < views_.size(); ++i) {
      PyObject* tensor = PyTuple_GET_ITEM(batch, i);
      if (Py_TYPE(tensor) != reinterpret_cast<PyTypeObject*>(type_.ptr()) || !exchange_->see(tensor, seen) ||
          !isDense(seen, types_[i], views_[i].shape))
        return false;
      views_[i].data = addressOf(seen);
    }
    return true;
  }

  nb::object owner_;  // of session_
  PySession& session_;
  ProgramId step_;
  nb::object type_;
  const TensorExchange* exchange_;
  size_t period_;
  std::optional<StepWatch> watch_;
  std::vector<nb::dlpack::dtype> types_;
  std::vector<HostTensorView> views_;  // of the batch under way
};

/// A folder of checkpoints of one session.
class PyCheckpoints {
 public:
  PyCheckpoints(const std::string& folder, int64_t keep, bool writes)
      : checkpoints_(check(Checkpoints::open(folder, keep, writes))) {}

  std::string warning() const { return checkpoints_.warning(); }
  std::optional<int64_t> lastStep() const { return check(checkpoints_.lastStep()); }
  void close() { checkpoints_.close(); }

  void save(PySession& session, int64_t step, int64_t epoch, int64_t step_in_epoch, int64_t global_batch,
            int64_t samples, const Metadata& metadata) {
    const TrainingPosition position{.step = step,
                                    .epoch = epoch,
                                    .step_in_epoch = step_in_epoch,
                                    .seed = session.seed(),
                                    .global_batch = global_batch,
                                    .samples = samples};
    check(withoutGil([&] { return checkpoints_.save(session.session(), position, metadata); }));
  }

  /// Writes the newest whole checkpoint's variables into the session, if `fits` of its position and metadata
  /// raises nothing. Its file, these two, and warnings; or None if there is none.
  nb::object restore(PySession& session, const nb::callable& fits) {
    std::optional<Checkpoint> found = check(checkpoints_.loadNewest());
    if (!found) return nb::none();
    nb::dict position;
    position["step"] = found->position.step;
    position["epoch"] = found->position.epoch;
    position["step_in_epoch"] = found->position.step_in_epoch;
    position["seed"] = found->position.seed;
    position["global_batch"] = found->position.global_batch;
    position["samples"] = found->position.samples;
    fits(found->file.name(), position, found->metadata);
    check(VariableStore(session.session()).restore(found->file));
    return nb::make_tuple(found->file.name(), position, found->metadata, found->warnings);
  }

 private:
  Checkpoints checkpoints_;
};

/// The launcher's name, this process's rank and how many there are; None: nobody has started several.
std::optional<std::tuple<std::string, int64_t, int64_t>> launched() {
  const std::optional<Launcher> launcher = check(findLauncher());
  if (!launcher) return std::nullopt;
  return std::tuple(launcher->name, launcher->rank, launcher->ranks);
}

/// What a file of tensors says of itself.
Metadata metadataOf(const std::string& path) { return check(SafetensorsFile::open(path)).metadata(); }

}  // namespace
}  // namespace gpuc

NB_MODULE(_runtime, m) {
  using gpuc::PySession;
  m.doc() = "Plans and sessions; gpuc.Step and gpuc.load are made of these.";
  m.def("metadata", &gpuc::metadataOf, nb::arg("path"));
  using gpuc::PyRanks;
  m.def("launched", &gpuc::launched);
  nb::class_<PyRanks>(m, "Ranks")
      .def(nb::init<>())
      .def("gather", &PyRanks::gather)
      .def("end", &PyRanks::end)
      .def("give_up", &PyRanks::giveUp)
      .def("leave", &PyRanks::leave)
      .def_prop_ro("rank", &PyRanks::rank)
      .def_prop_ro("size", &PyRanks::size);
  nb::class_<PySession>(m, "Session")
      .def(nb::init<nb::bytes, const std::string&, int, std::optional<uint64_t>, const nb::callable&>(),
           nb::arg("plan"), nb::kw_only(), nb::arg("device"), nb::arg("threads"), nb::arg("seed"),
           nb::arg("join"))
      .def("share_variables", &PySession::shareVariables)
      .def_prop_ro("ranks", &PySession::ranks)
      .def("initialize", &PySession::initialize)
      .def("run", &PySession::run)
      .def("mean_at", &PySession::meanAt)
      .def("mean_of_rows", &PySession::meanOfRows)
      .def("counts_rows", &PySession::countsRows)
      .def("number", nb::overload_cast<const std::string&, size_t>(&PySession::number))
      .def("output", &PySession::output)
      .def("variable", &PySession::variable)
      .def("save", &PySession::save, nb::arg("path"), nb::arg("metadata"))
      .def("restore", &PySession::restore)
      .def("inputs", &PySession::inputs)
      .def("outputs", &PySession::outputs)
      .def("html", &PySession::html)
      .def_prop_ro("plan", &PySession::plan)
      .def_prop_ro("seed", &PySession::seed)
      .def_prop_ro("programs", &PySession::programs)
      .def_prop_ro("variables", &PySession::variables)
      .def_prop_ro("warnings", &PySession::warnings)
      .def_prop_ro("arena_bytes", &PySession::arenaBytes);
  using gpuc::PyQuickStep;
  PyType_Slot collected[] = {{Py_tp_traverse, reinterpret_cast<void*>(&PyQuickStep::traverse)},
                             {Py_tp_clear, reinterpret_cast<void*>(&PyQuickStep::clear)},
                             {0, nullptr}};
  nb::class_<PyQuickStep>(m, "QuickStep", nb::type_slots(collected))
      .def(nb::init<nb::handle, nb::handle, const nb::object&, const nb::list&, const nb::list&,
                    const nb::list&, const nb::object&, size_t>(),
           nb::arg("session"), nb::arg("type"), nb::arg("net"), nb::arg("watched"), nb::arg("rates"),
           nb::arg("numbers"), nb::arg("optimizer").none(), nb::arg("period"))
      .def_static("serves", &PyQuickStep::serves)
      .def("__call__", &PyQuickStep::call)
      .def_rw("steps", &PyQuickStep::steps);
  using gpuc::PyCheckpoints;
  nb::class_<PyCheckpoints>(m, "Checkpoints")
      .def(nb::init<const std::string&, int64_t, bool>(), nb::arg("folder"), nb::arg("keep"), nb::kw_only(),
           nb::arg("writes"))
      .def("save", &PyCheckpoints::save, nb::arg("session"), nb::kw_only(), nb::arg("step"), nb::arg("epoch"),
           nb::arg("step_in_epoch"), nb::arg("global_batch"), nb::arg("samples"), nb::arg("metadata"))
      .def("restore", &PyCheckpoints::restore, nb::arg("session"), nb::arg("fits"))
      .def("close", &PyCheckpoints::close)
      .def_prop_ro("last_step", &PyCheckpoints::lastStep)
      .def_prop_ro("warning", &PyCheckpoints::warning);
}
