// NCCL's functions between FakeGpus.
#include "test/runtime/cuda/fake_nccl.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/half.h"
#include "test/runtime/cuda/fake_gpu.h"

namespace gpuc::test {
namespace {

/// What ranks that have arrived share of one exchange. A rank arrives when it has left the one before, so
/// that two are under way at most.
struct Meeting {
  std::vector<std::vector<std::byte>> parts;  // of each rank, one sum's behind the other's
  FakeExchange asked;                         // by the first to arrive…
  int asked_by = 0;                           // …which is this rank
  int arrived = 0, read = 0, left = 0;
};

/// The ranks of one unique id.
struct World {
  std::mutex mutex;
  int size = 0;
  std::vector<int> devices;  // of each rank; -1: has not come
  int joined = 0;
  std::array<Meeting, 2> meetings;
};

std::mutex worlds_mutex;
std::map<std::string, std::shared_ptr<World>> worlds;

}  // namespace

struct FakeComm {
  FakeGpu* gpu = nullptr;
  std::shared_ptr<World> world;
  int rank = 0;
  bool has_joined = false, is_aborted = false, is_finalized = false;
  uint64_t begun = 0, done = 0;  // exchanges
  uint64_t polls = 0;            // until what was begun is enqueued
  FakeExchange waiting;          // what that is
  FakeStream* stream = nullptr;  // and where; null: nothing is
};

namespace {

FakeGpu& gpu() { return *FakeGpu::current; }

size_t sizeOf(ncclDataType_t type) {
  switch (type) {
    case ncclFloat64:
    case ncclInt64:
      return 8;
    case ncclFloat32:
    case ncclInt32:
      return 4;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    default:
      return 1;
  }
}

size_t bytesOf(const FakeSum& sum) { return sum.count * sizeOf(sum.type); }

// Sums

template <typename T>
void addAs(std::byte* sum, const std::byte* part, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    T a, b;
    std::memcpy(&a, sum + i * sizeof(T), sizeof(T));
    std::memcpy(&b, part + i * sizeof(T), sizeof(T));
    a = static_cast<T>(a + b);
    std::memcpy(sum + i * sizeof(T), &a, sizeof(T));
  }
}

void addHalves(ncclDataType_t type, std::byte* sum, const std::byte* part, size_t count) {
  const bool is_bf16 = type == ncclBfloat16;
  for (size_t i = 0; i < count; ++i) {
    uint16_t a, b;
    std::memcpy(&a, sum + 2 * i, 2);
    std::memcpy(&b, part + 2 * i, 2);
    a = is_bf16 ? floatToBfloat16(bfloat16ToFloat(a) + bfloat16ToFloat(b))
                : floatToHalf(halfToFloat(a) + halfToFloat(b));
    std::memcpy(sum + 2 * i, &a, 2);
  }
}

void add(ncclDataType_t type, std::byte* sum, const std::byte* part, size_t count) {
  switch (type) {
    case ncclFloat64:
      return addAs<double>(sum, part, count);
    case ncclFloat32:
      return addAs<float>(sum, part, count);
    case ncclInt64:
      return addAs<uint64_t>(sum, part, count);
    case ncclInt32:
      return addAs<uint32_t>(sum, part, count);
    case ncclFloat16:
    case ncclBfloat16:
      return addHalves(type, sum, part, count);
    default:
      return addAs<uint8_t>(sum, part, count);
  }
}

Meeting& meetingOf(const FakeExchange& exchange) {
  return exchange.comm->world->meetings[exchange.number % 2];
}

bool asksForTheSame(const FakeExchange& one, const FakeExchange& other) {
  return one.number == other.number && one.count == other.count &&
         std::equal(
             one.sums.begin(), one.sums.begin() + one.count, other.sums.begin(),
             [](const FakeSum& a, const FakeSum& b) { return a.type == b.type && a.count == b.count; });
}

void arrive(FakeExchange& exchange) {
  World& world = *exchange.comm->world;
  const std::lock_guard lock(world.mutex);
  Meeting& meeting = meetingOf(exchange);
  if (exchange.number != exchange.comm->done)
    gpu().misuse("two streams exchange at once: ranks could meet in any order");
  if (meeting.arrived == 0) {
    meeting.asked = exchange;
    meeting.asked_by = exchange.comm->rank;
    meeting.parts.resize(static_cast<size_t>(world.size));
  } else if (!asksForTheSame(meeting.asked, exchange)) {
    gpu().misuse("ranks " + std::to_string(meeting.asked_by) + " and " + std::to_string(exchange.comm->rank) +
                 " exchange other things: their GPUs would hang");
  }
  ++meeting.arrived;
}

void readParts(FakeExchange& exchange) {
  std::vector<std::byte>& parts = meetingOf(exchange).parts[static_cast<size_t>(exchange.comm->rank)];
  size_t bytes = 0;
  for (size_t i = 0; i < exchange.count; ++i) bytes += bytesOf(exchange.sums[i]);
  parts.resize(bytes);
  bytes = 0;
  for (size_t i = 0; i < exchange.count; ++i) {
    std::memcpy(parts.data() + bytes, exchange.sums[i].part, bytesOf(exchange.sums[i]));
    bytes += bytesOf(exchange.sums[i]);
  }
  const std::lock_guard lock(exchange.comm->world->mutex);
  ++meetingOf(exchange).read;
}

void writeSums(const FakeExchange& exchange) {
  World& world = *exchange.comm->world;
  Meeting& meeting = meetingOf(exchange);
  size_t offset = 0;
  for (size_t i = 0; i < exchange.count; ++i) {
    const FakeSum& sum = exchange.sums[i];
    std::memcpy(sum.result, meeting.parts.back().data() + offset, bytesOf(sum));
    for (int rank = 0; rank + 1 < world.size; ++rank)
      add(sum.type, sum.result, meeting.parts[static_cast<size_t>(rank)].data() + offset, sum.count);
    offset += bytesOf(sum);
  }
}

void leave(FakeExchange& exchange) {
  World& world = *exchange.comm->world;
  const std::lock_guard lock(world.mutex);
  Meeting& meeting = meetingOf(exchange);
  ++exchange.comm->done;
  if (++meeting.left == world.size) meeting.arrived = meeting.read = meeting.left = 0;
}

}  // namespace

