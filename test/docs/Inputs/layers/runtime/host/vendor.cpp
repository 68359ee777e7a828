#include <libxsmm.h>
#include <vector>
