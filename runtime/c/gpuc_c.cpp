#include "runtime/gpuc_c.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/exceptions.h"
#include "runtime/base/version.h"
#include "runtime/gpuc.h"

struct gpuc_plan {
  gpuc::Plan plan;
  std::string target;
};

struct gpuc_session {
  gpuc::Session session;
  std::vector<gpuc::HostTensorView> inputs;  // as many as any program takes, so that no run allocates
};

namespace {

using namespace gpuc;

static_assert(GPUC_F64 == static_cast<int>(DataType::f64) && GPUC_F32 == static_cast<int>(DataType::f32) &&
              GPUC_F16 == static_cast<int>(DataType::f16) && GPUC_BF16 == static_cast<int>(DataType::bf16) &&
              GPUC_I64 == static_cast<int>(DataType::i64) && GPUC_I32 == static_cast<int>(DataType::i32) &&
              GPUC_I8 == static_cast<int>(DataType::i8) && GPUC_UI8 == static_cast<int>(DataType::ui8) &&
              GPUC_I1 == static_cast<int>(DataType::i1));

thread_local std::string last_error;
thread_local const char* last_error_text = "";

/// Where there is no memory for the text, it says that.
void setLastError(const char* text) {
  try {
    last_error = text;
    last_error_text = last_error.c_str();
  } catch (...) {
    last_error_text = "out of memory";
  }
}

/// What every function does: `body` returns a Status; its error, and what it throws, become the last error.
template <typename Body>
gpuc_status guarded(Body body) {
  try {
    const Status status = body();
    if (status.ok()) return GPUC_OK;
    setLastError(status.message().c_str());
  } catch (...) {
    setLastError(describeException().data());
  }
  return GPUC_ERROR;
}

Status checkGiven(const char* what, const void* address) {
  return address ? okStatus() : errorf("'%s' is null", what);
}

Status checkIndex(const char* what, size_t index, size_t count) {
  return index < count ? okStatus() : errorf("%s %zu: there are %zu, from 0 on", what, index, count);
}

Result<const ProgramInfo*> programOf(const Plan& plan, size_t program) {
  const std::vector<ProgramInfo>& programs = plan.info().programs;
  GPUC_RETURN_IF_ERROR(checkIndex("program", program, programs.size()));
  return &programs[program];
}

/// Copies as much of `value` as the caller's struct has room for.
template <typename Info>
Status fill(Info* info, Info value) {
  GPUC_RETURN_IF_ERROR(checkGiven("info", info));
  const size_t size = info->size;
  if (size < sizeof(size_t) || size > 1024)
    return errorf("'info' has size %zu: begin it with GPUC_INIT", size);
  value.size = size;
  std::memcpy(static_cast<void*>(info), &value, std::min(size, sizeof(Info)));
  return okStatus();
}

gpuc_tensor_info describe(const TensorSpec& spec, int64_t range) {
  return {sizeof(gpuc_tensor_info),
          spec.name.c_str(),
          static_cast<gpuc_type>(spec.type),
          static_cast<uint32_t>(spec.shape.size()),
          spec.shape.data(),
          static_cast<uint64_t>(spec.sizeBytes()),
          range};
}

Status give(Result<Plan> made, gpuc_plan** plan) {
  GPUC_ASSIGN_OR_RETURN(Plan read, std::move(made));
  const PlanInfo& info = read.info();
  std::string target = std::string(nameOf(info.target)) + " (" + info.target_name + ")";
  *plan = new gpuc_plan{std::move(read), std::move(target)};
  return okStatus();
}

/// Fields that the caller's header did not have yet stay zero.
Result<SessionOptions> optionsOf(const gpuc_session_options* given) {
  if (!given) return SessionOptions{};
  if (given->size < sizeof(size_t) || given->size > 1024)
    return errorf("'options' has size %zu: begin it with GPUC_INIT", given->size);
  gpuc_session_options known = {};
  std::memcpy(&known, given, std::min(given->size, sizeof(known)));
  if (known.threads < 0)
    return errorf("'options' asks for %d threads: 0 is one for each core", known.threads);
  SessionOptions options;
  if (known.device) options.device = known.device;
  options.threads = known.threads;
  if (known.seed) options.seed = *known.seed;
  options.strict = known.strict != 0;
  return options;
}

Result<HostTensorView> viewOf(const gpuc_tensor& tensor, size_t index) {
  if (tensor.type < 0 || tensor.type >= kDataTypeCount)
    return errorf("input %zu: %d is no element type", index, static_cast<int>(tensor.type));
  if (!tensor.data || (!tensor.shape && tensor.rank > 0))
    return errorf("input %zu: its %s is null", index, tensor.data ? "shape" : "data");
  return HostTensorView(tensor.data, static_cast<DataType>(tensor.type), {tensor.shape, tensor.rank});
}

}  // namespace

