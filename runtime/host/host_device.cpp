// The host as a device: the calling thread is the main compute stream, other streams are threads.
#include <pthread.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "runtime/base/status.h"
#include "runtime/hal/device.h"
#include "runtime/host/code_memory.h"
#include "runtime/host/cpu_features.h"
#include "runtime/host/exchange.h"
#include "runtime/host/executor.h"
#include "runtime/host/free_memory.h"
#include "runtime/host/library_kernel.h"
#include "runtime/host/lower.h"
#include "runtime/host/spread_trial.h"
#include "runtime/plan/access.h"
#include "runtime/plan/header.h"

namespace gpuc {
namespace {

/// One that is too small ends in a fault, in the midst of a step. Threads that are made later have what this
/// one has, or what the limit is that it was made by.
Status checkStack() {
  constexpr size_t kLeastBytes = 448 << 10;  // of 512 KiB the program's arguments take some
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return okStatus();
  size_t bytes = 0;
  pthread_attr_getstacksize(&attributes, &bytes);
  pthread_attr_destroy(&attributes);
  if (bytes >= kLeastBytes) return okStatus();
  return errorf(
      "this thread has a stack of %zu KiB, and kernels of the host pack into up to 512: give it more (ulimit "
      "-s 8192)",
      bytes >> 10);
}

class HostExecutable : public Executable {
 public:
  HostExecutable(const Plan& plan, const DeviceOptions& options)
      : plan_(plan),
        options_(options),
        ranks_(options.communicator),
        pool_(options.threads > 0 ? options.threads : availableCores()) {}

  Status prepare() {
    GPUC_RETURN_IF_ERROR(checkStack());
    GPUC_ASSIGN_OR_RETURN(arena_, Arena::map(plan_.root().arena_bytes(), options_.check_memory));
    std::vector<KernelFunction> kernels;
    GPUC_RETURN_IF_ERROR(loadCode(kernels));
    copyConstants();
    for (size_t i = 0; i < plan_.info().programs.size(); ++i) {
      Result<std::unique_ptr<HostProgram>> program =
          lowerProgram(plan_, i, arena_, kernels, ranks_, pool_.threads(), options_.check_memory);
      if (!program.ok())
        return Status::error("program '" + plan_.info().programs[i].name + "': " + program.message());
      programs_.push_back(*std::move(program));
      trials_.emplace_back(programs_.back().get(), pool_.threads());
    }
    startStreams();
    return okStatus();
  }

  Status run(size_t program, std::span<const void* const> inputs) override {
    HostProgram& target = *programs_[program];
    beginRun(target, inputs);
    trials_[program].beginStep();
    std::vector<StreamWalk>& walks = walks_[program];
    auto walk = [](const void* context, int64_t, int64_t) { static_cast<const StreamWalk*>(context)->run(); };
    for (size_t s = 1; s < walks.size(); ++s) streams_[s - 1]->start({walk, &walks[s]}, 0, 1);
    if (!walks.empty()) walks[0].run();
    for (size_t s = 1; s < walks.size(); ++s) streams_[s - 1]->join();
    trials_[program].endStep();
    return ranks_.status();
  }

  Status wait() override { return okStatus(); }  // run() returns when all streams are done

  Status read(uint64_t offset, void* to, uint64_t bytes) override {
    std::memcpy(to, arena_.data() + offset, bytes);
    return okStatus();
  }

  Status write(uint64_t offset, const void* from, uint64_t bytes) override {
    std::memcpy(arena_.data() + offset, from, bytes);
    return okStatus();
  }

  std::byte* hostArena() override { return arena_.data(); }

  const void* output(size_t program, size_t output) override {
    const HostProgram& source = *programs_[program];
    return source.outputs[output].data + source.last_slot * source.outputs[output].slot_stride;
  }

  MemoryUse memory() const override {
    return {.arena_bytes = arena_.bytes(),
            .arena_allocations = 1,
            .touched_bytes = options_.check_memory ? arena_.touchedBytes() : 0,
            .by_category = {},  // of the plan, not of the device
            .staging_bytes = stagingBytes(),
            .code_bytes = code_bytes_,
            .library_bytes = keptCodeBytes()};
  }

