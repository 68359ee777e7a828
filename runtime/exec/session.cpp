#include <algorithm>
#include <cinttypes>
#include <map>

#include "runtime/base/exceptions.h"
#include "runtime/base/integer_range.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/share_runs.h"
#include "runtime/exec/library_versions.h"
#include "runtime/exec/rank_device.h"
#include "runtime/gpuc.h"
#include "runtime/plan/access.h"
#include "runtime/plan/live_bytes.h"

namespace gpuc {
namespace {

/// A program's inputs as the device takes them: one pointer for each port, the hidden ones among them.
struct InputPorts {
  std::vector<const void*> pointers;
  std::vector<uint32_t> data;  // the ports of the inputs that a caller gives, in order
  int32_t rows = 0;            // what the hidden input points to
  bool counts_rows = false;
};

InputPorts makePorts(const fb::Program& program) {
  InputPorts ports;
  ports.pointers.resize(countOf(program.inputs()), nullptr);
  for (uint32_t port = 0; port < ports.pointers.size(); ++port)
    if (program.inputs()->Get(port)->role() == fb::InputRole::data)
      ports.data.push_back(port);
    else
      ports.counts_rows = true;
  return ports;
}

Status checkRange(const ProgramInfo& program, const InputInfo& input, const HostTensorView& given) {
  if (input.range < 0 || isFloat(given.type)) return okStatus();
  const int64_t outside =
      firstOutside(given.data, given.type, input.spec.elementCount(), input.range, input.ignored);
  if (outside < 0) return okStatus();
  return errorf("program '%s', input '%s': element %" PRId64 " is %" PRId64 ", outside its range [0, %" PRId64
                ")",
                program.name.c_str(), input.spec.name.c_str(), outside,
                integerAt(given.data, given.type, outside), input.range);
}

Status checkInput(const ProgramInfo& program, const InputInfo& expected, const HostTensorView& given) {
  bool equal =
      given.type == expected.spec.type && std::equal(given.shape.begin(), given.shape.end(),
                                                     expected.spec.shape.begin(), expected.spec.shape.end());
  if (!equal) {
    TensorSpec found{.name = "", .type = given.type, .shape = {given.shape.begin(), given.shape.end()}};
    return Status::error("program '" + program.name + "', input '" + expected.spec.name + "': got " +
                         found.str() + ", expected " + expected.spec.str());
  }
  if (!given.data)
    return Status::error("program '" + program.name + "', input '" + expected.spec.name + "': no data");
  return checkRange(program, expected, given);
}

}  // namespace

struct Session::State {
  explicit State(const Plan& plan) : plan(plan) {}

  Plan plan;
  std::unique_ptr<Device> device;
  std::shared_ptr<Executable> executable;  // outputs share it
  std::vector<InputPorts> ports;           // for each program
  std::map<std::string, const VariableInfo*> variables;
  std::vector<std::string> warnings;
  uint64_t seed = 0;
  Communicator* communicator = nullptr;

  int64_t worldSize() const { return communicator ? communicator->size() : 1; }

  const ProgramInfo& programInfo(ProgramId id) const { return plan.info().programs[id.index]; }

  Result<const VariableInfo*> variable(const std::string& name, size_t bytes) const {
    auto found = variables.find(name);
    if (found == variables.end()) return Status::error("the plan has no variable '" + name + "'");
    if (static_cast<int64_t>(bytes) != found->second->spec.sizeBytes())
      return errorf("variable '%s': %zu bytes given, %s takes %" PRId64, name.c_str(), bytes,
                    found->second->spec.str().c_str(), found->second->spec.sizeBytes());
    return found->second;
  }

  /// How ranks share out a variable.
  Shares sharesOf(const VariableInfo& variable) const {
    const auto elements = static_cast<uint64_t>(variable.spec.elementCount());
    return *Shares::of({&elements, 1}, static_cast<uint64_t>(plan.info().world_size),
                       static_cast<size_t>(sizeOf(variable.spec.type)));
  }

  static size_t shareBytes(const VariableInfo& variable, const Shares& shares) {
    return shares.elements * static_cast<size_t>(sizeOf(variable.spec.type));
  }

  Status readShares(const VariableInfo& variable, std::byte* whole) {
    const Shares shares = sharesOf(variable);
    std::vector<std::byte> own(shareBytes(variable, shares));
    GPUC_RETURN_IF_ERROR(executable->read(variable.offset, own.data(), own.size()));
    const void* mine = own.data();
    void* all = whole;
    if (communicator) return communicator->allGather(variable.spec.type, shares, {&mine, 1}, {&all, 1});
    std::copy(own.begin(), own.end(), whole);  // of one rank, which has all
    return okStatus();
  }

