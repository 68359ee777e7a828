// What ranks that take part in a collective must agree on.
#pragma once

#include <cstdint>

namespace gpuc {

enum class CollectiveKind : uint8_t { sum, broadcast, gather, reduce_scatter, all_gather };

}  // namespace gpuc
