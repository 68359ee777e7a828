// Segmented kernels: each segment has the bits that its kernel gives alone, whatever the others are, in
// whatever parts the tiles are computed; on a GPU likewise.
#include "passes/codegen/Segments.h"
#include "test/passes/codegen/cuda_harness.h"

#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace gpuc;
using namespace gpuc::test;

namespace {

/// One segment as text: the types of its arguments, of which the last is the step size that all share, and of
/// its results.
struct Part {
  std::vector<std::string> arguments, results;
  std::string body; ///< Of arguments %p0, %p1, ….
};

const std::string kScalar = "tensor<f32>";

std::string tensor(const std::vector<int64_t> &shape) {
  std::string text = "tensor<";
  for (int64_t extent : shape)
    text += std::to_string(extent) + "x";
  return text + "f32>";
}

/// A weight and its momentum, by gradient and step size.
Part momentum(const std::vector<int64_t> &shape, const std::string &rate) {
  std::string t = tensor(shape);
  return {{t, t, t, kScalar},
          {t, t},
          "%rate = gpuc.constant " + rate + " : " + t + "\n%slow = gpuc.mul %p2, %rate : " + t +
              "\n%m = gpuc.add %slow, %p1 : " + t + "\n%root = gpuc.sqrt %m : " + t +
              "\n%lr = gpuc.broadcast %p3 dims [] : " + kScalar + " to " + t +
              "\n%by = gpuc.mul %root, %lr : " + t + "\n%w = gpuc.sub %p0, %by : " + t +
              "\ngpuc.yield %w, %m : " + t + ", " + t};
}

/// A weight, by a gradient that is an outer product.
Part outer(int64_t rows, int64_t columns) {
  std::string t = tensor({rows, columns}), row = tensor({rows}), column = tensor({columns});
  return {{t, row, column, kScalar},
          {t},
          "%a = gpuc.broadcast %p1 dims [0] : " + row + " to " + t +
              "\n%b = gpuc.broadcast %p2 dims [1] : " + column + " to " + t +
              "\n%g = gpuc.mul %a, %b : " + t + "\n%lr = gpuc.broadcast %p3 dims [] : " + kScalar + " to " +
              t + "\n%by = gpuc.mul %g, %lr : " + t + "\n%w = gpuc.sub %p0, %by : " + t +
              "\ngpuc.yield %w : " + t};
}

/// The sum of squares, by the step size.
Part norm(const std::vector<int64_t> &shape) {
  std::string t = tensor(shape), dims;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    dims += (dim ? ", " : "") + std::to_string(dim);
  return {{t, kScalar},
          {kScalar},
          "%square = gpuc.mul %p0, %p0 : " + t + "\n%sum = gpuc.sum %square dims [" + dims + "] : (" + t +
              ") -> " + kScalar + "\n%by = gpuc.mul %sum, %p1 : " + kScalar +
              "\ngpuc.yield %by : " + kScalar};
}

/// The sums of columns, which a block's threads add up in memory that they share, by the step size.
Part columnSums(int64_t rows, int64_t columns) {
  std::string t = tensor({rows, columns}), sums = tensor({columns});
  return {{t, kScalar},
          {sums},
          "%sum = gpuc.sum %p0 dims [0] : (" + t + ") -> " + sums +
              "\n%lr = gpuc.broadcast %p1 dims [] : " + kScalar + " to " + sums +
              "\n%by = gpuc.mul %sum, %lr : " + sums + "\ngpuc.yield %by : " + sums};
}

std::string renamed(std::string body) {
  for (size_t at = 0; (at = body.find("%p", at)) != std::string::npos;)
    body.replace(at, 2, "%a");
  return body;
}

/// All parts as one kernel: argument 0 is the step size, then come those of each part.
class Whole {
public:
  explicit Whole(const std::vector<Part> &parts) : arguments{kScalar} {
    std::vector<std::string> yielded;
    for (size_t number = 0; number < parts.size(); ++number) {
      const Part &part = parts[number];
      std::vector<std::string> operands, inner;
      for (size_t i = 0; i < part.arguments.size(); ++i) {
        bool shared = i + 1 == part.arguments.size();
        operands.push_back("%a" + std::to_string(shared ? 0 : arguments.size()));
        if (!shared)
          arguments.push_back(part.arguments[i]);
        inner.push_back("%p" + std::to_string(i) + ": " + part.arguments[i]);
      }
      std::string name = "%s" + std::to_string(number);
      body += name + ":" + std::to_string(part.results.size()) + " = gpuc.fused \"part\"(" +
              llvm::join(operands, ", ") + ") : (" + llvm::join(part.arguments, ", ") + ") -> (" +
              llvm::join(part.results, ", ") + ") {\n^bb0(" + llvm::join(inner, ", ") + "):\n" + part.body +
              "\n}\n";
      for (size_t i = 0; i < part.results.size(); ++i)
        yielded.push_back(name + "#" + std::to_string(i));
      results.insert(results.end(), part.results.begin(), part.results.end());
    }
    body += "gpuc.yield " + llvm::join(yielded, ", ") + " : " + llvm::join(results, ", ");
  }

