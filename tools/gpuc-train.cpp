// gpuc-train: trains a plan on data. See runtime/train/trainer.h.
#include <algorithm>
#include <array>
#include <csignal>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/base/flags.h"
#include "runtime/base/tool_main.h"
#include "runtime/comm/cores.h"
#include "runtime/comm/join.h"
#include "runtime/comm/slow_link.h"
#include "runtime/data/data_spec.h"
#include "runtime/exec/devices.h"
#include "runtime/exec/rank_device.h"
#include "runtime/plan/plan.h"
#include "runtime/train/stop_signal.h"
#include "runtime/train/trainer.h"

using namespace gpuc;

namespace {

/// What --ranks says: a number, or `all`; and how their link is to be, if it is to be slower.
struct RanksWish {
  std::optional<int64_t> ranks;
  bool all = false;
  std::optional<int64_t> link_bandwidth, link_latency;  // bytes a second, microseconds

  bool isThere() const { return ranks || all; }
};

void declareFlags(CommandLine& cli, TrainOptions& options, std::string& last_batch, bool& no_shuffle,
                  RanksWish& wish) {
  cli.addPositional("PLAN", &options.plan, "the plan to train; - is stdin");
  cli.addString("data", &options.data, "SPEC",
                "idx:PREFIX, npy:NAME=FILE,…, images:FOLDER, text:FILE, tokens:FILE or synthetic:size=N")
      .required();
  cli.addString("eval-data", &options.eval_data, "SPEC", "evaluate on this after each epoch and at the end");
  cli.addInt("epochs", &options.epochs, "N", "how often to go through the data; 1 if --steps is not given")
      .range(1);
  cli.addInt("steps", &options.steps, "N", "how many updates to make, from the very start").range(1);
  cli.addStrings("variables", &options.variables, "FILE",
                 "safetensors to start from, base weights first; without it init runs");
  cli.addString("save-variables", &options.save_variables, "FILE", "write all variables to FILE at the end");
  cli.addString("save-trained", &options.save_trained, "FILE",
                "the same without frozen ones: adapters alone");
  cli.addString("checkpoint-dir", &options.checkpoint_dir, "DIR", "keep checkpoints in DIR");
  cli.addInt("checkpoint-every", &options.checkpoint_every, "N",
             "steps between them; without it after each epoch")
      .range(1);
  cli.addInt("keep", &options.keep, "N", "how many checkpoints stay; 3 if it is not given").range(1);
  cli.addBool("resume", &options.resume, "go on from the newest checkpoint in --checkpoint-dir");
  cli.addString("log-dir", &options.log_dir, "DIR",
                "write metrics.jsonl (unless --metrics names another file), command.txt and plan.json there");
  cli.addInt("log-every", &options.log_every, "N",
             "steps between lines of progress, 0 is none; 100, or none beside a terminal's bar")
      .range(0);
  cli.addString("metrics", &options.metrics, "FILE", "one JSON line an event; - is stdout");
  cli.addString("profile", &options.profile, "FILE", "write the last commands' times as a Chrome trace");
  cli.addInt("workers", &options.workers, "N", "threads that load batches; 0 loads on the computing thread")
      .range(0, 1024);
  cli.addInt("prefetch", &options.prefetch, "N", "batches to load ahead").range(1, 65536);
  cli.addString("last-batch", &last_batch, "HOW", "what becomes of samples that fill no batch")
      .choices({"drop", "pad"});
  cli.addBool("no-shuffle", &no_shuffle, "take the samples in the order of the data");
  cli.addInt("seed", &options.seed, "N", "instead of the plan's seed").range(0);
  cli.addInt("ranks", &wish.ranks, "N",
             "train on so many ranks, processes of this machine that share the batch, with a plan that was "
             "compiled with --data-parallel; all is one for each core, or each GPU. Not needed where mpirun, "
             "srun or torchrun has started them")
      .range(1, kMostRanks)
      .orWord("all", &wish.all);
  cli.addSize("link-bandwidth", &wish.link_bandwidth,
              "with ranks: have sums take at least the time of a link of so many bytes a second, to see what "
              "that would cost")
      .range(1);
  cli.addInt("link-latency", &wish.link_latency, "MICROSECONDS",
             "with --link-bandwidth: what one message takes")
      .range(0, 1'000'000'000);
  cli.addInt("threads", &options.threads, "N", "threads to compute with; 0 is one for each core")
      .range(0, kMostTrainThreads);
  cli.addInt(
         "delay-commands", &options.delay_seed, "SEED",
         "host: sleep at random before commands, on each stream, which changes no bit: a test of a plan's "
         "events")
      .range(0);
  cli.addString("device", &options.device, "NAME", "auto, host, cuda or cuda:N");
  cli.addBool("strict", &options.strict, "refuse libraries whose bits may differ from the plan's");
}

/// What is wrong with the flags together; empty if nothing is.
std::string findMisuse(const TrainOptions& options) {
  for (auto [name, spec] : {std::pair("--data", &options.data), {"--eval-data", &options.eval_data}}) {
    if (spec == &options.eval_data && spec->empty()) continue;
    Result<DataSpec> parsed = parseDataSpec(*spec);
    if (!parsed.ok()) return std::string(name) + ": " + parsed.message();
  }
  if (Status device = checkDeviceName(options.device); !device.ok()) return "--device: " + device.message();
  const Status together = checkOptionsTogether(options);
  return together.ok() ? "" : together.message();
}

std::string joinArguments(int argc, char** argv) {
  std::string line;
  for (int i = 0; i < argc; ++i) line += (i == 0 ? "" : " ") + std::string(argv[i]);
  return line;
}

/// Whether ranks compute on GPUs: where no flag says it, the plan does.
Result<bool> useGpus(const TrainOptions& options) {
  if (options.device != "auto") return options.device != "host";
  GPUC_ASSIGN_OR_RETURN(const Plan plan, Plan::load(options.plan));
  return plan.info().target != TargetKind::host;
}

/// Ranks have one command line, or each its own: what is wrong with it they say together, once.
int refuseTogether(const Launcher& launcher, const std::string& how) {
  joinRanks(launcher, {}, [&](Communicator&) -> Result<int> { return Status::error(how); });
  return 2;
}

/// As CommandLine::parse. The first rank alone prints the help.
std::optional<int> parseAsRank(CommandLine& cli, int argc, char** argv, const Launcher& launcher) {
  const ParseOutcome parsed = cli.parse({argv + 1, argv + argc});
  if (parsed.err.empty()) {
    if (launcher.rank == 0) std::fputs(parsed.out.c_str(), stdout);
    return parsed.exit_code;
  }
  const size_t begin = std::string_view("error: ").size();
  return refuseTogether(launcher, parsed.err.substr(begin, parsed.err.size() - begin - 1));
}

/// What stands in the way of ranks, if some are wished for or started; empty if nothing does.
std::string findRanksMisuse(const TrainOptions& options, const std::optional<Launcher>& launcher,
                            const RanksWish& wish) {
  const bool has_ranks = launcher || wish.isThere();
  if (!has_ranks && (wish.link_bandwidth || wish.link_latency))
    return "--link-bandwidth and --link-latency slow sums over ranks down: give --ranks=N too";
  if (!has_ranks) return "";
  if (launcher && wish.ranks && *wish.ranks != launcher->ranks)
    return "--ranks=" + std::to_string(*wish.ranks) + ", but " + launcher->name + " has started " +
           std::to_string(launcher->ranks) + ": leave it out";
  if (wish.link_latency && !wish.link_bandwidth)
    return "--link-latency is of a link: give its --link-bandwidth too";
  if (options.plan == "-")
    return "--ranks: each rank reads the plan, which stdin gives but once: name a file";
  if (options.device.starts_with("cuda:") && wish.isThere())
    return "--ranks: each rank has a GPU of its own: give --device=cuda, not --device=" + options.device;
  if (wish.link_bandwidth)
    if (const Result<bool> on_gpus = useGpus(options); on_gpus.ok() && *on_gpus)
      return "--link-bandwidth slows the host's sums down, and GPUs exchange by NCCL: leave it out";
  return "";
}

Result<int> train(const TrainOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);  // `gpuc-train … | head` trains on
  // Data may take minutes to check, and a pipe any time; ranks stop together, which takes a step.
  if (options.communicator)
    listenForStop();
  else
    endOnStop();
  GPUC_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer, Trainer::create(options));
  const std::atomic<bool>& stop = listenForStop();
  GPUC_ASSIGN_OR_RETURN(const TrainOutcome outcome, trainer->run(stop));
  return outcome == TrainOutcome::stopped ? kStoppedExitCode : 0;
}

