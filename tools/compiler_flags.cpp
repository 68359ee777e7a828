#include "tools/compiler_flags.h"

#include <filesystem>
#include <memory>

#include "passes/CacheFolder.h"
#include "runtime/base/file.h"
#include "runtime/base/file_kind.h"
#include "runtime/base/quote.h"
#include "runtime/base/warn.h"
#include "runtime/exec/devices.h"

namespace gpuc {

//===----------------------------------------------------------------------===//
// The recipe
//===----------------------------------------------------------------------===//

void RecipeFlag::declare(CommandLine& cli) {
  if (isFlag)
    cli.addBool(name, &isGiven, help);
  else if (isList)
    cli.addStrings(name, &specs, valueName, help);
  else
    cli.addString(name, &text, valueName, help);
}

std::vector<std::string> RecipeFlag::texts() const {
  if (isFlag) return isGiven ? std::vector<std::string>{"true"} : std::vector<std::string>();
  std::vector<std::string> texts = text ? std::vector<std::string>{*text} : specs;
  if (!spec.empty())
    for (std::string& given : texts) given = spec + ":" + given;
  return texts;
}

std::vector<RecipeFlag> recipeFlags() {
  return {
      {"optimizer", "optimizer", "SPEC",
       "instead of the recipe's: sgd:lr=0.1,momentum=0.9; adam:lr=1e-3; adamw:weight_decay=0.01; rmsprop, "
       "adagrad, adadelta, adamax, nadam, radam, asgd, rprop, lion, adafactor, muon"},
      {"group", "groups", "match=PATTERN,KEY=VALUE,…",
       "other numbers of the optimizer for variables with such names: match=head.*,lr=1e-4; may be given "
       "several times, of which the first that matches holds",
       true, "group"},
      {"schedule", "schedule", "SPEC",
       "of the learning rate: linear:total_iters=100,steps=100, then cosine:T_max=900",
       /*isList=*/true},
      {"clip-value", "clip_value", "X", "bound each element of the gradient by -X and X"},
      {"clip-norm", "clip_norm", "X", "scale the gradient down to the norm X where it is longer"},
      {"skip", "skip", "SPEC", "leave out updates: outliers:loss=6,grad_norm=6, in standard deviations"},
      {"accumulate", "accumulate", "K", "microbatches to an update, each of --batch rows"},
      {"precision", "precision", "SPEC",
       "what products are computed in: f32, bf16, fp16 or, on CUDA, tf32; bf16:f32=(head.*,gelu) makes "
       "exceptions"},
      {"loss-scale", "loss_scale", "SPEC",
       "of gradients: dynamic:init_scale=65536 (which fp16 has by itself), static:scale=1024 or none"},
      {"ema", "ema", "SPEC",
       "a running mean of the weights, which evaluation and predictions then use: ema:decay=0.999"},
  };
}

Status checkRecipeFlags(const std::vector<RecipeFlag>& flags) {
  for (const RecipeFlag& flag : flags) {
    if (flag.texts().empty()) continue;
    Status known = Compiler().checkRecipe(flag.entry, flag.texts());
    if (!known.ok()) return Status::error("--" + flag.name + ": " + known.message());
  }
  return okStatus();
}

void addRecipe(const std::vector<RecipeFlag>& flags, CompilerOptions& options) {
  for (const RecipeFlag& flag : flags)
    for (const std::string& text : flag.texts()) options.train.recipe.emplace_back(flag.entry, text);
}

//===----------------------------------------------------------------------===//
// Predictions
//===----------------------------------------------------------------------===//

void PredictionFlags::declare(CommandLine& cli) {
  cli.addString(
      "rates", &rates, "FILE",
      "what gpuc-calibrate measured, by which times on the host are predicted (default: gpuc/rates.json "
      "in $XDG_CACHE_HOME or ~/.cache, if it is there); none: without");
  cli.addString(
      "profile-in", &profile, "FILE",
      "what gpuc-run --profile wrote of a plan of this model: times are predicted by it, and by rates "
      "where it has none");
}

namespace {

/// Whether measured rates are of the CPU that the plan is for.
Status checkMeasuredHere(const HostRates& rates, const std::string& file, const std::string& target) {
  const bool isNative = target == "auto" || target == "host" || target == "host:native";
  if (!isNative && target == "host:" + rates.target) return okStatus();
  GPUC_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, openDevice("host", TargetKind::host));
  if (isNative && rates.cpu == device->info().name) return okStatus();
  return Status::error(file + ": measured on " + rates.cpu + ", and the plan is for " +
                       (isNative ? printable(device->info().name) : target) + "; run gpuc-calibrate there");
}

Result<HostRates> readRates(const std::string& file, const std::string& target) {
  GPUC_ASSIGN_OR_RETURN(std::string text, readFile(file));
  GPUC_ASSIGN_OR_RETURN(HostRates rates, parseRates(text, file));
  GPUC_RETURN_IF_ERROR(checkMeasuredHere(rates, file, target));
  return rates;
}

}  // namespace

Status PredictionFlags::take(bool predicts, CompilerOptions& options) const {
  GPUC_RETURN_IF_ERROR(takeRates(predicts, options));
  return takeProfile(options);
}

Status PredictionFlags::takeRates(bool predicts, CompilerOptions& options) const {
  if (rates == "none") return okStatus();
  const bool forGpu = options.target.starts_with("cuda");
  if (rates && forGpu)
    return Status::error("--rates=" + *rates + " has a host's rates, and the plan is for " + options.target +
                         ": leave --rates out");
  if (forGpu || (!predicts && !rates)) return okStatus();
  const std::string folder = defaultCacheFolder();
  if (!rates && folder.empty()) return okStatus();
  const std::string file = rates.value_or(folder + "/" + kRatesFile);
  std::error_code ignored;
  if (!rates && !std::filesystem::exists(file, ignored)) return okStatus();
  Result<HostRates> measured = readRates(file, options.target);
  if (measured.ok())
    options.rates = std::move(*measured);
  else if (rates)
    return measured.status();
  else
    warn(measured.message() + "; times are predicted without");
  return okStatus();
}

Status PredictionFlags::takeProfile(CompilerOptions& options) const {
  if (!profile) return okStatus();
  GPUC_ASSIGN_OR_RETURN(std::string text, readFile(*profile));
  GPUC_ASSIGN_OR_RETURN(Profile seen, Profile::parse(text, *profile));
  options.profile = std::make_shared<const Profile>(std::move(seen));
  return okStatus();
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

Status checkIsModel(std::string_view bytes, const std::string& name) {
  FileKind kind = fileKindOf(bytes);
  for (FileKind taken : {FileKind::mlir, FileKind::unknown, FileKind::empty})
    if (kind == taken) return okStatus();
  return Status::error(name + ": not text of .mlir" + explainFileKind(bytes, FileRole::model));
}

}  // namespace gpuc
