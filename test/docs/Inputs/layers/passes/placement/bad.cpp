#include "runtime/base/status.h"
#include "llvm/ADT/StringRef.h"
