// Order, as the compiler has proven it: within a stream commands follow one another, events join streams, and
// a program begins when another program before it has ended on all streams. Runs of the same program overlap
// as its events allow.
//
// The caller's batch is copied into pinned memory when a run is enqueued, so that the upload needs no host.
// There is one place for each input slot; before it is written again, its upload, of so many runs ago, must
// have read it. That is the only thing for which run() ever waits.
//
// A program's first run enqueues command after command; then what stands between its events is captured, and
// launched from the second run on: see graph.cpp.
#include "runtime/cuda/executable.h"

#include <algorithm>
#include <cinttypes>
#include <optional>

#include "runtime/base/warn.h"
#include "runtime/cuda/command.h"
#include "runtime/cuda/host_copies.h"
#include "runtime/plan/pinned_bytes.h"

namespace gpuc::cuda {
namespace {

constexpr uint8_t kPoison = 0xFF;  // f64 and f32 of it are NaN

class CudaExecutable : public Executable {
 public:
  CudaExecutable(std::shared_ptr<Context> context, Architecture architecture, const Plan& plan,
                 const DeviceOptions& options)
      : context_(std::move(context)),
        driver_(context_->driver()),
        architecture_(architecture),
        plan_(plan),
        options_(options) {}

  ~CudaExecutable() override {
    // Nothing may be given back that a stream still uses. An error here was reported by the call before it.
    if (!context_->makeCurrent().ok()) return;
    for (const Stream& stream : streams_)
      if (!synchronize(stream).ok()) driver_.cuStreamSynchronize(stream.get());  // no rank is waited for then
  }

  Status prepare() {
    GPUC_RETURN_IF_ERROR(context_->makeCurrent());
    GPUC_RETURN_IF_ERROR(createStreams());
    GPUC_RETURN_IF_ERROR(allocate());
    std::vector<CUfunction> kernels;
    GPUC_RETURN_IF_ERROR(loadCode(kernels));
    GPUC_ASSIGN_OR_RETURN(const uint64_t free_before, freeBytes());
    GPUC_ASSIGN_OR_RETURN(libraries_, Libraries::open(plan_.root(), streams_));
    if (options_.communicator)
      GPUC_RETURN_IF_ERROR(
          libraries_.meet(driver_, plan_.root(), *options_.communicator, arena_.get(), main()));
    GPUC_RETURN_IF_ERROR(fillArena());
    GPUC_RETURN_IF_ERROR(copyConstants());
    GPUC_RETURN_IF_ERROR(lowerPrograms(kernels));
    GPUC_ASSIGN_OR_RETURN(const uint64_t free_after, freeBytes());
    library_bytes_ = free_before - std::min(free_before, free_after);
    return wait();
  }

  Status run(size_t program, std::span<const void* const> inputs) override {
    if (!failure_.ok()) return failure_;
    failure_ = enqueueRun(program, inputs);
    return failure_;
  }

  Status wait() override {
    GPUC_RETURN_IF_ERROR(context_->makeCurrent());
    for (const Stream& stream : streams_) GPUC_RETURN_IF_ERROR(synchronize(stream));
    return okStatus();
  }

  Status read(uint64_t offset, void* to, uint64_t bytes) override {
    GPUC_RETURN_IF_ERROR(context_->makeCurrent());
    GPUC_RETURN_IF_ERROR(driver_.check(driver_.cuMemcpyDtoHAsync(to, arena_.get() + offset, bytes, main()),
                                       "cuMemcpyDtoHAsync"));
    return synchronize(streams_[0]);
  }

  Status write(uint64_t offset, const void* from, uint64_t bytes) override {
    GPUC_RETURN_IF_ERROR(context_->makeCurrent());
    GPUC_RETURN_IF_ERROR(driver_.check(driver_.cuMemcpyHtoDAsync(arena_.get() + offset, from, bytes, main()),
                                       "cuMemcpyHtoDAsync"));
    return synchronize(streams_[0]);
  }

