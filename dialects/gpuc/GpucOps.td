#ifndef GPUC_OPS
#define GPUC_OPS

include "dialects/gpuc/ElementwiseOps.td"
include "dialects/gpuc/ShapeOps.td"
include "dialects/gpuc/ReduceOps.td"
include "dialects/gpuc/ContractOps.td"
include "dialects/gpuc/ConvOps.td"
include "dialects/gpuc/NetworkOps.td"
include "dialects/gpuc/NormOps.td"
include "dialects/gpuc/AttentionOps.td"
include "dialects/gpuc/LossOps.td"
include "dialects/gpuc/LinearLossOps.td"
include "dialects/gpuc/RandomOps.td"
include "dialects/gpuc/ScanOp.td"
include "dialects/gpuc/TrainingOps.td"
include "dialects/gpuc/UpdateOps.td"

#endif
