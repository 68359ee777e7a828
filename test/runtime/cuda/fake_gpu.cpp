#include "test/runtime/cuda/fake_gpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace gpuc::test {
namespace {

constexpr size_t kAlignment = 512;  // of the driver's allocations
constexpr size_t kGuardBytes = 64;  // behind each
constexpr int kGarbage = 0xCD, kGuard = 0xA5;
// What may be called while a stream is captured.
constexpr std::string_view kCapturable[] = {"cuCtxSetCurrent",
                                            "cuLaunchKernel",
                                            "cuMemcpyHtoDAsync",
                                            "cuMemcpyDtoHAsync",
                                            "cuMemcpyDtoDAsync",
                                            "cuMemsetD8Async",
                                            "cuMemsetD16Async",
                                            "cuMemsetD32Async",
                                            "cuMemsetD2D32Async",
                                            "cublasLtMatmul",
                                            "cublasLtMatmulDescSetAttribute",
                                            "cudnnBackendExecute",
                                            "cuStreamEndCapture"};
constexpr size_t kLogEntries = 1 << 16;  // set aside, so that logging does not allocate

void fillElements(const FakeWork& work) {
  for (uint64_t row = 0; row < work.rows; ++row)
    for (uint64_t i = 0; i < work.width; ++i)
      std::memcpy(work.to + row * work.pitch + i * work.bytes, &work.element, work.bytes);
}

/// The tables of functions are the fake's as long as one lives; which of them a call means follows from its
/// thread.
class Tables {
 public:
  void take() {
    const std::lock_guard lock(mutex_);
    if (users_++ == 0) use(&driver_, &blas_, &dnn_, &nccl_);
  }
  void giveBack() {
    const std::lock_guard lock(mutex_);
    if (--users_ == 0) use(nullptr, nullptr, nullptr, nullptr);
  }

 private:
  static void use(const cuda::Driver* driver, const cuda::Blas* blas, const cuda::Dnn* dnn,
                  const cuda::Nccl* nccl) {
    cuda::Driver::use(driver);
    cuda::Blas::use(blas);
    cuda::Dnn::use(dnn);
    cuda::Nccl::use(nccl);
  }

  std::mutex mutex_;
  int users_ = 0;
  cuda::Driver driver_ = fakeDriver();
  cuda::Blas blas_ = fakeBlas();
  cuda::Dnn dnn_ = fakeDnn();
  cuda::Nccl nccl_ = fakeNccl();
};

Tables& tables() {
  static Tables tables;
  return tables;
}

}  // namespace

thread_local FakeGpu* FakeGpu::current = nullptr;

FakeGpu::FakeGpu(uint64_t seed)
    : style_(seed == 0 ? Style::eager : static_cast<Style>(1 + seed % 3)), random_(seed) {
  EXPECT_EQ(current, nullptr) << "one at a time in a thread";
  current = this;
  calls.reserve(kLogEntries);
  done.reserve(kLogEntries);
  tables().take();
}

FakeGpu::~FakeGpu() {
  current = nullptr;
  tables().giveBack();
  auto alive = [](const auto& list) {
    return std::count_if(list.begin(), list.end(), [](const auto& entry) { return entry->alive; });
  };
  if (!may_leak) {
    EXPECT_EQ(memory_.size(), 0u) << "allocations were not given back";
    EXPECT_EQ(alive(streams_), 0) << "streams were not given back";
    EXPECT_EQ(alive(events_), 0) << "events were not given back";
    EXPECT_EQ(live_contexts, 0) << "contexts were not given back";
    EXPECT_EQ(live_modules, 0) << "modules were not given back";
    EXPECT_EQ(capturing, nullptr) << "a capture was not ended";
    EXPECT_TRUE(graphs.empty() && executable_graphs.empty()) << "graphs were not given back";
    EXPECT_TRUE(comms.empty()) << "communicators were neither destroyed nor aborted";
    EXPECT_EQ(nccl_group.depth, 0) << "a group was not ended";
    EXPECT_TRUE(descriptions.empty()) << "objects of cuBLASLt or cuDNN were not given back";
  }
  for (const auto& [address, allocation] : memory_) std::free(reinterpret_cast<void*>(address));
}

void FakeGpu::define(const std::string& symbol, size_t operands,
                     std::function<void(void* const*, uint32_t, uint32_t)> run) {
  ASSERT_LE(operands, FakeWork::kMostOperands);
  kernels_[symbol] = {symbol, operands, std::move(run)};
}

// Calls

void FakeGpu::failCall(size_t number, CUresult result, cublasStatus_t blas_status, cudnnStatus_t dnn_status,
                       ncclResult_t nccl_result) {
  entered_ = 0;
  fail_at_ = number;
  failure_ = result;
  blas_failure_ = blas_status;
  dnn_failure_ = dnn_status;
  nccl_failure_ = nccl_result;
}

