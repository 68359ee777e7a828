#include "mlir/IR/Value.h"
#include "passes/Specs.h"
#include "runtime/base/status.h"
