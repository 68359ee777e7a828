#include "runtime/train/step_outputs.h"

#include <cstring>

#include "runtime/base/integer_range.h"

namespace gpuc {
namespace {

bool isReadable(DataType type) { return type == DataType::f64 || type == DataType::f32 || !isFloat(type); }

template <typename T>
double load(const void* data) {
  T value;
  std::memcpy(&value, data, sizeof(value));
  return static_cast<double>(value);
}

double scalarAt(const void* data, DataType type) {
  if (type == DataType::f64) return load<double>(data);
  if (type == DataType::f32) return load<float>(data);
  return static_cast<double>(integerAt(data, type, 0));
}

/// Looks up several outputs, each under its name.
struct Wanted {
  const char* name;
  ScalarOutput* output;
};

Status findAll(const Session& session, ProgramId program, std::initializer_list<Wanted> wanted) {
  for (const Wanted& item : wanted) {
    GPUC_ASSIGN_OR_RETURN(*item.output, ScalarOutput::find(session, program, item.name));
  }
  return okStatus();
}

}  // namespace

Result<ScalarOutput> ScalarOutput::find(const Session& session, ProgramId program, const std::string& name) {
  ScalarOutput found;
  found.program_ = program;
  const ProgramInfo& info = session.plan().info().programs[program.index];
  for (size_t i = 0; i < info.outputs.size(); ++i) {
    const TensorSpec& spec = info.outputs[i];
    if (spec.name != name) continue;
    if (spec.elementCount() != 1 || !isReadable(spec.type))
      return errorf("output '%s' of '%s' is %s, expected one number, f32, f64 or integer", name.c_str(),
                    info.name.c_str(), spec.str().c_str());
    found.index_ = i;
  }
  return found;
}

std::optional<Number> ScalarOutput::read(Session& session) const {
  if (!index_) return std::nullopt;
  HostTensorView view = session.output(program_, *index_);
  return Number{scalarAt(view.data, view.type), view.type == DataType::f32};
}

Result<TrainOutputs> TrainOutputs::find(const Session& session, ProgramId program) {
  TrainOutputs outputs;
  GPUC_RETURN_IF_ERROR(findAll(session, program,
                               {{"loss_sum", &outputs.loss_sum},
                                {"count", &outputs.count},
                                {"lr", &outputs.lr},
                                {"grad_norm", &outputs.grad_norm},
                                {"loss_scale", &outputs.loss_scale},
                                {"skipped", &outputs.skipped}}));
  return outputs;
}

Result<EvalOutputs> EvalOutputs::find(const Session& session, ProgramId program) {
  EvalOutputs outputs;
  GPUC_RETURN_IF_ERROR(findAll(session, program,
                               {{"loss_sum", &outputs.loss_sum},
                                {"count", &outputs.count},
                                {"correct", &outputs.correct},
                                {"correct_count", &outputs.correct_count}}));
  return outputs;
}

}  // namespace gpuc
