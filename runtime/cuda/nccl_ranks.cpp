// NCCL never waits for good here: its calls return at once, and whether what they began has ended is asked
// for again and again, as is whether all ranks live. Once one is lost the communicator is aborted, upon which
// the kernels end that wait for it.
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "runtime/comm/communicator.h"
#include "runtime/cuda/gpu_ranks.h"
#include "runtime/cuda/nccl_exchanges.h"

namespace gpuc::cuda {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a core is kept busy, for what ends soon; how long a rest takes then, and between looks at ranks.
constexpr std::chrono::microseconds kSoon{1000}, kRest{50};
constexpr std::chrono::milliseconds kLook{20};

class NcclRanks final : public GpuRanks {
 public:
  NcclRanks(const Driver& driver, const Nccl& nccl, Communicator& communicator)
      : driver_(driver), nccl_(nccl), communicator_(communicator) {}

  ~NcclRanks() override {
    if (!comm_) return;
    // What others have yet to take from this rank is sent first.
    if (!settle(nccl_.ncclCommFinalize(comm_), "ncclCommFinalize").ok()) return;
    nccl_.ncclCommDestroy(comm_);
  }

  Status join() {
    ncclUniqueId id = {};
    if (communicator_.rank() == 0)
      GPUC_RETURN_IF_ERROR(nccl_.check(nccl_.ncclGetUniqueId(&id), "ncclGetUniqueId"));
    GPUC_RETURN_IF_ERROR(communicator_.broadcast(std::as_writable_bytes(std::span(&id, 1)), /*root=*/0));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    return settle(nccl_.ncclCommInitRankConfig(&comm_, static_cast<int>(communicator_.size()), id,
                                               static_cast<int>(communicator_.rank()), &config),
                  "ncclCommInitRankConfig");
  }

  Status warmUp(std::span<const PlannedExchange> exchanges, CUstream stream) {
    for (const auto& [exchange, addresses] : exchanges)
      GPUC_RETURN_IF_ERROR(this->exchange({&exchange, 1}, addresses.data(), stream));
    return wait(stream);
  }

  Status exchange(std::span<const RankExchange> exchanges, const CUdeviceptr* addresses,
                  CUstream stream) override {
    if (!failure_.ok()) return failure_;
    const NcclExchanges calls(nccl_, comm_, communicator_.rank(), communicator_.size(), stream);
    GPUC_RETURN_IF_ERROR(failIf(calls.clearEnds(driver_, exchanges, addresses)));
    if (calls.areOne(exchanges)) {
      const NcclCall call = calls.begin(exchanges, addresses);
      return settle(call.result, call.name);
    }
    GPUC_RETURN_IF_ERROR(failIf(nccl_.check(nccl_.ncclGroupStart(), "ncclGroupStart")));
    const NcclCall last = calls.begin(exchanges, addresses);
    const ncclResult_t end = nccl_.ncclGroupEnd();  // also of a group that is not whole: none may stay open
    return last.isFine() ? settle(end, "ncclGroupEnd") : failIf(nccl_.check(last.result, last.name));
  }

  Status wait(CUstream stream) override {
    return waitUntil([&] { return driver_.cuStreamQuery(stream); }, "cuStreamQuery");
  }
  Status wait(CUevent event) override {
    return waitUntil([&] { return driver_.cuEventQuery(event); }, "cuEventQuery");
  }

 private:
  /// Somebody who waits, for one thing.
  struct Waiting {
    Clock::time_point start = Clock::now();
    Clock::time_point next_look = start + kLook;
  };

  /// Lets a little time pass. The error if a rank is lost, or the time is up.
  Status rest(Waiting& waiting, const char* call) {
    const Clock::time_point now = Clock::now();
    if (now >= waiting.next_look) {
      waiting.next_look = now + kLook;
      if (Status lost = communicator_.look(); !lost.ok()) return failIf(waitsBut(lost.message()));
      if (now - waiting.start > communicator_.limit()) return failIf(tooLate(call));
      GPUC_RETURN_IF_ERROR(checkErrors());
    }
    if (now - waiting.start < kSoon)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kRest);
    return okStatus();
  }