void FakeGpu::fail(const std::string& call, CUresult result, size_t number) {
  fail_name_ = call;
  fail_name_at_ = number;
  failure_ = result;
}

void FakeGpu::failNccl(const std::string& call, ncclResult_t result, size_t number) {
  fail(call, CUDA_SUCCESS, number);
  nccl_failure_ = result;
}

bool FakeGpu::isToFail(const char* call) {
  const bool is_next = fail_name_ == call && --fail_name_at_ == 0;
  if (++entered_ != fail_at_ && !is_next) return false;
  if (is_next) fail_name_.clear();
  has_failed_ = true;
  return true;
}

bool FakeGpu::suitsCapture(const char* call) {
  if (!capturing || std::find(std::begin(kCapturable), std::end(kCapturable), call) != std::end(kCapturable))
    return true;
  capturing->capture->is_valid = false;
  misuse(std::string(call) + " while a stream is captured");
  return false;
}

CUresult FakeGpu::enter(const char* call, bool needs_context, FakeStream* stream) {
  calls.push_back({call, stream ? stream->index : -1, false});
  if (isToFail(call)) return failure_;
  if (lost_ != CUDA_SUCCESS) return lost_;
  if (!suitsCapture(call)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (needs_context && !context_is_current) return misuse(std::string(call) + " without a context");
  return CUDA_SUCCESS;
}

cublasStatus_t FakeGpu::enterBlas(const char* call) {
  calls.push_back({call, -1, false});
  if (!suitsCapture(call)) return CUBLAS_STATUS_EXECUTION_FAILED;
  return ++entered_ == fail_at_ ? blas_failure_ : CUBLAS_STATUS_SUCCESS;
}

cudnnStatus_t FakeGpu::enterDnn(const char* call) {
  calls.push_back({call, -1, false});
  if (!suitsCapture(call)) return CUDNN_STATUS_EXECUTION_FAILED;
  return ++entered_ == fail_at_ ? dnn_failure_ : CUDNN_STATUS_SUCCESS;
}

ncclResult_t FakeGpu::enterNccl(const char* call, FakeStream* stream) {
  calls.push_back({call, stream ? stream->index : -1, false});
  if (!suitsCapture(call)) return ncclInvalidUsage;
  return isToFail(call) ? nccl_failure_ : ncclSuccess;
}

CUresult FakeGpu::misuse(const std::string& what) {
  ADD_FAILURE() << "no GPU would take this: " << what;
  return CUDA_ERROR_INVALID_VALUE;
}

void FakeGpu::clearLog() {
  calls.clear();
  done.clear();
}

size_t FakeGpu::count(const std::string& call) const {
  return static_cast<size_t>(
      std::count_if(calls.begin(), calls.end(), [&](const Call& entry) { return call == entry.name; }));
}

size_t FakeGpu::countBlocked() const {
  return static_cast<size_t>(
      std::count_if(calls.begin(), calls.end(), [](const Call& entry) { return entry.blocked; }));
}

// Memory

CUresult FakeGpu::allocate(void** address, size_t bytes, bool pinned) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > memory_bytes - used_bytes_) return CUDA_ERROR_OUT_OF_MEMORY;
  size_t whole = (bytes + kGuardBytes + kAlignment - 1) / kAlignment * kAlignment;
  auto* data = static_cast<std::byte*>(std::aligned_alloc(kAlignment, whole));
  if (!data) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(data, kGarbage, bytes);
  std::memset(data + bytes, kGuard, kGuardBytes);
  used_bytes_ += bytes;
  memory_[reinterpret_cast<uintptr_t>(data)] = {bytes, pinned};
  *address = data;
  return CUDA_SUCCESS;
}

CUresult FakeGpu::release(void* address, bool pinned) {
  auto found = memory_.find(reinterpret_cast<uintptr_t>(address));
  if (found == memory_.end() || found->second.pinned != pinned)
    return misuse("memory that was not allocated is given back");
  auto* guard = static_cast<const unsigned char*>(address) + found->second.bytes;
  if (!std::all_of(guard, guard + kGuardBytes, [](unsigned char byte) { return byte == kGuard; }))
    ADD_FAILURE() << "the bytes behind an allocation were written";
  used_bytes_ -= found->second.bytes;
  memory_.erase(found);
  std::free(address);
  return CUDA_SUCCESS;
}

bool FakeGpu::holds(const void* address, uint64_t bytes, bool pinned) const {
  auto begin = reinterpret_cast<uintptr_t>(address);
  auto found = memory_.upper_bound(begin);
  if (found == memory_.begin()) return false;
  --found;
  uint64_t offset = begin - found->first;
  return found->second.pinned == pinned && offset <= found->second.bytes &&
         bytes <= found->second.bytes - offset;
}

// Handles

FakeStream* FakeGpu::makeStream() {
  streams_.push_back(std::make_unique<FakeStream>());
  streams_.back()->index = static_cast<int>(streams_.size() - 1);
  return streams_.back().get();
}

