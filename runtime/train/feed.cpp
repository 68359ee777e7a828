#include "runtime/train/feed.h"

#include <algorithm>

#include "runtime/data/binding.h"

namespace gpuc {

Result<Feed> Feed::open(const ProgramInfo& program, const std::string& data) {
  Feed feed(program, data);
  for (const InputInfo& input : program.inputs)
    feed.inputs_.push_back({input.spec, std::max<int64_t>(0, input.range), input.ignored});
  GPUC_ASSIGN_OR_RETURN(feed.data_, openDataset(data, feed.inputs_));
  return feed;
}

Result<uint32_t> Feed::checksum() const { return sampleChecksum(*data_.dataset, data_.field_of_input); }

Status Feed::checkPadding(const SamplerOptions& order) const {
  // An evaluation has no global batches: a rank without rows leaves its part out.
  const long long ranks = program_.name == "eval_step" ? 1 : order.world_size;
  long long size = order.size, batch = order.batch * ranks, left = size % batch;
  if (order.last_batch == LastBatch::drop || left == 0 || program_.counts_rows) return okStatus();
  std::string counts = errorf("%s: %lld samples are no multiple of the batch of %lld (%lld are left over)",
                              name_.c_str(), size, batch, left)
                           .message();
  std::string program = ", and the plan's '" + program_.name + "' cannot leave out padding";
  std::string cure = program_.name == "eval_step"
                         ? ": compile with a --batch that divides the number of samples"
                         : ": pass --last-batch=drop";
  return Status::error(counts + program + cure);
}

Status Feed::start(SamplerOptions order, const LoaderOptions& options) {
  order.size = samples();
  GPUC_ASSIGN_OR_RETURN(Sampler sampler, Sampler::create(order));
  GPUC_RETURN_IF_ERROR(checkPadding(order));
  // Views keep pointers to the shapes, which the vector's buffer holds for as long as the feed lives.
  for (const InputInfo& input : program_.inputs) views_.emplace_back(nullptr, input.spec);
  GPUC_ASSIGN_OR_RETURN(loader_, Loader::create(data_, inputs_, sampler, options));
  return okStatus();
}

Result<FeedBatch> Feed::next() {
  GPUC_ASSIGN_OR_RETURN(const Batch* batch, loader_->next());
  for (size_t i = 0; i < views_.size(); ++i) views_[i].data = batch->fields[i];
  const SamplerOptions& order = sampler().options();
  const int64_t rows = sampler().globalRows(batch->position.step);
  auto runRows = [](int64_t valid, int64_t most) { return valid == most ? -1 : static_cast<int32_t>(valid); };
  return FeedBatch{.inputs = views_,
                   .rows = rows,
                   .own_rows = batch->rows,
                   .run_rows = runRows(rows, order.batch * order.world_size),
                   .own_run_rows = runRows(batch->rows, order.batch),
                   .position = batch->position,
                   .wait_us = batch->wait_us};
}

}  // namespace gpuc
