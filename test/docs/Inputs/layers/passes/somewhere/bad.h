#include "passes/base/Specs.h"
