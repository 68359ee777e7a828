#include "passes/Passes.h"
#include "passes/base/Specs.h"
#include "passes/plan/Lifetimes.h"
#include "passes/train/BackwardPass.h"
