// gpuc-run: runs one entry of a plan. See runtime/tooling/run_plan.h.
#include <cstdio>

#include "runtime/base/file.h"
#include "runtime/base/flags.h"
#include "runtime/base/tool_main.h"
#include "runtime/exec/devices.h"
#include "runtime/gpuc.h"
#include "runtime/tooling/allocation_hook.h"
#include "runtime/tooling/program_inputs.h"
#include "runtime/tooling/run_plan.h"

using namespace gpuc;

namespace {

/// What is wrong with the values of flags; empty if nothing is.
std::string findMalformed(const RunOptions& options) {
  if (Status device = checkDeviceName(options.device); !device.ok()) return "--device: " + device.message();
  Status inputs = checkInputFlags(options.inputs);
  return inputs.ok() ? "" : inputs.message();
}

/// What is no plan says so itself; of a plan, what --entry could be.
int entryIsMissing(const std::string& path) {
  const Result<Plan> plan = Plan::load(path);
  if (!plan.ok()) return exitStatus(plan.status());
  std::string entries;
  for (const ProgramInfo& program : plan->info().programs)
    entries += (entries.empty() ? "" : ", ") + program.name;
  return CommandLine::usageError("--entry is missing: which program of the plan? It has: " +
                                 (entries.empty() ? "none" : entries));
}

}  // namespace

static int tool(int argc, char** argv) {
  RunOptions options;
  std::optional<std::string> plan, entry;
  bool list_devices = false;
  CommandLine cli("gpuc-run", "Runs one entry of a plan and says how long it took.");
  cli.addPositional("PLAN", &plan, "the plan to run; - is stdin");
  cli.addString("entry", &entry, "NAME", "train_step, eval_step, predict, init, or a function of yours");
  cli.addStrings("input", &options.inputs, "NAME=FILE.npy",
                 "an input, of just its type and shape; what is not given is made up from the seed");
  cli.addStrings("variables", &options.variables, "FILE",
                 "safetensors to start from, base weights first; without it init runs first");
  cli.addString("output-dir", &options.output_dir, "DIR", "write each output to DIR/NAME.npy");
  cli.addString("save-variables", &options.save_variables, "FILE", "write all variables to FILE at the end");
  cli.addInt("repeat", &options.repeat, "N", "run so often; the state advances each time").range(1);
  cli.addInt("warmup", &options.warmup, "N", "run so often before, unmeasured").range(0);
  cli.addString("device", &options.device, "NAME", "auto, host, cuda or cuda:N");
  cli.addInt("threads", &options.threads, "N", "threads to compute with; 0 is one for each core")
      .range(0, 4096);
  cli.addInt("seed", &options.seed, "N", "instead of the plan's seed").range(0);
  cli.addString("json", &options.json, "FILE", "write the report as JSON; - is stdout").impliedValue("-");
  cli.addString("profile", &options.profile, "FILE", "write the commands' times as a Chrome trace");
  cli.addInt(
         "delay-commands", &options.delay_seed, "SEED",
         "host: sleep at random before commands, on each stream, which changes no bit: a test of a plan's "
         "events")
      .range(0);
  cli.addBool(
      "check-memory", &options.check_memory,
      "poison the arena, and between commands what is dead; guard its end, say how far it was touched");
  cli.addBool("strict", &options.strict, "refuse libraries whose bits may differ from the plan's");
  cli.addBool("list-devices", &list_devices, "say what there is to run on");
  if (std::optional<int> exit_code = cli.parse(argc, argv)) return *exit_code;

  if (list_devices) {
    if (const std::string other = cli.givenBeside({"list-devices", "json"}); !other.empty())
      return CommandLine::usageError("--list-devices runs nothing, and only --json goes with it, not " +
                                     other);
    return exitStatus(
        writeFileAtomically(options.json.empty() ? "-" : options.json, deviceList(!options.json.empty())));
  }
  if (!plan) return CommandLine::usageError("no plan given: gpuc-run PLAN --entry=NAME");
  if (!entry) return entryIsMissing(*plan);
  if (std::string malformed = findMalformed(options); !malformed.empty())
    return CommandLine::usageError(malformed);
  options.plan = *plan;
  options.entry = *entry;
  return exitStatus(runPlan(options, [] { return allocationCount().total(); }));
}

int main(int argc, char** argv) { return runTool(argc, argv, tool); }
