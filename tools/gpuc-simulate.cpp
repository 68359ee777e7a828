// gpuc-simulate: what a step of a model would take on many ranks, before there are any.
#include <map>
#include <sstream>
#include <tuple>

#include "passes/Compiler.h"
#include "runtime/base/file.h"
#include "runtime/base/flags.h"
#include "runtime/base/output_files.h"
#include "runtime/base/parse.h"
#include "runtime/base/tool_main.h"
#include "tools/compiler_flags.h"
#include "tools/llvm_errors.h"
#include "tools/simulation.h"

namespace {

struct Request {
  std::string input;
  std::optional<std::string> device, link, shard, json, trace;
  std::optional<int64_t> copyBandwidth;
  std::string network = "infiniband", ranks = "1,8,64,512,4096";
  std::optional<std::string> stragglers;
  std::vector<gpuc::RecipeFlag> recipe = gpuc::recipeFlags();
  gpuc::PredictionFlags predictions;
  gpuc::CompilerOptions options;
  gpuc::SimulationOptions simulation;
};

gpuc::Status readRanks(const std::string& text, std::vector<int64_t>& ranks) {
  std::istringstream numbers(text + ",");
  for (std::string number; std::getline(numbers, number, ',');) {
    GPUC_ASSIGN_OR_RETURN(int64_t count, gpuc::parseInt64(number));
    ranks.push_back(count);
  }
  return gpuc::okStatus();
}

/// COUNT:SLOWDOWN
gpuc::Status readStragglers(const std::string& text, gpuc::Disturbance& disturbance) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos)
    return gpuc::Status::error("does not say how slow they are: COUNT:SLOWDOWN, as in 1:1.5");
  GPUC_ASSIGN_OR_RETURN(disturbance.stragglers, gpuc::parseInt64(text.substr(0, colon)));
  GPUC_ASSIGN_OR_RETURN(disturbance.slowdown, gpuc::parseDouble(text.substr(colon + 1)));
  if (disturbance.stragglers < 1) return gpuc::Status::error("COUNT must be at least 1");
  return disturbance.slowdown >= 1 ? gpuc::okStatus() : gpuc::Status::error("SLOWDOWN must be at least 1");
}

/// Names the flag.
gpuc::Status at(const char* flag, const gpuc::Status& status) {
  return status.ok() ? status : gpuc::Status::error(std::string(flag) + ": " + status.message());
}

gpuc::Status readLink(const char* flag, const std::string& text, gpuc::Link& link) {
  gpuc::Result<gpuc::Link> parsed = gpuc::parseLink(text);
  if (!parsed.ok()) return at(flag, parsed.status());
  link = *parsed;
  return gpuc::okStatus();
}

/// Makes sense of what was given; errors are those of flags.
gpuc::Status readFlags(Request& request) {
  gpuc::CompilerOptions& options = request.options;
  gpuc::SimulationOptions& simulation = request.simulation;
  if (request.device) {
    gpuc::Result<const gpuc::NamedDevice*> device = gpuc::findDevice(*request.device);
    if (!device.ok()) return at("--device", device.status());
    gpuc::Result<std::string> target = gpuc::targetOf(**device, options.target);
    if (!target.ok()) return at("--device", target.status());
    options.device = *device;
    options.target = *target;
  }
  GPUC_RETURN_IF_ERROR(at("--target", gpuc::checkTarget(options.target)));
  GPUC_RETURN_IF_ERROR(gpuc::checkRecipeFlags(request.recipe));
  GPUC_RETURN_IF_ERROR(at("--checkpoint", gpuc::Compiler().checkCheckpoint(options.train.checkpoint)));
  if (request.link) GPUC_RETURN_IF_ERROR(readLink("--link", *request.link, simulation.network.within));
  GPUC_RETURN_IF_ERROR(readLink("--network", request.network, simulation.network.between));
  if (request.stragglers)
    GPUC_RETURN_IF_ERROR(at("--stragglers", readStragglers(*request.stragglers, simulation.disturbance)));
  GPUC_RETURN_IF_ERROR(at("--ranks", readRanks(request.ranks, simulation.ranks)));
  return at("--ranks", check(simulation));
}

const auto kAsItIs = [](mlir::PassManager&) { return gpuc::okStatus(); };

