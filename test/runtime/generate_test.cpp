// Drawing tokens, and prompts.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/generate/prompt.h"
#include "runtime/generate/sampling.h"
#include "test/runtime/temporary_folder.h"

namespace gpuc {
namespace {

std::vector<int64_t> drawMany(const SamplingOptions& options, std::vector<double> logits, int count) {
  TokenSampler sampler(options);
  std::vector<int64_t> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(*sampler.draw(logits));
  return tokens;
}

std::vector<double> frequencies(const std::vector<int64_t>& tokens, size_t vocabulary) {
  std::vector<double> share(vocabulary);
  for (int64_t token : tokens) ++share[static_cast<size_t>(token)];
  for (double& count : share) count /= static_cast<double>(tokens.size());
  return share;
}

TEST(TokenSampler, AtTemperatureZeroTheLargestFirstOneWins) {
  EXPECT_EQ(drawMany({.temperature = 0}, {1, 5, 5, 2}, 3), (std::vector<int64_t>{1, 1, 1}));
}

TEST(TokenSampler, DrawsBySoftmax) {
  // Logits ln 1, ln 2, ln 5: probabilities 1/8, 2/8, 5/8. Of 20,000 draws the deviation is at most 0.0035.
  std::vector<double> logits = {0, std::log(2.0), std::log(5.0)};
  std::vector<double> share = frequencies(drawMany({}, logits, 20000), 3);
  EXPECT_NEAR(share[0], 0.125, 0.015);
  EXPECT_NEAR(share[1], 0.250, 0.015);
  EXPECT_NEAR(share[2], 0.625, 0.015);
  // At temperature 1/2 the weights are squared: 1/30, 4/30, 25/30.
  share = frequencies(drawMany({.temperature = 0.5}, logits, 20000), 3);
  EXPECT_NEAR(share[0], 1.0 / 30, 0.01);
  EXPECT_NEAR(share[1], 4.0 / 30, 0.015);
}

TEST(TokenSampler, TopKLeavesTheRestOut) {
  std::vector<double> share = frequencies(drawMany({.top_k = 2}, {0, 0, 1, 0}, 2000), 4);
  EXPECT_GT(share[0], 0);  // of equal logits the first counts as larger
  EXPECT_EQ(share[1], 0);
  EXPECT_GT(share[2], share[0]);
  EXPECT_EQ(share[3], 0);
  EXPECT_GT(frequencies(drawMany({.top_k = 9}, {0, 0}, 200), 2)[1], 0);  // more than there are: all
}

TEST(TokenSampler, TheSeedDecides) {
  std::vector<double> logits(50, 0.0);
  EXPECT_EQ(drawMany({.seed = 3}, logits, 20), drawMany({.seed = 3}, logits, 20));
  EXPECT_NE(drawMany({.seed = 3}, logits, 20), drawMany({.seed = 4}, logits, 20));
}

TEST(TokenSampler, WhatIsImpossibleIsNeverDrawn) {
  EXPECT_EQ(frequencies(drawMany({}, {-INFINITY, 0, -INFINITY}, 100), 3)[1], 1);
}

TEST(TokenSampler, RefusesLogitsThatAreNoNumbers) {
  TokenSampler sampler({});
  expectError(sampler.draw(std::vector<double>{0, NAN}), "logit of token 1 is NaN");
  expectError(sampler.draw(std::vector<double>{INFINITY, 0}), "logit of token 0 is infinite");
  expectError(sampler.draw(std::vector<double>{-INFINITY}), "no token is possible");
}

TEST(Prompt, BytesAreTokens) {
  EXPECT_EQ(*tokensOfText("a\xc3\xa4", 256), (std::vector<int64_t>{97, 195, 164}));
  expectError(tokensOfText("a\xc3", 128),
              "prompt: byte 195 ('\\xc3') at position 1 is no token of the model's");
  expectError(tokensOfText("", 256), "prompt: there must be something to go on from");
  expectError(tokensOfText("a", 50257), "which are not bytes: give the prompt as numbers");
}

TEST(Prompt, NumbersAreTokens) {
  EXPECT_EQ(*tokensOfNumbers("12,0,50256", 50257), (std::vector<int64_t>{12, 0, 50256}));
  expectError(tokensOfNumbers("12,", 50257), "expected token numbers as in 12,7,400; found ''");
  expectError(tokensOfNumbers("1,50257", 50257), "token 50257 at position 1 is no token");
  expectError(tokensOfNumbers("-1", 10), "token -1 at position 0 is no token");
  expectError(tokensOfNumbers("a", 10), "found 'a'");
}

}  // namespace
}  // namespace gpuc
