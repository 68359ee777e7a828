// gpuc-compile: from a model, or any later stage of it, to an executable plan.
#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Pass/PassManager.h"
#include "passes/CacheFolder.h"
#include "passes/Compiler.h"
#include "passes/cost/Link.h"
#include "runtime/base/file.h"
#include "runtime/base/flags.h"
#include "runtime/base/output_files.h"
#include "runtime/base/parse.h"
#include "runtime/base/quote.h"
#include "runtime/base/tool_main.h"
#include "runtime/exec/devices.h"
#include "tools/compiler_flags.h"
#include "tools/llvm_errors.h"

namespace {

using Clock = std::chrono::steady_clock;

/// mlp.mlir → mlp.plan, beside it.
std::string defaultOutput(const std::string& input, const std::string& emit) {
  if (input == "-" || emit != "plan-file") return "-";
  return std::filesystem::path(input).replace_extension(".plan").string();
}

std::string textOf(mlir::ModuleOp module, bool locations) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  mlir::OpPrintingFlags flags;  // as --mlir-print-… flags say
  module.print(stream, flags.enableDebugInfo(locations, flags.shouldPrintDebugInfoPrettyForm()));
  return text + "\n";
}

/// --mlir-timing and its kin, read by MLIR itself. What is wrong with them; empty if nothing is.
std::string parseMlirFlags(const std::vector<std::string>& flags) {
  mlir::registerPassManagerCLOptions();
  mlir::registerAsmPrinterCLOptions();
  mlir::registerDefaultTimingManagerCLOptions();
  std::vector<std::string> known;
  for (const auto& entry : llvm::cl::getRegisteredOptions())
    if (entry.first.starts_with("mlir-")) known.push_back(entry.first.str());
  std::vector<const char*> arguments = {"gpuc-compile"};
  for (const std::string& flag : flags) {
    std::string name = flag.substr(2, flag.find('=') - 2);
    if (std::find(known.begin(), known.end(), name) == known.end())
      return "unknown flag --" + name + "; did you mean --" + gpuc::nearestName(name, known) + "?";
    arguments.push_back(flag.c_str());
  }
  std::string error;
  llvm::raw_string_ostream stream(error);
  if (llvm::cl::ParseCommandLineOptions(arguments.size(), arguments.data(), "", &stream)) return "";
  return error.substr(0, error.find('\n'));
}

/// Whether --emit writes locations: unless a flag, ours or MLIR's, says otherwise.
bool wantsLocations(bool noLocations, const std::vector<std::string>& mlirFlags) {
  bool said = std::any_of(mlirFlags.begin(), mlirFlags.end(),
                          [](const std::string& flag) { return flag.starts_with("--mlir-print-debuginfo"); });
  return !noLocations && (!said || mlir::OpPrintingFlags().shouldPrintDebugInfo());
}

gpuc::Status configure(mlir::PassManager& passes) {
  if (mlir::failed(mlir::applyPassManagerCLOptions(passes)))
    return gpuc::Status::error("these --mlir- flags do not go together");
  mlir::applyDefaultTimingPassManagerCLOptions(passes);
  return gpuc::okStatus();
}

/// And on how many ranks.
std::vector<gpuc::RecipeFlag> recipeFlags() {
  std::vector<gpuc::RecipeFlag> flags = gpuc::recipeFlags();
  flags.insert(
      flags.end(),
      {
          {"emulate-ranks", "emulate_ranks", "N",
           "train as N ranks would, each with microbatches of its own, one after the other on one device"},
          {"data-parallel", "data_parallel", "",
           "train on as many ranks as gpuc-train starts, each with --accumulate microbatches of --batch rows",
           /*isList=*/false, /*spec=*/"", /*isFlag=*/true},
          {"shard", "shard", "optimizer|gradients",
           "each rank keeps its share alone of what is trained and of the optimizer's state; gradients: and "
           "of the sum over "
           "microbatches"},
          {"world-size", "world_size", "N", "ranks of a plan with --shard, which runs on so many alone"},
          {"sync-batch-norm", "sync_batch_norm", "",
           "with --data-parallel: batch norms' statistics are those of all ranks' rows, as with PyTorch's "
           "SyncBatchNorm",
           /*isList=*/false, /*spec=*/"", /*isFlag=*/true},
      });
  return flags;
}