/// Ranks of a slower link exchange otherwise.
Status agreeOnLink(Communicator& ranks, const RanksWish& wish) {
  const std::array<int64_t, 2> mine = {wish.link_bandwidth.value_or(0), wish.link_latency.value_or(0)};
  std::vector<std::array<int64_t, 2>> all(static_cast<size_t>(ranks.size()));
  GPUC_RETURN_IF_ERROR(ranks.gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all))));
  for (size_t other = 1; other < all.size(); ++other)
    if (all[other] != all[0])
      return Status::error("ranks 0 and " + std::to_string(other) +
                           " have another --link-bandwidth or --link-latency: give all of them the same");
  return okStatus();
}

/// What each rank does. The cores are shared out, if --threads does not say how many a rank has.
RankBody trainAsRank(const TrainOptions& options, const RanksWish& wish) {
  return [&options, &wish](Communicator& communicator) -> Result<int> {
    GPUC_RETURN_IF_ERROR(agreeOnLink(communicator, wish));
    TrainOptions own = options;
    std::optional<SlowLink> slow;
    if (wish.link_bandwidth)
      slow.emplace(communicator, LinkFigures{static_cast<double>(*wish.link_bandwidth),
                                             std::chrono::microseconds(wish.link_latency.value_or(0))});
    own.communicator = slow ? &*slow : &communicator;
    if (own.threads == 0) {
      GPUC_ASSIGN_OR_RETURN(const CoreShare share, shareCores(communicator));
      own.threads = std::max<int64_t>(1, openHostDevice()->info().threads / share.ranks);
    }
    return train(own);
  };
}

