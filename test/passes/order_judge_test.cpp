//===- order_judge_test.cpp - plan-order against the exact optimum -----------===//
//
// Random programs of up to 30 commands, loops counted with what is in them, are written as text, ordered and
// placed. How much is live at once in the best of all orders is found by a judge that shares nothing with the
// pass (test/ordering/judge.h), from what the test wrote, not from the text: what must come before what, what
// may lie over what, and what lives in one iteration of a loop are reckoned here once more.
//
// Kernels read operands of their result's size element by element, and may then write over them, or from
// behind, and may not.
//
//===----------------------------------------------------------------------===//

#include "dialects/plan/PlanOps.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"
#include "test/ordering/judge.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

namespace gpuc {
namespace {

/// A number and how it is written.
std::string text(int64_t number) { return std::to_string(number); }

struct Read {
  size_t buffer;
  enum How { elementwise, reversed, halfOfIt } how;
};

class RandomProgram {
public:
  explicit RandomProgram(uint64_t seed)
      : random_(seed), left_(below(3) == 0 ? 6 + below(10) : 20 + below(11)) {
    const uint64_t shape = below(4);
    while (left_ > 0)
      if (shape == 3 && left_ > 4 && below(6) == 0)
        addLoop();
      else if (shape == 0)
        addChain();
      else if (shape == 1)
        addLadder();
      else
        addAny();
    for (size_t buffer = 0; buffer < problem_.buffers.size(); ++buffer)
      if (below(8) == 0 || loopResults_.count(buffer) || buffer + 1 == problem_.buffers.size()) {
        problem_.buffers[buffer].to_end = true;
        outputs_ += "    plan.output \"o" + text(buffer) + "\" %b" + text(buffer) + "\n";
      }
  }

  std::string module() const {
    return "module attributes {plan.target = #plan.target<host, \"\">} {\n" + kernels_ +
           "  plan.program @f {\n" + buffers_ + body_ + outputs_ + "  }\n}\n";
  }

  /// With the best order in each loop.
  const ordering::Problem &problem() const { return problem_; }

  int64_t peakAsGiven() const {
    ordering::Problem given = problem_;
    for (auto [loop, bytes] : scratchAsGiven_)
      given.commands[loop].scratch = bytes;
    return ordering::Judge(given).peakOf(ordering::givenOrder(given));
  }

private:
  uint64_t below(uint64_t count) { return random_() % count; }

  /// Of f32; some do not fill their last line of memory.
  size_t addBuffer(int64_t elements) {
    const std::string name = "%" + prefix_ + text(sizes().size());
    buffers_ +=
        "    " + name + " = plan.buffer \"" + name.substr(1) + "\" : " + type(elements) + " activation\n";
    current().buffers.push_back({(4 * elements + 63) / 64 * 64});
    sizes().push_back(elements);
    uses().emplace_back();
    return sizes().size() - 1;
  }
  int64_t anySize() { return below(3) == 0 ? 2 * (1 + below(40)) : 16 * (1 + below(below(2) ? 60 : 8)); }
  static std::string type(int64_t elements) { return "tensor<" + text(elements) + "xf32>"; }

  /// A launch of a kernel of its own; reads outside of a loop by `outside`.
  void add(const std::vector<Read> &reads, size_t result, const std::vector<size_t> &outside = {}) {
    const std::string kernel = "@k" + text(kernelCount_++);
    std::string arguments, body, inputs, sum;
    auto addArgument = [&](const std::string &value, int64_t elements) {
      arguments += (arguments.empty() ? "%a" : ", %a") + text(inputCount_) + ": " + type(elements);
      inputs += (inputs.empty() ? "" : ", ") + value;
      return "%a" + text(inputCount_++);
    };
    const std::string to = type(sizes()[result]);
    for (const Read &read : reads) {
      const std::string value = "%" + prefix_ + text(read.buffer);
      if (read.how == Read::halfOfIt) {
        addArgument(half(value, sizes()[read.buffer] / 2), sizes()[read.buffer] / 2);
        continue;
      }
      std::string argument = addArgument(value, sizes()[read.buffer]);
      if (sizes()[read.buffer] != sizes()[result])
        continue;
      if (read.how == Read::reversed) {
        body += "    %r" + argument.substr(1) + " = gpuc.reverse " + argument + " dims [0] : " + to + "\n";
        argument = "%r" + argument.substr(1);
      }
      const std::string next = "%s" + text(inputCount_);
      body += "    " + next + " = gpuc.add " + argument + ", " + (sum.empty() ? argument : sum) + " : " + to +
              "\n";
      sum = next;
    }
    for (size_t buffer : outside)
      addArgument("%b" + text(buffer), outerSizes_[buffer]);
    if (sum.empty()) {
      body += "    %c = gpuc.constant 1.0 : " + to + "\n";
      sum = "%c";
    }
    kernels_ += "  plan.kernel " + kernel + " (" + arguments + ") {\n" + body + "    gpuc.yield " + sum +
                " : " + to + "\n  }\n";
    const bool again = below(12) == 0;
    body_ += indent_ + "plan.launch " + kernel + "(" + inputs + ") -> (%" + prefix_ + text(result) + ")" +
             (again ? " {gpuc.recomputed}\n" : "\n");
    tell(reads, result, again);
    --left_;
  }