  const void* output(size_t program, size_t output) override {
    const CudaProgram& source = *programs_[program];
    const CudaProgram::Output& place = source.outputs[output];
    if (!place.downloaded) {
      Status status =
          read(place.data + source.last_slot * place.slot_stride - arena_.get(), place.staging, place.bytes);
      if (!status.ok() && failure_.ok()) failure_ = status;  // the next run reports it
    }
    return place.staging;
  }

  MemoryUse memory() const override {
    return {.arena_bytes = plan_.root().arena_bytes(),
            .arena_allocations = 1,
            .touched_bytes = options_.check_memory ? touchedBytes() : 0,
            .by_category = {},  // of the plan, not of the device
            .staging_bytes = pinnedBytes(plan_.root()),
            .code_bytes = code_bytes_,
            .library_bytes = library_bytes_,
            .graph_bytes = graph_bytes_};
  }

  std::vector<ProfileEvent> profile() const override { return {}; }

 private:
  CUstream main() const { return streams_[0].get(); }

  Result<uint64_t> freeBytes() const { return gpuc::cuda::freeBytes(driver_); }

  Status synchronize(const Stream& stream) const {
    if (GpuRanks* ranks = libraries_.ranks()) return ranks->wait(stream.get());
    return driver_.check(driver_.cuStreamSynchronize(stream.get()), "cuStreamSynchronize");
  }

  Status synchronize(const Event& event) const {
    if (GpuRanks* ranks = libraries_.ranks()) return ranks->wait(event.get());
    return driver_.check(driver_.cuEventSynchronize(event.get()), "cuEventSynchronize");
  }

  Status createStreams() {
    size_t most = 1;
    for (const fb::Program* program : each(plan_.root().programs()))
      most = std::max<size_t>(most, countOf(program->streams()));
    for (size_t s = 0; s < most; ++s) {
      GPUC_ASSIGN_OR_RETURN(Stream stream, createStream(driver_));
      streams_.push_back(std::move(stream));
      GPUC_ASSIGN_OR_RETURN(Event event, createEvent(driver_));
      stream_ends_.push_back(std::move(event));
    }
    return okStatus();
  }

  Status allocate() {
    uint64_t arena_bytes = plan_.root().arena_bytes(), pinned_bytes = pinnedBytes(plan_.root());
    if (arena_bytes > 0) {
      CUdeviceptr arena = 0;
      Status status = driver_.check(driver_.cuMemAlloc(&arena, arena_bytes), "cuMemAlloc");
      if (!status.ok())
        return errorf("no memory for the arena of %" PRIu64 " bytes: %s", arena_bytes,
                      status.message().c_str());
      arena_ = DeviceMemory(arena, driver_.cuMemFree);
    }
    if (pinned_bytes > 0) {
      void* pinned = nullptr;
      Status status = driver_.check(driver_.cuMemHostAlloc(&pinned, pinned_bytes, 0), "cuMemHostAlloc",
                                    "compile for a smaller batch, or free the machine's memory");
      if (!status.ok())
        return errorf("no pinned memory of %" PRIu64 " bytes for inputs and outputs: %s", pinned_bytes,
                      status.message().c_str());
      pinned_ = PinnedMemory(pinned, driver_.cuMemFreeHost);
    }
    return okStatus();
  }

  /// As on the host: zeros, or what shows when it is read before it is written.
  Status fillArena() {
    if (!arena_.get()) return okStatus();
    uint8_t byte = options_.check_memory ? kPoison : 0;
    return driver_.check(driver_.cuMemsetD8Async(arena_.get(), byte, plan_.root().arena_bytes(), main()),
                         "cuMemsetD8Async");
  }

  Status loadCode(std::vector<CUfunction>& kernels) {
    if (countOf(plan_.root().kernels()) == 0) return okStatus();
    const fb::Code* code = chooseCode(plan_.root(), architecture_);
    if (!code)
      return Status::error("the plan's code is " + describeCode(plan_.root()) + ", the device is " +
                           architecture_.str() + ": compile with --target=cuda:" + architecture_.str());
    GPUC_ASSIGN_OR_RETURN(module_, loadModule(driver_, *code));
    code_bytes_ = code->data()->size();
    GPUC_ASSIGN_OR_RETURN(kernels, findKernels(driver_, module_.get(), plan_.root()));
    return okStatus();
  }

