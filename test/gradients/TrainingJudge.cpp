//===- TrainingJudge.cpp - A training module at every level, and its reference ===//

#include "test/gradients/TrainingJudge.h"

#include "passes/Compiler.h"
#include "runtime/gpuc.h"
#include "runtime/plan/contents.h"
#include "test/gradients/DeviceRun.h"

#include <cmath>
#include <random>
#include <regex>

using namespace mlir;

namespace gpuc::gradients {

using reference::Tensor;

//===----------------------------------------------------------------------===//
// What entries are given
//===----------------------------------------------------------------------===//

static void draw(Tensor &tensor, int64_t range, std::mt19937_64 &random) {
  for (reference::Element &element : tensor.elements) {
    const double fraction = std::ldexp(static_cast<double>(random() >> 11), -53);
    if (tensor.isFloat())
      element.real = reference::rounded(2 * fraction - 1, tensor.type.getElementType());
    else
      element.integer = static_cast<int64_t>(fraction * static_cast<double>(range));
  }
}

/// Numbers for an entry's arguments; of its batch all rows but one count if it `pads`.
static std::vector<Tensor> drawArguments(func::FuncOp entry, bool pads, std::mt19937_64 &random,
                                         int32_t &rows) {
  std::vector<Tensor> arguments;
  for (BlockArgument argument : entry.getArguments()) {
    Tensor tensor(reference::typeOf(argument));
    const bool isRows = static_cast<bool>(entry.getArgAttr(argument.getArgNumber(), "gpuc.role"));
    if (isRows) {
      const int64_t batch = arguments.front().shape().front();
      rows = static_cast<int32_t>(pads && batch > 1 ? batch - 1 : batch);
      tensor.elements[0].integer = rows;
    } else {
      auto range = entry.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), "gpuc.range");
      draw(tensor, range ? range.getInt() : tensor.type.getElementTypeBitWidth() == 8 ? 256 : 2, random);
    }
    arguments.push_back(std::move(tensor));
  }
  return arguments;
}

//===----------------------------------------------------------------------===//
// One way of compiling
//===----------------------------------------------------------------------===//

namespace {

/// A module compiled at a level, and what runs it.
class Level {
public:
  static Result<Level> create(const std::string &text, CompiledAs as) {
    Compiler compiler;
    CompilerOptions options;
    options.target = "host";
    options.optLevel = as.optLevel;
    options.train.fuse = as.optLevel > 0;
    options.train.checkNumerics = as.checkNumerics;
    options.train.checkpoint = as.checkpoint;
    options.memoryBudget = as.memoryBudget;
    options.cacheFolder = GPUC_TEST_CACHE; // most kernels are those of the level before
    GPUC_ASSIGN_OR_RETURN(OwningOpRef<ModuleOp> module, compiler.parse(text, "graph.mlir"));
    GPUC_RETURN_IF_ERROR(
        compiler.advance(*module, Stage::plan, options, [](PassManager &) { return okStatus(); }));
    GPUC_ASSIGN_OR_RETURN(std::string bytes, compiler.emit(*module, options));
    GPUC_ASSIGN_OR_RETURN(Plan plan, Plan::parse(std::move(bytes)));
    if (as.memoryBudget && plan.info().arena_bytes > static_cast<uint64_t>(*as.memoryBudget))
      return Status::error("the arena is longer than the budget");
    GPUC_ASSIGN_OR_RETURN([[maybe_unused]] bool isWhole, checkContents(plan.root()));
    const int threads = as.optLevel == 3 ? 2 : 1; // which change no bit
    GPUC_ASSIGN_OR_RETURN(
        Session session, Session::create(plan, {.device = "host", .threads = threads, .check_memory = true}));
    return Level(std::move(session), as);
  }

  Status initialize() { return session_.initialize(); }

  /// Runs an entry on all but the number of rows, which is `rows`. Returns its results.
  Result<std::vector<Tensor>> run(func::FuncOp entry, ArrayRef<Tensor> arguments, int32_t rows) {
    GPUC_ASSIGN_OR_RETURN(ProgramId program, session_.program(entry.getName().str()));
    std::vector<std::vector<std::byte>> buffers;
    std::vector<HostTensorView> inputs;
    for (auto [argument, tensor] : llvm::zip_equal(entry.getArguments(), arguments)) {
      if (entry.getArgAttr(argument.getArgNumber(), "gpuc.role"))
        continue;
      const TensorSpec &spec = session_.plan().info().programs[program.index].inputs[inputs.size()].spec;
      buffers.push_back(bytesOf(tensor));
      inputs.emplace_back(buffers.back().data(), spec.type,
                          std::span(tensor.shape().data(), tensor.shape().size()));
    }
    GPUC_RETURN_IF_ERROR(session_.run(program, inputs, rows));
    GPUC_RETURN_IF_ERROR(session_.wait());
    std::vector<Tensor> results;
    for (auto [index, type] : llvm::enumerate(entry.getResultTypes()))
      results.push_back(tensorOf(static_cast<const std::byte *>(session_.output(program, index).data),
                                 cast<RankedTensorType>(type)));
    return results;
  }

