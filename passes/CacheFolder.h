// Where the compiler keeps what it needs again: compiled kernels, and what was measured of the machine.
#pragma once

#include <cstdlib>
#include <string>

namespace gpuc {

inline constexpr const char *kRatesFile = "rates.json";

/// Unless a flag says otherwise; empty if there is no such place.
inline std::string defaultCacheFolder() {
  const char *cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache)
    return std::string(cache) + "/gpuc";
  const char *home = std::getenv("HOME");
  return home && *home ? std::string(home) + "/.cache/gpuc" : "";
}

/// Of compiled kernels, in it.
inline std::string defaultKernelsFolder() {
  const std::string folder = defaultCacheFolder();
  return folder.empty() ? "" : folder + "/kernels";
}

} // namespace gpuc
