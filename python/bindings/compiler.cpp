// gpuc._compiler: recorded graphs become models, models become plans. Loaded when something is first
// compiled, with LLVM and MLIR.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "frontend/torch/Torch.h"
#include "passes/CompileModel.h"
#include "python/bindings/errors.h"
#include "python/bindings/gil.h"

namespace nb = nanobind;

namespace gpuc {
namespace {

/// The model's text, and what keeps it from being made: text, layer, file, line.
std::tuple<std::string, std::vector<std::tuple<std::string, std::string, std::string, int64_t>>> lower(
    const std::string& json) {
  torch::Lowered lowered = torch::lower(check(torch::parseGraph(json)));
  std::vector<std::tuple<std::string, std::string, std::string, int64_t>> problems;
  for (const torch::Problem& problem : lowered.problems)
    problems.emplace_back(problem.text, problem.place.layer, problem.place.file, problem.place.line);
  return {std::move(lowered.text), std::move(problems)};
}

/// As lower() says what is wrong.
nb::tuple problemOf(const Diagnosis& diagnosis) {
  return nb::make_tuple(diagnosis.text, diagnosis.layer, diagnosis.file, diagnosis.line);
}

/// The plan, its report, and what the compiler warns of; of an error the place, too.
nb::tuple compileText(const std::string& text, const std::string& name,
                      const std::vector<std::pair<std::string, std::string>>& recipe,
                      const std::string& target, std::optional<uint64_t> seed,
                      std::optional<int64_t> memory_budget, const std::string& checkpoint,
                      bool check_numerics, bool predict) {
  const CompileRequest request{.text = text,
                               .name = name,
                               .recipe = recipe,
                               .target = target,
                               .batch = {},
                               .seed = seed,
                               .memoryBudget = memory_budget,
                               .checkpoint = checkpoint,
                               .checkNumerics = check_numerics,
                               .predict = predict};
  Diagnosis wrong;
  Result<Compiled> compiled = withoutGil([&] { return compileModel(request, &wrong); });
  if (!compiled.ok()) raiseProblem(compiled.message(), problemOf(wrong));
  nb::list warnings;
  for (const Diagnosis& warning : compiled->warnings) warnings.append(problemOf(warning));
  return nb::make_tuple(nb::bytes(compiled->plan.data(), compiled->plan.size()), compiled->report, warnings);
}

}  // namespace
}  // namespace gpuc

NB_MODULE(_compiler, m) {
  m.doc() = "The compiler; gpuc.compile calls it.";
  m.def("lower", &gpuc::lower, nb::arg("graph"));
  m.def("known_ops", &gpuc::torch::knownOps);
  m.def("compile", &gpuc::compileText, nb::arg("text"), nb::arg("name"), nb::arg("recipe"), nb::kw_only(),
        nb::arg("target") = "auto", nb::arg("seed") = nb::none(), nb::arg("memory_budget") = nb::none(),
        nb::arg("checkpoint") = "", nb::arg("check_numerics") = false, nb::arg("predict") = true);
}