int gpuc_c_version(void) { return GPUC_C_VERSION; }
const char* gpuc_version(void) { return GPUC_VERSION; }
const char* gpuc_last_error(void) { return last_error_text; }

gpuc_status gpuc_plan_load(const char* path, gpuc_plan** plan) {
  return guarded([&] {
    GPUC_RETURN_IF_ERROR(checkGiven("path", path));
    GPUC_RETURN_IF_ERROR(checkGiven("plan", plan));
    return give(Plan::load(path), plan);
  });
}

gpuc_status gpuc_plan_parse(const void* bytes, size_t size, gpuc_plan** plan) {
  return guarded([&] {
    GPUC_RETURN_IF_ERROR(checkGiven("bytes", bytes));
    GPUC_RETURN_IF_ERROR(checkGiven("plan", plan));
    return give(Plan::parse({static_cast<const char*>(bytes), size}), plan);
  });
}

void gpuc_plan_free(gpuc_plan* plan) { delete plan; }

gpuc_status gpuc_plan_describe(const gpuc_plan* plan, gpuc_plan_info* info) {
  return guarded([&] {
    GPUC_RETURN_IF_ERROR(checkGiven("plan", plan));
    const PlanInfo& facts = plan->plan.info();
    return fill(info,
                {sizeof(gpuc_plan_info), facts.name.c_str(), plan->target.c_str(), facts.arena_bytes,
                 facts.seed, facts.batch, facts.global_batch, facts.programs.size(), facts.variables.size()});
  });
}

gpuc_status gpuc_plan_describe_program(const gpuc_plan* plan, size_t program, gpuc_program_info* info) {
  return guarded([&]() -> Status {
    GPUC_RETURN_IF_ERROR(checkGiven("plan", plan));
    GPUC_ASSIGN_OR_RETURN(const ProgramInfo* facts, programOf(plan->plan, program));
    return fill(info, {sizeof(gpuc_program_info), facts->name.c_str(), facts->inputs.size(),
                       facts->outputs.size(), facts->peak_bytes});
  });
}

gpuc_status gpuc_plan_input(const gpuc_plan* plan, size_t program, size_t input, gpuc_tensor_info* info) {
  return guarded([&]() -> Status {
    GPUC_RETURN_IF_ERROR(checkGiven("plan", plan));
    GPUC_ASSIGN_OR_RETURN(const ProgramInfo* facts, programOf(plan->plan, program));
    GPUC_RETURN_IF_ERROR(checkIndex("input", input, facts->inputs.size()));
    return fill(info, describe(facts->inputs[input].spec, facts->inputs[input].range));
  });
}

gpuc_status gpuc_plan_output(const gpuc_plan* plan, size_t program, size_t output, gpuc_tensor_info* info) {
  return guarded([&]() -> Status {
    GPUC_RETURN_IF_ERROR(checkGiven("plan", plan));
    GPUC_ASSIGN_OR_RETURN(const ProgramInfo* facts, programOf(plan->plan, program));
    GPUC_RETURN_IF_ERROR(checkIndex("output", output, facts->outputs.size()));
    return fill(info, describe(facts->outputs[output], -1));
  });
}

gpuc_status gpuc_plan_variable(const gpuc_plan* plan, size_t variable, gpuc_tensor_info* info) {
  return guarded([&] {
    GPUC_RETURN_IF_ERROR(checkGiven("plan", plan));
    const std::vector<VariableInfo>& variables = plan->plan.info().variables;
    GPUC_RETURN_IF_ERROR(checkIndex("variable", variable, variables.size()));
    return fill(info, describe(variables[variable].spec, -1));
  });
}