struct Request {
  std::string input;
  std::optional<std::string> output, report;
  std::string emit = "plan-file";
  bool locations = true;
  bool largestBatch = false;                      // instead of options.train.batch
  bool deviceBudget = false;                      // instead of options.memoryBudget: what the device has free
  std::vector<const gpuc::NamedDevice*> devices;  // that are asked about
  bool onlyAsks = false;                          // no plan is wanted
  std::vector<std::string> mlirFlags;
  std::vector<gpuc::RecipeFlag> recipe = recipeFlags();
  gpuc::PredictionFlags predictions;
  gpuc::CompilerOptions options;
};

/// Reads SIZE, `device`, or a GPU's name, which says the target, too.
gpuc::Status readBudget(const std::string& text, Request& request) {
  gpuc::CompilerOptions& options = request.options;
  if (text == "device") {
    request.deviceBudget = true;
    return gpuc::okStatus();
  }
  if (std::isalpha(static_cast<unsigned char>(text.front()))) {
    GPUC_ASSIGN_OR_RETURN(options.device, gpuc::findDevice(text));
    GPUC_ASSIGN_OR_RETURN(options.target, gpuc::targetOf(*options.device, options.target));
    options.memoryBudget = gpuc::arenaBytesOf(*options.device);
    options.budgetName = options.device->name;
    return gpuc::okStatus();
  }
  GPUC_ASSIGN_OR_RETURN(options.memoryBudget, gpuc::parseSize(text));
  return *options.memoryBudget < 1 ? gpuc::Status::error(text + " is less than 1") : gpuc::okStatus();
}

/// Reads GPUs' names.
gpuc::Status readDevices(const std::string& text, Request& request) {
  std::istringstream names(text + ",");
  for (std::string name; std::getline(names, name, ',');) {
    GPUC_ASSIGN_OR_RETURN(const gpuc::NamedDevice* device, gpuc::findDevice(name));
    request.devices.push_back(device);
  }
  return gpuc::okStatus();
}

/// What is wrong with the values of flags; empty if nothing is.
std::string findMalformed(const Request& request) {
  if (gpuc::Status known = gpuc::checkRecipeFlags(request.recipe); !known.ok()) return known.message();
  gpuc::Status policy = gpuc::Compiler().checkCheckpoint(request.options.train.checkpoint);
  if (!policy.ok()) return "--checkpoint: " + policy.message();
  gpuc::Status target = gpuc::checkTarget(request.options.target);
  return target.ok() ? parseMlirFlags(request.mlirFlags) : "--target: " + target.message();
}

/// What of flags that were given would have nothing to do; empty if all have.
std::string findIdle(const Request& request) {
  const gpuc::CompilerOptions& options = request.options;
  const bool isText = request.emit == "gpuc" || request.emit == "train";
  if (request.report && isText) return "--report needs a plan: not with --emit=" + request.emit;
  if (request.predictions.profile && isText)
    return "--profile-in predicts what a plan takes: not with --emit=" + request.emit;
  if (request.predictions.namesRates() && request.emit == "gpuc")
    return "--rates predicts what a plan takes: not with --emit=gpuc";
  const std::pair<const char*, bool> exchange[] = {{"--link", !options.train.link.empty()},
                                                   {"--bucket-size", options.train.bucketBytes > 0}};
  for (auto [flag, given] : exchange)
    if (given && isText) return std::string(flag) + " is for a plan: not with --emit=" + request.emit;
  if (options.tradeoff && request.emit == "gpuc")
    return "--report-tradeoff makes plans: not with --emit=gpuc";
  if (!request.onlyAsks) return "";
  const std::string alone =
      " is for a plan, and --devices alone makes none: name a file with -o, or leave it out";
  if (request.predictions.namesRates()) return "--rates" + alone;
  if (request.predictions.profile) return "--profile-in" + alone;
  for (auto [flag, given] : exchange)
    if (given) return flag + alone;
  return options.target == "auto" ? "" : "--target" + alone;
}

