//===- effort_test.cpp - What passes do grows as the model does -------------===//
//
// Models are made in two sizes, and what fusion, inlining, updates and the grouping of launches count of
// their own work must grow as the ops do, whoever reads what. No clock is asked.
//
//===----------------------------------------------------------------------===//

#include "passes/Compiler.h"
#include "passes/base/Inline.h"
#include "passes/kernels/FuseClusters.h"
#include "passes/plan/VariableUpdates.h"
#include "passes/updates/Updates.h"

#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <functional>

namespace gpuc {
namespace {

constexpr char kMatrix[] = "tensor<8x8xf32>";

/// Text in which $ stands for `number`, ~ for the one before it and & for the type of matrices.
std::string filled(const std::string &pattern, int number) {
  std::string text;
  for (char character : pattern)
    text += character == '$'   ? std::to_string(number)
            : character == '~' ? std::to_string(number - 1)
            : character == '&' ? std::string(kMatrix)
                               : std::string(1, character);
  return text;
}

/// @predict of `first`, then `count` times `each`, then `last`, which returns.
std::string model(const std::string &first, const std::string &each, int count, const std::string &last) {
  std::string text = filled("func.func @predict(%x: &) -> & {\n" + first, 0);
  for (int number = 1; number <= count; ++number)
    text += filled(each, number);
  return text + filled(last, count) + "}\n";
}

uint64_t worthOf(const std::string &text, uint64_t (*counter)(), Stage stage = Stage::trainStep) {
  const uint64_t before = counter();
  Compiler compiler;
  auto module = compiler.parse(text, "model.mlir");
  EXPECT_TRUE(module.ok()) << module.message();
  if (!module.ok())
    return 0;
  Status status = compiler.advance(**module, stage, {}, [](mlir::PassManager &) { return okStatus(); });
  EXPECT_TRUE(status.ok()) << status.message();
  return counter() - before;
}

struct Family {
  const char *name;
  std::string first, each, last;
};

const Family kFamilies[] = {
    {"ReadsOneValueTwice", "%v0 = gpuc.exp %x : &\n", "%v$ = gpuc.add %v~, %v~ : &\n", "return %v$ : &\n"},
    {"Chain", "%v0 = gpuc.exp %x : &\n", "%v$ = gpuc.tanh %v~ : &\n", "return %v$ : &\n"},
    {"Diamonds", "%v0 = gpuc.exp %x : &\n",
     "%a$ = gpuc.tanh %v~ : &\n%b$ = gpuc.exp %v~ : &\n%v$ = gpuc.sub %a$, %b$ : &\n", "return %v$ : &\n"},
    {"ManyReaders", "%h = gpuc.exp %x : &\n%v0 = gpuc.tanh %h : &\n",
     "%t$ = gpuc.sub %h, %v~ : &\n%v$ = gpuc.tanh %t$ : &\n", "return %v$ : &\n"},
    {"ManyProductsOfOneValue", "%h = gpuc.exp %x : &\n%v0 = gpuc.tanh %h : &\n",
     "%m$ = gpuc.matmul %h, %v~ : (&, &) -> &\n%v$ = gpuc.sub %m$, %h : &\n", "return %v$ : &\n"},
    {"ManySumsOfOneValue", "%h = gpuc.exp %x : &\n%v0 = gpuc.sum %h dims [1] : (&) -> tensor<8xf32>\n",
     "%c$ = gpuc.constant $.5 : &\n%p$ = gpuc.mul %h, %c$ : &\n"
     "%s$ = gpuc.sum %p$ dims [1] : (&) -> tensor<8xf32>\n%v$ = gpuc.sub %v~, %s$ : tensor<8xf32>\n",
     "%b = gpuc.broadcast %v$ dims [0] : tensor<8xf32> to &\nreturn %b : &\n"},
    {"ManyCopiesOfOneValue", "%h = gpuc.exp %x : &\n%v0 = gpuc.tanh %h : &\n",
     "%r$ = gpuc.reverse %h dims [0] : &\n%m$ = gpuc.matmul %r$, %v~ : (&, &) -> &\n"
     "%v$ = gpuc.sub %m$, %r$ : &\n",
     "return %v$ : &\n"},
    {"CopiesOfCopies", "%v0 = gpuc.exp %x : &\n",
     "%r$ = gpuc.reverse %v~ dims [0] : &\n%v$ = gpuc.transpose %r$ permutation [1, 0] : (&) -> &\n",
     "%y = gpuc.exp %v$ : &\nreturn %y : &\n"},
    {"ReadAgainAtTheEnd", "%v0 = gpuc.exp %x : &\n",
     "%m$ = gpuc.matmul %v~, %x : (&, &) -> &\n%v$ = gpuc.tanh %m$ : &\n", "return %v$ : &\n"},
};

class FusionEffort : public testing::TestWithParam<Family> {};

TEST_P(FusionEffort, GrowsAsTheOpsDo) {
  const Family &family = GetParam();
  auto visits = [&](int count) {
    return worthOf(model(family.first, family.each, count, family.last), fusionVisits);
  };
  const uint64_t half = visits(400), whole = visits(800);
  EXPECT_GT(half, 400u);
  // What is quadratic in the ops would be four times as much.
  EXPECT_LE(whole, 3 * half) << half;
}

INSTANTIATE_TEST_SUITE_P(Families, FusionEffort, testing::ValuesIn(kFamilies),
                         [](const auto &family) { return std::string(family.param.name); });

/// A value's two places double with each op: a kernel of all of them would have 2^12 loads.
TEST(FusionEffort, KernelsDoNotComputeOneValueAtManyPlaces) {
  std::string text = "func.func @predict(%v0: tensor<8192xf32>) -> tensor<4097xf32> {\n";
  int length = 8192;
  for (int number = 1; number <= 12; ++number) {
    const int shift = 1 << (number - 1), rest = length - shift;
    std::string from = "tensor<" + std::to_string(length) + "xf32>",
                to = "tensor<" + std::to_string(rest) + "xf32>";
    auto slice = [&](const char *name, int start, int limit) {
      return filled(std::string(name) + "$ = gpuc.slice %v~ starts [" + std::to_string(start) + "] limits [" +
                        std::to_string(limit) + "] strides [1] : (" + from + ") -> " + to + "\n",
                    number);
    };
    text += slice("%a", 0, rest) + slice("%b", shift, length) +
            filled("%v$ = gpuc.sub %a$, %b$ : " + to + "\n", number);
    length = rest;
  }
  text += "return %v12 : tensor<4097xf32>\n}\n";
  Compiler compiler;
  auto module = compiler.parse(text, "model.mlir");
  ASSERT_TRUE(module.ok()) << module.message();
  ASSERT_TRUE(
      compiler.advance(**module, Stage::trainStep, {}, [](mlir::PassManager &) { return okStatus(); }).ok());
  size_t kernels = 0;
  (*module)->walk([&](ir::FusedOp) { ++kernels; });
  EXPECT_GE(kernels, 2u);
  EXPECT_LE(kernels, 12u);
}

//===----------------------------------------------------------------------===//
// Training
//===----------------------------------------------------------------------===//

/// A step that trains `count` convolutions with batch norm and relu.
std::string convolutions(int count) {
  std::string variables, ops;
  auto replaced = [](std::string text, int number) {
    for (auto [word, type] : {std::pair("!x", "tensor<?x16x8x8xf32>"),
                              std::pair("!w", "tensor<16x16x3x3xf32>"), std::pair("!v", "tensor<16xf32>")})
      for (size_t at; (at = text.find(word)) != std::string::npos;)
        text.replace(at, 2, type);
    return filled(text, number);
  };
  for (int number = 1; number <= count; ++number) {
    variables += replaced("gpuc.variable @w$ : !w init ones loc(\"c$\")\n"
                          "gpuc.variable @scale$ : !v init ones loc(\"b$\")\n"
                          "gpuc.variable @mean$ kind statistic : !v init zeros loc(\"b$\")\n"
                          "gpuc.variable @var$ kind statistic : !v init ones loc(\"b$\")\n",
                          number);
    ops += replaced("%w$ = gpuc.read @w$ : !w loc(\"c$\")\n"
                    "%c$ = gpuc.conv2d %v~, %w$ padding [1, 1, 1, 1] : (!x, !w) -> !x loc(\"c$\")\n"
                    "%scale$ = gpuc.read @scale$ : !v loc(\"b$\")\n"
                    "%mean$ = gpuc.read @mean$ : !v loc(\"b$\")\n"
                    "%var$ = gpuc.read @var$ : !v loc(\"b$\")\n"
                    "%n$, %m$, %r$, %p$, %q$ = gpuc.batch_norm %c$ running %mean$, %var$ weight %scale$ bias "
                    "%scale$ : (!x, !v, !v, !v, !v) -> (!x, !v, !v, !v, !v) loc(\"b$\")\n"
                    "gpuc.assign @mean$, %m$ : !v loc(\"b$\")\n"
                    "gpuc.assign @var$, %r$ : !v loc(\"b$\")\n"
                    "%v$ = gpuc.relu %n$ : !x loc(\"b$\")\n",
                    number);
  }
  return replaced(variables +
                      "func.func @loss(%v0: !x {gpuc.name = \"x\"}) -> (tensor<f32> {gpuc.name = "
                      "\"loss_sum\"}, tensor<f32> {gpuc.name = \"count\"}) {\n" +
                      ops +
                      "%s = gpuc.mul %v$, %v$ : !x loc(\"loss\")\n"
                      "%sum = gpuc.sum %s dims [0, 1, 2, 3] : (!x) -> tensor<f32> loc(\"loss\")\n"
                      "%one = gpuc.constant 1.0 : tensor<f32> loc(\"loss\")\n"
                      "return %sum, %one : tensor<f32>, tensor<f32> loc(\"loss\")\n}\n"
                      "gpuc.recipe { loss = @loss, batch = 2, optimizer = sgd(lr = 0.1) }\n",
                  count);
}

TEST(TrainingEffort, FusionGrowsAsTheLayersDo) {
  const uint64_t half = worthOf(convolutions(50), fusionVisits),
                 whole = worthOf(convolutions(100), fusionVisits);
  EXPECT_GT(half, 50u);
  EXPECT_LE(2 * whole, 5 * half) << half;
}

TEST(TrainingEffort, PlacingUpdatesGrowsAsTheLayersDo) {
  const uint64_t half = worthOf(convolutions(50), updateLooks, Stage::plan),
                 whole = worthOf(convolutions(100), updateLooks, Stage::plan);
  EXPECT_GT(half, 50u);
  EXPECT_LE(2 * whole, 5 * half) << half;
}

//===----------------------------------------------------------------------===//
// Groups of launches
//===----------------------------------------------------------------------===//

TEST(GroupingEffort, GrowsAsTheLaunchesDo) {
  // Each sum waits for the one before it, so that each is a group, and none can stand where another does.
  auto looks = [](int count) {
    return worthOf(model("%m0 = gpuc.exp %x : &\n%v0 = gpuc.sum %m0 dims [0, 1] : (&) -> tensor<f32>\n",
                         "%m$ = gpuc.matmul %m~, %x : (&, &) -> &\n"
                         "%s$ = gpuc.sum %m$ dims [0, 1] : (&) -> tensor<f32>\n"
                         "%v$ = gpuc.add %v~, %s$ : tensor<f32>\n",
                         count, "%b = gpuc.broadcast %v$ dims [] : tensor<f32> to &\nreturn %b : &\n"),
                   launchGroupLooks, Stage::plan);
  };
  const uint64_t half = looks(200), whole = looks(400);
  EXPECT_GT(half, 200u);
  EXPECT_LE(whole, 3 * half) << half;
}

//===----------------------------------------------------------------------===//
// Inlining
//===----------------------------------------------------------------------===//

/// @f0 calls @f1 `calls` times, that @f2, and so on; the last one holds an op.
std::string nestedCalls(int levels, int calls) {
  std::string text;
  for (int level = 0; level < levels; ++level) {
    text += filled("func.func private @f$(%v0: &) -> & {\n", level);
    for (int call = 1; call <= calls; ++call)
      text +=
          filled("%v$ = func.call @f", call) + std::to_string(level + 1) + filled("(%v~) : (&) -> &\n", call);
    text += filled("return %v$ : &\n}\n", calls);
  }
  text += filled("func.func private @f$(%x: &) -> & {\n%y = gpuc.tanh %x : &\nreturn %y : &\n}\n", levels);
  return text + model("%y = func.call @f0(%x) : (&) -> &\n", "", 0, "return %y : &\n");
}

TEST(InliningEffort, ClonesEachOpOnce) {
  // 2^10 ops at the end of 2^10 - 1 functions, of which each is put in the place of a call once.
  EXPECT_LE(worthOf(nestedCalls(10, 2), inlinedOps), 3u * 2048);
  const uint64_t half = worthOf(nestedCalls(300, 1), inlinedOps),
                 whole = worthOf(nestedCalls(600, 1), inlinedOps);
  EXPECT_GE(half, 300u);
  EXPECT_LE(whole, half * 11 / 5) << half;
}

std::string errorOf(const std::string &text) {
  Compiler compiler;
  auto module = compiler.parse(text, "model.mlir");
  if (!module.ok())
    return module.message();
  return compiler.advance(**module, Stage::plan, {}, [](mlir::PassManager &) { return okStatus(); })
      .message();
}

TEST(InliningEffort, WhatWouldExplodeIsRefused) {
  EXPECT_EQ(errorOf(nestedCalls(40, 2)).substr(0, 10), "model.mlir") << errorOf(nestedCalls(40, 2));
  EXPECT_NE(errorOf(nestedCalls(40, 2))
                .find("calls @f0: with it, @predict would hold 7696581394428 ops of functions"),
            std::string::npos)
      << errorOf(nestedCalls(40, 2));
  // Of 2^100 there is no number.
  EXPECT_NE(errorOf(nestedCalls(100, 2)).find("100000 are the most: repeat layers by gpuc.scan"),
            std::string::npos);
}

TEST(InliningEffort, RecursionIsRefusedHoweverDeep) {
  std::string mutual =
      filled("func.func private @a(%x: &) -> & {\n%y = func.call @b(%x) : (&) -> &\nreturn %y : &\n}\n"
             "func.func private @b(%x: &) -> & {\n%y = func.call @a(%x) : (&) -> &\nreturn %y : &\n}\n",
             0);
  std::string error = errorOf(mutual + model("%y = func.call @a(%x) : (&) -> &\n", "", 0, "return %y : &\n"));
  EXPECT_NE(error.find("@a is used by itself: recursion has no end"), std::string::npos) << error;
  error = errorOf(model("%y = func.call @predict(%x) : (&) -> &\n", "", 0, "return %y : &\n"));
  EXPECT_NE(error.find("@predict is used by itself: recursion has no end"), std::string::npos) << error;
  EXPECT_EQ(errorOf(nestedCalls(20'000, 1)), "");
}

} // namespace
} // namespace gpuc
