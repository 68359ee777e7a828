//===- Rates.cpp - What was measured of a machine --------------------------------===//

#include "passes/cost/Rates.h"

#include "llvm/Support/MemoryBuffer.h"

#include <cmath>
#include <unistd.h>

using namespace mlir;

namespace gpuc {

BytesByPlace CacheSizes::sharesAt(int64_t distance) const {
  const auto goneBetween = [&](double begin, double end) { // by the logarithm
    return std::clamp(std::log2(static_cast<double>(distance) / begin) / std::log2(end / begin), 0.0, 1.0);
  };
  const auto own = static_cast<double>(near), shared = static_cast<double>(far);
  const double fromOwn = goneBetween(own / 2, own * 2), fromShared = goneBetween(shared / 4, shared);
  return {1 - fromOwn, fromOwn * (1 - fromShared), fromOwn * fromShared};
}

/// What a library has no rate for is of the weight's update that a product hands its tiles to: a kernel's.
double HostRates::nanoseconds(const Work &work) const {
  double sum = 0;
  for (auto [amount, own, ofKernel] : llvm::zip_equal(work.amounts, units[static_cast<size_t>(work.family)],
                                                      units[static_cast<size_t>(Family::kernel)]))
    sum += amount * (own > 0 ? own : ofKernel);
  return sum;
}

HostRates typicalRates() {
  HostRates rates;
  auto set = [&](std::initializer_list<Family> families,
                 std::initializer_list<std::pair<Unit, double>> units) {
    for (Family family : families)
      for (auto [unit, nanoseconds] : units)
        rates.units[static_cast<size_t>(family)][static_cast<size_t>(unit)] = nanoseconds;
  };
  // As two cores of an EPYC (Zen 4) have them, in round numbers.
  for (size_t family = 0; family < kFamilyCount; ++family)
    set({static_cast<Family>(family)}, {{Unit::command, 50},
                                        {Unit::near, 0.005},
                                        {Unit::far, 0.01},
                                        {Unit::memory, 0.04},
                                        {Unit::writeback, 0.04}});
  set({Family::kernel}, {{Unit::row, 1.5},
                         {Unit::chain, 15},
                         {Unit::simple, 0.012},
                         {Unit::root, 0.05},
                         {Unit::exponential, 0.4},
                         {Unit::special, 0.5},
                         {Unit::draw, 0.7},
                         {Unit::fold, 0.02},
                         {Unit::gather, 0.1},
                         {Unit::scatter, 0.1},
                         {Unit::transpose, 0.03},
                         {Unit::window, 0.5},
                         {Unit::comparison, 1}});
  set({Family::matmul, Family::matmulByRows, Family::matmulByColumns, Family::matmulOfFewRows},
      {{Unit::flop, 0.0085}, {Unit::packed, 0.05}, {Unit::stored, 0.06}});
  set({Family::matmulOfRows}, {{Unit::flop, 0.01}, {Unit::row, 1}});
  set({Family::conv, Family::convInputGradient, Family::convFilterGradient, Family::directConv,
       Family::directConvInputGradient, Family::directConvFilterGradient,
       Family::directConvFilterGradientByOutputs},
      {{Unit::command, 300}, {Unit::flop, 0.009}, {Unit::packed, 0.3}, {Unit::stored, 0.1}});
  set({Family::conv, Family::convInputGradient, Family::convFilterGradient},
      {{Unit::row, 5}, {Unit::strided, 1}});
  set({Family::directConvFilterGradient}, {{Unit::row, 10}});
  set({Family::winogradConv, Family::winogradConvFilterGradient},
      {{Unit::command, 300}, {Unit::flop, 0.009}, {Unit::packed, 0.05}, {Unit::stored, 0.1}, {Unit::row, 3}});
  set({Family::attention, Family::attentionGradient}, {{Unit::command, 100},
                                                       {Unit::row, 5},
                                                       {Unit::exponential, 0.25},
                                                       {Unit::draw, 0.7},
                                                       {Unit::flop, 0.006}});
  return rates;
}

/// "32768K": the system's figure is the share of the cores at hand; sysconf's may be that of a whole socket.
static int64_t sharedCacheOfSystem() {
  auto file = llvm::MemoryBuffer::getFileAsStream("/sys/devices/system/cpu/cpu0/cache/index3/size");
  int64_t kibibytes = 0;
  if (file && !(*file)->getBuffer().trim().rtrim('K').getAsInteger(10, kibibytes) && kibibytes < (1ll << 30))
    return kibibytes << 10;
  return sysconf(_SC_LEVEL3_CACHE_SIZE);
}

CacheSizes cachesHere() {
  CacheSizes sizes;
  if (const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0)
    sizes.near = bytes;
  if (const int64_t bytes = sharedCacheOfSystem(); bytes > 0)
    sizes.far = bytes;
  sizes.far = std::max(sizes.far, sizes.near);
  return sizes;
}

} // namespace gpuc
