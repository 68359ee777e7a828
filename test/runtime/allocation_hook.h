#pragma once

#include "runtime/tooling/allocation_hook.h"
