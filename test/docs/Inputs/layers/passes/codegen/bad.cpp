#include "passes/codegen/host/HostLoops.h"
#include "passes/codegen/math/Math.h"
