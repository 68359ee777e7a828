#include "runtime/plan/describe.h"

#include "runtime/base/data_type.h"
#include "runtime/base/same_numbers.h"

namespace gpuc {
namespace {

static_assert(haveSameNumbers<fb::VariableKind, VariableKind>(
    fb::VariableKind::MAX, {{fb::VariableKind::parameter, VariableKind::parameter},
                            {fb::VariableKind::statistic, VariableKind::statistic},
                            {fb::VariableKind::optimizer, VariableKind::optimizer},
                            {fb::VariableKind::counter, VariableKind::counter}}));
static_assert(haveSameNumbers<fb::TargetKind, TargetKind>(fb::TargetKind::MAX,
                                                          {{fb::TargetKind::host, TargetKind::host},
                                                           {fb::TargetKind::cuda, TargetKind::cuda}}));
static_assert(haveSameNumbers<fb::DataType, DataType>(fb::DataType::MAX,
                                                      {{fb::DataType::f64, DataType::f64},
                                                       {fb::DataType::f32, DataType::f32},
                                                       {fb::DataType::f16, DataType::f16},
                                                       {fb::DataType::bf16, DataType::bf16},
                                                       {fb::DataType::i64, DataType::i64},
                                                       {fb::DataType::i32, DataType::i32},
                                                       {fb::DataType::i8, DataType::i8},
                                                       {fb::DataType::ui8, DataType::ui8},
                                                       {fb::DataType::i1, DataType::i1}}));

VariableInfo describeVariable(const fb::Plan& plan, const fb::Variable& variable) {
  const fb::Buffer& buffer = *plan.buffers()->Get(variable.buffer());
  TensorSpec spec = describeTensor(buffer, textOf(variable.name()));
  if (variable.is_share())
    spec.shape.assign(each(variable.whole_shape()).begin(), each(variable.whole_shape()).end());
  return {.spec = std::move(spec),
          .kind = static_cast<VariableKind>(variable.kind()),
          .offset = buffer.offset(),
          .initializer = std::string(textOf(variable.initializer())),
          .trainable = variable.trainable(),
          .is_share = variable.is_share()};
}

/// What a file holds as one may be another one on each rank.
void describeVariables(const fb::Plan& plan, const fb::Variable& variable, std::vector<VariableInfo>& list) {
  VariableInfo info = describeVariable(plan, variable);
  if (countOf(variable.owned_names()) == 0) return list.push_back(std::move(info));
  for (const flatbuffers::String* name : each(variable.owned_names())) {
    ++info.owner;
    info.spec.name = textOf(name);
    list.push_back(info);
  }
}

ChecksInfo describeChecks(size_t number, const fb::Output& output) {
  ChecksInfo info{.output = number, .checks = {}};
  info.checks.reserve(countOf(output.checks()));
  for (const fb::Check* check : each(output.checks()))
    info.checks.push_back({std::string(textOf(check->op())), std::string(textOf(check->layer())),
                           std::string(textOf(check->location())), check->backward()});
  return info;
}

ProgramInfo describeProgram(const fb::Plan& plan, const fb::Program& program) {
  ProgramInfo info{.name = std::string(textOf(program.name())), .inputs = {}, .outputs = {}, .checks = {}};
  info.peak_bytes = program.peak_bytes();
  info.inputs.reserve(countOf(program.inputs()));
  info.outputs.reserve(countOf(program.outputs()));
  for (const fb::Input* input : each(program.inputs()))
    if (input->role() == fb::InputRole::data)
      info.inputs.push_back({describeTensor(*plan.buffers()->Get(input->buffer()), textOf(input->name())),
                             input->range(), input->ignored()});
    else
      info.counts_rows = true;
  for (const fb::Output* output : each(program.outputs())) {
    if (countOf(output->checks()) > 0) info.checks.push_back(describeChecks(info.outputs.size(), *output));
    info.outputs.push_back(describeTensor(*plan.buffers()->Get(output->buffer()), textOf(output->name())));
    info.counts_once |= output->counts_once();
  }
  return info;
}

}  // namespace

const char* nameOf(TargetKind kind) { return kind == TargetKind::host ? "host" : "cuda"; }

const char* nameOf(VariableKind kind) {
  constexpr const char* kNames[] = {"parameter", "statistic", "optimizer", "counter"};
  return kNames[static_cast<size_t>(kind)];
}

TensorSpec describeTensor(const fb::Buffer& buffer, std::string_view name) {
  TensorSpec spec{.name = std::string(name), .type = static_cast<DataType>(buffer.type()), .shape = {}};
  spec.shape.assign(each(buffer.shape()).begin(), each(buffer.shape()).end());
  return spec;
}

PlanInfo describePlan(const fb::Plan& plan) {
  PlanInfo info;
  info.target_features.reserve(countOf(plan.target()->features()));
  info.libraries.reserve(countOf(plan.libraries()));
  info.variables.reserve(countOf(plan.variables()));
  info.programs.reserve(countOf(plan.programs()));
  info.name = textOf(plan.name());
  info.compiler_version = textOf(plan.compiler_version());
  info.target = static_cast<TargetKind>(plan.target()->kind());
  info.target_name = textOf(plan.target()->name());
  for (const flatbuffers::String* feature : each(plan.target()->features()))
    info.target_features.emplace_back(textOf(feature));
  for (const fb::Library* library : each(plan.libraries()))
    info.libraries.push_back({std::string(textOf(library->name())), std::string(textOf(library->version()))});
  info.seed = plan.seed();
  info.batch = static_cast<int64_t>(plan.batch());
  info.global_batch = static_cast<int64_t>(plan.global_batch());
  info.world_size = plan.world_size();
  info.training_digest = plan.training_digest();
  info.arena_bytes = plan.arena_bytes();
  info.input_slots = plan.input_slots();
  for (const fb::Variable* variable : each(plan.variables()))
    describeVariables(plan, *variable, info.variables);
  for (const fb::Program* program : each(plan.programs()))
    info.programs.push_back(describeProgram(plan, *program));
  return info;
}

}  // namespace gpuc