  Result<Variables> read(const std::map<std::string, RankedTensorType> &types) {
    Variables variables;
    for (const auto &[name, type] : types) {
      std::vector<std::byte> bytes = bytesOf(Tensor(type));
      GPUC_RETURN_IF_ERROR(session_.readVariable(name, bytes));
      variables[name] = tensorOf(bytes.data(), type);
    }
    return variables;
  }

  Status write(const Variables &variables) {
    for (const auto &[name, tensor] : variables)
      GPUC_RETURN_IF_ERROR(session_.writeVariable(name, bytesOf(tensor)));
    return okStatus();
  }

  int optLevel() const { return as_.optLevel; }
  std::string name() const { return as_.name(); }

private:
  Level(Session session, CompiledAs as) : session_(std::move(session)), as_(as) {}

  Session session_;
  CompiledAs as_;
};

//===----------------------------------------------------------------------===//
// All of them, against the reference
//===----------------------------------------------------------------------===//

class Judge {
public:
  Judge(TrainingReference &reference, std::vector<Level> levels, uint64_t seed)
      : reference_(reference), levels_(std::move(levels)), random_(seed) {}

  Result<Verdict> run() {
    GPUC_RETURN_IF_ERROR(initialize());
    for (int step = 0; step < 3 && reference_.entry("train_step"); ++step)
      GPUC_RETURN_IF_ERROR(runEntry("train_step", /*pads=*/step == 2));
    for (const char *name : {"eval_step", "predict"})
      if (reference_.entry(name))
        GPUC_RETURN_IF_ERROR(runEntry(name, /*pads=*/false));
    return verdict_;
  }

private:
  Status initialize() {
    Variables seed;
    std::vector<Outcome> found;
    for (Level &level : levels_) {
      GPUC_RETURN_IF_ERROR(level.initialize());
      GPUC_ASSIGN_OR_RETURN(Variables variables, level.read(reference_.variables()));
      seed = {{"seed", variables.at("seed")}};
      found.push_back({{}, std::move(variables)});
    }
    GPUC_ASSIGN_OR_RETURN(Outcome expected, reference_.run("init", {}, seed));
    compare("init", expected, found);
    return okStatus();
  }

  /// From the variables that the last level has, on all levels and the reference.
  Status runEntry(StringRef name, bool pads) {
    func::FuncOp entry = reference_.entry(name);
    int32_t rows = -1;
    std::vector<Tensor> arguments = drawArguments(entry, pads, random_, rows);
    GPUC_ASSIGN_OR_RETURN(Variables state, levels_.back().read(reference_.variables()));
    std::vector<Outcome> found;
    for (Level &level : levels_) {
      if (&level != &levels_.back())
        GPUC_RETURN_IF_ERROR(level.write(state));
      GPUC_ASSIGN_OR_RETURN(std::vector<Tensor> results, level.run(entry, arguments, rows));
      GPUC_ASSIGN_OR_RETURN(Variables variables, level.read(reference_.variables()));
      found.push_back({std::move(results), std::move(variables)});
    }
    GPUC_ASSIGN_OR_RETURN(Outcome expected, reference_.run(name, arguments, state));
    compare(name.str(), expected, found);
    return okStatus();
  }

  void blame(const std::string &fault) {
    if (verdict_.fault.empty())
      verdict_.fault = fault;
  }

  void compare(const std::string &entry, const Outcome &expected, ArrayRef<Outcome> found) {
    forEach(entry, expected, [&](const std::string &what, const Tensor &tensor, auto of) {
      verdict_.coverage.count(tensor);
      const Tensor *before[2] = {}; // unfused and fused, which may cut sums up differently
      for (auto [level, outcome] : llvm::zip_equal(levels_, found)) {
        if (std::string difference = differenceOf(tensor, of(outcome)); !difference.empty())
          blame(level.name() + ", " + what + ": " + difference);
        const Tensor *&same = before[level.optLevel() > 0];
        if (same && bytesOf(*same) != bytesOf(of(outcome)))
          blame(level.name() + ", " + what + ": the bits are not those of the level before");
        same = &of(outcome);
      }
    });
  }

  /// Results first, which are nearer to a cause than what the step makes of them.
  template <typename Body> void forEach(const std::string &entry, const Outcome &expected, Body body) {
    for (auto [index, tensor] : llvm::enumerate(expected.results))
      body("@" + entry + ", result " + std::to_string(index), tensor,
           [index = index](const Outcome &outcome) -> const Tensor & { return outcome.results[index]; });
    for (const auto &[name, tensor] : expected.variables)
      body("@" + name + " after @" + entry, tensor,
           [&name = name](const Outcome &outcome) -> const Tensor & { return outcome.variables.at(name); });
  }

