// gpuc-place-buffers: places the buffers of a CSV file in memory. See passes/placement/.
#include <cstdio>

#include "passes/placement/Csv.h"
#include "passes/placement/Solver.h"
#include "passes/placement/Validator.h"
#include "runtime/base/file.h"
#include "runtime/base/file_kind.h"
#include "runtime/base/flags.h"
#include "runtime/base/output_files.h"
#include "runtime/base/tool_main.h"

using namespace gpuc;

namespace {

struct Options {
  std::string input;
  std::string output;
  std::optional<int64_t> capacity;
  std::optional<double> time_limit_s;
};

Status run(const Options& options) {
  GPUC_RETURN_IF_ERROR(checkOutputFiles({&options.output, 1}, {&options.input, 1}));
  GPUC_ASSIGN_OR_RETURN(std::string text, readFile(options.input));
  std::string name = options.input == "-" ? "stdin" : options.input;
  if (isCertain(fileKindOf(text)))
    return Status::error(name + ": not a CSV file" + explainFileKind(text, FileRole::data));
  GPUC_ASSIGN_OR_RETURN(placement::CsvTable table, placement::parseCsv(text, name));
  table.problem.capacity = options.capacity;

  placement::SolverOptions solver_options;
  solver_options.effort =
      8'000'000'000;  // who calls the tool waits for a good answer longer than a compiler can
  solver_options.time_limit_s = options.time_limit_s;
  Result<placement::Solution> solution = placement::solve(table.problem, solver_options);
  if (!solution.ok()) return Status::error(name + ": " + solution.message());
  GPUC_RETURN_IF_ERROR(placement::validate(table.problem, *solution));
  if (solution->stopped_by_clock)
    std::fprintf(
        stderr,
        "warning: the time limit ended the search at the height %lld, and the lower bound is %lld: a longer "
        "--time-limit may find a lower one\n",
        static_cast<long long>(solution->height),
        static_cast<long long>(placement::lowerBound(table.problem)));
  return writeFileAtomically(options.output, placement::printCsv(table, *solution));
}

}  // namespace

static int tool(int argc, char** argv) {
  Options options;
  CommandLine cli("gpuc-place-buffers",
                  "Gives every buffer an offset, so that buffers live at once do not overlap.");
  cli.addString("input", &options.input, "FILE",
                "CSV with the columns id, lower, upper (half-open), size; - is stdin")
      .required();
  cli.addString("output", &options.output, "FILE", "the same rows with a column offset; - is stdout")
      .required();
  cli.addSize("capacity", &options.capacity, "the most bytes there are; an error if the buffers do not fit");
  cli.addDouble("time-limit", &options.time_limit_s, "S",
                "end the search after S seconds at the latest, and write the best found")
      .range(0);
  if (std::optional<int> exit_code = cli.parse(argc, argv)) return *exit_code;

  return exitStatus(run(options));
}

int main(int argc, char** argv) { return runTool(argc, argv, tool); }
