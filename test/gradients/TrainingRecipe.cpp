//===- TrainingRecipe.cpp - How a random model is trained --------------------===//

#include "test/gradients/TrainingRecipe.h"

#include <vector>

namespace gpuc::gradients {

static int64_t below(std::mt19937_64 &random, size_t bound) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
}

static const std::string &oneOf(std::mt19937_64 &random, const std::vector<std::string> &texts) {
  return texts[below(random, texts.size())];
}

static std::string optimizer(std::mt19937_64 &random) {
  static const std::vector<std::string> optimizers = {
      "sgd(lr = 0.1)",
      "sgd(lr = 0.05, momentum = 0.5, nesterov = true, weight_decay = 0.01)",
      "sgd(lr = 0.05, momentum = 0.5, dampening = 0.25)",
      "adam(lr = 0.01, eps = 0.01)",
      "adam(lr = 0.01, eps = 0.01, amsgrad = true, weight_decay = 0.1)",
      "adamw(lr = 0.01, eps = 0.01, weight_decay = 0.1)",
      "rmsprop(lr = 0.01, eps = 0.01, momentum = 0.5)",
      "rmsprop(lr = 0.01, eps = 0.1)",
      "adagrad(lr = 0.01, eps = 0.01, lr_decay = 0.1)",
      "adadelta(lr = 0.5, eps = 0.01, weight_decay = 0.1)",
      "adamax(lr = 0.01, eps = 0.01)",
      "nadam(lr = 0.01, eps = 0.01, weight_decay = 0.1)",
      "radam(lr = 0.01, eps = 0.01)",
      "asgd(lr = 0.05, t0 = 1, weight_decay = 0.1)",
      "rprop(lr = 0.01)",
      "lion(lr = 0.001, weight_decay = 0.1)",
      "adafactor(lr = 0.01, weight_decay = 0.1, eps = (0.01, 0.01))",
      "muon(lr = 0.01, ns_steps = 2, adam_eps = 0.01)",
  };
  return oneOf(random, optimizers);
}

static std::string schedule(std::mt19937_64 &random) {
  static const std::vector<std::string> schedules = {
      "linear(start_factor = 0.25, total_iters = 4)",
      "cosine(T_max = 10)",
      "linear(start_factor = 0.5, total_iters = 1, steps = 1), step(step_size = 1, gamma = 0.5)",
  };
  return oneOf(random, schedules);
}

std::string trainingRecipe(std::mt19937_64 &random) {
  auto oneIn = [&](size_t count) { return below(random, count) == 0; };
  std::string text = "gpuc.recipe {\n  loss = @loss,\n  batch = " + std::to_string(2 + below(random, 4));
  if (oneIn(3))
    text += ",\n  accumulate = " + std::to_string(2 + below(random, 2));
  if (oneIn(4))
    text += ",\n  clip_value = 0.05";
  if (oneIn(3))
    text += ",\n  clip_norm = " + std::string(oneIn(2) ? "0.1" : "100.0");
  text += ",\n  optimizer = " + optimizer(random);
  if (oneIn(4))
    text += ",\n  groups = (group(match = \"v*\", lr = 0.001))";
  if (oneIn(3))
    text += ",\n  schedule = (" + schedule(random) + ")";
  if (oneIn(4))
    text += ",\n  ema = ema(decay = 0.5)";
  if (oneIn(4))
    text += ",\n  emulate_ranks = " + std::to_string(2 + below(random, 2));
  return text + "\n}\n";
}

} // namespace gpuc::gradients
