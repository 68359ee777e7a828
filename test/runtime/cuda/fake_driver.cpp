// The driver's functions on a FakeGpu.
#include <algorithm>
#include <cstring>

#include "test/runtime/cuda/fake_gpu.h"

namespace gpuc::test {
namespace {

using Kind = FakeWork::Kind;

/// Returns what the call must return at once, if anything.
#define GPUC_FAKE_ENTER(...) \
  if (CUresult gpuc_result = gpu().enter(__VA_ARGS__); gpuc_result != CUDA_SUCCESS) return gpuc_result

/// The same for a call on a stream, of which `name` becomes the FakeStream.
#define GPUC_FAKE_ENTER_STREAM(call, name, handle) \
  FakeStream* name = gpu().find(handle);           \
  if (!name) return CUDA_ERROR_INVALID_HANDLE;     \
  GPUC_FAKE_ENTER(call, true, name)

FakeGpu& gpu() { return *FakeGpu::current; }

template <typename T>
T* at(CUdeviceptr address) {
  return reinterpret_cast<T*>(address);
}

// What the GPU is

CUresult init(unsigned) {
  GPUC_FAKE_ENTER("cuInit", false);
  return CUDA_SUCCESS;
}

CUresult errorName(CUresult result, const char** name) {
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      return CUDA_SUCCESS;
    case CUDA_ERROR_LAUNCH_FAILED:
      *name = "CUDA_ERROR_LAUNCH_FAILED";
      return CUDA_SUCCESS;
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
      return CUDA_SUCCESS;
    case CUDA_ERROR_NO_DEVICE:
      *name = "CUDA_ERROR_NO_DEVICE";
      return CUDA_SUCCESS;
    case CUDA_ERROR_NOT_SUPPORTED:
      *name = "CUDA_ERROR_NOT_SUPPORTED";
      return CUDA_SUCCESS;
    case CUDA_ERROR_INVALID_PTX:
      *name = "CUDA_ERROR_INVALID_PTX";
      return CUDA_SUCCESS;
    default:
      *name = nullptr;
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult errorString(CUresult result, const char** text) {
  const char* name = nullptr;
  if (errorName(result, &name) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
  *text = result == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "the fake's words";
  return CUDA_SUCCESS;
}

CUresult deviceCount(int* count) {
  GPUC_FAKE_ENTER("cuDeviceGetCount", false);
  *count = gpu().devices;
  return CUDA_SUCCESS;
}

CUresult deviceGet(CUdevice* device, int index) {
  GPUC_FAKE_ENTER("cuDeviceGet", false);
  *device = index;
  return index < gpu().devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult deviceName(char* name, int length, CUdevice) {
  GPUC_FAKE_ENTER("cuDeviceGetName", false);
  std::strncpy(name, "Fake GPU", static_cast<size_t>(length));
  return CUDA_SUCCESS;
}

CUresult deviceAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  GPUC_FAKE_ENTER("cuDeviceGetAttribute", false);
  if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
    *value = gpu().major;
  else if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
    *value = gpu().minor;
  else
    return gpu().misuse("an attribute that the fake does not have");
  return CUDA_SUCCESS;
}

CUresult deviceUuid(CUuuid* uuid, CUdevice device) {
  GPUC_FAKE_ENTER("cuDeviceGetUuid", false);
  std::memset(uuid, 0, sizeof(*uuid));
  const int number = gpu().first_device + device;
  std::memcpy(uuid->bytes, &number, sizeof(number));
  return CUDA_SUCCESS;
}

CUresult totalMemory(size_t* bytes, CUdevice) {
  GPUC_FAKE_ENTER("cuDeviceTotalMem", false);
  *bytes = gpu().memory_bytes;
  return CUDA_SUCCESS;
}

// Contexts

CUcontext theContext() { return reinterpret_cast<CUcontext>(FakeGpu::current); }

CUresult retain(CUcontext* context, CUdevice device) {
  GPUC_FAKE_ENTER("cuDevicePrimaryCtxRetain", false);
  gpu().device = gpu().first_device + device;
  *context = theContext();
  ++gpu().live_contexts;
  return CUDA_SUCCESS;
}

CUresult releaseContext(CUdevice) {
  GPUC_FAKE_ENTER("cuDevicePrimaryCtxRelease", false);
  if (--gpu().live_contexts == 0) gpu().context_is_current = false;
  return CUDA_SUCCESS;
}

CUresult setCurrent(CUcontext context) {
  GPUC_FAKE_ENTER("cuCtxSetCurrent", false);
  if (context != theContext() || gpu().live_contexts == 0) return gpu().misuse("a context that is not there");
  gpu().context_is_current = true;
  return CUDA_SUCCESS;
}

// Memory

CUresult allocate(CUdeviceptr* address, size_t bytes) {
  GPUC_FAKE_ENTER("cuMemAlloc");
  void* data = nullptr;
  CUresult result = gpu().allocate(&data, bytes, false);
  *address = reinterpret_cast<CUdeviceptr>(data);
  return result;
}

CUresult memoryInfo(size_t* free, size_t* total) {
  GPUC_FAKE_ENTER("cuMemGetInfo");
  *total = gpu().memory_bytes;
  *free = gpu().memory_bytes - gpu().usedBytes() -
          static_cast<uint64_t>(gpu().live_blas_contexts) * gpu().blas_context_bytes -
          gpu().comms.size() * gpu().nccl_bytes - gpu().executable_graphs.size() * gpu().graph_bytes;
  return CUDA_SUCCESS;
}

CUresult release(CUdeviceptr address) {
  GPUC_FAKE_ENTER("cuMemFree");
  return gpu().release(at<void>(address), false);
}

CUresult allocateHost(void** address, size_t bytes, unsigned) {
  GPUC_FAKE_ENTER("cuMemHostAlloc");
  return gpu().allocate(address, bytes, true);
}

CUresult releaseHost(void* address) {
  GPUC_FAKE_ENTER("cuMemFreeHost");
  return gpu().release(address, true);
}

/// What a graph is to read or write later must be there then.
CUresult refusePageable(FakeStream& stream, const char* call) {
  stream.capture->is_valid = false;
  return gpu().misuse(std::string(call) + " of pageable memory while its stream is captured");
}

CUresult copy(FakeStream& stream, const char* call, void* to, const void* from, size_t bytes, bool moves) {
  FakeWork& work = gpu().enqueue(stream, Kind::copy, call);
  work.to = static_cast<std::byte*>(to);
  work.from = static_cast<const std::byte*>(from);
  work.bytes = bytes;
  if (moves) work.moved.assign(work.from, work.from + bytes);
  gpu().enqueued();
  return CUDA_SUCCESS;
}

/// Pinned memory is read when the stream comes to it, other memory before the call returns.
CUresult upload(CUdeviceptr to, const void* from, size_t bytes, CUstream handle) {
  GPUC_FAKE_ENTER_STREAM("cuMemcpyHtoDAsync", stream, handle);
  if (!gpu().holds(at<void>(to), bytes, false)) return gpu().misuse("an upload to where no memory is");
  const bool is_pinned = gpu().holds(from, bytes, true);
  if (stream->capture && !is_pinned) return refusePageable(*stream, "cuMemcpyHtoDAsync");
  return copy(*stream, "cuMemcpyHtoDAsync", at<void>(to), from, bytes, !is_pinned);
}

/// To memory that is not pinned, the copy is done when the call returns.
CUresult download(void* to, CUdeviceptr from, size_t bytes, CUstream handle) {
  GPUC_FAKE_ENTER_STREAM("cuMemcpyDtoHAsync", stream, handle);
  if (!gpu().holds(at<void>(from), bytes, false)) return gpu().misuse("a download from where no memory is");
  const bool is_pinned = gpu().holds(to, bytes, true);
  if (stream->capture && !is_pinned) return refusePageable(*stream, "cuMemcpyDtoHAsync");
  CUresult result = copy(*stream, "cuMemcpyDtoHAsync", to, at<void>(from), bytes, false);
  if (result != CUDA_SUCCESS || is_pinned) return result;
  return gpu().synchronize(*stream);
}

CUresult copyOnDevice(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream handle) {
  GPUC_FAKE_ENTER_STREAM("cuMemcpyDtoDAsync", stream, handle);
  if (!gpu().holds(at<void>(to), bytes, false) || !gpu().holds(at<void>(from), bytes, false))
    return gpu().misuse("a copy where no memory is");
  if (to < from + bytes && from < to + bytes) return gpu().misuse("a copy that overlaps itself");
  return copy(*stream, "cuMemcpyDtoDAsync", at<void>(to), at<void>(from), bytes, false);
}

CUresult fill(const char* call, CUdeviceptr to, size_t pitch, uint64_t element, size_t bytes, size_t width,
              size_t rows, CUstream handle) {
  GPUC_FAKE_ENTER_STREAM(call, stream, handle);
  if (width == 0 || rows == 0) return CUDA_SUCCESS;
  if (to % bytes != 0 || pitch % bytes != 0)
    return gpu().misuse(std::string(call) + " of elements that are not aligned");
  if (!gpu().holds(at<void>(to), (rows - 1) * pitch + width * bytes, false))
    return gpu().misuse(std::string(call) + " where no memory is");
  FakeWork& work = gpu().enqueue(*stream, Kind::fill, call);
  work.to = at<std::byte>(to);
  work.element = element;
  work.bytes = bytes;
  work.pitch = pitch;
  work.width = width;
  work.rows = rows;
  gpu().enqueued();
  return CUDA_SUCCESS;
}

CUresult fillBytes(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return fill("cuMemsetD8Async", to, count, value, 1, count, 1, stream);
}
CUresult fillHalves(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return fill("cuMemsetD16Async", to, 2 * count, value, 2, count, 1, stream);
}
CUresult fillWords(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  return fill("cuMemsetD32Async", to, 4 * count, value, 4, count, 1, stream);
}
CUresult fillRows(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t rows, CUstream stream) {
  return fill("cuMemsetD2D32Async", to, pitch, value, 4, width, rows, stream);
}

// Modules: code is not run, so any that looks like some will do.

CUresult loadModule(CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                    void** values) {
  GPUC_FAKE_ENTER("cuModuleLoadDataEx");
  const char* text = static_cast<const char*>(image);
  if (std::strncmp(text, "\177ELF", 4) != 0 && !std::strstr(text, ".version")) {
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
        std::strcpy(static_cast<char*>(values[i]), "ptxas fatal : no version\nptxas fatal : aborted");
    return CUDA_ERROR_INVALID_PTX;
  }
  ++gpu().live_modules;
  *module = reinterpret_cast<CUmodule>(FakeGpu::current);
  return CUDA_SUCCESS;
}

CUresult unloadModule(CUmodule) {
  GPUC_FAKE_ENTER("cuModuleUnload");
  --gpu().live_modules;
  return CUDA_SUCCESS;
}

CUresult findFunction(CUfunction* function, CUmodule, const char* name) {
  GPUC_FAKE_ENTER("cuModuleGetFunction");
  const FakeKernel* kernel = gpu().findKernel(name);
  *function = reinterpret_cast<CUfunction>(const_cast<FakeKernel*>(kernel));
  return kernel ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/// The parameters' values are taken now, as CUDA does.
CUresult launch(CUfunction function, unsigned grid, unsigned grid_y, unsigned grid_z, unsigned block,
                unsigned block_y, unsigned block_z, unsigned shared, CUstream handle, void** parameters,
                void** extra) {
  GPUC_FAKE_ENTER_STREAM("cuLaunchKernel", stream, handle);
  if (grid == 0 || block == 0 || block > 1024 || grid_y * grid_z * block_y * block_z != 1 || shared != 0 ||
      extra)
    return gpu().misuse("a launch with extents that no kernel of gpuc has");
  auto* kernel = reinterpret_cast<const FakeKernel*>(function);
  FakeWork& work = gpu().enqueue(*stream, Kind::kernel, "cuLaunchKernel");
  work.kernel = kernel;
  work.grid = grid;
  work.block = block;
  for (size_t i = 0; i < kernel->operands; ++i) {
    if (parameters[i] != static_cast<void**>(parameters[0]) + i)  // a kernel may take them as one array
      return gpu().misuse("'" + kernel->symbol + "' with operands that do not lie one after another");
    work.operands[i] = *static_cast<void**>(parameters[i]);
    if (!gpu().holds(work.operands[i], 1, false))
      return gpu().misuse("'" + kernel->symbol + "' with an operand where no memory is");
  }
  gpu().enqueued();
  return CUDA_SUCCESS;
}

// Streams and events

CUresult createStream(CUstream* stream, unsigned) {
  GPUC_FAKE_ENTER("cuStreamCreate");
  *stream = reinterpret_cast<CUstream>(gpu().makeStream());
  return CUDA_SUCCESS;
}

CUresult destroyStream(CUstream handle) {
  GPUC_FAKE_ENTER_STREAM("cuStreamDestroy", stream, handle);
  if (stream->next != stream->queue.size()) return gpu().misuse("a stream that has work is given back");
  stream->alive = false;
  return CUDA_SUCCESS;
}

CUresult synchronizeStream(CUstream handle) {
  GPUC_FAKE_ENTER_STREAM("cuStreamSynchronize", stream, handle);
  return gpu().synchronize(*stream);
}

CUresult queryStream(CUstream handle) {
  GPUC_FAKE_ENTER_STREAM("cuStreamQuery", stream, handle);
  return gpu().query(*stream);
}

CUresult createEvent(CUevent* event, unsigned) {
  GPUC_FAKE_ENTER("cuEventCreate");
  *event = reinterpret_cast<CUevent>(gpu().makeEvent());
  return CUDA_SUCCESS;
}

CUresult destroyEvent(CUevent handle) {
  GPUC_FAKE_ENTER("cuEventDestroy");
  FakeEvent* event = gpu().find(handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  event->alive = false;
  return CUDA_SUCCESS;
}

CUresult record(CUevent handle, CUstream stream_handle) {
  GPUC_FAKE_ENTER_STREAM("cuEventRecord", stream, stream_handle);
  FakeEvent* event = gpu().find(handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  FakeWork& work = gpu().enqueue(*stream, Kind::record, "cuEventRecord");
  work.event = event;
  work.record = ++event->recorded;
  gpu().enqueued();
  return CUDA_SUCCESS;
}

/// Waits for the record that was enqueued last, whatever is recorded later; for nothing if there is none.
CUresult wait(CUstream stream_handle, CUevent handle, unsigned) {
  GPUC_FAKE_ENTER_STREAM("cuStreamWaitEvent", stream, stream_handle);
  FakeEvent* event = gpu().find(handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  FakeWork& work = gpu().enqueue(*stream, Kind::wait, "cuStreamWaitEvent");
  work.event = event;
  work.record = event->recorded;
  gpu().enqueued();
  return CUDA_SUCCESS;
}

CUresult synchronizeEvent(CUevent handle) {
  GPUC_FAKE_ENTER("cuEventSynchronize");
  FakeEvent* event = gpu().find(handle);
  return event ? gpu().synchronize(*event) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult queryEvent(CUevent handle) {
  GPUC_FAKE_ENTER("cuEventQuery");
  FakeEvent* event = gpu().find(handle);
  return event ? gpu().query(*event) : CUDA_ERROR_INVALID_HANDLE;
}

// Graphs

using Graphs = std::map<void*, std::unique_ptr<FakeGraph>>;

template <typename Handle>
CUresult make(Graphs& graphs, std::unique_ptr<FakeGraph> graph, Handle* handle) {
  *handle = reinterpret_cast<Handle>(graph.get());
  graphs[graph.get()] = std::move(graph);
  return CUDA_SUCCESS;
}

/// In the other modes calls of other threads would end a capture, or this thread's could go wrong unseen.
CUresult beginCapture(CUstream handle, CUstreamCaptureMode mode) {
  GPUC_FAKE_ENTER_STREAM("cuStreamBeginCapture", stream, handle);
  if (mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) return gpu().misuse("a capture that is not thread-local");
  stream->capture = std::make_unique<FakeGraph>();
  gpu().capturing = stream;
  return CUDA_SUCCESS;
}

/// It ends the capture even if it fails.
CUresult endCapture(CUstream handle, CUgraph* graph) {
  *graph = nullptr;
  FakeStream* stream = gpu().find(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (!stream->capture) return gpu().misuse("the end of a capture that has not begun");
  gpu().capturing = nullptr;
  std::unique_ptr<FakeGraph> captured = std::move(stream->capture);
  GPUC_FAKE_ENTER("cuStreamEndCapture", true, stream);
  if (!captured->is_valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  return make(gpu().graphs, std::move(captured), graph);
}

CUresult instantiate(CUgraphExec* executable, CUgraph handle, unsigned long long flags) {
  GPUC_FAKE_ENTER("cuGraphInstantiate");
  auto found = gpu().graphs.find(handle);
  if (found == gpu().graphs.end() || flags != 0) return gpu().misuse("a graph that is not there");
  if (gpu().waitsForRanks())
    return gpu().misuse("cuGraphInstantiate, which may wait for the GPU, while that waits for other ranks");
  return make(gpu().executable_graphs, std::make_unique<FakeGraph>(*found->second), executable);
}

CUresult destroyGraph(CUgraph handle) {
  GPUC_FAKE_ENTER("cuGraphDestroy");
  return gpu().graphs.erase(handle) ? CUDA_SUCCESS : gpu().misuse("a graph is given back twice");
}

CUresult destroyExecutable(CUgraphExec handle) {
  GPUC_FAKE_ENTER("cuGraphExecDestroy");
  return gpu().executable_graphs.erase(handle) ? CUDA_SUCCESS : gpu().misuse("a graph is given back twice");
}

CUresult uploadGraph(CUgraphExec handle, CUstream stream_handle) {
  GPUC_FAKE_ENTER_STREAM("cuGraphUpload", stream, stream_handle);
  return gpu().executable_graphs.count(handle) ? CUDA_SUCCESS : gpu().misuse("a graph that is not there");
}

/// Its work follows what stands in the stream; the next follows it.
CUresult launchGraph(CUgraphExec handle, CUstream stream_handle) {
  GPUC_FAKE_ENTER_STREAM("cuGraphLaunch", stream, stream_handle);
  auto found = gpu().executable_graphs.find(handle);
  if (found == gpu().executable_graphs.end()) return gpu().misuse("a graph that is not there");
  for (const FakeWork& work : found->second->work) gpu().enqueue(*stream, work.kind, work.call) = work;
  gpu().enqueued();
  return CUDA_SUCCESS;
}

}  // namespace

cuda::Driver fakeDriver() {
  cuda::Driver driver;
  driver.cuInit = init;
  driver.cuGetErrorName = errorName;
  driver.cuGetErrorString = errorString;
  driver.cuDeviceGetCount = deviceCount;
  driver.cuDeviceGet = deviceGet;
  driver.cuDeviceGetName = deviceName;
  driver.cuDeviceGetAttribute = deviceAttribute;
  driver.cuDeviceGetUuid = deviceUuid;
  driver.cuDeviceTotalMem = totalMemory;
  driver.cuDevicePrimaryCtxRetain = retain;
  driver.cuDevicePrimaryCtxRelease = releaseContext;
  driver.cuCtxSetCurrent = setCurrent;
  driver.cuMemAlloc = allocate;
  driver.cuMemFree = release;
  driver.cuMemGetInfo = memoryInfo;
  driver.cuMemHostAlloc = allocateHost;
  driver.cuMemFreeHost = releaseHost;
  driver.cuMemcpyHtoDAsync = upload;
  driver.cuMemcpyDtoHAsync = download;
  driver.cuMemcpyDtoDAsync = copyOnDevice;
  driver.cuMemsetD8Async = fillBytes;
  driver.cuMemsetD16Async = fillHalves;
  driver.cuMemsetD32Async = fillWords;
  driver.cuMemsetD2D32Async = fillRows;
  driver.cuModuleLoadDataEx = loadModule;
  driver.cuModuleUnload = unloadModule;
  driver.cuModuleGetFunction = findFunction;
  driver.cuLaunchKernel = launch;
  driver.cuStreamCreate = createStream;
  driver.cuStreamDestroy = destroyStream;
  driver.cuStreamSynchronize = synchronizeStream;
  driver.cuStreamQuery = queryStream;
  driver.cuStreamWaitEvent = wait;
  driver.cuEventCreate = createEvent;
  driver.cuEventDestroy = destroyEvent;
  driver.cuEventRecord = record;
  driver.cuEventSynchronize = synchronizeEvent;
  driver.cuEventQuery = queryEvent;
  driver.cuStreamBeginCapture = beginCapture;
  driver.cuStreamEndCapture = endCapture;
  driver.cuGraphInstantiate = instantiate;
  driver.cuGraphDestroy = destroyGraph;
  driver.cuGraphExecDestroy = destroyExecutable;
  driver.cuGraphUpload = uploadGraph;
  driver.cuGraphLaunch = launchGraph;
  return driver;
}

}  // namespace gpuc::test
