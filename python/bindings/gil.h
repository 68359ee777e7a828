// Python's global lock, left to other threads while something takes long.
#pragma once

#include <nanobind/nanobind.h>

namespace gpuc {

template <typename Call>
auto withoutGil(Call&& call) {
  const nanobind::gil_scoped_release released;
  return call();
}

}  // namespace gpuc
