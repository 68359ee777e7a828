// What a program's inputs are fed with: a data set bound to them, and a loader that runs ahead.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/data_spec.h"
#include "runtime/data/loader.h"
#include "runtime/gpuc.h"

namespace gpuc {

/// A batch as Session::run takes it; valid until it is released.
struct FeedBatch {
  std::span<const HostTensorView> inputs;
  // Rows that hold samples, and the same for Session::run, where -1 is all: of all ranks, as train_step
  // counts them, and of this one.
  int64_t rows = 0, own_rows = 0;
  int32_t run_rows = -1, own_run_rows = -1;
  LoaderPosition position;
  double wait_us = 0;
};

class Feed {
 public:
  /// Opens `data` (see data_spec.h) for the inputs of `program`: every field bound, every label in its range.
  static Result<Feed> open(const ProgramInfo& program, const std::string& data);

  /// By which other data are told apart: see sampleChecksum.
  Result<uint32_t> checksum() const;

  /// Samples in the data set.
  int64_t samples() const { return data_.dataset->size(); }

  /// See Dataset::classes.
  std::span<const std::string> classes() const { return data_.dataset->classes(); }

  /// Starts the loader; called once. `order.size` is filled in. Errors: those of Sampler and Loader; a last
  /// batch that would be padded though the program does not count rows.
  Status start(SamplerOptions order, const LoaderOptions& options);

  const Sampler& sampler() const { return loader_->sampler(); }

  /// The next batch; release() it before the one after. Allocates nothing.
  Result<FeedBatch> next();
  void release() { loader_->release(); }

 private:
  Feed(ProgramInfo program, std::string name) : program_(std::move(program)), name_(std::move(name)) {}
  Status checkPadding(const SamplerOptions& order) const;

  ProgramInfo program_;
  std::string name_;
  std::vector<InputSpec> inputs_;
  BoundDataset data_;
  std::vector<HostTensorView> views_;
  std::unique_ptr<Loader> loader_;
};

}  // namespace gpuc
