// A GPU that is not there, for tests of the CUDA device: its memory is the host's, its streams are queues,
// its kernels C++ functions. While a FakeGpu lives, the runtime's tables of driver, cuBLASLt and cuDNN
// functions are its own.
//
// Streams keep CUDA's order and no other: what stands in one follows one another; a wait ends when the record
// that it found enqueued is executed. Which ready stream goes on, and when, is drawn from a seed, so that a
// plan that lacks an event gives other bits for some seed. What no GPU would take (an address outside of its
// memory, a handle that was given back, a call without a context) fails the test. So does, while a stream is
// captured, what would end the capture: calls that wait, ask or allocate, pageable memory; and, though CUDA
// may take them there, events: gpuc leaves them outside of its graphs.
//
// Several ranks are several threads, each with a FakeGpu that is what its process sees of the machine; NCCL
// joins them (fake_nccl.h).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/cuda/blas.h"
#include "runtime/cuda/dnn.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/nccl.h"
#include "test/runtime/cuda/fake_blas.h"
#include "test/runtime/cuda/fake_dnn.h"
#include "test/runtime/cuda/fake_nccl.h"

namespace gpuc::test {

struct FakeKernel {
  std::string symbol;
  size_t operands = 0;
  std::function<void(void* const* operands, uint32_t grid, uint32_t block)> run;
};

struct FakeEvent {
  uint64_t recorded = 0;  // how often its record was enqueued
  uint64_t reached = 0;   // the last record that a stream came to
  bool alive = true;
};

/// One thing that a stream does. Of one size, so that a queue that has its length allocates nothing.
struct FakeWork {
  enum class Kind : uint8_t { kernel, matmul, conv, copy, fill, record, wait, exchange };
  static constexpr size_t kMostOperands = 1024;

  Kind kind = Kind::copy;
  const char* call = "";
  const FakeKernel* kernel = nullptr;
  uint32_t grid = 0, block = 0;
  std::array<void*, kMostOperands> operands = {};
  FakeMatmul matmul = {};
  FakeConvolution conv = {};
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  uint64_t bytes = 0;            // copy; fill: of an element
  std::vector<std::byte> moved;  // what a copy from pageable memory read when it was enqueued
  uint64_t element = 0, pitch = 0, width = 0, rows = 0;
  FakeEvent* event = nullptr;
  uint64_t record = 0;  // which one
  FakeExchange exchange = {};
};

/// What was captured, or is to be launched: the work of one stream, with the addresses of its capture.
struct FakeGraph {
  std::vector<FakeWork> work;
  bool is_valid = true;  // else something happened during the capture that may not
};

struct FakeStream {
  int index = 0;
  bool alive = true;
  size_t next = 0;  // of the queue
  std::vector<FakeWork> queue;
  std::unique_ptr<FakeGraph> capture;  // takes what is enqueued, as long as there is one
};

class FakeGpu {
 public:
  /// Seed 0: each stream goes on as soon as it can. Others: now and then, as late as can be, or one stream
  /// always before another.
  explicit FakeGpu(uint64_t seed = 0);
  /// Fails the test if anything was not given back.
  ~FakeGpu();
  FakeGpu(const FakeGpu&) = delete;
  FakeGpu& operator=(const FakeGpu&) = delete;

  // What this GPU is.
  int major = 9, minor = 0, devices = 1;
  int first_device = 0;  // of the machine's, where this process does not see all
  int device = -1;       // of the machine's, the one that is in use
  uint64_t memory_bytes = uint64_t{1} << 36;
  size_t blas_version = CUBLAS_VERSION;
  uint64_t blas_workspace_bytes = 0;    // what each of cuBLASLt's algorithms needs
  uint64_t blas_context_bytes = 12345;  // of the GPU's memory, as long as a context of cuBLASLt lives
  int live_blas_contexts = 0;
  uint64_t graph_bytes = 2345;  // likewise of an executable graph
  uint64_t nccl_bytes = 54321;  // likewise of a communicator of NCCL
  size_t dnn_version = CUDNN_VERSION;
  std::vector<FakeEngine> dnn_engines = fakeEngines();  // what cuDNN suggests for every convolution
  size_t dnn_engine = ~size_t{0};                       // which of them was executed last
  /// Libraries round a sum of 16-bit elements before they add a bias to it, as the host does, and not, as
  /// they are known to, once: for comparisons with the host in which nothing else may differ.
  bool rounds_before_bias = false;
  ncclResult_t nccl_async_error = ncclSuccess;  // what NCCL's threads have met with, between calls
  bool nccl_never_joins = false;                // as if the network kept this rank from the others
  bool may_leak = false;                        // after errors that kept things from being given back

  /// What a launch of `symbol` does, for every module that is loaded.
  void define(const std::string& symbol, size_t operands,
              std::function<void(void* const*, uint32_t, uint32_t)> run);

  /// The call of this number, counted from 1 over all calls from now on, fails and does nothing.
  void failCall(size_t number, CUresult result, cublasStatus_t blas_status = CUBLAS_STATUS_INTERNAL_ERROR,
                cudnnStatus_t dnn_status = CUDNN_STATUS_INTERNAL_ERROR,
                ncclResult_t nccl_result = ncclSystemError);
  /// The next call of this name fails, or the one of this number, counted from 1.
  void fail(const std::string& call, CUresult result, size_t number = 1);
  void failNccl(const std::string& call, ncclResult_t result, size_t number = 1);
  /// Whether the call that was to fail has been made.
  bool hasFailed() const { return has_failed_; }
  /// Every call fails from now on, as after a kernel that touched what it must not.
  void lose(CUresult result) { lost_ = result; }

