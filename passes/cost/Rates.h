//===- Rates.h - What was measured of a machine ----------------------------------===//
#pragma once

#include "passes/cost/Work.h"
#include "runtime/base/status.h"

#include <string>

namespace gpuc {

/// What caches hold, in bytes.
struct CacheSizes {
  int64_t near = 1 << 20; ///< A core's own.
  int64_t far = 32 << 20; ///< That cores share.

  /// Where a byte lies if so many bytes, at least 1, it among them, were touched since it was: shares that
  /// add up to 1. There is no edge up to which a cache holds all: from half of a core's own to twice that,
  /// and from a quarter of the shared one on, which others use too, it is partly in the next place, by the
  /// logarithm.
  BytesByPlace sharesAt(int64_t distance) const;
};

/// What one unit takes on one thread, in nanoseconds, by family; and what more threads bring.
struct HostRates {
  std::string cpu;    ///< As it names itself.
  std::string target; ///< As the compiler names it: znver4, say.
  int threads = 1;    ///< That `speedup` is of.
  double speedup = 1; ///< Of commands that threads share, in the long run.
  double forkNanoseconds = 0;
  double stepNanoseconds = 0;      ///< Of a step beside its commands,
  double iterationNanoseconds = 0; ///< and of a loop beside them, each time that it goes on.
  CacheSizes caches;
  std::array<std::array<double, kUnitCount>, kFamilyCount> units{};

  double nanoseconds(const Work &work) const;
};

/// A guess at any machine's, for what calibration has not met.
HostRates typicalRates();

/// As a file: JSON, with the units that a family has.
std::string printRates(const HostRates &rates);

/// Errors begin with `name`, the file's, and end with the cure.
Result<HostRates> parseRates(llvm::StringRef text, const std::string &name);

/// A command that was measured.
struct Sample {
  Work work;
  double nanoseconds = 0; ///< On one thread.
  double share = 0;       ///< Of its step's time, all executions together.
};

/// The rates by which the samples are predicted best. What no sample has stays typical.
void fitRates(llvm::ArrayRef<Sample> samples, HostRates &rates);

/// The same command on one thread, by prediction, and on all.
struct SharedSample {
  double alone = 0, shared = 0; ///< In nanoseconds.
  double weight = 1;            ///< How often it comes in a step, over what that takes.
  int64_t parts = 0;            ///< Into which it can be cut; 0: into enough.
};

/// Finds rates.speedup and rates.forkNanoseconds, for rates.threads.
void fitThreads(llvm::ArrayRef<SharedSample> samples, HostRates &rates);

/// A whole step that was measured.
struct StepSample {
  double nanoseconds = 0;
  double commandsNanoseconds = 0; ///< Of it all commands, each measured by itself.
  double iterations = 0;          ///< Of all loops.
};

/// How much of what it was measured to take a command takes where nobody measures: at most 1. Commands that
/// are timed one by one wait for the clock and for one another, and together take longer than their step.
double partUnmeasured(const StepSample &sample);

/// Finds rates.stepNanoseconds and rates.iterationNanoseconds.
void fitStep(llvm::ArrayRef<StepSample> samples, HostRates &rates);

/// The caches of the machine at hand, as the system says.
CacheSizes cachesHere();

/// So many bytes, read over and over.
struct CacheSample {
  int64_t bytes = 0;
  double nanosecondsPerByte = 0;
};

/// The most bytes that are read about as fast as fewer: what the shared cache holds for who reads. Of samples
/// by size, none of which a core's own cache holds; 0 of none.
int64_t sharedCacheBytes(llvm::ArrayRef<CacheSample> samples);

} // namespace gpuc
