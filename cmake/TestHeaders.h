// The runtime's headers and GoogleTest: precompiled once for the tests that include no MLIR.
#include "cmake/RuntimeHeaders.h"

#include <gtest/gtest.h>
