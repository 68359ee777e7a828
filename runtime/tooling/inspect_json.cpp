#include <nlohmann/json.hpp>

#include "runtime/plan/describe.h"
#include "runtime/plan/operands.h"
#include "runtime/tooling/command_text.h"
#include "runtime/tooling/inspect.h"

namespace gpuc {
namespace {

using Json = nlohmann::ordered_json;

Json specJson(const TensorSpec& spec) {
  return {{"name", spec.name}, {"shape", spec.shape}, {"dtype", nameOf(spec.type)}};
}

Json variablesJson(const PlanInfo& info) {
  Json list = Json::array();
  for (const VariableInfo& variable : info.variables) {
    Json entry = specJson(variable.spec);
    entry["kind"] = nameOf(variable.kind);
    entry["bytes"] = variable.spec.sizeBytes();
    entry["offset"] = variable.offset;
    entry["initializer"] = variable.initializer;
    entry["trainable"] = variable.trainable;
    list.push_back(std::move(entry));
  }
  return list;
}

Json checksJson(const ChecksInfo& info) {
  Json list = Json::array();
  for (const CheckInfo& check : info.checks)
    list.push_back({{"op", check.op},
                    {"layer", check.layer},
                    {"location", check.location},
                    {"backward", check.backward}});
  return list;
}

Json entriesJson(const PlanInfo& info) {
  Json entries = Json::object();
  for (const ProgramInfo& program : info.programs) {
    Json inputs = Json::array(), outputs = Json::array();
    for (const InputInfo& input : program.inputs) {
      Json entry = specJson(input.spec);
      entry["range"] = input.range < 0 ? Json() : Json(input.range);
      inputs.push_back(std::move(entry));
    }
    for (const TensorSpec& output : program.outputs) outputs.push_back(specJson(output));
    for (const ChecksInfo& info : program.checks) outputs[info.output]["checks"] = checksJson(info);
    entries[program.name] = {{"inputs", inputs}, {"outputs", outputs}, {"peak_bytes", program.peak_bytes}};
  }
  return entries;
}

Json buffersJson(const fb::Plan& plan) {
  Json list = Json::array();
  for (const fb::Buffer* buffer : each(plan.buffers())) {
    Json entry = specJson(describeTensor(*buffer, textOf(buffer->name())));
    entry["category"] = fb::EnumNameCategory(buffer->category());
    entry["bytes"] = buffer->size();
    entry["offset"] = buffer->offset();
    entry["slots"] = buffer->slot_stride() ? plan.input_slots() : 1;
    entry["location"] = std::string(textOf(buffer->location()));
    list.push_back(std::move(entry));
  }
  return list;
}

Json operandsJson(const fb::Plan& plan, const std::vector<const fb::Operand*>& operands) {
  Json list = Json::array();
  for (const fb::Operand* operand : operands) {
    const fb::Buffer& buffer = *plan.buffers()->Get(operand->buffer());
    Json entry = {{"buffer", std::string(textOf(buffer.name()))},
                  {"offset", buffer.offset() + operand->offset()},
                  {"bytes", operand->size()}};
    if (countOf(operand->strides()) > 0)
      entry["strides"] = std::vector<int64_t>(operand->strides()->begin(), operand->strides()->end());
    list.push_back(std::move(entry));
  }
  return list;
}

/// The commands of a list and of the repeats in it, in order; a repeat comes before what it repeats.
void appendCommands(const fb::Plan& plan, const fb::Program& program, const fb::Stream& stream,
                    const flatbuffers::Vector<flatbuffers::Offset<fb::Command>>* commands, int depth,
                    Json& list) {
  for (const fb::Command* command : each(commands)) {
    CommandOperands operands = operandsOf(*command);
    list.push_back({{"entry", std::string(textOf(program.name()))},
                    {"stream", std::string(textOf(stream.name()))},
                    {"kind", kindOf(*command)},
                    {"name", nameOf(plan, program, *command)},
                    {"depth", depth},
                    {"reads", operandsJson(plan, operands.reads)},
                    {"writes", operandsJson(plan, operands.writes)},
                    {"location", std::string(textOf(command->location()))}});
    if (const fb::Repeat* repeat = command->work_as_Repeat())
      appendCommands(plan, program, stream, repeat->commands(), depth + 1, list);
  }
}

Json commandsJson(const fb::Plan& plan) {
  Json list = Json::array();
  for (const fb::Program* program : each(plan.programs()))
    for (const fb::Stream* stream : each(program->streams()))
      appendCommands(plan, *program, *stream, stream->commands(), 0, list);
  return list;
}

}  // namespace

std::string inspectJson(const Plan& plan) {
  const PlanInfo& info = plan.info();
  Json libraries = Json::array();
  for (const LibraryInfo& library : info.libraries)
    libraries.push_back({{"name", library.name}, {"version", library.version}});
  Json page = {{"name", info.name},
               {"target", std::string(nameOf(info.target)) + ":" + info.target_name},
               {"features", info.target_features},
               {"compiler_version", info.compiler_version},
               {"libraries", libraries},
               {"seed", info.seed},
               {"batch", info.batch},
               {"global_batch", info.global_batch},
               {"input_slots", info.input_slots},
               {"arena_bytes", info.arena_bytes},
               {"variables", variablesJson(info)},
               {"entries", entriesJson(info)},
               {"buffers", buffersJson(plan.root())},
               {"commands", commandsJson(plan.root())}};
  return page.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gpuc