  Status copyConstants() {
    for (const fb::Constant* constant : each(plan_.root().constants()))
      GPUC_RETURN_IF_ERROR(write(plan_.root().buffers()->Get(constant->buffer())->offset(),
                                 constant->data()->data(), constant->data()->size()));
    return okStatus();
  }

  Status lowerPrograms(const std::vector<CUfunction>& kernels) {
    auto* pinned = static_cast<std::byte*>(pinned_.get());
    LoweringContext context{driver_, libraries_, arena_.get(), kernels};
    for (const fb::Program* program : each(plan_.root().programs())) {
      Result<std::unique_ptr<CudaProgram>> lowered = lowerProgram(plan_.root(), *program, pinned, context);
      if (!lowered.ok())
        return Status::error("program '" + std::string(textOf(program->name())) + "': " + lowered.message());
      programs_.push_back(*std::move(lowered));
      pinned += pinnedBytes(plan_.root(), *program);
    }
    uint64_t largest = 0;
    for (const auto& program : programs_)
      for (const CudaProgram::Staging& input : program->inputs) largest = std::max(largest, input.bytes);
    copies_.emplace(threadsForCopies(largest, options_.threads));
    return okStatus();
  }

  Status enqueueRun(size_t index, std::span<const void* const> inputs) {
    GPUC_RETURN_IF_ERROR(context_->makeCurrent());
    CudaProgram& program = *programs_[index];
    if (program.streams.empty()) return okStatus();
    uint64_t slot = program.runs++ % plan_.root().input_slots();
    if (program.runs == 2) GPUC_RETURN_IF_ERROR(captureGraphs(program, index));
    GPUC_RETURN_IF_ERROR(stage(program, slot, inputs));
    program.takeSlot(slot);
    if (last_program_ != index || !program.direct_inputs.empty()) GPUC_RETURN_IF_ERROR(joinStreams());
    last_program_ = index;
    if (!program.direct_inputs.empty()) GPUC_RETURN_IF_ERROR(uploadDirectInputs(program, slot));
    GPUC_RETURN_IF_ERROR(enqueueProgram(driver_, program, streams_));
    for (size_t s = 0; s < program.streams.size(); ++s)
      if (program.streams[s].uploads)
        GPUC_RETURN_IF_ERROR(driver_.check(
            driver_.cuEventRecord(program.staging_read[slot][s].get(), streams_[s].get()), "cuEventRecord"));
    return okStatus();
  }

  /// If the driver does not take them, steps are as before; whoever waits for them should know.
  Status captureGraphs(CudaProgram& program, size_t index) {
    if (refuses_graphs_ || program.graphs.empty()) return okStatus();
    // A driver that allocates may wait for the GPU, and that for a rank that is lost.
    if (libraries_.ranks()) GPUC_RETURN_IF_ERROR(wait());
    Result<uint64_t> bytes =
        gpuc::cuda::captureGraphs(driver_, program, streams_, plan_.root().input_slots());
    if (bytes.ok()) {
      graph_bytes_ += *bytes;
      return okStatus();
    }
    refuses_graphs_ = true;
    warn("program '" + plan_.info().programs[index].name +
         "' is launched command by command, not as CUDA graphs: " + bytes.message());
    return okStatus();
  }

  /// Copies the batch into the slot's pinned memory, as soon as nothing reads that any more.
  Status stage(CudaProgram& program, uint64_t slot, std::span<const void* const> inputs) {
    for (const Event& event : program.staging_read[slot])
      if (event.get()) GPUC_RETURN_IF_ERROR(synchronize(event));  // at once if it was never recorded
    for (size_t port = 0; port < program.inputs.size(); ++port) {
      const CudaProgram::Staging& staging = program.inputs[port];
      copies_->copy(staging.data + slot * staging.slot_stride, inputs[port], staging.bytes);
    }
    return okStatus();
  }

