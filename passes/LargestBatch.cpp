//===- LargestBatch.cpp - How many rows fit ----------------------------------===//
//
// A plan's bytes grow with the rows about in a straight line, so that the line through two plans says nearly
// where the budget ends. Where it bends (another layout, slices of the batch), halving finds the place.
//
//===----------------------------------------------------------------------===//

#include "passes/LargestBatch.h"

#include <algorithm>

namespace gpuc {
namespace {

/// Above it no plan counts rows. A batch that changes nothing ends here.
constexpr int64_t kMostRows = int64_t(1) << 30;

class Bracket {
public:
  Bracket(int64_t bytes, int64_t step, llvm::function_ref<std::optional<int64_t>(int64_t)> peakOf)
      : bytes_(bytes), step_(step), peakOf_(peakOf) {}

  /// A multiple of the step below `end` that fits, of which the next one does not; 0 if the first does not.
  /// It begins with `from` rows, if that is not 0.
  int64_t find(int64_t end, int64_t from = 0) {
    end_ = end;
    beganAt_ = from;
    if (from != 0)
      attempt(from);
    while (end_ - fits_ > step_)
      attempt(guess());
    return fits_;
  }

private:
  void attempt(int64_t rows) {
    ++attempts_;
    const std::optional<int64_t> peak = peakOf_(rows);
    if (peak && *peak <= bytes_) {
      before_ = std::exchange(fits_, rows);
      bytesBefore_ = std::exchange(bytesOfFit_, *peak);
    } else {
      end_ = rows;
      bytesOfEnd_ = peak.value_or(0);
      beganAt_ = 0;
    }
  }

  /// Strictly between what fits and what does not. Every third one halves what is left, so that there are few
  /// whatever the bytes do. From rows that are known to fit the first step is as long as if all bytes grew
  /// with them: too short, but never far too long.
  int64_t guess() const {
    int64_t rows = fits_ + (end_ - fits_) / 2;
    if (beganAt_ != 0) // nearly there, and no end is known yet
      rows = std::min(rows, 2 * fits_);
    if (fits_ == 0)
      rows = std::min(rows, step_);
    else if (before_ == 0 && fits_ > step_)
      rows = std::min(rows, static_cast<int64_t>(static_cast<double>(fits_) * bytes_ /
                                                 std::max<int64_t>(bytesOfFit_, 1)));
    else if (before_ == 0)
      rows = std::min(rows, 2 * fits_);
    else if (const double each = bytesOfRow(); attempts_ % 3 != 0 && each > 0)
      rows = fits_ + static_cast<int64_t>(std::min<double>((bytes_ - bytesOfFit_) / each, end_ - fits_));
    return std::clamp(rows / step_ * step_, fits_ + step_, (end_ - 1) / step_ * step_);
  }

  /// By the plans on both sides of the budget, or by two that fit.
  double bytesOfRow() const {
    return bytesOfEnd_ > bytesOfFit_ ? static_cast<double>(bytesOfEnd_ - bytesOfFit_) / (end_ - fits_)
                                     : static_cast<double>(bytesOfFit_ - bytesBefore_) / (fits_ - before_);
  }

  const int64_t bytes_, step_;
  llvm::function_ref<std::optional<int64_t>(int64_t)> peakOf_;
  int64_t fits_ = 0, bytesOfFit_ = 0;    ///< The most rows that are known to fit.
  int64_t before_ = 0, bytesBefore_ = 0; ///< Those that were before.
  int64_t end_ = 0, bytesOfEnd_ = 0;     ///< The fewest that are known not to; 0: no such plan was made.
  int64_t beganAt_ = 0;                  ///< Until there is such an end; 0: from nothing.
  int attempts_ = 0;
};

} // namespace

int64_t findLargestBatch(int64_t bytes, llvm::function_ref<std::optional<int64_t>(int64_t rows)> peakOf,
                         int64_t from) {
  const int64_t rows = Bracket(bytes, kBatchStep, peakOf).find(kMostRows, from / kBatchStep * kBatchStep);
  return rows != 0 ? rows : Bracket(bytes, 1, peakOf).find(kBatchStep);
}

} // namespace gpuc