  struct Call {
    const char* name;
    int stream;    // in the order of their making; -1: none
    bool blocked;  // the host had to wait
  };
  struct Done {
    FakeWork::Kind kind;
    const char* call;
    int stream;
    const FakeKernel* kernel;
    const void* to;  // copy, fill: where it wrote
  };
  std::vector<Call> calls;  // of the runtime, in order
  std::vector<Done> done;   // by the streams, in order
  void clearLog();
  size_t count(const std::string& call) const;
  size_t countBlocked() const;

  /// Of the GPU's memory and of pinned memory, not yet given back.
  uint64_t usedBytes() const { return used_bytes_; }

  // For the tables of functions (fake_driver.cpp, fake_blas.cpp, fake_dnn.cpp, fake_nccl.cpp).

  static thread_local FakeGpu* current;

  /// Logs a call. What it must return at once, if that is not success.
  CUresult enter(const char* call, bool needs_context = true, FakeStream* stream = nullptr);
  cublasStatus_t enterBlas(const char* call);
  cudnnStatus_t enterDnn(const char* call);
  ncclResult_t enterNccl(const char* call, FakeStream* stream = nullptr);
  CUresult misuse(const std::string& what);

  CUresult allocate(void** address, size_t bytes, bool pinned);
  CUresult release(void* address, bool pinned);
  /// All of [address, address + bytes) is memory of this kind.
  bool holds(const void* address, uint64_t bytes, bool pinned) const;

  FakeStream* makeStream();
  FakeEvent* makeEvent();
  /// Null, and the test fails, for what was never made or given back.
  FakeStream* find(CUstream stream);
  FakeEvent* find(CUevent event);
  const FakeKernel* findKernel(const std::string& symbol) const;

  /// Puts `work` at the end of a stream, after which streams may go on.
  FakeWork& enqueue(FakeStream& stream, FakeWork::Kind kind, const char* call);
  void enqueued();
  /// Lets streams go on until the stream is done, or the event's last record reached.
  CUresult synchronize(FakeStream& stream);
  CUresult synchronize(FakeEvent& event);
  /// The same for who asks again and again: a ready stream goes on by one.
  CUresult query(FakeStream& stream);
  CUresult query(FakeEvent& event);
  /// Whether a call that waits for this GPU returns only when other ranks have come: never, if one is lost.
  bool waitsForRanks() const;
  /// From 0 to count - 1.
  uint64_t draw(uint64_t count) { return random_() % count; }

  /// Graphs, and executable ones, by their handles.
  std::map<void*, std::unique_ptr<FakeGraph>> graphs, executable_graphs;
  /// The stream that is captured; null if none is.
  FakeStream* capturing = nullptr;

  int live_contexts = 0, live_modules = 0;
  /// cuBLASLt's and cuDNN's objects by their handles. Owned here, so that those which `may_leak` go with the
  /// fake.
  std::map<void*, std::shared_ptr<void>> descriptions;
  bool context_is_current = false;

  /// What stands between ncclGroupStart and its end.
  struct NcclGroup {
    int depth = 0;
    bool has_failed = false;
    FakeComm* comm = nullptr;
    FakeStream* stream = nullptr;
    std::array<FakeCollective, FakeExchange::kMostCollectives> collectives = {};
    size_t count = 0;
  };
  NcclGroup nccl_group;
  std::map<FakeComm*, std::shared_ptr<FakeComm>> comms;
  /// No call may name it any more; streams may have yet to come to what it began.
  void retire(FakeComm* comm) { ended_comms_.push_back(std::move(comms.extract(comm).mapped())); }

 private:
  enum class Style : uint8_t { eager, random, late, favourite };
  struct Allocation {
    uint64_t bytes;
    bool pinned;
  };

  bool isToFail(const char* call);
  /// Whether the call may be made now.
  bool suitsCapture(const char* call);
  static bool ready(const FakeStream& stream);
  static bool waitsForRanks(const FakeStream& stream);
  void execute(FakeStream& stream);
  /// One piece of work of a ready stream; false if there is none.
  bool advance();
  CUresult waitUntil(const std::function<bool()>& reached);

  Style style_;
  std::mt19937_64 random_;
  std::map<uintptr_t, Allocation> memory_;
  uint64_t used_bytes_ = 0;
  std::vector<std::unique_ptr<FakeStream>> streams_;
  std::vector<std::unique_ptr<FakeEvent>> events_;
  std::map<std::string, FakeKernel> kernels_;
  size_t entered_ = 0, fail_at_ = 0;
  std::string fail_name_;
  size_t fail_name_at_ = 0;
  bool has_failed_ = false;
  CUresult failure_ = CUDA_SUCCESS, lost_ = CUDA_SUCCESS;
  cublasStatus_t blas_failure_ = CUBLAS_STATUS_SUCCESS;
  cudnnStatus_t dnn_failure_ = CUDNN_STATUS_SUCCESS;
  ncclResult_t nccl_failure_ = ncclSuccess;
  std::vector<std::shared_ptr<FakeComm>> ended_comms_;
};

cuda::Driver fakeDriver();
cuda::Blas fakeBlas();
cuda::Dnn fakeDnn();
cuda::Nccl fakeNccl();

}  // namespace gpuc::test