  Status waitsBut(const std::string& what) const {
    return Status::error("rank " + std::to_string(communicator_.rank()) +
                         " waits for its GPU, which waits for all ranks, but " + what);
  }

  Status tooLate(const char* call) const {
    return errorf(
        "rank %lld: %s has not ended in %lld ms: another rank's GPU does not come, or the network keeps "
        "them apart (NCCL_DEBUG=INFO says what NCCL does)",
        static_cast<long long>(communicator_.rank()), call,
        static_cast<long long>(communicator_.limit().count()));
  }

  /// What NCCL's own threads have met with.
  Status checkErrors() {
    if (!comm_) return okStatus();
    ncclResult_t state = ncclSuccess;
    GPUC_RETURN_IF_ERROR(
        failIf(nccl_.check(nccl_.ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError")));
    return failIf(nccl_.check(state, "NCCL"));
  }

  /// Returns when what a call began has ended.
  Status settle(ncclResult_t result, const char* call) {
    Waiting waiting;
    while (result == ncclInProgress) {
      GPUC_RETURN_IF_ERROR(rest(waiting, call));
      const ncclResult_t asked = nccl_.ncclCommGetAsyncError(comm_, &result);
      GPUC_RETURN_IF_ERROR(failIf(nccl_.check(asked, "ncclCommGetAsyncError")));
    }
    return failIf(nccl_.check(result, call));
  }

  template <typename Query>
  Status waitUntil(Query query, const char* call) {
    if (!failure_.ok()) return failure_;
    Waiting waiting;
    CUresult result = query();
    for (; result == CUDA_ERROR_NOT_READY; result = query()) GPUC_RETURN_IF_ERROR(rest(waiting, call));
    return failIf(driver_.check(result, call));
  }

  /// An error is the last thing that this rank's GPU has to do with others.
  Status failIf(const Status& status) {
    if (status.ok()) return status;
    failure_ = status;
    if (comm_) nccl_.ncclCommAbort(comm_);
    comm_ = nullptr;
    return failure_;
  }

  const Driver& driver_;
  const Nccl& nccl_;
  Communicator& communicator_;
  ncclComm_t comm_ = nullptr;  // null before join() and after an error
  Status failure_ = okStatus();
};

/// All ranks must exchange the same, or their GPUs would wait for one another without end.
Status checkExchanges(Communicator& communicator, std::span<const PlannedExchange> exchanges) {
  uint64_t mine = exchanges.size();
  auto mix = [&](uint64_t number) { mine = (mine + number) * 0x9e3779b97f4a7c15; };
  for (const auto& [exchange, addresses] : exchanges) {
    mix(static_cast<uint64_t>(exchange.kind) * 16 + static_cast<uint64_t>(exchange.type));
    mix(exchange.owners);
    for (const Piece& piece : exchange.pieces) mix(piece.elements);
  }
  std::vector<uint64_t> all(static_cast<size_t>(communicator.size()));
  GPUC_RETURN_IF_ERROR(
      communicator.gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all))));
  const auto other = std::find_if(all.begin(), all.end(), [&](uint64_t asked) { return asked != all[0]; });
  if (other == all.end()) return okStatus();
  return errorf("ranks 0 and %lld exchange other things: all must run the same plan",
                static_cast<long long>(other - all.begin()));
}

}  // namespace

Result<std::unique_ptr<GpuRanks>> GpuRanks::meet(const Driver& driver, Communicator& communicator,
                                                 std::span<const PlannedExchange> exchanges,
                                                 CUstream stream) {
  GPUC_ASSIGN_OR_RETURN(const Nccl* nccl, Nccl::get());
  GPUC_RETURN_IF_ERROR(checkExchanges(communicator, exchanges));
  auto ranks = std::make_unique<NcclRanks>(driver, *nccl, communicator);
  GPUC_RETURN_IF_ERROR(ranks->join());
  GPUC_RETURN_IF_ERROR(ranks->warmUp(exchanges, stream));
  return std::unique_ptr<GpuRanks>(std::move(ranks));
}

}  // namespace gpuc::cuda
