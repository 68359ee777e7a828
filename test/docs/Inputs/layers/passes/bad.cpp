#include "llvm/ADT/StringRef.h"
#include "runtime/plan/plan.h"
#include "runtime/exec/devices.h"