FakeEvent* FakeGpu::makeEvent() { return events_.emplace_back(std::make_unique<FakeEvent>()).get(); }

FakeStream* FakeGpu::find(CUstream stream) {
  for (const auto& entry : streams_)
    if (reinterpret_cast<CUstream>(entry.get()) == stream && entry->alive) return entry.get();
  misuse("a stream that is not there");
  return nullptr;
}

FakeEvent* FakeGpu::find(CUevent event) {
  for (const auto& entry : events_)
    if (reinterpret_cast<CUevent>(entry.get()) == event && entry->alive) return entry.get();
  misuse("an event that is not there");
  return nullptr;
}

const FakeKernel* FakeGpu::findKernel(const std::string& symbol) const {
  auto found = kernels_.find(symbol);
  return found == kernels_.end() ? nullptr : &found->second;
}

// Streams

FakeWork& FakeGpu::enqueue(FakeStream& stream, FakeWork::Kind kind, const char* call) {
  if (stream.next == stream.queue.size()) {
    stream.queue.clear();
    stream.next = 0;
  }
  FakeWork& work = stream.capture ? stream.capture->work.emplace_back() : stream.queue.emplace_back();
  work.kind = kind;
  work.call = call;
  return work;
}

void FakeGpu::enqueued() {
  switch (style_) {
    case Style::eager:
      while (advance()) continue;
      break;
    case Style::random:
      for (uint64_t steps = random_() % 3; steps > 0 && advance();) --steps;
      break;
    case Style::favourite:
      if (random_() % 2 == 0) advance();
      break;
    case Style::late:
      break;
  }
}

bool FakeGpu::ready(const FakeStream& stream) {
  if (stream.next == stream.queue.size()) return false;
  const FakeWork& work = stream.queue[stream.next];
  if (work.kind == FakeWork::Kind::exchange) return work.exchange.isReady();
  return work.kind != FakeWork::Kind::wait || work.event->reached >= work.record;
}

bool FakeGpu::advance() {
  FakeStream* chosen = nullptr;
  uint64_t candidates = 0;
  for (const auto& stream : streams_) {
    if (!stream->alive || !ready(*stream)) continue;
    ++candidates;
    // The favourite is the stream that was made last; in the other styles each has the same chance.
    if (style_ == Style::favourite || random_() % candidates == 0) chosen = stream.get();
  }
  if (chosen) execute(*chosen);
  return chosen != nullptr;
}

void FakeGpu::execute(FakeStream& stream) {
  FakeWork& work = stream.queue[stream.next];
  switch (work.kind) {
    case FakeWork::Kind::kernel:
      work.kernel->run(work.operands.data(), work.grid, work.block);
      break;
    case FakeWork::Kind::matmul:
      work.matmul.run();
      break;
    case FakeWork::Kind::conv:
      work.conv.run();
      break;
    case FakeWork::Kind::copy:
      std::memcpy(work.to, work.moved.empty() ? work.from : work.moved.data(), work.bytes);
      break;
    case FakeWork::Kind::fill:
      fillElements(work);
      break;
    case FakeWork::Kind::record:
      work.event->reached = std::max(work.event->reached, work.record);
      break;
    case FakeWork::Kind::wait:
      break;
    case FakeWork::Kind::exchange:
      if (!work.exchange.goOn()) return;
      break;
  }
  done.push_back({work.kind, work.call, stream.index, work.kernel, work.to});
  ++stream.next;
}

CUresult FakeGpu::waitUntil(const std::function<bool()>& reached) {
  calls.back().blocked = !reached();
  if (!reached() && waitsForRanks())
    return misuse("the host waits for other ranks in a call that does not end if one is lost");
  while (!reached())
    if (!advance()) return misuse("the host waits for what never comes");
  return CUDA_SUCCESS;
}

bool FakeGpu::waitsForRanks() const {
  return std::any_of(streams_.begin(), streams_.end(),
                     [](const auto& stream) { return stream->alive && waitsForRanks(*stream); });
}

bool FakeGpu::waitsForRanks(const FakeStream& stream) {
  for (size_t i = stream.next; i < stream.queue.size(); ++i)
    if (stream.queue[i].kind == FakeWork::Kind::exchange && !stream.queue[i].exchange.isAborted())
      return true;
  return false;
}

CUresult FakeGpu::query(FakeStream& stream) {
  advance();
  return stream.next == stream.queue.size() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult FakeGpu::query(FakeEvent& event) {
  advance();
  return event.reached >= event.recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult FakeGpu::synchronize(FakeStream& stream) {
  return waitUntil([&] { return stream.next == stream.queue.size(); });
}

CUresult FakeGpu::synchronize(FakeEvent& event) {
  return waitUntil([&] { return event.reached >= event.recorded; });
}

}  // namespace gpuc::test
