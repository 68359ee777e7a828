// The readers of what predictions are made from: rates of gpuc-calibrate and profiles of gpuc-run. Any text
// gives a value or one line that names the file; rates that are read predict finite times, and survive
// printing and reading.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "passes/cost/CostModel.h"

using namespace gpuc;

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

template <typename T>
bool holds(const Result<T>& result) {
  if (result.ok()) return true;
  require(result.message().starts_with("f: "), "an error names the file");
  require(result.message().find('\n') == std::string::npos, "an error is one line");
  return false;
}

void checkRates(const HostRates& rates) {
  Work work;
  work.amounts.fill(1e6);
  const double alone = rates.nanoseconds(work);
  require(alone >= 0 && std::isfinite(alone), "what rates predict is a time");
  const double shared = CostModel(kHostDescription, rates).sharedNanoseconds(alone);
  require(shared >= 0 && shared <= alone, "threads make nothing slower");
  const Result<HostRates> again = parseRates(printRates(rates), "f");
  require(again.ok() && again->units == rates.units && again->cpu == rates.cpu, "rates survive printing");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const llvm::StringRef text(reinterpret_cast<const char*>(data), size);
  if (Result<HostRates> rates = parseRates(text, "f"); holds(rates)) checkRates(*rates);
  Result<Profile> profile = Profile::parse(text, "f");
  if (holds(profile))
    require(profile->find({"no such command", 0}) == nullptr, "what was not seen is not found");
  return 0;
}