bool FakeExchange::isAborted() const { return comm->is_aborted; }

bool FakeExchange::isReady() const {
  if (comm->is_aborted || state == State::enqueued) return true;
  const std::lock_guard lock(comm->world->mutex);
  const Meeting& meeting = meetingOf(*this);
  return (state == State::arrived ? meeting.arrived : meeting.read) == comm->world->size;
}

bool FakeExchange::goOn() {
  if (comm->is_aborted) return true;
  switch (state) {
    case State::enqueued:
      arrive(*this);
      state = State::arrived;
      if (reads_late) return false;
      [[fallthrough]];
    case State::arrived:
      readParts(*this);
      state = State::has_read;
      return false;
    case State::has_read:
      writeSums(*this);
      leave(*this);
      return true;
  }
  return true;
}

namespace {

// Calls

#define GPUC_FAKE_ENTER_NCCL(call) \
  if (ncclResult_t gpuc_result = gpu().enterNccl(call); gpuc_result != ncclSuccess) return gpuc_result

ncclResult_t misuse(const std::string& what) {
  gpu().misuse(what);
  return ncclInvalidUsage;
}

/// Null, and the test fails, if the call is not one that can be made.
FakeComm* find(ncclComm_t handle, const char* call) {
  auto* comm = reinterpret_cast<FakeComm*>(handle);
  if (!gpu().comms.count(comm))
    misuse(std::string(call) + " of a communicator that is not there");
  else if (comm->gpu != &gpu())
    misuse(std::string(call) + " of another GPU's communicator");
  else if (!gpu().context_is_current)
    misuse(std::string(call) + " without a context");
  else
    return comm;
  return nullptr;
}

ncclResult_t getVersion(int* version) {
  GPUC_FAKE_ENTER_NCCL("ncclGetVersion");
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* errorString(ncclResult_t result) {
  return result == ncclRemoteError   ? "remote process exited or there was a network error"
         : result == ncclSystemError ? "unhandled system error"
                                     : "the fake's words";
}

const char* lastError(ncclComm_t) { return ""; }

ncclResult_t uniqueId(ncclUniqueId* id) {
  GPUC_FAKE_ENTER_NCCL("ncclGetUniqueId");
  static std::atomic<uint64_t> next = 1;
  const uint64_t number = next++;
  std::memset(id, 0, sizeof(*id));
  std::memcpy(id->internal, &number, sizeof(number));
  return ncclSuccess;
}

/// The communicator is there at once, and of use when all have come.
ncclResult_t join(ncclComm_t* handle, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  GPUC_FAKE_ENTER_NCCL("ncclCommInitRankConfig");
  const ncclConfig_t initial = NCCL_CONFIG_INITIALIZER;
  if (!gpu().context_is_current) return misuse("ncclCommInitRankConfig without a context");
  if (!config || config->size != initial.size || config->magic != initial.magic)
    return misuse("ncclCommInitRankConfig without its configuration");
  if (config->blocking != 0)
    return misuse("a communicator that blocks: a rank that is lost would stop this one");
  if (rank < 0 || rank >= size) return misuse("ncclCommInitRankConfig of a rank that cannot be");
  const std::lock_guard lock(worlds_mutex);
  std::shared_ptr<World>& world = worlds[std::string(id.internal, sizeof(id.internal))];
  if (!world) world = std::make_shared<World>();
  const std::lock_guard inner_lock(world->mutex);
  if (world->size == 0) {
    world->size = size;
    world->devices.resize(static_cast<size_t>(size), -1);
  }
  if (world->size != size || world->devices[static_cast<size_t>(rank)] != -1)
    return misuse("ranks that do not agree who they are");
  if (std::count(world->devices.begin(), world->devices.end(), gpu().device) > 0)
    return misuse("two ranks on one GPU");
  world->devices[static_cast<size_t>(rank)] = gpu().device;
  auto comm = std::make_shared<FakeComm>();
  comm->gpu = &gpu();
  comm->world = world;
  comm->rank = rank;
  if (!gpu().nccl_never_joins) ++world->joined;
  gpu().comms[comm.get()] = comm;
  *handle = reinterpret_cast<ncclComm_t>(comm.get());
  return ncclInProgress;
}

void enqueueWaiting(FakeComm& comm) {
  if (!comm.stream) return;
  FakeWork& work = gpu().enqueue(*comm.stream, FakeWork::Kind::exchange, "ncclAllReduce");
  work.exchange = comm.waiting;
  comm.stream = nullptr;
  gpu().enqueued();
}

ncclResult_t asyncError(ncclComm_t handle, ncclResult_t* result) {
  GPUC_FAKE_ENTER_NCCL("ncclCommGetAsyncError");
  FakeComm* comm = find(handle, "ncclCommGetAsyncError");
  if (!comm) return ncclInvalidUsage;
  const bool is_idle = comm->has_joined && comm->polls == 0 && !comm->stream;
  if (is_idle && gpu().nccl_async_error != ncclSuccess) {
    *result = gpu().nccl_async_error;
    return ncclSuccess;
  }
  if (!comm->has_joined) {
    const std::lock_guard lock(comm->world->mutex);
    comm->has_joined = comm->world->joined == comm->world->size;
  }
  if (comm->polls > 0) --comm->polls;
  *result = comm->has_joined && comm->polls == 0 ? ncclSuccess : ncclInProgress;
  if (*result == ncclSuccess) enqueueWaiting(*comm);
  return ncclSuccess;
}

/// Whether a communicator can begin anything; the test fails if not.
bool isReady(const FakeComm& comm, const char* call) {
  if (comm.is_aborted || comm.is_finalized)
    misuse(std::string(call) + " behind the communicator's end");
  else if (!comm.has_joined || comm.stream)
    misuse(std::string(call) + " before what was begun has ended");
  else
    return true;
  return false;
}

/// Is enqueued at once, or when it has been asked for often enough.
ncclResult_t begin(FakeComm& comm, FakeStream& stream, std::span<const FakeSum> sums) {
  FakeExchange& exchange = comm.waiting;
  exchange = {};
  exchange.comm = &comm;
  exchange.number = comm.begun++;
  exchange.count = sums.size();
  std::copy(sums.begin(), sums.end(), exchange.sums.begin());
  exchange.reads_late = gpu().draw(2) == 1;
  comm.stream = &stream;
  comm.polls = gpu().draw(3);
  if (comm.polls > 0) return ncclInProgress;
  enqueueWaiting(comm);
  return ncclSuccess;
}

ncclResult_t allReduce(const void* part, void* result, size_t count, ncclDataType_t type, ncclRedOp_t op,
                       ncclComm_t handle, cudaStream_t stream_handle) {
  FakeStream* stream = gpu().find(reinterpret_cast<CUstream>(stream_handle));
  FakeGpu::NcclGroup& group = gpu().nccl_group;
  if (ncclResult_t failure = gpu().enterNccl("ncclAllReduce", stream); failure != ncclSuccess) {
    group.has_failed = true;
    return failure;
  }
  FakeComm* comm = find(handle, "ncclAllReduce");
  if (!comm || !stream || !isReady(*comm, "ncclAllReduce")) return ncclInvalidUsage;
  const FakeSum sum{type, count, static_cast<const std::byte*>(part), static_cast<std::byte*>(result)};
  if (count == 0 || op != ncclSum) return misuse("ncclAllReduce of nothing, or of another kind");
  if (!gpu().holds(part, bytesOf(sum), false) || !gpu().holds(result, bytesOf(sum), false))
    return misuse("ncclAllReduce where no memory is");
  if (part != result && sum.part < sum.result + bytesOf(sum) && sum.result < sum.part + bytesOf(sum))
    return misuse("ncclAllReduce of memory that overlaps in part");
  if (group.depth == 0) return begin(*comm, *stream, {&sum, 1});
  if (group.comm && (group.comm != comm || group.stream != stream)) return misuse("a group of two streams");
  if (group.count == group.sums.size()) return misuse("a group that is larger than the fake's");
  for (const FakeSum& other : std::span(group.sums).first(group.count))
    for (const std::byte* read : {sum.part, static_cast<const std::byte*>(sum.result)})
      if (read < other.result + bytesOf(other) && other.result < read + bytesOf(sum))
        return misuse("a group whose calls need one another");
  group.comm = comm;
  group.stream = stream;
  group.sums[group.count++] = sum;
  return ncclSuccess;
}

ncclResult_t groupStart() {
  GPUC_FAKE_ENTER_NCCL("ncclGroupStart");
  ++gpu().nccl_group.depth;
  return ncclSuccess;
}

ncclResult_t groupEnd() {
  FakeGpu::NcclGroup& group = gpu().nccl_group;
  const FakeGpu::NcclGroup whole = std::exchange(group, {});
  GPUC_FAKE_ENTER_NCCL("ncclGroupEnd");
  if (whole.depth != 1) return misuse("ncclGroupEnd without its beginning");
  if (whole.has_failed) return ncclInvalidUsage;
  if (whole.count == 0) return misuse("a group of no calls");
  return begin(*whole.comm, *whole.stream, std::span(whole.sums).first(whole.count));
}

ncclResult_t finalize(ncclComm_t handle) {
  GPUC_FAKE_ENTER_NCCL("ncclCommFinalize");
  FakeComm* comm = find(handle, "ncclCommFinalize");
  if (!comm || !isReady(*comm, "ncclCommFinalize")) return ncclInvalidUsage;
  if (comm->done != comm->begun) return misuse("ncclCommFinalize of a communicator that is in use");
  comm->is_finalized = true;
  comm->polls = gpu().draw(3);
  return comm->polls > 0 ? ncclInProgress : ncclSuccess;
}

ncclResult_t destroy(ncclComm_t handle) {
  GPUC_FAKE_ENTER_NCCL("ncclCommDestroy");
  FakeComm* comm = find(handle, "ncclCommDestroy");
  if (!comm) return ncclInvalidUsage;
  if (!comm->is_finalized || comm->polls > 0)
    return misuse("ncclCommDestroy before ncclCommFinalize has ended");
  gpu().retire(comm);
  return ncclSuccess;
}

/// What is on streams ends as soon as they come to it.
ncclResult_t abort(ncclComm_t handle) {
  GPUC_FAKE_ENTER_NCCL("ncclCommAbort");
  FakeComm* comm = find(handle, "ncclCommAbort");
  if (!comm) return ncclInvalidUsage;
  if (gpu().nccl_group.depth > 0) return misuse("ncclCommAbort in a group");
  comm->is_aborted = true;
  gpu().retire(comm);
  return ncclSuccess;
}

}  // namespace

cuda::Nccl fakeNccl() {
  cuda::Nccl nccl;
  nccl.ncclGetVersion = getVersion;
  nccl.ncclGetErrorString = errorString;
  nccl.ncclGetLastError = lastError;
  nccl.ncclGetUniqueId = uniqueId;
  nccl.ncclCommInitRankConfig = join;
  nccl.ncclCommGetAsyncError = asyncError;
  nccl.ncclCommFinalize = finalize;
  nccl.ncclCommDestroy = destroy;
  nccl.ncclCommAbort = abort;
  nccl.ncclGroupStart = groupStart;
  nccl.ncclGroupEnd = groupEnd;
  nccl.ncclAllReduce = allReduce;
  return nccl;
}

}  // namespace gpuc::test
