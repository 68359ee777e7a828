//===- nn.h - All of the graph builder --------------------------------------===//
#pragma once

#include "frontend/builder/Attention.h"
#include "frontend/builder/Convolution.h"
#include "frontend/builder/Embedding.h"
#include "frontend/builder/Images.h"
#include "frontend/builder/Layers.h"
#include "frontend/builder/Lora.h"
#include "frontend/builder/Losses.h"
#include "frontend/builder/ModelBuilder.h"
#include "frontend/builder/Module.h"
#include "frontend/builder/Norms.h"
#include "frontend/builder/Recurrent.h"
#include "frontend/builder/Resize.h"
#include "frontend/builder/Scan.h"
#include "frontend/builder/Tensor.h"
#include "frontend/builder/Transformer.h"
