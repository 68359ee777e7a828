//===- TrainingRecipe.h - How a random model is trained ----------------------===//
#pragma once

#include <random>
#include <string>

namespace gpuc::gradients {

/// A `gpuc.recipe` for a module with @loss: one of all optimizers, a small batch, and often accumulation,
/// clipping, a schedule, or a mean of the weights. What a gradient is divided by stays well above the
/// rounding errors of a gradient that is zero.
std::string trainingRecipe(std::mt19937_64 &random);

} // namespace gpuc::gradients