/// A model that is made into plans, once for each link and size of buckets, and where ranks share out what
/// they train for each number of them.
class Plans {
 public:
  Plans(Request& request) : request_(request), options_(request.options) {}

  /// As far as all plans have in common.
  gpuc::Status read() {
    GPUC_ASSIGN_OR_RETURN(std::string text, gpuc::readFile(request_.input));
    GPUC_RETURN_IF_ERROR(gpuc::checkIsModel(text, request_.input));
    GPUC_ASSIGN_OR_RETURN(step_, compiler_.parse(text, request_.input == "-" ? "<stdin>" : request_.input));
    gpuc::addRecipe(request_.recipe, options_);
    stage_ = gpuc::stageOf(*step_);
    if (stage_ >= gpuc::Stage::streams &&
        (request_.simulation.bucketBytes > 0 || request_.simulation.tunesBuckets))
      return gpuc::Status::error(
          "the module is a plan with streams already: its buckets can be chosen no more");
    if (stage_ == gpuc::Stage::model) return makePlanOfOneRank();
    if (request_.shard)
      return gpuc::Status::error(request_.input +
                                 ": its step is made already, so that --shard has nothing to do: "
                                 "give it to gpuc-compile, where the model becomes one");
    return gpuc::okStatus();
  }

  gpuc::Result<gpuc::Schedule> planFor(int64_t ranks, const gpuc::Link& link, int64_t bucketBytes) {
    const int64_t number = request_.shard ? ranks : 0;  // the plan is the same for any, otherwise
    auto [known, isNew] = known_.try_emplace({number, gpuc::textOf(link), bucketBytes});
    if (!isNew) return known->second;
    gpuc::CompilerOptions options = options_;
    GPUC_ASSIGN_OR_RETURN(mlir::OwningOpRef<mlir::ModuleOp> module, stepOf(number, options));
    GPUC_RETURN_IF_ERROR(checkShares(*module, ranks));
    if (stage_ < gpuc::Stage::streams) {  // else buckets are what they are
      options.train.link = gpuc::textOf(link);
      options.train.bucketBytes = bucketBytes;
    }
    GPUC_RETURN_IF_ERROR(compiler_.advance(*module, gpuc::Stage::plan, options, kAsItIs));
    GPUC_ASSIGN_OR_RETURN(known->second, compiler_.stepSchedule(*module, options));
    if (known->second.exchanges() > 0) return known->second;
    return gpuc::Status::error(
        request_.input +
        ": its step exchanges nothing between ranks, of which each would train by itself: make "
        "it of the model, with gpuc-compile --data-parallel");
  }

  const std::optional<gpuc::Schedule>& ofOneRank() const { return ofOneRank_; }

  /// Of a text that has a target, and else by the flags.
  bool areOfHost() const {
    auto made = (*step_)->getAttrOfType<gpuc::plan::TargetAttr>(gpuc::plan::kTargetAttr);
    return made ? made.getKind() == gpuc::plan::TargetKind::host
                : !llvm::StringRef(options_.target).starts_with("cuda");
  }

 private:
  /// The text of the step, and what is left to say of it: none of what stands there.
  gpuc::Result<mlir::OwningOpRef<mlir::ModuleOp>> stepOf(int64_t number, gpuc::CompilerOptions& options) {
    if (stage_ != gpuc::Stage::model) return mlir::OwningOpRef<mlir::ModuleOp>(step_->clone());
    mlir::OwningOpRef<mlir::ModuleOp>& step = steps_[number];
    if (!step) {
      step = step_->clone();
      gpuc::CompilerOptions ofRanks = options;
      ofRanks.train.recipe.emplace_back("data_parallel", "true");
      if (request_.shard) {
        ofRanks.train.recipe.emplace_back("shard", *request_.shard);
        ofRanks.train.recipe.emplace_back("world_size", std::to_string(number));
      }
      GPUC_RETURN_IF_ERROR(compiler_.advance(*step, gpuc::Stage::trainStep, ofRanks, kAsItIs));
    }
    options.train.recipe.clear();
    options.train.batch = 0;
    options.train.checkpoint = gpuc::kModelPolicy.str();
    return mlir::OwningOpRef<mlir::ModuleOp>(step->clone());
  }

