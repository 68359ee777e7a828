#include "llvm/ADT/StringRef.h"
#include "runtime/base/status.h"
