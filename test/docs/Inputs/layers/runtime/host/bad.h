#include "runtime/base/status.h"
#include "mlir/IR/Value.h"
#include "passes/Specs.h"
