#include "runtime/host/all_reduce.h"

#include "runtime/comm/communicator.h"
#include "runtime/comm/rank_sum.h"

namespace gpuc {
namespace {

class AllReduceKernel final : public LibraryKernel {
 public:
  AllReduceKernel(const fb::AllReduce& reduce, Ranks& ranks)
      : ranks_(ranks),
        type_(static_cast<DataType>(reduce.type())),
        elements_(reduce.result()->size() / static_cast<size_t>(sizeOf(type_))) {}

  int phaseCount() const override { return 1; }
  int64_t tiles(int) const override { return 1; }
  double tileNs(int) const override { return static_cast<double>(elements_); }
  bool isCutInOrder(uint32_t) const override { return true; }

  void run(int, void* const* operands, int64_t begin, int64_t end) const override {
    if (begin < end)
      ranks_.allReduce(type_, elements_, static_cast<const std::byte*>(operands[0]),
                       static_cast<std::byte*>(operands[1]));
  }

 private:
  Ranks& ranks_;
  DataType type_;
  size_t elements_;
};

}  // namespace

void Ranks::allReduce(DataType type, size_t elements, const std::byte* part, std::byte* result) {
  if (!status_.ok()) return;
  if (communicator_)
    status_ = communicator_->allReduce(type, elements, part, result);
  else
    sumParts(type, elements, {&part, 1}, result);
}

std::unique_ptr<LibraryKernel> makeAllReduceKernel(const fb::AllReduce& reduce, Ranks& ranks) {
  return std::make_unique<AllReduceKernel>(reduce, ranks);
}

}  // namespace gpuc
