#include "passes/Compiler.h"
#include "passes/kernels/Epilogues.h"
#include "runtime/hal/device.h"
