//===- WaysOut.cpp - What takes less memory than the flags that were given -----===//
//
// A plan without @predict, whose result is as long as the batch; a smaller batch, with as many more
// microbatches to an update that it trains on as many rows; 16-bit floats; both; and of ranks that there are
// to be anyway as many as will do to share out what is trained. Batches are halved until one fits, each with
// what computes the most again. Whoever goes such a way with the same budget gets the fastest plan that fits.
//
//===----------------------------------------------------------------------===//

#include "passes/WaysOut.h"

#include "dialects/gpuc/GpucOps.h"
#include "passes/batch/Parts.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace gpuc {
namespace {

struct Way {
  PipelineOptions options;
  std::string flags;
  int64_t bytes = 0;
};

/// Says an entry of the recipe anew.
void set(PipelineOptions &options, StringRef key, std::string text) {
  llvm::erase_if(options.recipe, [&](const auto &entry) { return entry.first == key; });
  options.recipe.emplace_back(key.str(), std::move(text));
}

class WaysOut {
public:
  WaysOut(ModuleOp model, const PipelineOptions &options, int64_t bytes, PeakTrial peakOf)
      : options_(options), bytes_(bytes), peakOf_(peakOf) {
    auto hasRows = [](func::FuncOp function) { return llvm::any_of(function.getArgumentTypes(), isDynamic); };
    OwningOpRef<ModuleOp> copy = model.clone();
    PassManager passes(model.getContext());
    buildRecipePipeline(passes, options);
    auto recipes = copy->getOps<ir::RecipeOp>();
    if (failed(passes.run(*copy)) || recipes.empty())
      return;
    ir::RecipeOp recipe = *recipes.begin();
    accumulate_ = recipe.getAccumulate().value_or(1);
    trains_ = recipe.getOptimizer().has_value();
    if (llvm::any_of(model.getOps<func::FuncOp>(), hasRows))
      rows_ = options.batch != 0 ? options.batch : recipe.getBatch().value_or(1);
    isSilent_ = model.getOps<ir::CheckpointOp>().empty();
    isExact_ = !recipe.getPrecision() || recipe.getPrecision()->getName() == "f32";
    mayOmitPredict_ = trains_ && options.predict && model.lookupSymbol("predict");
    mayShare_ = trains_ && recipe.isDataParallel() && !recipe.getShard();
  }

  std::string describe(int64_t least) {
    if (mayOmitPredict_) {
      Way silent{options_, " --no-predict", 0};
      silent.options.predict = false;
      attempt(std::move(silent));
    }
    tryBatches({options_, "", 0});
    if (isExact_) {
      Way narrow{options_, " --precision=bf16", 0};
      set(narrow.options, "precision", "bf16");
      attempt(narrow);
      if (ways_.empty())
        tryBatches(narrow);
    }
    if (mayShare_)
      tryRanks();
    std::string text;
    for (const Way &way : ways_)
      text += (text.empty() ? ", or what fits:" : ";") + textOf(way);
    return ways_.empty() && least_ && least_->bytes < least ? ", or less with" + textOf(*least_) : text;
  }

private:
  /// Halves, quarters, … of the batch as long as they are whole, and last one row.
  SmallVector<int64_t> partsOfBatch() const {
    SmallVector<int64_t> list;
    for (int64_t parts = 2; parts < rows_ && rows_ % parts == 0; parts *= 2)
      list.push_back(parts);
    if (rows_ > 1)
      list.push_back(rows_);
    return list;
  }

  /// Down to the first batch that fits.
  void tryBatches(const Way &from) {
    for (int64_t parts : partsOfBatch()) {
      Way way = from;
      way.options.batch = rows_ / parts;
      way.flags = " --batch=" + std::to_string(way.options.batch);
      if (trains_) {
        const std::string microbatches = std::to_string(accumulate_ * parts);
        set(way.options, "accumulate", microbatches);
        way.flags += " --accumulate=" + microbatches;
      }
      way.flags += from.flags;
      if (attempt(std::move(way)))
        return;
    }
  }

  /// Up to those of one machine.
  void tryRanks() {
    for (const char *ranks : {"2", "4", "8"})
      for (const char *shared : {"optimizer", "gradients"}) {
        if (accumulate_ == 1 && StringRef(shared) == "gradients")
          continue; // the same
        Way way{options_, std::string(" --shard=") + shared + " --world-size=" + ranks, 0};
        set(way.options, "shard", shared);
        set(way.options, "world_size", ranks);
        if (attempt(std::move(way)))
          return;
      }
  }

  /// Whether it fits.
  bool attempt(Way way) {
    way.options.checkpoint = trains_ ? "full" : "none";
    const std::optional<int64_t> peak = peakOf_(way.options);
    if (!peak)
      return false;
    way.bytes = *peak;
    if (!least_ || way.bytes < least_->bytes)
      least_ = way;
    if (way.bytes > bytes_)
      return false;
    ways_.push_back(std::move(way));
    return true;
  }

  /// With computing again only where it has to be.
  std::string textOf(Way way) {
    if (way.options.checkpoint != "none") {
      PipelineOptions keeping = way.options;
      keeping.checkpoint = "none";
      const std::optional<int64_t> kept = peakOf_(keeping);
      const bool isEnough = kept && *kept <= std::max(bytes_, way.bytes);
      if (isEnough)
        way.bytes = *kept;
      if (!isEnough || !isSilent_)
        way.flags += std::string(" --checkpoint=") + (isEnough ? "none" : way.options.checkpoint);
    }
    return way.flags + ", which takes " + std::to_string(way.bytes);
  }

  const PipelineOptions &options_;
  const int64_t bytes_;
  PeakTrial peakOf_;
  int64_t rows_ = 1, accumulate_ = 1;
  bool trains_ = false;
  bool mayOmitPredict_ = false;
  bool mayShare_ = false; ///< Ranks may share out what is trained, and do not.
  bool isExact_ = false;  ///< Nothing is of 16 bits so far.
  bool isSilent_ = true;  ///< The model does not say itself what is computed again.
  std::vector<Way> ways_;
  std::optional<Way> least_;
};

} // namespace

std::string describeWaysOut(ModuleOp model, const PipelineOptions &options, int64_t bytes, int64_t least,
                            PeakTrial peakOf) {
  return WaysOut(model, options, bytes, peakOf).describe(least);
}

} // namespace gpuc