Result<int64_t> countRanks(const TrainOptions& options, const RanksWish& wish) {
  if (wish.ranks) return *wish.ranks;
  GPUC_ASSIGN_OR_RETURN(const bool on_gpus, useGpus(options));
  int64_t ranks = openHostDevice()->info().threads;
  if (on_gpus) {
    GPUC_ASSIGN_OR_RETURN(ranks, countGpusForRanks());
  }
  std::printf("%lld ranks, one for each %s\n", static_cast<long long>(ranks), on_gpus ? "GPU" : "core");
  return ranks;
}

Result<int> trainOnRanks(const TrainOptions& options, const RanksWish& wish) {
  GPUC_ASSIGN_OR_RETURN(const int64_t ranks, countRanks(options, wish));
  return launchRanks({.ranks = ranks}, trainAsRank(options, wish));
}

}  // namespace

static int tool(int argc, char** argv) {
  TrainOptions options;
  std::string last_batch = "drop";
  RanksWish wish;
  bool no_shuffle = false;
  const Result<std::optional<Launcher>> found = findLauncher();
  if (!found.ok()) return exitStatus(found.status());
  const std::optional<Launcher>& launcher = *found;
  auto misused = [&](const std::string& how) {
    return launcher ? refuseTogether(*launcher, how) : CommandLine::usageError(how);
  };
  CommandLine cli("gpuc-train", "Trains a plan on data.");
  declareFlags(cli, options, last_batch, no_shuffle, wish);
  const std::optional<int> exit_code =
      launcher ? parseAsRank(cli, argc, argv, *launcher) : cli.parse(argc, argv);
  if (exit_code) return *exit_code;
  if (std::string misuse = findMisuse(options); !misuse.empty()) return misused(misuse);
  if (std::string misuse = findRanksMisuse(options, launcher, wish); !misuse.empty()) return misused(misuse);
  options.last_batch = last_batch == "pad" ? LastBatch::pad : LastBatch::drop;
  options.shuffle = !no_shuffle;
  options.command_line = joinArguments(argc, argv);
  // mpirun takes what ranks say through a terminal of its own, wherever it goes then.
  options.bar = !launcher;
  if (launcher) return joinRanks(*launcher, {}, trainAsRank(options, wish));
  const Result<int> outcome = wish.isThere() ? trainOnRanks(options, wish) : train(options);
  return outcome.ok() ? *outcome : exitStatus(outcome.status());
}

int main(int argc, char** argv) { return runTool(argc, argv, tool); }