  std::string half(const std::string &value, int64_t elements) {
    const std::string view = "%v" + text(viewCount_++);
    body_ += indent_ + view + " = plan.view " + value + "[0] : " + type(elements) + "\n";
    return view;
  }

  /// The same for the judge.
  void tell(const std::vector<Read> &reads, size_t result, bool again) {
    std::vector<size_t> from;
    for (const Read &read : reads)
      from.push_back(read.buffer);
    ordering::Command command = ordered(from, {result}, again);
    for (const Read &read : reads)
      if (read.how == Read::elementwise && read.buffer != result && sizes()[read.buffer] == sizes()[result])
        command.overlays.emplace_back(result, read.buffer);
    current().commands.push_back(std::move(command));
  }

  ordering::Command ordered(const std::vector<size_t> &reads, const std::vector<size_t> &writes, bool again) {
    const size_t index = current().commands.size();
    ordering::Command command;
    std::set<size_t> before, buffers(reads.begin(), reads.end());
    for (size_t read : reads) {
      before.insert(uses()[read].writers.begin(), uses()[read].writers.end());
      uses()[read].readers.insert(index);
    }
    for (size_t write : writes) {
      before.insert(uses()[write].writers.begin(), uses()[write].writers.end());
      before.insert(uses()[write].readers.begin(), uses()[write].readers.end());
      uses()[write] = {{index}, {}};
      buffers.insert(write);
    }
    std::optional<size_t> &original = inLoop_ ? innerOriginal_ : outerOriginal_;
    if (again && original)
      before.insert(*original);
    if (!again)
      original = index;
    before.erase(index);
    command.buffers.assign(buffers.begin(), buffers.end());
    command.predecessors.assign(before.begin(), before.end());
    return command;
  }

  void addChain() {
    std::vector<Read> reads;
    if (!sizes().empty() && below(5) != 0)
      reads.push_back({below(3) == 0 ? below(sizes().size()) : sizes().size() - 1, how()});
    const int64_t size = reads.empty() || below(2) == 0 ? anySize() : sizes()[reads[0].buffer];
    add(reads, addBuffer(size));
  }

  /// Each of what was made forward is read once more on the way back.
  void addLadder() {
    std::vector<size_t> forward;
    for (size_t layer = std::max<size_t>(1, left_ / 3); layer > 0; --layer) {
      std::vector<Read> reads;
      if (!forward.empty())
        reads.push_back({forward.back(), how()});
      forward.push_back(addBuffer(below(2) == 0 || forward.empty() ? anySize() : sizes()[forward.back()]));
      add(reads, forward.back());
    }
    size_t cotangent = forward.back();
    for (; !forward.empty() && left_ > 0; forward.pop_back()) {
      if (below(2) == 0 && left_ > 1)
        add({{forward.back(), how()}, {cotangent, how()}}, addBuffer(anySize()));
      const size_t next = addBuffer(sizes()[forward.back()]);
      add(forward.back() == cotangent ? std::vector<Read>{{cotangent, how()}}
                                      : std::vector<Read>{{cotangent, how()}, {forward.back(), how()}},
          next);
      cotangent = next;
    }
  }

  void addAny() {
    std::vector<Read> reads;
    const bool isLocal = below(2);
    for (uint64_t count = sizes().empty() ? 0 : below(4); count > 0; --count) {
      const size_t back = 1 + below(isLocal ? std::min<uint64_t>(sizes().size(), 5) : sizes().size());
      const size_t buffer = sizes().size() - back;
      if (llvm::none_of(reads, [&](const Read &read) { return read.buffer == buffer; }))
        reads.push_back({buffer, how()});
    }
    if (!reads.empty() && below(10) == 0) // what was there is overwritten
      return add({reads.begin() + 1, reads.end()}, reads[0].buffer);
    add(reads, addBuffer(reads.empty() || below(2) == 0 ? anySize() : sizes()[reads[0].buffer]));
  }

  Read::How how() {
    return below(2) == 0 ? Read::elementwise : below(4) == 0 ? Read::halfOfIt : Read::reversed;
  }