  /// What is enqueued from here on, on any stream, follows all that was enqueued before on every stream.
  Status joinStreams() {
    for (size_t s = 0; s < streams_.size(); ++s)
      GPUC_RETURN_IF_ERROR(
          driver_.check(driver_.cuEventRecord(stream_ends_[s].get(), streams_[s].get()), "cuEventRecord"));
    for (size_t s = 0; s < streams_.size(); ++s)
      for (size_t other = 0; other < streams_.size(); ++other)
        if (s != other)
          GPUC_RETURN_IF_ERROR(
              driver_.check(driver_.cuStreamWaitEvent(streams_[s].get(), stream_ends_[other].get(), 0),
                            "cuStreamWaitEvent"));
    return okStatus();
  }

  /// Inputs without a copy command are there before any stream begins.
  Status uploadDirectInputs(const CudaProgram& program, uint64_t slot) {
    for (const CudaProgram::DirectInput& input : program.direct_inputs) {
      const CudaProgram::Staging& staging = program.inputs[input.port];
      GPUC_RETURN_IF_ERROR(driver_.check(
          driver_.cuMemcpyHtoDAsync(input.to + slot * input.slot_stride,
                                    staging.data + slot * staging.slot_stride, staging.bytes, main()),
          "cuMemcpyHtoDAsync"));
    }
    return joinStreams();
  }

  /// Up to and with the last byte that is not poison. For checks: it copies the arena.
  uint64_t touchedBytes() const {
    std::vector<uint8_t> bytes(plan_.root().arena_bytes());
    bool copied =
        context_->makeCurrent().ok() &&
        driver_.cuMemcpyDtoHAsync(bytes.data(), arena_.get(), bytes.size(), main()) == CUDA_SUCCESS &&
        synchronize(streams_[0]).ok();
    if (!copied) return bytes.size();  // unknown: as much as may be
    auto last = std::find_if(bytes.rbegin(), bytes.rend(), [](uint8_t byte) { return byte != kPoison; });
    return static_cast<uint64_t>(bytes.rend() - last);
  }

  // Members end in the opposite order: programs before the module, streams and memory that they use.
  std::shared_ptr<Context> context_;
  const Driver& driver_;
  Architecture architecture_;
  Plan plan_;
  DeviceOptions options_;
  DeviceMemory arena_;
  PinnedMemory pinned_;
  std::optional<HostCopies> copies_;  // into it
  Module module_;
  uint64_t code_bytes_ = 0, library_bytes_ = 0, graph_bytes_ = 0;
  std::vector<Stream> streams_;
  Libraries libraries_;
  std::vector<Event> stream_ends_;
  std::vector<std::unique_ptr<CudaProgram>> programs_;
  size_t last_program_ = ~size_t{0};
  bool refuses_graphs_ = false;  // the driver, as was found and said once
  Status failure_;               // of a run: what it left is not to be relied on
};

}  // namespace

Result<std::shared_ptr<Context>> Context::create(const Driver& driver, CUdevice device) {
  std::shared_ptr<Context> context(new Context(driver));
  GPUC_RETURN_IF_ERROR(
      driver.check(driver.cuDevicePrimaryCtxRetain(&context->context_, device), "cuDevicePrimaryCtxRetain"));
  context->retained_ = {device, driver.cuDevicePrimaryCtxRelease};
  return context;
}

Result<std::unique_ptr<Executable>> createExecutable(std::shared_ptr<Context> context,
                                                     Architecture architecture, const Plan& plan,
                                                     const DeviceOptions& options) {
  auto executable = std::make_unique<CudaExecutable>(std::move(context), architecture, plan, options);
  GPUC_RETURN_IF_ERROR(executable->prepare());
  return std::unique_ptr<Executable>(std::move(executable));
}

}  // namespace gpuc::cuda
