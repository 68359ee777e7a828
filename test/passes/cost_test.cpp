//===- cost_test.cpp - Rates that are fitted, written and read ----------------===//

#include "passes/cost/CostModel.h"

#include "dialects/gpuc/GpucOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace mlir;

namespace gpuc {
namespace {

/// Commands of one family that take just what these rates say.
std::vector<Sample> samplesOf(const HostRates &rates, Family family, int count) {
  std::mt19937_64 random(1);
  std::vector<Sample> samples;
  for (int number = 0; number < count; ++number) {
    Sample sample;
    sample.work.family = family;
    for (size_t unit = 0; unit < kUnitCount; ++unit)
      if (rates.units[static_cast<size_t>(family)][unit] > 0)
        sample.work.amounts[unit] = std::exp2(static_cast<double>(random() % 1000) / 50);
    sample.work[Unit::command] = 1;
    sample.nanoseconds = rates.nanoseconds(sample.work);
    sample.share = 1.0 / count;
    samples.push_back(sample);
  }
  return samples;
}

TEST(FitRates, FindsTheRatesThatCommandsWereMadeOf) {
  HostRates wanted = typicalRates();
  for (double &rate : wanted.units[static_cast<size_t>(Family::matmul)])
    rate *= 3;
  const std::vector<Sample> samples = samplesOf(wanted, Family::matmul, 400);
  HostRates found = typicalRates();
  fitRates(samples, found);
  for (const Sample &sample : samples)
    EXPECT_NEAR(found.nanoseconds(sample.work) / sample.nanoseconds, 1, 0.05);
  EXPECT_EQ(found.units[static_cast<size_t>(Family::conv)],
            typicalRates().units[static_cast<size_t>(Family::conv)])
      << "what no sample has stays typical";
}

TEST(FitRates, IsNearTheMedianOfNoisyTimes) {
  const HostRates wanted = typicalRates();
  std::vector<Sample> samples = samplesOf(wanted, Family::kernel, 400);
  double measured = 0, predicted = 0;
  for (size_t number = 0; number < samples.size(); ++number)
    samples[number].nanoseconds *= number % 2 ? 1.5 : 1 / 1.5;
  HostRates found = typicalRates();
  fitRates(samples, found);
  for (const Sample &sample : samples) {
    measured += std::log(sample.nanoseconds);
    predicted += std::log(found.nanoseconds(sample.work));
  }
  EXPECT_NEAR((predicted - measured) / static_cast<double>(samples.size()), 0, 0.1)
      << "neither too high nor too low";
}

/// As a product has that hands its tiles to a weight's update.
TEST(FitRates, CountsWhatAFamilyHasNoRateForAsAKernelDoes) {
  const HostRates wanted = typicalRates();
  std::vector<Sample> samples = samplesOf(wanted, Family::kernel, 400);
  std::vector<Sample> products = samplesOf(wanted, Family::matmul, 400);
  for (Sample &sample : products) {
    sample.work[Unit::root] = sample.work[Unit::stored] * 20;
    sample.nanoseconds = wanted.nanoseconds(sample.work);
  }
  samples.insert(samples.end(), products.begin(), products.end());
  HostRates found = typicalRates();
  fitRates(samples, found);
  for (const Sample &sample : products)
    EXPECT_NEAR(found.nanoseconds(sample.work) / sample.nanoseconds, 1, 0.05);
}

TEST(CacheSizes, HoldLessTheMoreWasTouchedSince) {
  const CacheSizes caches{.near = 1 << 20, .far = 64 << 20};
  EXPECT_EQ(caches.sharesAt(1), (BytesByPlace{1, 0, 0}));
  EXPECT_EQ(caches.sharesAt(caches.near / 2), (BytesByPlace{1, 0, 0}));
  EXPECT_EQ(caches.sharesAt(caches.near), (BytesByPlace{0.5, 0.5, 0}));
  EXPECT_EQ(caches.sharesAt(caches.near * 2), (BytesByPlace{0, 1, 0}));
  EXPECT_EQ(caches.sharesAt(caches.far / 4), (BytesByPlace{0, 1, 0}));
  EXPECT_EQ(caches.sharesAt(caches.far / 2), (BytesByPlace{0, 0.5, 0.5})) << "others use it, too";
  EXPECT_EQ(caches.sharesAt(caches.far), (BytesByPlace{0, 0, 1}));
  EXPECT_EQ(caches.sharesAt(int64_t{1} << 60), (BytesByPlace{0, 0, 1}));
  BytesByPlace last{1, 0, 0};
  for (int64_t distance = 1; distance < (int64_t{1} << 30); distance += distance / 7 + 1) {
    const BytesByPlace shares = caches.sharesAt(distance);
    EXPECT_NEAR(shares[0] + shares[1] + shares[2], 1, 1e-12);
    EXPECT_LE(shares[0], last[0]);
    EXPECT_GE(shares[2], last[2]);
    last = shares;
  }
  const CacheSizes one{.near = 1 << 20, .far = 1 << 20};
  EXPECT_EQ(one.sharesAt(1 << 20), (BytesByPlace{0.5, 0, 0.5})) << "of a single cache, too";
}

TEST(FitThreads, FindsSpeedupAndFork) {
  HostRates rates = typicalRates();
  rates.threads = 2;
  std::vector<SharedSample> samples;
  for (double alone = 100; alone < 1e7; alone *= 1.5)
    samples.push_back({alone, std::min(alone, alone / 1.7 + 3000), 1e7 / alone});
  fitThreads(samples, rates);
  EXPECT_NEAR(rates.speedup, 1.7, 0.051);
  EXPECT_NEAR(rates.forkNanoseconds, 3000, 800);
  const CostModel cost(kHostDescription, rates);
  EXPECT_EQ(cost.sharedNanoseconds(100), 100) << "too short to share";
  EXPECT_NEAR(cost.sharedNanoseconds(1e6), 1e6 / 1.7, 5e4);
}

TEST(FitThreads, LeavesOutWhatNobodyShares) {
  HostRates rates = typicalRates();
  rates.threads = 2;
  std::vector<SharedSample> samples;
  for (double alone = 100; alone < 1e7; alone *= 1.5)
    for (int64_t parts : {0, 1})
      samples.push_back(
          {alone, parts == 1 ? alone : std::min(alone, alone / 1.7 + 3000), 1e7 / alone, parts});
  fitThreads(samples, rates);
  EXPECT_NEAR(rates.speedup, 1.7, 0.051);
  const CostModel cost(kHostDescription, rates);
  EXPECT_EQ(cost.sharedNanoseconds(1e6, 1), 1e6) << "one part";
  EXPECT_NEAR(cost.sharedNanoseconds(1e6, 2), 1e6 / 1.7, 5e4);
}

TEST(SharedCacheBytes, EndsWhereReadingTakesLonger) {
  constexpr int64_t kMiB = 1 << 20;
  // As the two cores of a virtual machine measured them, of whose shared cache the system says 480 MiB.
  const CacheSample samples[] = {{8 * kMiB, 0.0280},  {16 * kMiB, 0.0287},  {32 * kMiB, 0.0285},
                                 {64 * kMiB, 0.0302}, {128 * kMiB, 0.0492}, {256 * kMiB, 0.0602}};
  EXPECT_EQ(sharedCacheBytes(samples), 64 * kMiB);
  EXPECT_EQ(sharedCacheBytes(llvm::ArrayRef(samples).take_front(3)), 32 * kMiB) << "all that was tried";
  EXPECT_EQ(sharedCacheBytes({}), 0);
}

TEST(FitStep, FindsWhatIsLeftOfAStep) {
  HostRates rates = typicalRates();
  std::vector<StepSample> samples;
  for (double commands : {200.0, 3000.0, 20000.0, 150000.0})
    for (double iterations : {0.0, 20.0, 40.0})
      samples.push_back({commands + 80 + 150 * iterations, commands, iterations});
  fitStep(samples, rates);
  EXPECT_NEAR(rates.stepNanoseconds, 80, 1);
  EXPECT_NEAR(rates.iterationNanoseconds, 150, 1);
  fitStep({{100, 300, 0}, {100, 300, 5}}, rates);
  EXPECT_EQ(rates.stepNanoseconds, 0) << "nothing is less than nothing";
  EXPECT_EQ(rates.iterationNanoseconds, 0);
  fitStep({}, rates);
  EXPECT_EQ(rates.stepNanoseconds, 0);
}

TEST(PartUnmeasured, BringsCommandsDownToTheirStep) {
  EXPECT_EQ(partUnmeasured({100, 400, 0}), 0.25);
  EXPECT_EQ(partUnmeasured({400, 100, 3}), 1) << "the rest is the step's and its loops'";
  EXPECT_EQ(partUnmeasured({100, 0, 0}), 1) << "no commands";
}

/// The work of the one op in a function's body that is no end of it.
Work workIn(const std::string &body) {
  MLIRContext context;
  context.loadDialect<ir::GpucDialect, func::FuncDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(body, &context);
  if (!module)
    return ADD_FAILURE() << "does not parse", Work();
  return workOf(&(*module->getOps<func::FuncOp>().begin()).front().front());
}

Work workOfMatmul(int64_t m, int64_t n, int64_t k) {
  const auto tensor = [](int64_t rows, int64_t columns) {
    return "tensor<" + std::to_string(rows) + "x" + std::to_string(columns) + "xf32>";
  };
  return workIn("func.func @f(%a: " + tensor(m, k) + ", %b: " + tensor(n, k) + ") -> " + tensor(m, n) +
                " { %c = gpuc.matmul %a, transpose %b : (" + tensor(m, k) + ", " + tensor(n, k) + ") -> " +
                tensor(m, n) + "\n return %c : " + tensor(m, n) + " }");
}

TEST(CountWork, CutsAProductAsTheRuntimeDoes) {
  const Work few = workOfMatmul(1, 256, 784), many = workOfMatmul(100, 24, 784);
  EXPECT_EQ(few.family, Family::matmulOfRows);
  EXPECT_EQ(few[Unit::row], 256) << "a sum of lanes for each element";
  EXPECT_EQ(few[Unit::packed], 0);
  EXPECT_EQ(many.family, Family::matmulByRows);
  EXPECT_EQ(many[Unit::flop], 2 * 100 * 32 * 784) << "24 columns fill two vectors of 16";
  EXPECT_EQ(many[Unit::packed], 2 * 24 * 784) << "two tiles of rows, each of which packs the columns";
  EXPECT_EQ(many.parts, 2);
  EXPECT_EQ(workOfMatmul(33, 24, 784).parts, 1) << "33 rows are one tile, that no other thread shares";
}

TEST(CountWork, CutsAConvolutionByChannelsAsTheRuntimeDoes) {
  const auto parts = [](int64_t batch, int64_t pixels) {
    const auto tensor = [](std::initializer_list<int64_t> shape) {
      return "tensor<" +
             llvm::join(llvm::map_range(shape, [](int64_t e) { return std::to_string(e); }), "x") + "xf32>";
    };
    const std::string x = tensor({batch, 32, pixels, pixels}), w = tensor({64, 32, 3, 3}),
                      y = tensor({batch, 64, pixels, pixels});
    return workIn("func.func @f(%x: " + x + ", %w: " + w + ") -> " + y +
                  " { %y = gpuc.conv2d %x, %w padding [1, 1, 1, 1] : (" + x + ", " + w + ") -> " + y +
                  "\n return %y : " + y + " }")
        .parts;
  };
  EXPECT_EQ(parts(5, 8), 2) << "320 pixels";
  EXPECT_EQ(parts(1, 8), 1) << "64 pixels, which do not pay for packing the filter twice";
}

TEST(CountWork, RowsOfAKernelHaveVectorsOfTheirOwn) {
  const Work work = workIn(R"mlir(
    func.func @f(%x: tensor<33x10xf32>) -> tensor<33x10xf32> {
      %y = gpuc.fused "softmax"(%x) : (tensor<33x10xf32>) -> tensor<33x10xf32> {
      ^bb0(%a: tensor<33x10xf32>):
        %e = gpuc.exp %a : tensor<33x10xf32>
        %s = gpuc.sum %e dims [1] : (tensor<33x10xf32>) -> tensor<33xf32>
        %b = gpuc.broadcast %s dims [0] : tensor<33xf32> to tensor<33x10xf32>
        %d = gpuc.div %e, %b : tensor<33x10xf32>
        gpuc.yield %d : tensor<33x10xf32>
      }
      return %y : tensor<33x10xf32>
    })mlir");
  EXPECT_EQ(work[Unit::exponential], 33 * 16);
  EXPECT_EQ(work[Unit::chain], 33) << "the kernel goes on with the sums";
  EXPECT_EQ(work[Unit::row], 0);
}

TEST(CountWork, CutsAttentionAsTheRuntimeDoes) {
  const Work work = workIn(R"mlir(
    func.func @f(%q: tensor<1x2x40x8xf32>) -> tensor<1x2x40x8xf32> {
      %y, %l = gpuc.attention %q, %q, %q causal dropout 0.1 id 1
        : (tensor<1x2x40x8xf32>, tensor<1x2x40x8xf32>, tensor<1x2x40x8xf32>)
        -> (tensor<1x2x40x8xf32>, tensor<1x2x40xf32>)
      return %y : tensor<1x2x40x8xf32>
    })mlir");
  EXPECT_EQ(work.family, Family::attention);
  // Queries and keys are cut in blocks of 32 and 8. The first block of queries does not see the last of keys.
  EXPECT_EQ(work[Unit::exponential], 2 * (32 * 32 + 32 * 16 + 8 * 16)) << "queries fill vectors of 16";
  EXPECT_EQ(work[Unit::draw], 2 * (32 * 32 + 8 * 32 + 8 * 32)) << "numbers are drawn by 32";
  EXPECT_EQ(work[Unit::flop], 2 * 2 * (work[Unit::exponential] / 2 * 8 + (32 * 32 + 8 * 32 + 8 * 8) * 16));
  EXPECT_EQ(work[Unit::row], 2 * 40);
}

Work workOfAttention(const std::string &element) {
  const std::string heads = "tensor<8x12x1024x64x" + element + ">", rows = "tensor<8x12x1024xf32>";
  return workIn("func.func @f(%q: " + heads + ") -> " + heads + " { %y, %l = gpuc.attention %q, %q, %q : (" +
                heads + ", " + heads + ", " + heads + ") -> (" + heads + ", " + rows +
                ")\n return %y : " + heads + " }");
}

TEST(CostModel, AttentionOf16BitsIsMultipliedByTensorCores) {
  const CostModel cuda(kCudaDescription), host(kHostDescription);
  const double tensor = cuda.nanosecondsOf(workOfAttention("bf16")),
               core = cuda.nanosecondsOf(workOfAttention("f32")),
               command = kCudaDescription.commandNanoseconds;
  EXPECT_DOUBLE_EQ((core - command) / (tensor - command),
                   kCudaDescription.tensorFlopsPerNanosecond / 4 / kCudaDescription.flopsPerNanosecond);
  EXPECT_GE(host.nanosecondsOf(workOfAttention("bf16")),
            kHostDescription.commandNanoseconds +
                static_cast<double>(workOfAttention("bf16").flops) / kHostDescription.flopsPerNanosecond);
}

TEST(CostModel, PartsThatAreNoMultipleOfTheThreadsLeaveSomeIdle) {
  HostRates rates = typicalRates();
  rates.threads = 2;
  rates.speedup = 2;
  const CostModel cost(kHostDescription, rates);
  EXPECT_DOUBLE_EQ(cost.inPartsNanoseconds(300, 4), 150);
  EXPECT_DOUBLE_EQ(cost.inPartsNanoseconds(300, 3), 200);
}

HostRates someRates() {
  HostRates rates = typicalRates();
  rates.cpu = "A CPU";
  rates.target = "x86-64-v3";
  rates.threads = 2;
  rates.speedup = 1.75;
  rates.forkNanoseconds = 1500;
  rates.stepNanoseconds = 70;
  rates.iterationNanoseconds = 150;
  return rates;
}

TEST(RatesFile, SurvivesPrintingAndReading) {
  const HostRates written = someRates();
  const Result<HostRates> read = parseRates(printRates(written), "f");
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_EQ(read->cpu, written.cpu);
  EXPECT_EQ(read->target, written.target);
  EXPECT_EQ(read->threads, written.threads);
  EXPECT_EQ(read->speedup, written.speedup);
  EXPECT_EQ(read->forkNanoseconds, written.forkNanoseconds);
  EXPECT_EQ(read->stepNanoseconds, written.stepNanoseconds);
  EXPECT_EQ(read->iterationNanoseconds, written.iterationNanoseconds);
  EXPECT_EQ(read->caches.near, written.caches.near);
  EXPECT_EQ(read->caches.far, written.caches.far);
  EXPECT_EQ(read->units, written.units);
}

/// The error of a file in which one text stands in the place of another.
std::string errorWith(const std::string &from, const std::string &to) {
  std::string text = printRates(someRates());
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  return parseRates(text, "rates.json").message();
}

TEST(RatesFile, SaysWhatIsWrongAndTheCure) {
  const std::string cure = "; run gpuc-calibrate again, or remove the file";
  EXPECT_EQ(parseRates("", "rates.json").message(), "rates.json: not JSON" + cure);
  EXPECT_EQ(parseRates("{}", "rates.json").message(), "rates.json: no rates of gpuc-calibrate" + cure);
  EXPECT_EQ(errorWith("gpuc-rates-4", "gpuc-rates-3"), "rates.json: rates of another version of gpuc" + cure);
  EXPECT_EQ(errorWith("\"threads\": 2", "\"threads\": 0"),
            "rates.json: its 'threads' is not a number from 1 to 4096" + cure);
  EXPECT_EQ(errorWith("\"cpu\": \"A CPU\"", "\"cpu\": \"A\\nCPU\""),
            "rates.json: its 'cpu' is not a name" + cure);
  EXPECT_EQ(errorWith("\"gather\": 0.1", "\"gather\": -1"),
            "rates.json: its 'gather' is not a number from 0 to 1000000000 (kernel)" + cure);
  EXPECT_EQ(errorWith("\"gather\"", "\"gathers\""),
            "rates.json: its 'gather' is not a number from 0 to 1000000000 (kernel)" + cure);
  EXPECT_EQ(errorWith("\"gather\"", "\"more\": 1, \"gather\""),
            "rates.json: its 'kernel' has rates that this version does not know (kernel)" + cure);
  EXPECT_EQ(errorWith("\"conv\"", "\"convs\""), "rates.json: it has no rates of 'conv'" + cure);
}

std::string event(const std::string &name, double microseconds, const std::string &entry = "train_step",
                  int64_t bytes = 8) {
  return R"({"name": ")" + name + R"(", "ph": "X", "dur": )" + std::to_string(microseconds) +
         R"(, "args": {"entry": ")" + entry + R"(", "bytes": )" + std::to_string(bytes) + "}}";
}

TEST(Profile, HasMediansWithoutWhatTakingTheTimeTakes) {
  const std::string events = event("copy h2d x", 0.05) + "," + event("a", 1) + "," + event("a", 3) + "," +
                             event("a", 2) + "," + event("b", 9, "predict");
  const Result<Profile> profile = Profile::parse("{\"traceEvents\": [" + events + "]}", "f");
  ASSERT_TRUE(profile.ok()) << profile.message();
  ASSERT_NE(profile->find({"a", 8}), nullptr);
  EXPECT_NEAR(profile->find({"a", 8})->nanoseconds, 1950, 1e-6);
  EXPECT_EQ(profile->find({"a", 8})->events, 3);
  EXPECT_FALSE(profile->hasName("b")) << "another entry's";
}

TEST(Profile, HoldsCommandsOfOneNameApartByTheirBytes) {
  const std::string events = event("a", 1) + "," + event("a", 3, "train_step", 16) + "," + event("aa", 0);
  const Result<Profile> profile = Profile::parse("{\"traceEvents\": [" + events + "]}", "f");
  ASSERT_TRUE(profile.ok()) << profile.message();
  ASSERT_NE(profile->find({"a", 16}), nullptr);
  EXPECT_NEAR(profile->find({"a", 8})->nanoseconds, 1000, 1e-6);
  EXPECT_NEAR(profile->find({"a", 16})->nanoseconds, 3000, 1e-6);
  EXPECT_EQ(profile->find({"a", 24}), nullptr);
  EXPECT_TRUE(profile->hasName("a"));
  EXPECT_FALSE(profile->hasName("A"));
}

TEST(Profile, SaysWhatIsWrongAndTheCure) {
  const std::string cure = "; give what gpuc-run PLAN --entry=train_step --profile=FILE wrote";
  EXPECT_EQ(Profile::parse("[", "f").message(), "f: not JSON" + cure);
  EXPECT_EQ(Profile::parse("[]", "f").message(), "f: not a profile" + cure);
  EXPECT_EQ(Profile::parse(R"({"traceEvents": []})", "f").message(),
            "f: no command of train_step in it" + cure);
}

} // namespace
} // namespace gpuc