  /// What its commands write lives in one iteration only, but for the last, which writes to the outside.
  void addLoop() {
    const size_t result = addBuffer(anySize()), total = left_;
    std::set<size_t> outside;
    if (outerSizes_.size() > 1)
      outside.insert(below(outerSizes_.size() - 1));
    loopResults_.insert(result); // which is read outside: else it would live in one iteration, too
    inner_ = {};
    innerSizes_.clear();
    innerUses_.clear();
    innerOriginal_ = {};
    inLoop_ = true;
    prefix_ = "l" + text(loopCount_++) + "x";
    indent_ = "      ";
    body_ += "    plan.repeat 3 {\n";
    for (size_t count = 2 + below(std::min<size_t>(total - 2, 7)); count > 0; --count)
      if (sizes().empty())
        add({}, addBuffer(anySize()), {outside.begin(), outside.end()});
      else
        addAny();
    closeLoop(result, outside);
  }

  void closeLoop(size_t result, const std::set<size_t> &outside) {
    const std::string last = "%" + prefix_ + text(sizes().size() - 1), kernel = "@k" + text(kernelCount_++);
    const std::string from = type(sizes().back()), to = type(outerSizes_[result]);
    kernels_ += "  plan.kernel " + kernel + " (%a: " + from + ") {\n    %c = gpuc.constant 1.0 : " + to +
                "\n    gpuc.yield %c : " + to + "\n  }\n";
    body_ += indent_ + "plan.launch " + kernel + "(" + last + ") -> (%b" + text(result) + ")\n    }\n";
    ordering::Command end = ordered({sizes().size() - 1}, {}, false);
    inner_.commands.push_back(std::move(end));
    inLoop_ = false;
    prefix_ = "b";
    indent_ = "    ";
    --left_;
    ordering::Command loop = ordered({outside.begin(), outside.end()}, {result}, false);
    const ordering::Judge judge(inner_);
    loop.scratch = judge.leastPeak(INT64_MAX);
    scratchAsGiven_[problem_.commands.size()] = judge.peakOf(ordering::givenOrder(inner_));
    problem_.commands.push_back(std::move(loop));
  }

  struct Uses {
    std::set<size_t> writers, readers;
  };

  ordering::Problem &current() { return inLoop_ ? inner_ : problem_; }
  std::vector<int64_t> &sizes() { return inLoop_ ? innerSizes_ : outerSizes_; }
  std::vector<Uses> &uses() { return inLoop_ ? innerUses_ : outerUses_; }

  std::mt19937_64 random_;
  size_t left_; // commands
  ordering::Problem problem_, inner_;
  std::vector<int64_t> outerSizes_, innerSizes_; // elements
  std::vector<Uses> outerUses_, innerUses_;
  std::optional<size_t> outerOriginal_, innerOriginal_; // the last that computes nothing again
  std::set<size_t> loopResults_;
  std::map<size_t, int64_t> scratchAsGiven_; // of loops
  bool inLoop_ = false;
  std::string prefix_ = "b", indent_ = "    ", kernels_, buffers_, body_, outputs_;
  size_t kernelCount_ = 0, inputCount_ = 0, viewCount_ = 0, loopCount_ = 0;
};

/// The lower bound of the placement, with plan-order or without; -1 if a pass fails.
int64_t lowerBoundOf(const std::string &text, bool isOrdered) {
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module)
    return -1;
  mlir::PassManager passes(&context);
  if (isOrdered)
    passes.addPass(createOrderPass());
  passes.addPass(createAssignStreamsPass());
  passes.addPass(createPlaceBuffersPass());
  passes.addPass(createVerifyPlanPass());
  if (failed(passes.run(*module)))
    return -1;
  return (*module->getOps<plan::ArenaOp>().begin()).getLowerBound();
}

TEST(OrderJudge, NoOrderOfARandomProgramIsMuchBetter) {
  double worst = 1, sum = 0, sumBefore = 0;
  int programs = 0, better = 0;
  for (uint64_t seed = 0; seed < 300; ++seed, ++programs) {
    RandomProgram program(seed);
    const int64_t before = lowerBoundOf(program.module(), /*isOrdered=*/false),
                  found = lowerBoundOf(program.module(), /*isOrdered=*/true);
    const ordering::Judge judge(program.problem());
    ASSERT_EQ(before, program.peakAsGiven()) << "seed " << seed << '\n' << program.module();
    const int64_t less = judge.leastPeak(found), least = less < 0 ? found : less;
    const double ratio = static_cast<double>(found) / static_cast<double>(least);
    EXPECT_LE(ratio, 1.02) << "seed " << seed << '\n' << program.module();
    worst = std::max(worst, ratio);
    sum += std::log(ratio);
    sumBefore += std::log(static_cast<double>(before) / static_cast<double>(least));
    better += found < before;
  }
  std::printf("%d programs, %d of them better in another order; worst %.4f of the optimum, mean %.4f, as "
              "given %.4f\n",
              programs, better, worst, std::exp(sum / programs), std::exp(sumBefore / programs));
  EXPECT_GE(better, programs / 4);
}

} // namespace
} // namespace gpuc
