#include "runtime/exec/devices.h"
#include "runtime/plan/plan.h"
#include "llvm/ADT/StringRef.h"
