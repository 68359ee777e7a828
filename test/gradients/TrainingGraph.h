//===- TrainingGraph.h - Valid small models with a recipe, from a seed --------===//
#pragma once

#include <cstdint>
#include <string>

namespace gpuc::gradients {

/// A module with variables, @predict, @loss and a recipe, in f32 or, one of four, in f64: a few layers over
/// rows of features, sequences, tokens or pictures, and beside them, in half of the modules, a graph of
/// randomGraph() over variables alone, whose scalar is added to the loss. Weights may be tied, frozen or
/// dropped; some layers are written as ops that gpuc computes otherwise. The optimizer, clipping,
/// accumulation, a schedule and a mean of the weights are drawn as well. The same seed gives the same text
/// everywhere.
std::string trainingGraph(uint64_t seed);

} // namespace gpuc::gradients
