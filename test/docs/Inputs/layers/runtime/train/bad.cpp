#include "runtime/report/nonfinite.h"
#include "runtime/tooling/program_inputs.h"