  std::vector<std::string> arguments, results;
  std::string body;
};

/// Numbers of which no two are alike; all positive, since roots are taken.
Buffer numbersFor(const std::string &type, std::mt19937 &random) {
  int64_t count = 1;
  for (auto [text, rest] = llvm::StringRef(type).drop_front(7).split('x'); !rest.empty();
       std::tie(text, rest) = rest.split('x'))
    count *= std::stoll(text.str());
  std::vector<float> values(count);
  for (float &value : values)
    value = std::uniform_real_distribution<float>(0.01f, 2)(random);
  return Buffer::of(values);
}

/// Runs `whole` and each part by `make(arguments, results, body)`, and compares bits.
template <typename Make>
void expectTheSameBits(const std::vector<Part> &parts, unsigned seed, Make make, bool scattered) {
  std::mt19937 random(seed);
  Whole whole(parts);
  std::vector<Buffer> arguments;
  for (const std::string &type : whole.arguments)
    arguments.push_back(numbersFor(type, random));
  std::vector<Buffer> found = make(whole.arguments, whole.results, whole.body, arguments, scattered);
  size_t argument = 1, result = 0;
  for (const Part &part : parts) {
    std::vector<Buffer> own(arguments.begin() + argument,
                            arguments.begin() + argument + part.arguments.size() - 1);
    argument += own.size();
    own.push_back(arguments[0]);
    for (const Buffer &expected : make(part.arguments, part.results, renamed(part.body), own, false))
      EXPECT_EQ(found[result++].values<uint32_t>(), expected.values<uint32_t>()) << part.body;
  }
  EXPECT_EQ(result, found.size());
}

std::vector<Part> randomParts(unsigned seed) {
  std::mt19937 random(seed);
  auto upTo = [&](int64_t most) { return std::uniform_int_distribution<int64_t>(1, most)(random); };
  std::vector<Part> parts;
  for (int64_t left = upTo(9); left > 0; --left)
    switch (upTo(6)) {
    case 1:
      parts.push_back(momentum({upTo(70), upTo(90)}, "0.9"));
      break;
    case 2:
      parts.push_back(momentum({upTo(5000)}, "0.9"));
      break;
    case 3:
      parts.push_back(momentum({upTo(3000)}, "0.5"));
      break;
    case 4:
      parts.push_back(outer(upTo(90), upTo(70)));
      break;
    case 5:
      parts.push_back(columnSums(32 + upTo(60), upTo(50)));
      break;
    default:
      parts.push_back(norm({upTo(40), upTo(50)}));
    }
  return parts;
}

class SegmentsTest : public testing::TestWithParam<int> {};

TEST_P(SegmentsTest, HostGivesTheBitsOfSingleKernels) {
  for (const HostTarget &target : testTargets()) {
    auto make = [&](const auto &arguments, const auto &results, const std::string &body,
                    const std::vector<Buffer> &buffers, bool scattered) {
      return TestKernel(arguments, results, body, target).run(buffers, scattered);
    };
    expectTheSameBits(randomParts(GetParam()), GetParam(), make, /*scattered=*/false);
    expectTheSameBits(randomParts(GetParam()), GetParam(), make, /*scattered=*/true);
  }
}

TEST_P(SegmentsTest, GpuGivesTheBitsOfSingleKernels) {
  auto make = [&](const auto &arguments, const auto &results, const std::string &body,
                  const std::vector<Buffer> &buffers,
                  bool) { return EmulatedKernel(arguments, results, body).run(buffers); };
  expectTheSameBits(randomParts(GetParam()), GetParam(), make, /*scattered=*/false);
}

INSTANTIATE_TEST_SUITE_P(Random, SegmentsTest, testing::Range(1, 9));

TEST(Segments, AreSpreadOverOneRangeOfTiles) {
  HostTarget target = testTargets().front();
  std::vector<Part> parts{momentum({100000}, "0.9"), momentum({3}, "0.9"), momentum({70, 1000}, "0.5")};
  Whole whole(parts);
  int64_t tiles = 0;
  for (const Part &part : parts) {
    KernelText text(part.arguments, part.results, renamed(part.body));
    tiles += scheduleHostKernel(text.block(), target).tiles;
  }
  KernelText text(whole.arguments, whole.results, whole.body);
  EXPECT_EQ(scheduleHostKernel(text.block(), target).tiles, tiles);
  EXPECT_GT(tiles, 10);
  EXPECT_LT(scheduleHostKernel(text.block(), target).grain, tiles / 2) << "worth two threads";
  // On a GPU each segment has blocks of its own: 391 of 256 elements, 1, and 274.
  EXPECT_EQ(scheduleCudaKernel(text.block()).grid, 391u + 1 + 274);
}

/// A block has the body of one segment, and no memory for those of others: 60 times 1 KiB were more than
/// there is.
TEST(Segments, ShareMemory) {
  std::vector<Part> parts;
  for (int64_t number = 0; number < 60; ++number)
    parts.push_back(columnSums(64, 33 + number));
  Whole whole(parts);
  KernelText text(whole.arguments, whole.results, whole.body);
  const CudaCode code = compileForCuda(text, *CudaTarget::parse("sm_90"));
  llvm::StringRef ptx = code.ptx;
  EXPECT_EQ(ptx.count(".shared .align"), 1u);
}

TEST(Segments, ReadNothingOfOneAnother) {
  Part part = momentum({8}, "0.9");
  Whole whole({part, part});
  auto isKernel = [&](const std::string &body) {
    KernelText text(whole.arguments, whole.results, body);
    return succeeded(checkKernel(text.block()));
  };
  EXPECT_TRUE(isKernel(whole.body));
  std::string chained = whole.body; // the second's gradient is what the first made
  chained.replace(chained.find("(%a4, %a5"), 9, "(%a4, %s0#0");
  EXPECT_FALSE(isKernel(chained));
  std::string twice = whole.body; // one result for two buffers, and one for none
  twice.replace(twice.rfind("%s1#1"), 5, "%s1#0");
  EXPECT_FALSE(isKernel(twice));
  std::string between = whole.body;
  between.insert(between.find("gpuc.yield %s0"), "%x = gpuc.add %a1, %a2 : tensor<8xf32>\n");
  EXPECT_FALSE(isKernel(between));
}

TEST(Segments, UpdateInPlaceWhatNoOtherReads) {
  Part part = momentum({8}, "0.9");
  Whole whole({part, part});
  // Arguments: the step size; weight, gradient and momentum of the first; those of the second.
  KernelText apart(whole.arguments, whole.results, whole.body);
  EXPECT_TRUE(canUpdateInPlace(apart.block(), 1, 0));
  EXPECT_TRUE(canUpdateInPlace(apart.block(), 6, 3));
  EXPECT_FALSE(canUpdateInPlace(apart.block(), 1, 2)) << "the result of another segment";
  std::string shared = whole.body;
  shared.replace(shared.find("(%a4, %a5"), 9, "(%a4, %a1");
  KernelText together(whole.arguments, whole.results, shared);
  EXPECT_FALSE(canUpdateInPlace(together.block(), 1, 0)) << "the second reads the first's weight";
}

} // namespace
