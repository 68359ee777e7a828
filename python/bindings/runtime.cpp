// gpuc._runtime: plans, sessions and quick steps, without LLVM.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "python/bindings/checkpoints.h"
#include "python/bindings/quick_step.h"
#include "python/bindings/ranks.h"
#include "python/bindings/session.h"

namespace nb = nanobind;

namespace gpuc {
namespace {

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
  // What a thread or an error holds lives until the interpreter ends, and is no leak.
  nb::set_leak_warnings(false);
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
      .def("__enter__", &PySession::enter)
      .def("__exit__", &PySession::exit)
      .def("run", &PySession::run)
      .def("mean_at", &PySession::meanAt)
      .def("mean_of_rows", &PySession::meanOfRows)
      .def("counts_rows", &PySession::countsRows)
      .def("counts_once", &PySession::countsOnce)
      .def("number", nb::overload_cast<const std::string&, size_t>(&PySession::number))
      .def("output", &PySession::output)
      .def("variable", &PySession::variable)
      .def("save", &PySession::save, nb::arg("path"), nb::arg("metadata"), nb::kw_only(), nb::arg("writes"))
      .def("shares", &PySession::shares)
      .def("read", &PySession::read)
      .def("write", &PySession::write)
      .def("write_of_first", &PySession::writeOfFirst)
      .def("restore", &PySession::restore)
      .def("inputs", &PySession::inputs)
      .def("outputs", &PySession::outputs)
      .def("html", &PySession::html)
      .def_prop_ro("plan", &PySession::plan)
      .def_prop_ro("seed", &PySession::seed)
      .def_prop_ro("training_digest", &PySession::trainingDigest)
      .def_prop_ro("programs", &PySession::programs)
      .def_prop_ro("variables", &PySession::variables)
      .def_prop_ro("warnings", &PySession::warnings)
      .def_prop_ro("arena_bytes", &PySession::arenaBytes);
  using gpuc::PyQuickStep;
  PyType_Slot collected[] = {{Py_tp_traverse, reinterpret_cast<void*>(&PyQuickStep::traverse)},
                             {Py_tp_clear, reinterpret_cast<void*>(&PyQuickStep::clear)},
                             {0, nullptr}};
  nb::class_<PyQuickStep>(m, "QuickStep", nb::type_slots(collected))
      .def(nb::init<nb::handle, nb::handle, const nb::object&, const nb::list&, size_t, size_t,
                    const nb::list&, const nb::list&, const nb::object&>(),
           nb::arg("session"), nb::arg("type"), nb::arg("net"), nb::arg("watched"), nb::arg("each_time"),
           nb::arg("period"), nb::arg("rates"), nb::arg("numbers"), nb::arg("optimizer").none())
      .def_static("serves", &PyQuickStep::serves)
      .def("__call__", &PyQuickStep::callTuple)
      .def("is_all_where_it_was", &PyQuickStep::isAllWhereItWas)
      .def_rw("steps", &PyQuickStep::steps)
      .def_rw("must_look", &PyQuickStep::must_look)
      .def_rw("were_negated", &PyQuickStep::were_negated);
  m.def("step_call", &gpuc::StepCall::methodOf, nb::arg("type"));
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