  std::vector<ProfileEvent> profile() const override {
    std::vector<ProfileEvent> events;
    for (const ProfileRing& ring : profiles_) ring.appendTo(events);
    return events;
  }

 private:
  Status loadCode(std::vector<KernelFunction>& kernels) {
    if (countOf(plan_.root().kernels()) == 0) return okStatus();
    const auto& object = *plan_.root().code()->Get(0)->data();
    GPUC_ASSIGN_OR_RETURN(code_, HostCode::load({object.data(), object.size()}));
    code_bytes_ = object.size();
    for (const fb::Kernel* kernel : each(plan_.root().kernels())) {
      GPUC_ASSIGN_OR_RETURN(KernelFunction function, code_.find(std::string(textOf(kernel->symbol()))));
      kernels.push_back(function);
    }
    return okStatus();
  }

  uint64_t stagingBytes() const {
    uint64_t bytes = 0;
    for (const auto& program : programs_)
      for (const StagingMemory& output : program->staging) bytes += output.size();
    return bytes;
  }

  void copyConstants() {
    for (const fb::Constant* constant : each(plan_.root().constants()))
      std::memcpy(arena_.data() + plan_.root().buffers()->Get(constant->buffer())->offset(),
                  constant->data()->data(), constant->data()->size());
  }

  void startStreams() {
    size_t most = 1;
    for (const auto& program : programs_) most = std::max(most, program->streams.size());
    SpinPolicy policy = SpinPolicy::forThreads(pool_.threads() + static_cast<int>(most) - 1);
    for (size_t s = 0; s < most; ++s) profiles_.emplace_back(options_.profile_events);
    if (options_.delay_seed)
      for (uint32_t s = 0; s < most; ++s) delays_.emplace_back(*options_.delay_seed, s);
    for (size_t s = 1; s < most; ++s)
      streams_.push_back(std::make_unique<Worker>(policy, Worker::Work::waits));
    for (size_t p = 0; p < programs_.size(); ++p) {
      std::vector<StreamWalk>& walks = walks_.emplace_back();
      for (size_t s = 0; s < programs_[p]->streams.size(); ++s)
        walks.push_back({.commands = &programs_[p]->streams[s],
                         .pool = &pool_,
                         .alone = &alone_,
                         .profile = &profiles_[s],
                         .policy = policy,
                         .delays = delays_.empty() ? nullptr : &delays_[s],
                         .program = static_cast<uint32_t>(p),
                         .stream = static_cast<uint32_t>(s)});
    }
  }

  /// Sets what differs from run to run: the input slot, the caller's inputs.
  void beginRun(HostProgram& program, std::span<const void* const> inputs) {
    for (const ByteRange& bytes : program.dead.at_start) poisonBut(inputs, bytes);
    uint64_t slot = program.runs++ % plan_.root().input_slots();
    program.last_slot = slot;
    for (const HostProgram::SlotPointer& pointer : program.slot_pointers)
      *pointer.entry = pointer.base + slot * pointer.slot_stride;
    for (const HostProgram::InputPointer& pointer : program.input_pointers)
      // The table holds addresses to write to as well; from this one is only read.
      *pointer.entry = static_cast<std::byte*>(const_cast<void*>(inputs[pointer.port])) + pointer.offset;
    for (const HostProgram::InputPlace& input : program.inputs) {
      std::byte* place = placeOf(program, input, inputs[input.port], slot);
      for (const auto& [entry, offset] : input.readers) *entry = place + offset;
    }
  }

  /// Poisons a range that does not hold an input of this run: a caller may give what an earlier run left.
  void poisonBut(std::span<const void* const> inputs, ByteRange bytes) {
    const std::byte* begin = arena_.data() + bytes.begin;
    const std::byte* end = arena_.data() + bytes.end;
    auto isIn = [&](const void* input) { return !std::less<>()(input, begin) && std::less<>()(input, end); };
    if (std::none_of(inputs.begin(), inputs.end(), isIn))
      arena_.poison(static_cast<uint64_t>(bytes.begin), static_cast<uint64_t>(bytes.end));
  }

