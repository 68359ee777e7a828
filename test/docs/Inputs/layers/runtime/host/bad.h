#include "mlir/IR/Value.h"
#include "passes/base/Specs.h"
#include "runtime/base/status.h"
