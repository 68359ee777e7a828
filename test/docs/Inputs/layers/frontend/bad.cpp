#include "passes/Pipelines.h"