/// Flags that have no place in the text of a model.
void warnOfLaterChoices(const gpuc::CompilerOptions& options) {
  std::string flags;
  if (options.target != "auto" && !options.device) flags += " --target=" + options.target;
  if (options.optLevel) flags += " -O" + std::to_string(*options.optLevel);
  if (options.train.checkpoint != gpuc::kModelPolicy && options.train.checkpoint != gpuc::kBudgetPolicy)
    flags += " --checkpoint=" + options.train.checkpoint;
  if (options.memoryBudget)
    flags += " --memory-budget=" +
             (options.budgetName.empty() ? std::to_string(*options.memoryBudget) : options.budgetName);
  if (options.train.checkNumerics) flags += " --check-numerics";
  if (!options.train.predict) flags += " --no-predict";
  if (options.noGraphs) flags += " --no-graphs";
  if (!flags.empty())
    std::fprintf(stderr,
                 "warning: the text of a model does not say%s: give it again where that is compiled\n",
                 flags.c_str());
}

/// Chooses the batch, and says which: who reads the log later wants to know.
gpuc::Status takeLargestBatch(gpuc::Compiler& compiler, mlir::ModuleOp module,
                              gpuc::CompilerOptions& options) {
  GPUC_ASSIGN_OR_RETURN(gpuc::LargestBatch largest, compiler.largestBatch(module, options));
  options.train.batch = std::max<int64_t>(largest.rows, 1);  // whose plan says what is in the way
  if (largest.rows == 0) return gpuc::okStatus();
  std::fprintf(stderr, "--batch=max: %lld rows", static_cast<long long>(largest.rows));
  if (largest.rows != largest.rowsKept)
    std::fprintf(stderr, ", %lld if nothing is computed again (--checkpoint=none)",
                 static_cast<long long>(largest.rowsKept));
  std::fprintf(stderr, "\n");
  return gpuc::okStatus();
}

/// What the device of the plan's target has free now. That differs from day to day, so it says how much.
gpuc::Status takeDeviceMemory(gpuc::CompilerOptions& options) {
  const bool isCuda = options.target.starts_with("cuda:");
  GPUC_ASSIGN_OR_RETURN(std::unique_ptr<gpuc::Device> device,
                        gpuc::openDevice(isCuda ? "cuda" : "host", gpuc::TargetKind::host));
  const gpuc::DeviceInfo& info = device->info();
  if (isCuda && options.target != "cuda:" + info.architecture)
    return gpuc::Status::error("--memory-budget=device: the GPU here is an " + info.name + ", " +
                               info.architecture + ", and --target says " + options.target +
                               ": give --target=cuda:" + info.architecture);
  GPUC_ASSIGN_OR_RETURN(uint64_t free, device->freeMemory());
  const uint64_t kept = isCuda ? static_cast<uint64_t>(gpuc::kLibraryMebibytes) << 20 : 0;
  options.memoryBudget = static_cast<int64_t>(free - std::min(free, kept));
  options.budgetName = "device";
  std::fprintf(stderr, "--memory-budget=device: %lld bytes, of %llu free on %s\n",
               static_cast<long long>(*options.memoryBudget), static_cast<unsigned long long>(free),
               gpuc::printable(isCuda ? info.name : "this host").c_str());
  return gpuc::okStatus();
}

/// A name decides more than a size does.
void sayWhatANameMeans(const gpuc::CompilerOptions& options) {
  std::fprintf(stderr, "--memory-budget=%s: %lld bytes of an %s, in a plan for %s\n", options.device->name,
               static_cast<long long>(*options.memoryBudget), options.device->title, options.target.c_str());
}

