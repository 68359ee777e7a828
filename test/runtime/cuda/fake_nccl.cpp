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

using Kind = FakeCollective::Kind;

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

size_t bytesOf(const FakeCollective& call) { return call.count * sizeOf(call.type); }

// Sums, and what goes along unchanged

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
         std::equal(one.collectives.begin(), one.collectives.begin() + one.count, other.collectives.begin(),
                    [](const FakeCollective& a, const FakeCollective& b) {
                      return a.kind == b.kind && a.root == b.root && a.type == b.type && a.count == b.count;
                    });
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
  const FakeComm& comm = *exchange.comm;
  std::vector<std::byte>& parts = meetingOf(exchange).parts[static_cast<size_t>(comm.rank)];
  parts.clear();
  for (const FakeCollective& call : std::span(exchange.collectives).first(exchange.count))
    parts.insert(parts.end(), call.part, call.part + call.readBytes(comm.rank, comm.world->size));
  const std::lock_guard lock(comm.world->mutex);
  ++meetingOf(exchange).read;
}

/// Where what a rank has read for the `number`-th call lies.
const std::byte* partOf(const FakeExchange& exchange, size_t number, int rank) {
  size_t offset = 0;
  for (size_t i = 0; i < number; ++i)
    offset += exchange.collectives[i].readBytes(rank, exchange.comm->world->size);
  return meetingOf(exchange).parts[static_cast<size_t>(rank)].data() + offset;
}

/// Of what lies `offset` bytes behind the beginning of each rank's part, beginning with rank `first`'s.
void writeSum(const FakeExchange& exchange, size_t number, size_t offset, int first) {
  const FakeCollective& call = exchange.collectives[number];
  const int ranks = exchange.comm->world->size;
  std::memcpy(call.result, partOf(exchange, number, first % ranks) + offset, bytesOf(call));
  for (int next = first + 1; next < first + ranks; ++next)
    add(call.type, call.result, partOf(exchange, number, next % ranks) + offset, call.count);
}

