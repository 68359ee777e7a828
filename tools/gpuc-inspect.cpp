// gpuc-inspect: says what a plan holds. See runtime/report/inspect.h.
#include <cstdio>

#include "runtime/base/file.h"
#include "runtime/base/flags.h"
#include "runtime/base/output_files.h"
#include "runtime/base/tool_main.h"
#include "runtime/report/inspect.h"
#include "runtime/report/memory_snapshot.h"

using namespace gpuc;

namespace {

struct Options {
  std::string plan;
  std::string html;
  std::string report;
  std::string tradeoff;
  std::string memory_snapshot;
  bool variables = false;
  bool activations = false;
  bool json = false;
};

/// To stdout, as it comes.
Status print(const std::function<void(const TextSink&)>& write) {
  bool failed = false;
  write([&](std::string_view piece) {
    failed = failed || std::fwrite(piece.data(), 1, piece.size(), stdout) != piece.size();
  });
  if (failed || std::fflush(stdout) != 0) return systemError("write", "stdout");
  return okStatus();
}

Status writePage(const Options& options, const Plan& plan) {
  PageFiles files;
  if (!options.report.empty()) {
    GPUC_ASSIGN_OR_RETURN(files.report, readReport(options.report, plan.info()));
  }
  if (!options.tradeoff.empty()) {
    GPUC_ASSIGN_OR_RETURN(files.tradeoff, readTradeoff(options.tradeoff, plan.info()));
  }
  return writeFileAtomically(options.html, inspectHtml(plan, files));
}

Status run(const Options& options) {
  const bool writes_files = !options.html.empty() || !options.memory_snapshot.empty();
  const bool prints = options.json || !writes_files || options.variables || options.activations;
  std::string outputs[] = {options.html, options.memory_snapshot, prints ? "-" : ""};
  const std::string inputs[] = {options.plan, options.report, options.tradeoff};
  GPUC_RETURN_IF_ERROR(checkOutputFiles(outputs, inputs));
  GPUC_ASSIGN_OR_RETURN(Plan plan, Plan::load(options.plan));
  if (!options.html.empty()) GPUC_RETURN_IF_ERROR(writePage(options, plan));
  if (!options.memory_snapshot.empty())
    GPUC_RETURN_IF_ERROR(writeFileAtomically(options.memory_snapshot, memorySnapshot(plan)));
  if (!prints) return okStatus();
  if (options.json) return print([&](const TextSink& sink) { inspectJson(plan, sink); });
  return print(
      [&](const TextSink& sink) { inspectText(plan, options.variables, options.activations, sink); });
}

}  // namespace

static int tool(int argc, char** argv) {
  Options options;
  CommandLine cli("gpuc-inspect", "Says what a plan holds: entries, variables, memory, commands.");
  cli.addPositional("PLAN", &options.plan, "the plan; - is stdin");
  cli.addBool("variables", &options.variables, "list the variables");
  cli.addBool("activations", &options.activations,
              "list the activations, tensors between commands that are no gradients, and which of them are "
              "recomputed");
  cli.addBool("json", &options.json, "everything, as JSON");
  cli.addString("html", &options.html, "FILE", "draw the arena over time as a web page");
  cli.addString("memory-snapshot", &options.memory_snapshot, "FILE.pickle",
                "the training step's memory in the form that PyTorch's memory visualiser reads");
  cli.addString("report", &options.report, "FILE",
                "what gpuc-compile --report wrote with the plan: the page has a roofline of the commands");
  cli.addString(
      "tradeoff", &options.tradeoff, "FILE",
      "what gpuc-compile --report-tradeoff wrote with it: the page has the plans that there could have been");
  if (std::optional<int> exit_code = cli.parse(argc, argv)) return *exit_code;

  for (const auto& [flag, file] :
       {std::pair("report", &options.report), std::pair("tradeoff", &options.tradeoff)})
    if (!file->empty() && options.html.empty())
      return cli.usageError(std::string("--") + flag + " adds to a page: give --html=FILE, too");
  return exitStatus(run(options));
}

int main(int argc, char** argv) { return runTool(argc, argv, tool); }
