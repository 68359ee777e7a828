#ifndef GPUC_OPS
#define GPUC_OPS

include "dialects/gpuc/ops/ElementwiseOps.td"
include "dialects/gpuc/ops/ShapeOps.td"
include "dialects/gpuc/ops/ReduceOps.td"
include "dialects/gpuc/ops/ContractOps.td"
include "dialects/gpuc/ops/ConvOps.td"
include "dialects/gpuc/ops/NetworkOps.td"
include "dialects/gpuc/ops/NormOps.td"
include "dialects/gpuc/ops/AttentionOps.td"
include "dialects/gpuc/ops/LossOps.td"
include "dialects/gpuc/ops/LinearLossOps.td"
include "dialects/gpuc/ops/RandomOps.td"
include "dialects/gpuc/ops/ScanOp.td"
include "dialects/gpuc/ops/CollectiveOps.td"
include "dialects/gpuc/ops/TrainingOps.td"
include "dialects/gpuc/ops/UpdateOps.td"

#endif
