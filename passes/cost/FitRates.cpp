//===- FitRates.cpp - Rates by which measured commands are predicted best ----------===//
//
// Least squares over rates that are at least 0, by descent along one coordinate after the other. Errors count
// relative to the mean of what was measured and what is predicted, as the ratio of both has to be near 1 from
// either side, and by the share that a command has in its step. A pull towards the typical rate decides
// between units that come only together, and keeps what no sample has.
//
//===----------------------------------------------------------------------===//

#include "passes/cost/Rates.h"

#include <cmath>
#include <numeric>

using namespace mlir;

namespace gpuc {
namespace {

constexpr double kLeastShare = 0.001; ///< Of a step, so that no command counts for nothing.
constexpr double kPull = 0.0002;      ///< Of a rate that is wrong by its whole, in steps that are.
constexpr int kMostSweeps = 2000;
constexpr int kRounds = 4; ///< In each of which what the last one predicts weighs.

double dot(const std::array<double, kUnitCount> &a, const std::array<double, kUnitCount> &b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// One family's: for each unit that it has a factor of its typical rate. What it has none for, a kernel's
/// rate is taken for, as HostRates does: `kernel`, which is none for kernels themselves.
class Fit {
public:
  using Numbers = std::array<double, kUnitCount>;

  Fit(const Numbers &typical, const Numbers &last, const Numbers &kernel, ArrayRef<const Sample *> samples)
      : typical_(typical) {
    Numbers given{};
    for (size_t unit = 0; unit < kUnitCount; ++unit)
      given[unit] = typical[unit] > 0 ? 0 : kernel[unit];
    for (const Sample *sample : samples)
      add(*sample, dot(sample->work.amounts, given), dot(sample->work.amounts, last));
  }

  Numbers run() const {
    Numbers rates;
    rates.fill(1);
    double change = 1;
    for (int sweep = 0; sweep < kMostSweeps && change > 1e-9; ++sweep) {
      change = 0;
      for (size_t unit = 0; unit < kUnitCount; ++unit) {
        const double next = bestFactor(unit, rates);
        change = std::max(change, std::abs(next - rates[unit]));
        rates[unit] = next;
      }
    }
    for (size_t unit = 0; unit < kUnitCount; ++unit)
      rates[unit] *= typical_[unit];
    return rates;
  }

private:
  /// Of the sample's time `given` is known, and `own` what the last round predicts of the rest.
  void add(const Sample &sample, double given, double own) {
    const double weight = (sample.share + kLeastShare) / (sample.nanoseconds * std::max(given + own, 1.0));
    Numbers parts;
    for (size_t unit = 0; unit < kUnitCount; ++unit)
      parts[unit] = sample.work.amounts[unit] * typical_[unit];
    for (size_t a = 0; a < kUnitCount; ++a) {
      towards_[a] += weight * parts[a] * (sample.nanoseconds - given);
      for (size_t b = 0; b < kUnitCount; ++b)
        products_[a][b] += weight * parts[a] * parts[b];
    }
  }

  double bestFactor(size_t unit, const Numbers &factors) const {
    double rest = towards_[unit] + kPull;
    for (size_t other = 0; other < kUnitCount; ++other)
      if (other != unit)
        rest -= products_[unit][other] * factors[other];
    return std::max(0.0, rest / (products_[unit][unit] + kPull));
  }

  const Numbers &typical_;
  std::array<Numbers, kUnitCount> products_{};
  Numbers towards_{};
};

double threadsError(ArrayRef<SharedSample> samples, double speedup, double fork) {
  double error = 0;
  for (const SharedSample &sample : samples) {
    if (sample.parts == 1)
      continue; // nobody shares it
    const double predicted = std::min(sample.alone, sample.alone / speedup + fork);
    error += sample.weight * sample.shared * std::abs(std::log(predicted / sample.shared));
  }
  return error;
}

} // namespace

void fitRates(ArrayRef<Sample> samples, HostRates &rates) {
  const HostRates typical = typicalRates();
  rates.units = typical.units;
  static_assert(static_cast<size_t>(Family::kernel) == 0, "of whose rates the other families' depend");
  for (size_t family = 0; family < kFamilyCount; ++family) {
    const Fit::Numbers kernel = family == 0 ? Fit::Numbers{} : rates.units[0];
    SmallVector<const Sample *> own;
    for (const Sample &sample : samples)
      if (sample.work.family == static_cast<Family>(family))
        own.push_back(&sample);
    for (int round = 0; round < kRounds; ++round)
      rates.units[family] = Fit(typical.units[family], rates.units[family], kernel, own).run();
  }
}

double partUnmeasured(const StepSample &sample) {
  if (sample.commandsNanoseconds <= sample.nanoseconds)
    return 1;
  return sample.nanoseconds / sample.commandsNanoseconds;
}

/// Least squares of what is left of each step; errors count relative to the step. None of the two is less
/// than nothing.
void fitStep(ArrayRef<StepSample> samples, HostRates &rates) {
  double ones = 0, squares = 0, iterations = 0, rests = 0, products = 0;
  for (const StepSample &sample : samples) {
    const double weight = 1 / (sample.nanoseconds * sample.nanoseconds);
    const double rest = sample.nanoseconds - sample.commandsNanoseconds;
    ones += weight, rests += weight * rest;
    iterations += weight * sample.iterations, squares += weight * sample.iterations * sample.iterations;
    products += weight * sample.iterations * rest;
  }
  const double determinant = ones * squares - iterations * iterations;
  double step = (rests * squares - products * iterations) / determinant;
  double iteration = (products * ones - rests * iterations) / determinant;
  if (!(determinant > 0) || iteration < 0)
    step = ones > 0 ? rests / ones : 0, iteration = 0;
  else if (step < 0)
    step = 0, iteration = products / squares;
  rates.stepNanoseconds = std::max(0.0, step);
  rates.iterationNanoseconds = std::max(0.0, iteration);
}

int64_t sharedCacheBytes(ArrayRef<CacheSample> samples) {
  constexpr double kSlower = 1.35; // What memory takes is twice as long, and part of what is read lies there.
  double least = std::numeric_limits<double>::max();
  int64_t bytes = 0;
  for (const CacheSample &sample : samples) {
    if (sample.nanosecondsPerByte > kSlower * least)
      break;
    least = std::min(least, sample.nanosecondsPerByte);
    bytes = sample.bytes;
  }
  return bytes;
}

void fitThreads(ArrayRef<SharedSample> samples, HostRates &rates) {
  rates.speedup = 1;
  rates.forkNanoseconds = 0;
  if (rates.threads < 2 || samples.empty())
    return;
  double least = std::numeric_limits<double>::max();
  for (double speedup = 1; speedup <= rates.threads; speedup += 0.05)
    for (double fork = 500; fork < 100'000; fork *= 1.25)
      if (const double error = threadsError(samples, speedup, fork); error < least) {
        least = error;
        rates.speedup = speedup;
        rates.forkNanoseconds = fork;
      }
}

} // namespace gpuc