  /// A plan of ranks that share out is one for so many alone.
  gpuc::Status checkShares(mlir::ModuleOp module, int64_t ranks) {
    for (mlir::Operation& op : *module.getBody())
      if (auto shards = op.getAttrOfType<mlir::IntegerAttr>("shards"); shards && shards.getInt() != ranks)
        return gpuc::Status::error(request_.input + ": shares variables out among " +
                                   std::to_string(shards.getInt()) + " ranks, and there are to be " +
                                   std::to_string(ranks) +
                                   ": give --ranks=" + std::to_string(shards.getInt()));
    return gpuc::okStatus();
  }

  gpuc::Status makePlanOfOneRank() {
    mlir::OwningOpRef<mlir::ModuleOp> module = step_->clone();
    GPUC_RETURN_IF_ERROR(compiler_.advance(*module, gpuc::Stage::plan, options_, kAsItIs));
    GPUC_ASSIGN_OR_RETURN(ofOneRank_, compiler_.stepSchedule(*module, options_));
    return gpuc::okStatus();
  }

  const Request& request_;
  gpuc::CompilerOptions options_;
  gpuc::Compiler compiler_;
  mlir::OwningOpRef<mlir::ModuleOp> step_;
  gpuc::Stage stage_ = gpuc::Stage::model;
  std::optional<gpuc::Schedule> ofOneRank_;
  std::map<int64_t, mlir::OwningOpRef<mlir::ModuleOp>> steps_;  // of so many ranks; 0: of any number
  std::map<std::tuple<int64_t, std::string, int64_t>, gpuc::Schedule> known_;
};

/// What nobody has said: between the ranks of a host the link is memory, and whatever it is, the cores that
/// compute copy what is exchanged, as fast as over memory.
gpuc::Status fillIn(const Request& request, bool isHost, gpuc::SimulationOptions& simulation) {
  gpuc::Link& within = simulation.network.within;
  if (!request.link) {
    GPUC_ASSIGN_OR_RETURN(within, gpuc::parseLink(isHost ? gpuc::kHostLink : gpuc::kDeviceLink));
  }
  GPUC_ASSIGN_OR_RETURN(const gpuc::Link memory, gpuc::parseLink(gpuc::kHostLink));
  if (request.copyBandwidth)
    simulation.copyNanosecondsPerByte = 1e9 / static_cast<double>(*request.copyBandwidth);
  else if (isHost)
    simulation.copyNanosecondsPerByte = 1 / (within.takesCores ? within : memory).bytesPerNanosecond;
  return gpuc::okStatus();
}

gpuc::Status run(Request& request) {
  std::string outputs[] = {request.json.value_or(""), request.trace.value_or("")};
  GPUC_RETURN_IF_ERROR(gpuc::checkOutputFiles(outputs, {&request.input, 1}));
  GPUC_RETURN_IF_ERROR(request.predictions.take(/*predicts=*/true, request.options));
  Plans plans(request);
  GPUC_RETURN_IF_ERROR(plans.read());
  GPUC_RETURN_IF_ERROR(fillIn(request, plans.areOfHost(), request.simulation));
  const gpuc::SimulationOptions& simulation = request.simulation;
  const gpuc::SimulatedPlans simulated = {
      .planFor = [&](int64_t ranks, const gpuc::Link& link,
                     int64_t bucketBytes) { return plans.planFor(ranks, link, bucketBytes); },
      .ofOneRank = plans.ofOneRank()};
  GPUC_ASSIGN_OR_RETURN(std::vector<gpuc::SimulatedWorld> worlds, gpuc::simulate(simulated, simulation));
  if (request.trace) {
    GPUC_ASSIGN_OR_RETURN(std::string trace, gpuc::traceOf(worlds.back(), simulation));
    GPUC_RETURN_IF_ERROR(gpuc::writeFileAtomically(*request.trace, trace));
  }
  if (request.json)
    GPUC_RETURN_IF_ERROR(gpuc::writeFileAtomically(*request.json, gpuc::jsonOf(simulation, worlds)));
  if (request.json == "-" || request.trace == "-") return gpuc::okStatus();
  return gpuc::writeFileAtomically("-", gpuc::tableOf(simulated, worlds));
}

}  // namespace

