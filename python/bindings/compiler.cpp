// gpuc._compiler: recorded graphs become models, models become plans. Loaded when something is first
// compiled, with LLVM and MLIR.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "python/bindings/compile.h"
#include "python/bindings/errors.h"
#include "python/bindings/gil.h"

namespace nb = nanobind;

namespace gpuc {
namespace {

/// The model's text, and what keeps it from being made: text, layer, file, line.
std::tuple<std::string, std::vector<std::tuple<std::string, std::string, std::string, int64_t>>> lower(
    const std::string& json) {
  torch::Lowered lowered = check(lowerGraph(json));
  std::vector<std::tuple<std::string, std::string, std::string, int64_t>> problems;
  for (const torch::Problem& problem : lowered.problems)
    problems.emplace_back(problem.text, problem.place.layer, problem.place.file, problem.place.line);
  return {std::move(lowered.text), std::move(problems)};
}

nb::tuple compileText(const std::string& text, const std::string& name,
                      const std::vector<std::pair<std::string, std::string>>& recipe,
                      const std::string& target, std::optional<uint64_t> seed,
                      std::optional<int64_t> memory_budget, const std::string& checkpoint,
                      bool check_numerics, bool predict, const std::string& cache_folder) {
  CompileRequest request{text,          name,       recipe,         target,  seed,
                         memory_budget, checkpoint, check_numerics, predict, cache_folder};
  auto [plan, report] = check(withoutGil([&] { return compileModel(request); }));
  return nb::make_tuple(nb::bytes(plan.data(), plan.size()), report);
}

}  // namespace
}  // namespace gpuc

NB_MODULE(_compiler, m) {
  m.doc() = "The compiler; gpuc.compile calls it.";
  m.def("lower", &gpuc::lower, nb::arg("graph"));
  m.def("known_ops", &gpuc::knownOps);
  m.def("compile", &gpuc::compileText, nb::arg("text"), nb::arg("name"), nb::arg("recipe"), nb::kw_only(),
        nb::arg("target") = "auto", nb::arg("seed") = nb::none(), nb::arg("memory_budget") = nb::none(),
        nb::arg("checkpoint") = "", nb::arg("check_numerics") = false, nb::arg("predict") = true,
        nb::arg("cache_folder") = "");
}