  TrainingReference &reference_;
  std::vector<Level> levels_;
  std::mt19937_64 random_;
  Verdict verdict_;
};

} // namespace

std::string CompiledAs::name() const {
  return "-O" + std::to_string(optLevel) + (checkNumerics ? " --check-numerics" : "") +
         (checkpoint != "none" ? " --checkpoint=" + checkpoint : "") +
         (memoryBudget ? " --memory-budget=" + std::to_string(*memoryBudget) : "");
}

Result<Verdict> judgeTraining(const std::string &text, ArrayRef<CompiledAs> ways, uint64_t seed) {
  GPUC_ASSIGN_OR_RETURN(TrainingReference reference, TrainingReference::create(text));
  std::vector<Level> levels;
  for (CompiledAs as : ways) {
    Result<Level> level = Level::create(text, as);
    if (!level.ok())
      return Verdict{as.name() + ": " + level.message(), {}};
    levels.push_back(std::move(*level));
  }
  Result<Verdict> verdict = Judge(reference, std::move(levels), seed).run();
  return verdict.ok() ? verdict : Verdict{verdict.message(), {}};
}

//===----------------------------------------------------------------------===//
// Parts of the batch
//===----------------------------------------------------------------------===//

/// The recipe with its batch in so many parts, or, of so many times the rows, whole.
static std::string cutInto(const std::string &text, int64_t microbatches, int64_t ranks, bool isWhole) {
  static const std::regex cuts(R"(,\s*(accumulate|emulate_ranks) = \d+)"), batch(R"(batch = (\d+))");
  std::string recipe = std::regex_replace(text.substr(text.find("gpuc.recipe")), cuts, "");
  std::smatch found;
  std::regex_search(recipe, found, batch);
  const int64_t rows = std::stoll(found[1]);
  const std::string parts = "batch = " + std::to_string(rows) +
                            ",\n  accumulate = " + std::to_string(microbatches) +
                            ",\n  emulate_ranks = " + std::to_string(ranks);
  const std::string whole = "batch = " + std::to_string(rows * microbatches * ranks);
  // A scale of gradients needs the count of all parts before the first of them.
  const std::string scale = text.size() % 2 ? ",\n  loss_scale = static(scale = 64.0)" : "";
  return text.substr(0, text.find("gpuc.recipe")) +
         std::regex_replace(recipe, batch, (isWhole ? whole : parts) + scale);
}

/// The same numbers for another module, whose types are its own.
static Tensor retyped(const Tensor &tensor, RankedTensorType type) {
  Tensor anew(type);
  anew.elements = tensor.elements;
  return anew;
}

/// What `parts` gives for an entry, of what the whole is given.
static Result<Outcome> runParts(TrainingReference &parts, ArrayRef<Tensor> arguments,
                                const Variables &state) {
  func::FuncOp entry = parts.entry("train_step");
  std::vector<Tensor> given;
  for (auto [argument, tensor] : llvm::zip_equal(entry.getArguments(), arguments))
    given.push_back(retyped(tensor, reference::typeOf(argument)));
  Variables before;
  for (const auto &[name, type] : parts.variables())
    before[name] = retyped(state.at(name), type);
  return parts.run("train_step", given, before);
}

Result<Verdict> judgeParts(const std::string &text, int64_t microbatches, int64_t ranks, uint64_t seed) {
  GPUC_ASSIGN_OR_RETURN(TrainingReference parts,
                        TrainingReference::create(cutInto(text, microbatches, ranks, /*isWhole=*/false)));
  GPUC_ASSIGN_OR_RETURN(TrainingReference whole,
                        TrainingReference::create(cutInto(text, microbatches, ranks, /*isWhole=*/true)));
  std::mt19937_64 random(seed);
  Variables first{{"seed", Tensor(whole.variables().at("seed"))}};
  GPUC_ASSIGN_OR_RETURN(Outcome state, whole.run("init", {}, first));
  Verdict verdict;
  for (bool pads : {false, true}) {
    int32_t rows = -1;
    std::vector<Tensor> arguments = drawArguments(whole.entry("train_step"), pads, random, rows);
    GPUC_ASSIGN_OR_RETURN(Outcome expected, whole.run("train_step", arguments, state.variables));
    GPUC_ASSIGN_OR_RETURN(Outcome found, runParts(parts, arguments, state.variables));
    for (const auto &[name, tensor] : expected.variables) {
      verdict.coverage.count(tensor);
      if (std::string difference = differenceOf(tensor, found.variables.at(name)); !difference.empty())
        return Verdict{"parts, @" + name + ": " + difference, verdict.coverage};
    }
    for (auto [index, tensor] : llvm::enumerate(expected.results))
      if (std::string difference = differenceOf(tensor, found.results[index]); !difference.empty())
        return Verdict{"parts, result " + std::to_string(index) + ": " + difference, verdict.coverage};
    state = std::move(expected);
  }
  return verdict;
}

} // namespace gpuc::gradients
