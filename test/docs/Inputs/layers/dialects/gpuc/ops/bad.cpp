#include "dialects/gpuc/TypeChecks.h"
#include "dialects/gpuc/definitions/LinearLosses.h"