  Status writeShare(const VariableInfo& variable, const std::byte* whole) {
    const Shares shares = sharesOf(variable);
    std::vector<std::byte> scratch(shareBytes(variable, shares));
    const void* all = whole;
    const auto rank = static_cast<size_t>(communicator ? communicator->rank() : 0);
    const std::byte* own = ShareRuns(shares, static_cast<size_t>(sizeOf(variable.spec.type)))
                               .inWholes(rank, {0, shares.elements}, {&all, 1}, scratch.data());
    return executable->write(variable.offset, own, scratch.size());
  }

  /// Of a variable that one rank has: a collective, as readShares() is.
  Status readOwned(const VariableInfo& variable, std::span<std::byte> bytes) {
    if (isMine(variable)) GPUC_RETURN_IF_ERROR(executable->read(variable.offset, bytes.data(), bytes.size()));
    return communicator ? communicator->broadcast(bytes, variable.owner) : okStatus();
  }

  bool isMine(const VariableInfo& variable) const {
    return variable.owner == (communicator ? communicator->rank() : 0);
  }

  /// Sets an i64 counter of the plan, if it has one of this name.
  Status setCounter(const char* name, uint64_t value) {
    auto found = variables.find(name);
    if (found == variables.end()) return okStatus();
    const VariableInfo& variable = *found->second;
    if (variable.kind != VariableKind::counter || variable.spec.type != DataType::i64 ||
        variable.spec.elementCount() != 1)
      return errorf("variable '%s' is %s %s, expected an i64 counter", name, nameOf(variable.kind),
                    variable.spec.str().c_str());
    return executable->write(variable.offset, &value, sizeof(value));
  }

  /// The same, where a variable of this name may be anything of the model's.
  Status setRank(const char* name, int64_t value) {
    auto found = variables.find(name);
    if (found == variables.end() || found->second->kind != VariableKind::counter) return okStatus();
    return setCounter(name, static_cast<uint64_t>(value));
  }

  Status setCounters() {
    GPUC_RETURN_IF_ERROR(setCounter("seed", seed));
    GPUC_RETURN_IF_ERROR(setRank("rank", communicator ? communicator->rank() : 0));
    GPUC_RETURN_IF_ERROR(setRank("world_size", worldSize()));
    return setCounter("step", 0);
  }

