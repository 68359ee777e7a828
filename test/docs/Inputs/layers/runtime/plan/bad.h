#include "runtime/base/status.h"
#include "runtime/workspace/cudnn_workspace.h"