/// What libraries take beside a plan's arena. The host's are here to be asked; empty if it is not a file yet.
gpuc::ReportFacts libraryFacts(const std::string& bytes) {
  gpuc::Result<gpuc::Plan> plan = gpuc::Plan::parse(bytes);
  if (!plan.ok()) return {0, std::nullopt, "unknown: only of a plan's file"};
  std::string called;
  for (const gpuc::LibraryInfo& library : plan->info().libraries)
    called += (called.empty() ? "" : ", ") + library.name + " " + library.version;
  if (called.empty()) return {0, 0, "the plan calls no library"};
  if (plan->info().target != gpuc::TargetKind::host)
    return {0, std::nullopt, "unknown: " + called + " take what they want when the plan is loaded"};
  gpuc::Result<uint64_t> kept = gpuc::hostLibraryBytes(*plan);
  if (!kept.ok()) return {0, std::nullopt, "unknown: " + kept.message()};
  return {0, static_cast<int64_t>(*kept), "code that " + called + " generates on this CPU"};
}

gpuc::Status compile(Request& request) {
  Clock::time_point begin = Clock::now();
  const bool predicts = request.report || request.options.tradeoff || request.options.memoryBudget;
  GPUC_RETURN_IF_ERROR(request.predictions.take(predicts, request.options));
  if (request.deviceBudget) GPUC_RETURN_IF_ERROR(takeDeviceMemory(request.options));
  if (request.options.device) sayWhatANameMeans(request.options);
  gpuc::Compiler compiler;
  std::string output = request.output.value_or(defaultOutput(request.input, request.emit));
  // Before the work begins, and before one of two files is written and the other cannot be.
  std::string outputs[] = {request.onlyAsks ? "" : output, request.report.value_or("")};
  GPUC_RETURN_IF_ERROR(gpuc::checkOutputFiles(outputs, {&request.input, 1}));
  GPUC_ASSIGN_OR_RETURN(std::string text, gpuc::readFile(request.input));
  GPUC_RETURN_IF_ERROR(gpuc::checkIsModel(text, request.input));
  GPUC_ASSIGN_OR_RETURN(auto module, compiler.parse(text, request.input == "-" ? "<stdin>" : request.input));

  gpuc::Stage stage = request.emit == "gpuc"    ? gpuc::Stage::model
                      : request.emit == "train" ? gpuc::Stage::trainStep
                                                : gpuc::Stage::plan;
  if (gpuc::stageOf(*module) > stage)
    return gpuc::Status::error(request.input + ": has passed the stage that --emit=" + request.emit +
                               " asks for");
  if (request.largestBatch) GPUC_RETURN_IF_ERROR(takeLargestBatch(compiler, *module, request.options));
  if (!request.devices.empty())
    GPUC_RETURN_IF_ERROR(compiler.askDevices(*module, request.options, request.devices));
  if (request.onlyAsks) return gpuc::writeFileAtomically("-", compiler.deviceTable());
  request.options.emits = request.emit == "plan-file";
  GPUC_RETURN_IF_ERROR(compiler.advance(*module, stage, request.options, configure));

  std::string result;
  if (request.emit == "plan-file") {
    GPUC_ASSIGN_OR_RETURN(result, compiler.emit(*module, request.options));
  } else {
    result = textOf(*module, request.locations);
  }
  if (request.report) {
    auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
    gpuc::ReportFacts facts = libraryFacts(request.emit == "plan-file" ? result : "");
    facts.compileMilliseconds = elapsed.count();
    GPUC_ASSIGN_OR_RETURN(std::string report, compiler.report(*module, request.options, facts));
    GPUC_RETURN_IF_ERROR(gpuc::writeFileAtomically(*request.report, report));
  }
  GPUC_RETURN_IF_ERROR(gpuc::writeFileAtomically(output, result));
  if (request.options.tradeoff) GPUC_RETURN_IF_ERROR(gpuc::writeFileAtomically("-", compiler.tradeoff()));
  if (!request.devices.empty()) return gpuc::writeFileAtomically("-", compiler.deviceTable());
  return gpuc::okStatus();
}

}  // namespace