gpuc_status gpuc_session_create(const gpuc_plan* plan, const gpuc_session_options* options,
                                gpuc_session** session) {
  return guarded([&]() -> Status {
    GPUC_RETURN_IF_ERROR(checkGiven("plan", plan));
    GPUC_RETURN_IF_ERROR(checkGiven("session", session));
    GPUC_ASSIGN_OR_RETURN(SessionOptions chosen, optionsOf(options));
    GPUC_ASSIGN_OR_RETURN(Session made, Session::create(plan->plan, chosen));
    size_t most = 0;
    for (const ProgramInfo& program : plan->plan.info().programs)
      most = std::max(most, program.inputs.size());
    *session = new gpuc_session{std::move(made), std::vector<HostTensorView>(most)};
    return okStatus();
  });
}

void gpuc_session_free(gpuc_session* session) { delete session; }

gpuc_status gpuc_session_initialize(gpuc_session* session) {
  return guarded([&] {
    GPUC_RETURN_IF_ERROR(checkGiven("session", session));
    return session->session.initialize();
  });
}

gpuc_status gpuc_session_program(const gpuc_session* session, const char* name, size_t* program) {
  return guarded([&]() -> Status {
    GPUC_RETURN_IF_ERROR(checkGiven("session", session));
    GPUC_RETURN_IF_ERROR(checkGiven("name", name));
    GPUC_RETURN_IF_ERROR(checkGiven("program", program));
    GPUC_ASSIGN_OR_RETURN(const ProgramId found, session->session.program(name));
    *program = found.index;
    return okStatus();
  });
}

gpuc_status gpuc_session_run(gpuc_session* session, size_t program, const gpuc_tensor* inputs, size_t count,
                             int32_t rows) {
  return guarded([&]() -> Status {
    GPUC_RETURN_IF_ERROR(checkGiven("session", session));
    GPUC_ASSIGN_OR_RETURN(const ProgramInfo* facts, programOf(session->session.plan(), program));
    if (count > 0) GPUC_RETURN_IF_ERROR(checkGiven("inputs", inputs));
    const size_t read = std::min(count, session->inputs.size());
    for (size_t i = 0; i < read; ++i) {
      GPUC_ASSIGN_OR_RETURN(session->inputs[i], viewOf(inputs[i], i));
    }
    if (count != facts->inputs.size())
      return errorf("program '%s': %zu inputs given, it takes %zu", facts->name.c_str(), count,
                    facts->inputs.size());
    return session->session.run(ProgramId{static_cast<uint32_t>(program)}, {session->inputs.data(), count},
                                rows);
  });
}

gpuc_status gpuc_session_wait(gpuc_session* session) {
  return guarded([&] {
    GPUC_RETURN_IF_ERROR(checkGiven("session", session));
    return session->session.wait();
  });
}

gpuc_status gpuc_session_output(gpuc_session* session, size_t program, size_t output, gpuc_tensor* tensor) {
  return guarded([&]() -> Status {
    GPUC_RETURN_IF_ERROR(checkGiven("session", session));
    GPUC_RETURN_IF_ERROR(checkGiven("tensor", tensor));
    GPUC_ASSIGN_OR_RETURN(const ProgramInfo* facts, programOf(session->session.plan(), program));
    GPUC_RETURN_IF_ERROR(checkIndex("output", output, facts->outputs.size()));
    const OutputView view = session->session.output(ProgramId{static_cast<uint32_t>(program)}, output);
    *tensor = {view.data, static_cast<gpuc_type>(view.type), static_cast<uint32_t>(view.shape.size()),
               view.shape.data()};
    return okStatus();
  });
}

gpuc_status gpuc_session_read_variable(gpuc_session* session, const char* name, void* bytes, size_t size) {
  return guarded([&] {
    GPUC_RETURN_IF_ERROR(checkGiven("session", session));
    GPUC_RETURN_IF_ERROR(checkGiven("name", name));
    GPUC_RETURN_IF_ERROR(checkGiven("bytes", bytes));
    return session->session.readVariable(name, {static_cast<std::byte*>(bytes), size});
  });
}

gpuc_status gpuc_session_write_variable(gpuc_session* session, const char* name, const void* bytes,
                                        size_t size) {
  return guarded([&] {
    GPUC_RETURN_IF_ERROR(checkGiven("session", session));
    GPUC_RETURN_IF_ERROR(checkGiven("name", name));
    GPUC_RETURN_IF_ERROR(checkGiven("bytes", bytes));
    return session->session.writeVariable(name, {static_cast<const std::byte*>(bytes), size});
  });
}

const char* gpuc_session_warning(const gpuc_session* session, size_t index) {
  if (!session || index >= session->session.warnings().size()) return nullptr;
  return session->session.warnings()[index].c_str();
}