  Status setRows(ProgramId id, int32_t rows) {
    InputPorts& target = ports[id.index];
    const bool updates = programInfo(id).name == "train_step";
    const int64_t batch = updates ? plan.info().global_batch * worldSize() : plan.info().batch;
    if (rows < -1 || rows > batch) return errorf("%" PRId32 " rows in a batch of %" PRId64, rows, batch);
    if (!target.counts_rows && rows != -1 && rows != batch)
      return errorf("program '%s' does not count rows: all %" PRId64 " must hold samples, not %" PRId32,
                    programInfo(id).name.c_str(), batch, rows);
    target.rows = rows == -1 ? static_cast<int32_t>(batch) : rows;
    return okStatus();
  }
};

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::create(const Plan& plan, const SessionOptions& options) {
  return withoutExceptions("cannot open the plan on a device", [&] { return open(plan, options); });
}

Result<Session> Session::open(const Plan& plan, const SessionOptions& options) {
  if (options.threads < 0)
    return errorf("%d threads to compute with: 0 is one for each core", options.threads);
  auto state = std::make_unique<State>(plan);
  state->communicator = options.communicator;
  if (const int64_t ranks = plan.info().world_size; ranks != 0 && ranks != state->worldSize())
    return errorf(
        "the plan shares variables out among %" PRId64 " ranks, and there %s %" PRId64 ": start %" PRId64
        " (gpuc-train --ranks=%" PRId64 "), or compile it with --world-size=%" PRId64,
        ranks, state->worldSize() == 1 ? "is" : "are", state->worldSize(), ranks, ranks, state->worldSize());
  if (plan.info().global_batch > INT32_MAX / state->worldSize())
    return errorf("%" PRId64 " ranks of %" PRId64
                  " rows are 2^31 rows or more: compile with a smaller --batch",
                  state->worldSize(), plan.info().global_batch);
  const TargetKind target = plan.info().target;
  GPUC_ASSIGN_OR_RETURN(state->device, options.communicator
                                           ? openDeviceOfRank(options.device, target, *options.communicator)
                                           : openDevice(options.device, target));
  if (options.delay_seed && state->device->info().kind != TargetKind::host)
    return Status::error("commands can be delayed on the host alone: give --device=host");
  DeviceOptions device_options{.threads = options.threads,
                               .check_memory = options.check_memory,
                               .communicator = options.communicator,
                               .delay_seed = options.delay_seed,
                               .profile_events = options.profile_events};
  GPUC_ASSIGN_OR_RETURN(state->executable, state->device->prepare(plan, device_options));
  // After the device has said that the plan is for another target, or which library is to be installed.
  GPUC_RETURN_IF_ERROR(checkLibraries(plan.info().libraries, state->device->info().libraries, options.strict,
                                      state->warnings));
  for (const VariableInfo& variable : plan.info().variables) state->variables[variable.spec.name] = &variable;
  for (const fb::Program* program : each(plan.root().programs())) state->ports.push_back(makePorts(*program));
  state->seed = options.seed.value_or(plan.info().seed);
  GPUC_RETURN_IF_ERROR(state->setCounters());
  return Session(std::move(state));
}

Status Session::initialize() {
  GPUC_RETURN_IF_ERROR(state_->setCounters());
  GPUC_ASSIGN_OR_RETURN(ProgramId init, program("init"));
  GPUC_RETURN_IF_ERROR(run(init, {}));
  return wait();
}

Result<ProgramId> Session::program(const std::string& name) const {
  const std::vector<ProgramInfo>& programs = state_->plan.info().programs;
  std::string existing;
  for (uint32_t i = 0; i < programs.size(); ++i) {
    if (programs[i].name == name) return ProgramId{i};
    existing += (i == 0 ? "" : ", ") + programs[i].name;
  }
  return Status::error("the plan has no entry '" + name +
                       "', it has: " + (existing.empty() ? "none" : existing));
}

Status Session::run(ProgramId id, std::span<const HostTensorView> inputs, int32_t rows) {
  if (id.index >= state_->ports.size())
    return errorf("the plan has no program %" PRIu32 ", it has %zu: ask this session for it by its name",
                  id.index, state_->ports.size());
  const ProgramInfo& program = state_->programInfo(id);
  if (inputs.size() != program.inputs.size())
    return errorf("program '%s': %zu inputs given, it takes %zu", program.name.c_str(), inputs.size(),
                  program.inputs.size());
  GPUC_RETURN_IF_ERROR(state_->setRows(id, rows));
  InputPorts& ports = state_->ports[id.index];
  std::fill(ports.pointers.begin(), ports.pointers.end(), &ports.rows);
  for (size_t i = 0; i < inputs.size(); ++i) {
    GPUC_RETURN_IF_ERROR(checkInput(program, program.inputs[i], inputs[i]));
    ports.pointers[ports.data[i]] = inputs[i].data;
  }
  return state_->executable->run(id.index, ports.pointers);
}

Status Session::wait() { return state_->executable->wait(); }

OutputView Session::output(ProgramId id, size_t index) {
  if (id.index >= state_->ports.size() || index >= state_->programInfo(id).outputs.size()) return {};
  return {{state_->executable->output(id.index, index), state_->programInfo(id).outputs[index]},
          state_->executable};
}

Status Session::readVariable(const std::string& name, std::span<std::byte> bytes) {
  GPUC_ASSIGN_OR_RETURN(const VariableInfo* variable, state_->variable(name, bytes.size()));
  if (variable->is_share) return state_->readShares(*variable, bytes.data());
  if (variable->owner >= 0) return state_->readOwned(*variable, bytes);
  return state_->executable->read(variable->offset, bytes.data(), bytes.size());
}

Status Session::writeVariable(const std::string& name, std::span<const std::byte> bytes) {
  GPUC_ASSIGN_OR_RETURN(const VariableInfo* variable, state_->variable(name, bytes.size()));
  if (variable->is_share) return state_->writeShare(*variable, bytes.data());
  if (variable->owner >= 0 && !state_->isMine(*variable)) return okStatus();
  return state_->executable->write(variable->offset, bytes.data(), bytes.size());
}

Result<VariableView> Session::variable(const std::string& name) {
  auto found = state_->variables.find(name);
  if (found == state_->variables.end()) return Status::error("the plan has no variable '" + name + "'");
  const VariableInfo& variable = *found->second;
  if (variable.is_share || variable.owner >= 0)
    return Status::error("variable '" + name +
                         "' is shared out among ranks: no memory has it whole, read and write it instead");
  std::byte* arena = state_->executable->hostArena();
  if (!arena)
    return Status::error("variable '" + name + "' lies in the memory of " + state_->device->info().name +
                         ": read and write it instead");
  // The executable keeps its plan, and that its variables' names.
  return VariableView{arena + variable.offset, &variable.spec, state_->executable};
}

const Plan& Session::plan() const { return state_->plan; }
const DeviceInfo& Session::device() const { return state_->device->info(); }
const std::vector<std::string>& Session::warnings() const { return state_->warnings; }
MemoryUse Session::memory() const {
  MemoryUse memory = state_->executable->memory();
  memory.by_category = memoryByCategory(state_->plan.root());
  return memory;
}
std::vector<ProfileEvent> Session::profile() const { return state_->executable->profile(); }

}  // namespace gpuc