static int tool(int argc, char** argv) {
  gpuc::endInOneLineOnLlvmErrors();
  Request request;
  std::optional<int64_t> batch, optLevel;
  int64_t seed = 0;
  gpuc::Disturbance& disturbance = request.simulation.disturbance;
  gpuc::CommandLine cli("gpuc-simulate",
                        "Says what a step of a model would take on many ranks, each on a device.");
  cli.addPositional("FILE", &request.input, ".mlir of any stage; - is stdin");
  cli.addString("ranks", &request.ranks, "N,N,…", "how many: from 1 to 4096, whole machines of them");
  cli.addInt("devices-per-machine", &request.simulation.network.devicesPerMachine, "N",
             "ranks of one machine")
      .range(1, static_cast<double>(gpuc::kMostSimulatedRanks));
  cli.addString("link", &request.link, "LINK",
                "of the ranks of a machine: memory (of a host, default), ethernet, infiniband or nvlink (of "
                "GPUs, default); nvlink:bandwidth=475GB,latency=10: bytes that a rank sends in a second, and "
                "microseconds of a message");
  cli.addString("network", &request.network, "LINK", "of each rank to those of other machines");
  cli.addSize("copy-bandwidth", &request.copyBandwidth,
              "a second, at which the cores that compute copy what is exchanged beside it (default: on the "
              "host as over memory; of GPUs nothing is copied)")
      .range(1);
  cli.addSize("bucket-size", &request.simulation.bucketBytes,
              "as gpuc-compile's: most bytes of a bucket; 0: what suits the link")
      .range(0);
  cli.addBool("tune-buckets", &request.simulation.tunesBuckets,
              "tries sizes, and says which makes the shortest step in each world");
  cli.addDouble("jitter", &disturbance.computeJitter, "SHARE",
                "by which a rank's work in a step takes longer on average, drawn from an exponential "
                "distribution for each rank and step: 0.01")
      .range(0, 100);
  cli.addDouble("link-jitter", &disturbance.linkJitter, "SHARE", "the same of each exchange").range(0, 100);
  cli.addString("stragglers", &request.stragglers, "COUNT:SLOWDOWN",
                "ranks whose work takes so many times as long: 1:1.5");
  cli.addInt("seed", &seed, "N", "of what is drawn").range(0);
  cli.addInt("steps", &request.simulation.steps, "N", "whose mean is told, after some that are not looked at")
      .range(1, 10'000);
  cli.addString("json", &request.json, "FILE", "writes what was found as JSON; - is stdout")
      .impliedValue("-");
  cli.addString(
      "trace", &request.trace, "FILE",
      "writes two steps of the last world of --ranks for ui.perfetto.dev, of the first rank and, if "
      "ranks are not alike, of the last one");
  cli.addString("device", &request.device, "GPU",
                "by whose figures times are predicted: l4, a100, h100, h200, …; says the target, too");
  cli.addString("target", &request.options.target, "TARGET",
                "as gpuc-compile's: auto, host:CPU or cuda:sm_90");
  cli.addInt("batch", &batch, "N", "rows of a rank's microbatch, instead of the recipe's").range(1);
  for (gpuc::RecipeFlag& flag : request.recipe) flag.declare(cli);
  cli.addString("shard", &request.shard, "optimizer|gradients",
                "as gpuc-compile's, of as many ranks as there are: on the host");
  cli.addString("checkpoint", &request.options.train.checkpoint, "POLICY",
                "as gpuc-compile's: none, sqrt, full, save=…, blocks=… or model");
  cli.addInt("opt-level", &optLevel, "N", "as gpuc-compile's").shortName('O').range(0, 3);
  request.predictions.declare(cli);
  if (std::optional<int> exitCode = cli.parse(argc, argv)) return *exitCode;

  if (batch) request.options.train.batch = *batch;
  if (optLevel) request.options.optLevel = static_cast<int>(*optLevel);
  request.options.train.fuse = optLevel != 0;
  disturbance.seed = static_cast<uint64_t>(seed);
  if (gpuc::Status read = readFlags(request); !read.ok()) return cli.usageError(read.message());
  if (request.json == "-" && request.trace == "-")
    return cli.usageError("--json and --trace both want stdout");
  return gpuc::exitStatus(run(request));
}

int main(int argc, char** argv) { return gpuc::runTool(argc, argv, tool); }