void writeResult(const FakeExchange& exchange, size_t number) {
  const FakeCollective& call = exchange.collectives[number];
  const int rank = exchange.comm->rank, ranks = exchange.comm->world->size;
  switch (call.kind) {
    case Kind::all_reduce:
      return writeSum(exchange, number, 0, ranks - 1);
    case Kind::reduce_scatter:
      return writeSum(exchange, number, static_cast<size_t>(rank) * bytesOf(call), rank + 1);
    case Kind::reduce:
      if (rank == call.root) writeSum(exchange, number, 0, rank + 1);
      return;
    case Kind::all_gather:
      for (int other = 0; other < ranks; ++other)
        std::memcpy(call.result + static_cast<size_t>(other) * bytesOf(call), partOf(exchange, number, other),
                    bytesOf(call));
      return;
    case Kind::broadcast:
      std::memcpy(call.result, partOf(exchange, number, call.root), bytesOf(call));
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

size_t FakeCollective::readBytes(int rank, int ranks) const {
  if (kind == Kind::broadcast && rank != root) return 0;
  return bytesOf(*this) * (kind == Kind::reduce_scatter ? static_cast<size_t>(ranks) : 1);
}

size_t FakeCollective::writtenBytes(int rank, int ranks) const {
  if (kind == Kind::reduce && rank != root) return 0;
  return bytesOf(*this) * (kind == Kind::all_gather ? static_cast<size_t>(ranks) : 1);
}

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
      for (size_t number = 0; number < count; ++number) writeResult(*this, number);
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

const char* nameOf(Kind kind) {
  constexpr const char* kNames[] = {"ncclAllReduce", "ncclReduceScatter", "ncclAllGather", "ncclReduce",
                                    "ncclBroadcast"};
  return kNames[static_cast<size_t>(kind)];
}

void enqueueWaiting(FakeComm& comm) {
  if (!comm.stream) return;
  FakeWork& work =
      gpu().enqueue(*comm.stream, FakeWork::Kind::exchange, nameOf(comm.waiting.collectives[0].kind));
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
ncclResult_t begin(FakeComm& comm, FakeStream& stream, std::span<const FakeCollective> calls) {
  FakeExchange& exchange = comm.waiting;
  exchange = {};
  exchange.comm = &comm;
  exchange.number = comm.begun++;
  exchange.count = calls.size();
  std::copy(calls.begin(), calls.end(), exchange.collectives.begin());
  exchange.reads_late = gpu().draw(2) == 1;
  comm.stream = &stream;
  comm.polls = gpu().draw(3);
  if (comm.polls > 0) return ncclInProgress;
  enqueueWaiting(comm);
  return ncclSuccess;
}

struct ByteRange {
  const std::byte *begin, *end;

  bool overlaps(const ByteRange& other) const { return begin < other.end && other.begin < end; }
};

ByteRange readOf(const FakeComm& comm, const FakeCollective& call) {
  return {call.part, call.part + call.readBytes(comm.rank, comm.world->size)};
}

ByteRange writtenOf(const FakeComm& comm, const FakeCollective& call) {
  return {call.result, call.result + call.writtenBytes(comm.rank, comm.world->size)};
}

/// What is wrong with a call by itself; empty if nothing is.
std::string errorOf(const FakeComm& comm, const FakeCollective& call) {
  const ByteRange read = readOf(comm, call), written = writtenOf(comm, call);
  if (call.count == 0) return " of nothing";
  if (call.root < 0 || call.root >= comm.world->size) return " to or from a rank that is not there";
  for (const ByteRange& bytes : {read, written})
    if (bytes.begin != bytes.end &&
        !gpu().holds(bytes.begin, static_cast<uint64_t>(bytes.end - bytes.begin), false))
      return " where no memory is";
  const bool is_in_place = call.kind == Kind::all_reduce && call.part == call.result;
  return read.overlaps(written) && !is_in_place ? " of memory that overlaps" : "";
}

/// Whether one of the calls of a group needs, or spoils, what another one writes.
bool needEachOther(const FakeComm& comm, const FakeCollective& one, const FakeCollective& other) {
  return writtenOf(comm, one).overlaps(writtenOf(comm, other)) ||
         writtenOf(comm, one).overlaps(readOf(comm, other)) ||
         readOf(comm, one).overlaps(writtenOf(comm, other));
}

ncclResult_t addToGroup(FakeComm& comm, FakeStream& stream, const FakeCollective& call) {
  FakeGpu::NcclGroup& group = gpu().nccl_group;
  if (group.comm && (group.comm != &comm || group.stream != &stream)) return misuse("a group of two streams");
  if (group.count == group.collectives.size()) return misuse("a group that is larger than the fake's");
  for (const FakeCollective& other : std::span(group.collectives).first(group.count))
    if (needEachOther(comm, call, other)) return misuse("a group whose calls need one another");
  group.comm = &comm;
  group.stream = &stream;
  group.collectives[group.count++] = call;
  return ncclSuccess;
}

ncclResult_t collective(const FakeCollective& call, ncclComm_t handle, cudaStream_t stream_handle) {
  const char* name = nameOf(call.kind);
  FakeStream* stream = gpu().find(reinterpret_cast<CUstream>(stream_handle));
  if (ncclResult_t failure = gpu().enterNccl(name, stream); failure != ncclSuccess) {
    gpu().nccl_group.has_failed = true;
    return failure;
  }
  FakeComm* comm = find(handle, name);
  if (!comm || !stream || !isReady(*comm, name)) return ncclInvalidUsage;
  if (const std::string error = errorOf(*comm, call); !error.empty()) return misuse(name + error);
  return gpu().nccl_group.depth == 0 ? begin(*comm, *stream, {&call, 1}) : addToGroup(*comm, *stream, call);
}

FakeCollective collectiveOf(Kind kind, int root, const void* part, void* result, size_t count,
                            ncclDataType_t type, ncclRedOp_t op = ncclSum) {
  if (op != ncclSum) misuse(std::string(nameOf(kind)) + " of no sum");
  return {kind, root, type, count, static_cast<const std::byte*>(part), static_cast<std::byte*>(result)};
}

ncclResult_t allReduce(const void* part, void* result, size_t count, ncclDataType_t type, ncclRedOp_t op,
                       ncclComm_t comm, cudaStream_t stream) {
  return collective(collectiveOf(Kind::all_reduce, 0, part, result, count, type, op), comm, stream);
}

ncclResult_t reduceScatter(const void* part, void* result, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return collective(collectiveOf(Kind::reduce_scatter, 0, part, result, count, type, op), comm, stream);
}

ncclResult_t allGather(const void* part, void* result, size_t count, ncclDataType_t type, ncclComm_t comm,
                       cudaStream_t stream) {
  return collective(collectiveOf(Kind::all_gather, 0, part, result, count, type), comm, stream);
}

ncclResult_t reduce(const void* part, void* result, size_t count, ncclDataType_t type, ncclRedOp_t op,
                    int root, ncclComm_t comm, cudaStream_t stream) {
  return collective(collectiveOf(Kind::reduce, root, part, result, count, type, op), comm, stream);
}

ncclResult_t broadcast(const void* part, void* result, size_t count, ncclDataType_t type, int root,
                       ncclComm_t comm, cudaStream_t stream) {
  return collective(collectiveOf(Kind::broadcast, root, part, result, count, type), comm, stream);
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
  return begin(*whole.comm, *whole.stream, std::span(whole.collectives).first(whole.count));
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
  nccl.ncclReduceScatter = reduceScatter;
  nccl.ncclAllGather = allGather;
  nccl.ncclReduce = reduce;
  nccl.ncclBroadcast = broadcast;
  return nccl;
}

}  // namespace gpuc::test
