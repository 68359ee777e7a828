#include "runtime/base/status.h"
#include "runtime/workspace/conv_cudnn_workspace.h"
