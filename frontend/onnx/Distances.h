//===- Distances.h - Distances that an exporter writes without their Abs ----===//
#pragma once

#include "frontend/onnx/reader/Model.h"

namespace gpuc::onnx {

/// The nodes that take a root of a sum of powers of differences whose signs such a power keeps, so that the
/// distance is not one: 1, 3, 2.5, but not 2. So PyTorch's older exporter writes torch.cdist and
/// pairwise_distance.
std::vector<const Node *> signedDistances(const Graph &graph);

} // namespace gpuc::onnx