  /// Where this run's commands find an input. Who checks the arena's memory wants all of it to be used.
  std::byte* placeOf(const HostProgram& program, const HostProgram::InputPlace& input, const void* given,
                     uint64_t slot) const {
    if (input.only_read && !options_.check_memory &&
        reinterpret_cast<uintptr_t>(given) % kBufferAlignment == 0 && !isWrittenByRuns(program, given))
      return static_cast<std::byte*>(const_cast<void*>(given));
    std::byte* place = input.place + slot * input.slot_stride;
    if (!input.copied) std::memcpy(place, given, input.bytes);
    return place;
  }

  /// Whether the caller gives what an earlier run left, as one does with a state: this run may overwrite it
  /// before it is last read.
  bool isWrittenByRuns(const HostProgram& program, const void* given) const {
    auto holds = [given](const std::byte* begin, size_t bytes) {
      const auto address = reinterpret_cast<uintptr_t>(given), first = reinterpret_cast<uintptr_t>(begin);
      return address >= first && address < first + bytes;
    };
    if (holds(arena_.data(), arena_.bytes())) return true;
    for (const StagingMemory& output : program.staging)
      if (holds(output.data(), output.size())) return true;
    return false;
  }

  Plan plan_;
  DeviceOptions options_;
  Ranks ranks_;
  Arena arena_;
  HostCode code_;
  uint64_t code_bytes_ = 0;
  ThreadPool pool_;
  ThreadPool alone_{1};
  std::vector<std::unique_ptr<HostProgram>> programs_;
  std::vector<SpreadTrial> trials_;             // for each program
  std::vector<std::vector<StreamWalk>> walks_;  // for each program and stream
  std::vector<ProfileRing> profiles_;           // for each stream
  std::vector<Delays> delays_;                  // for each stream, if there are any
  // All but the first; last, so that they end before what they use.
  std::vector<std::unique_ptr<Worker>> streams_;
};

class HostDevice : public Device {
 public:
  HostDevice() {
    info_.name = cpuName();
    utsname system;
    if (uname(&system) == 0) info_.architecture = system.machine;
    info_.memory_bytes =
        static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    info_.threads = availableCores();
    info_.libraries = {{"libxsmm", microKernelVersion()}};
  }

  const DeviceInfo& info() const override { return info_; }

  Result<uint64_t> freeMemory() const override { return freeHostMemory(); }

  Result<std::unique_ptr<Executable>> prepare(const Plan& plan, const DeviceOptions& options) override {
    if (plan.info().target != TargetKind::host)
      return Status::error("plan compiled for " + std::string(nameOf(plan.info().target)) + " (" +
                           plan.info().target_name + "), the device is host: compile with --target=host");
    GPUC_RETURN_IF_ERROR(checkCpuFeatures(plan.info().target_name, plan.info().target_features));
    auto executable = std::make_unique<HostExecutable>(plan, options);
    GPUC_RETURN_IF_ERROR(executable->prepare());
    return std::unique_ptr<Executable>(std::move(executable));
  }

 private:
  DeviceInfo info_;
};

}  // namespace

namespace {

Status makeLibraryKernels(const Commands* commands, std::span<const KernelFunction> generated) {
  for (const fb::Command* command : each(commands)) {
    GPUC_RETURN_IF_ERROR(makeLibraryKernel(*command, generated).status());
    if (const std::optional<CommandLoop> loop = loopOf(*command))
      GPUC_RETURN_IF_ERROR(makeLibraryKernels(loop->commands, generated));
  }
  return okStatus();
}

}  // namespace

Result<uint64_t> hostLibraryBytes(const Plan& plan) {
  const std::vector<KernelFunction> never_run(countOf(plan.root().kernels()));
  for (const fb::Program* program : each(plan.root().programs()))
    for (const fb::Stream* stream : each(program->streams()))
      GPUC_RETURN_IF_ERROR(makeLibraryKernels(stream->commands(), never_run));
  return keptCodeBytes();
}

std::unique_ptr<Device> openHostDevice() { return std::make_unique<HostDevice>(); }

}  // namespace gpuc
