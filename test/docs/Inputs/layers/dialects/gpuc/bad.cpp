#include "runtime/base/status.h"
