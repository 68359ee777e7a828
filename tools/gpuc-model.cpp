// gpuc-model: a model of the zoo as .mlir, or its summary.
#include <cstdio>

#include "frontend/models/Zoo.h"
#include "runtime/base/file.h"
#include "runtime/base/flags.h"
#include "runtime/base/output_files.h"
#include "runtime/base/tool_main.h"
#include "tools/llvm_errors.h"

namespace {

/// What is neither trained nor adapted, though the model was asked for adapters.
void warnOfLeftOut(const std::vector<std::string>& names) {
  if (names.empty()) return;
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  std::fprintf(stderr,
               "warning: no adapter for %s: only linear layers and attention get one; these stay as "
               "--variables has them\n",
               list.c_str());
}

}  // namespace

static int tool(int argc, char** argv) {
  gpuc::endInOneLineOnLlvmErrors();
  bool list = false, summary = false;
  std::optional<std::string> name, output;
  std::vector<std::string> settings;
  gpuc::CommandLine cli("gpuc-model", "Writes a model of the zoo with its recipe as .mlir.");
  cli.addPositional("NAME", &name, "which model; --list names them");
  cli.addPositionals("key=value", &settings, "what the model leaves open; --list names the keys");
  cli.addBool("list", &list, "print the models with their keys, defaults and what they mean");
  cli.addBool("summary", &summary,
              "print the tree of layers with shapes, parameters and FLOPs; .mlir only with -o");
  cli.addString("output", &output, "FILE", "where to write the .mlir; - is stdout, the default")
      .shortName('o');
  if (std::optional<int> exitCode = cli.parse(argc, argv)) return *exitCode;

  if (list && (name || summary || output)) return cli.usageError("--list stands alone");
  if (list) return gpuc::exitStatus(gpuc::writeFileAtomically("-", gpuc::models::describeZoo()));
  if (!name) return cli.usageError("missing NAME; --list names the models");
  if (summary && output == "-") return cli.usageError("--summary prints on stdout; give -o a file");

  if (output)
    if (gpuc::Status writable = gpuc::checkOutputFiles({&*output, 1}, {}); !writable.ok())
      return gpuc::exitStatus(writable);
  gpuc::Result<gpuc::nn::Model> model = gpuc::models::buildZooModel(*name, settings);
  if (!model.ok()) return cli.usageError(model.message());
  warnOfLeftOut(model->leftOut());
  gpuc::Status written;
  if (!summary || output) written = model->write(output.value_or("-"));
  if (summary && written.ok()) written = gpuc::writeFileAtomically("-", model->summary());
  return gpuc::exitStatus(written);
}

int main(int argc, char** argv) { return gpuc::runTool(argc, argv, tool); }