static int tool(int argc, char** argv) {
  gpuc::endInOneLineOnLlvmErrors();
  Request request;
  std::optional<std::string> emit, budget, devices;
  std::optional<int64_t> batch, seed;
  std::optional<int64_t> optLevel;
  int64_t threads = 0, cacheBytes = int64_t{1} << 30;
  std::optional<std::string> checkpoint, cacheFolder, link;
  std::optional<int64_t> bucketBytes;
  bool noCache = false, noLocations = false, noPredict = false;
  gpuc::CommandLine cli("gpuc-compile", "Compiles a model, or any later stage of it, to an executable plan.");
  cli.addPositional("FILE", &request.input, ".mlir of any stage; - is stdin");
  cli.addString("output", &request.output, "PLAN",
                "where the result goes; - is stdout (default: FILE with .plan, stdout for text)")
      .shortName('o');
  cli.addString("target", &request.options.target, "TARGET",
                "auto, host, host:CPU (x86-64-v3, sapphirerapids, …) or cuda:ARCHITECTURE (sm_90)");
  cli.addInt("batch", &batch, "N|max",
             "rows of a microbatch, instead of the recipe's; max: the most, in steps of 8, that fit "
             "--memory-budget")
      .range(1)
      .orWord("max", &request.largestBatch);
  for (gpuc::RecipeFlag& flag : request.recipe) flag.declare(cli);
  cli.addString(
      "checkpoint", &checkpoint, "POLICY",
      "what of the forward pass is computed again for gradients, not kept: none, sqrt, full, all but "
      "the results of some ops: save=matmul,conv2d,attention, layers as a whole: blocks='h.*', those of "
      "the model's own gpuc.checkpoint: model (default), or, as it is with --memory-budget, what that "
      "takes: budget");
  cli.addString("memory-budget", &budget, "SIZE|device|GPU",
                "of the plan's whole arena: what is computed again is chosen so that it fits, at the least "
                "time; with --checkpoint it only has to fit. device: what is free here; a GPU's name (l4, "
                "a100, h100, h200, …): what a plan has on one, for which it is made then");
  cli.addString("devices", &devices, "GPU,GPU,…",
                "writes to stdout whether the model fits these GPUs (l4, a100, h100, h200, …), what "
                "--memory-budget would make of it, and what a step is predicted to take; a plan only with "
                "-o, --emit, --report or --memory-budget");
  cli.addBool("report-tradeoff", &request.options.tradeoff,
              "writes to stdout, as JSON, the plans that there could be, by memory and time");
  cli.addString("link", &link, "LINK",
                "what ranks exchange by, of a data-parallel plan: memory (default on the host), ethernet, "
                "infiniband or nvlink (on CUDA), each with :bandwidth=SIZE,latency=MICROSECONDS, SIZE a "
                "second; by it gradients are put into buckets, and exchanged beside the backward pass if "
                "that is faster");
  cli.addSize("bucket-size", &bucketBytes, "most bytes of a bucket (default: what suits the link)").range(1);
  cli.addBool(
      "no-predict", &noPredict,
      "leave @predict out of the plan: its result, of a whole batch, may take more than training does");
  cli.addInt("seed", &seed, "N", "the plan's default seed").range(0);
  cli.addBool(
      "check-numerics", &request.options.train.checkNumerics,
      "the step counts what is NaN or infinite, by the op that made it: gpuc-train stops and names it");
  cli.addBool("no-graphs", &request.options.noGraphs,
              "on CUDA: a step launches its commands one by one, not as CUDA graphs");
  cli.addString("emit", &emit, "STAGE",
                "text of a stage instead of a plan: gpuc (the model), train (the step), plan (commands)")
      .choices({"gpuc", "train", "plan"});
  cli.addBool(
      "no-locations", &noLocations,
      "with --emit: without layers and lines, for reading; what is compiled from it cannot name them");
  cli.addString("report", &request.report, "FILE", "writes memory, work and residuals as JSON");
  request.predictions.declare(cli);
  cli.addInt("opt-level", &optLevel, "N",
             "0 (each op a kernel of its own, code unoptimised) to 3 (default: 3)")
      .shortName('O')
      .range(0, 3);
  cli.addInt("threads", &threads, "N", "threads to generate code with; 0 is one a core").range(0, 4096);
  cli.addString("cache-dir", &cacheFolder, "DIR",
                "where compiled kernels are kept for the next time (default: gpuc/kernels in $XDG_CACHE_HOME "
                "or ~/.cache)");
  cli.addSize("cache-size", &cacheBytes, "what they may take; the least recently used go first").range(0);
  cli.addBool("no-cache", &noCache, "neither use nor keep compiled kernels");
  cli.passThrough("mlir-", &request.mlirFlags, "MLIR's own: --mlir-timing, --mlir-print-ir-after-all, …");
  if (std::optional<int> exitCode = cli.parse(argc, argv)) return *exitCode;

  if (emit) request.emit = *emit;
  if (batch) request.options.train.batch = *batch;
  if (seed) request.options.seed = request.options.train.seed = *seed;
  if (noLocations && !emit) return cli.usageError("--no-locations is for the text that --emit writes");
  if (optLevel) request.options.optLevel = static_cast<int>(*optLevel);
  request.options.train.fuse = optLevel != 0;
  const bool hasBudget = budget.has_value();
  if (gpuc::Status status = budget ? readBudget(*budget, request) : gpuc::okStatus(); !status.ok())
    return cli.usageError("--memory-budget: " + status.message());
  if (request.largestBatch && !hasBudget)
    return cli.usageError("--batch=max needs to know what there is room in: give --memory-budget=SIZE");
  request.options.train.checkpoint =
      checkpoint.value_or(hasBudget ? gpuc::kBudgetPolicy.str() : gpuc::kModelPolicy.str());
  if (checkpoint == gpuc::kBudgetPolicy && !hasBudget)
    return cli.usageError("--checkpoint=budget needs a budget: give --memory-budget=SIZE");
  if (gpuc::Status status = devices ? readDevices(*devices, request) : gpuc::okStatus(); !status.ok())
    return cli.usageError("--devices: " + status.message());
  if (gpuc::Status status = link ? gpuc::parseLink(*link).status() : gpuc::okStatus(); !status.ok())
    return cli.usageError("--link: " + status.message());
  request.options.train.link = link.value_or("");
  request.options.train.bucketBytes = bucketBytes.value_or(0);
  request.onlyAsks = devices && !request.output && !emit && !request.report && !budget;
  if (std::string idle = findIdle(request); !idle.empty()) return cli.usageError(idle);
  if (devices && checkpoint)
    return cli.usageError("--devices asks what --memory-budget would make of it: not with --checkpoint");
  if (devices && request.options.tradeoff)
    return cli.usageError("--devices and --report-tradeoff both write to stdout: ask for one of them");
  if (devices && !request.onlyAsks &&
      request.output.value_or(defaultOutput(request.input, request.emit)) == "-")
    return cli.usageError("--devices writes to stdout beside a plan: name a file with -o");
  if (request.options.tradeoff && request.output.value_or(defaultOutput(request.input, request.emit)) == "-")
    return cli.usageError("--report-tradeoff writes to stdout beside a plan: name a file with -o");
  if (noCache && cacheFolder) return cli.usageError("--cache-dir names a cache and --no-cache wants none");
  request.options.threads = threads;
  if (!noCache) request.options.cacheFolder = cacheFolder ? *cacheFolder : gpuc::defaultKernelsFolder();
  request.options.cacheBytes = cacheBytes;
  if (std::string malformed = findMalformed(request); !malformed.empty()) return cli.usageError(malformed);
  request.options.train.predict = !noPredict;
  request.locations = wantsLocations(noLocations, request.mlirFlags);
  if (emit == "gpuc") warnOfLaterChoices(request.options);
  gpuc::addRecipe(request.recipe, request.options);
  return gpuc::exitStatus(compile(request));
}

int main(int argc, char** argv) { return gpuc::runTool(argc, argv, tool); }
