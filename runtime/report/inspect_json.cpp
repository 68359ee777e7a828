#include <functional>
#include <nlohmann/json.hpp>

#include "runtime/base/integer_range.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/operands.h"
#include "runtime/report/command_text.h"
#include "runtime/report/inspect.h"
#include "runtime/report/residuals.h"

namespace gpuc {
namespace {

using Json = nlohmann::ordered_json;

Json specJson(const TensorSpec& spec) {
  return {{"name", spec.name}, {"shape", spec.shape}, {"dtype", nameOf(spec.type)}};
}

Json variableJson(const VariableInfo& variable) {
  Json entry = specJson(variable.spec);
  entry["kind"] = nameOf(variable.kind);
  entry["bytes"] = variable.spec.sizeBytes();
  entry["offset"] = variable.offset;
  entry["initializer"] = variable.initializer;
  entry["trainable"] = variable.trainable;
  if (variable.owner >= 0) entry["owner"] = variable.owner;  // the rank that has it there
  return entry;
}

Json bufferJson(const fb::Plan& plan, const fb::Buffer& buffer, Residual residual) {
  Json entry = specJson(describeTensor(buffer, textOf(buffer.name())));
  entry["category"] = fb::EnumNameCategory(buffer.category());
  entry["bytes"] = buffer.size();
  entry["offset"] = buffer.offset();
  entry["slots"] = buffer.slot_stride() ? plan.input_slots() : 1;
  entry["location"] = std::string(textOf(buffer.location()));
  entry["source"] = std::string(textOf(buffer.source()));
  entry["residual"] = residual == Residual::none ? Json() : Json(nameOf(residual));
  return entry;
}

Json inputJson(const InputInfo& input) {
  Json entry = specJson(input.spec);
  entry["range"] = input.range < 0 ? Json() : Json(input.range);
  if (hasIgnored(input.range, input.ignored)) entry["ignored"] = input.ignored;
  return entry;
}

Json operandsJson(const fb::Plan& plan, const std::vector<CommandOperand>& operands,
                  bool (*is_listed)(Role)) {
  Json list = Json::array();
  for (const auto& [operand, use] : operands) {
    if (!operand || !is_listed(use.role)) continue;
    const fb::Buffer& buffer = *plan.buffers()->Get(operand->buffer());
    Json entry = {{"buffer", std::string(textOf(buffer.name()))},
                  {"index", operand->buffer()},  // names may repeat, in "buffers" too
                  {"offset", buffer.offset() + operand->offset()},
                  {"bytes", operand->size()}};
    if (countOf(operand->strides()) > 0)
      entry["strides"] = std::vector<int64_t>(operand->strides()->begin(), operand->strides()->end());
    list.push_back(std::move(entry));
  }
  return list;
}

/// Objects and lists, a line for each member that is neither.
class Page {
 public:
  explicit Page(const TextSink& sink) : sink_(sink) {}

  void begin(const char* bracket) { open(bracket); }
  void begin(const std::string& key, const char* bracket) { open(text(key) + ": " + bracket); }
  void end(const char* bracket) {
    --depth_;
    if (!is_first_) sink_("\n" + std::string(depth_, ' '));
    sink_(bracket);
    is_first_ = false;
  }
  /// A list with a member for each of `values`.
  template <typename List, typename JsonOf>
  void list(const char* key, const List& values, JsonOf json_of) {
    begin(key, "[");
    for (const auto& value : values) member(json_of(value));
    end("]");
  }
  void member(const Json& value) { line(text(value)); }
  void member(const char* key, const Json& value) { line(text(key) + ": " + text(value)); }

 private:
  static std::string text(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  void open(const std::string& text) {
    line(text);
    ++depth_;
    is_first_ = true;
  }
  void line(const std::string& text) {
    if (depth_ > 0) sink_((is_first_ ? "\n" : ",\n") + std::string(depth_, ' '));
    sink_(text);
    is_first_ = false;
  }

  const TextSink& sink_;
  size_t depth_ = 0;
  bool is_first_ = true;  // of the object or list
};

Json checkJson(const CheckInfo& check) {
  return {
      {"op", check.op}, {"layer", check.layer}, {"location", check.location}, {"backward", check.backward}};
}

void writeOutput(const TensorSpec& output, uint32_t buffer, const ChecksInfo* checks, Page& page) {
  Json spec = specJson(output);
  spec["index"] = buffer;
  if (!checks) return page.member(spec);
  page.begin("{");
  for (const auto& [key, value] : spec.items()) page.member(key.c_str(), value);
  page.list("checks", checks->checks, checkJson);
  page.end("}");
}

void writeEntry(const ProgramInfo& program, const fb::Program& root, Page& page) {
  page.begin(program.name, "{");
  page.list("inputs", program.inputs, inputJson);
  page.begin("outputs", "[");
  size_t next = 0;  // of those that have checks, which are in order
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const bool has_checks = next < program.checks.size() && program.checks[next].output == i;
    writeOutput(program.outputs[i], root.outputs()->Get(i)->buffer(),
                has_checks ? &program.checks[next++] : nullptr, page);
  }
  page.end("]");
  page.member("peak_bytes", program.peak_bytes);
  page.end("}");
}

/// The commands of a list and of the loops in it, in order; a loop comes before what it repeats.
void writeCommands(const fb::Plan& plan, const fb::Program& program, const fb::Stream& stream,
                   const Commands* commands, int depth, Page& page) {
  for (const fb::Command* command : each(commands)) {
    const std::vector<CommandOperand> operands = operandsOf(*command);
    page.member({{"entry", std::string(textOf(program.name()))},
                 {"stream", std::string(textOf(stream.name()))},
                 {"kind", kindOf(*command)},
                 {"name", nameOf(plan, program, *command)},
                 {"depth", depth},
                 {"reads", operandsJson(plan, operands, isRead)},
                 {"writes", operandsJson(plan, operands, isWritten)},
                 {"location", std::string(textOf(command->location()))},
                 {"backward", command->backward()},
                 {"recomputed", command->recomputed()}});
    if (const std::optional<CommandLoop> loop = loopOf(*command))
      writeCommands(plan, program, stream, loop->commands, depth + 1, page);
  }
}

void writeFacts(const PlanInfo& info, Page& page) {
  page.member("name", info.name);
  page.member("target", std::string(nameOf(info.target)) + ":" + info.target_name);
  page.list("features", info.target_features, std::identity());
  page.member("compiler_version", info.compiler_version);
  page.list("libraries", info.libraries, [](const LibraryInfo& library) -> Json {
    return {{"name", library.name}, {"version", library.version}};
  });
  page.member("seed", info.seed);
  page.member("batch", info.batch);
  page.member("global_batch", info.global_batch);
  page.member("input_slots", info.input_slots);
  page.member("arena_bytes", info.arena_bytes);
}

}  // namespace

void inspectJson(const Plan& plan, const TextSink& sink) {
  const fb::Plan& root = plan.root();
  Page page(sink);
  page.begin("{");
  writeFacts(plan.info(), page);
  page.list("variables", plan.info().variables, variableJson);
  page.begin("entries", "{");
  for (uint32_t i = 0; i < plan.info().programs.size(); ++i)
    writeEntry(plan.info().programs[i], *root.programs()->Get(i), page);
  page.end("}");
  const std::vector<Residual> residuals = residualsOf(root);
  page.begin("buffers", "[");
  for (uint32_t i = 0; i < residuals.size(); ++i)
    page.member(bufferJson(root, *root.buffers()->Get(i), residuals[i]));
  page.end("]");
  page.begin("commands", "[");
  for (const fb::Program* program : each(root.programs()))
    for (const fb::Stream* stream : each(program->streams()))
      writeCommands(root, *program, *stream, stream->commands(), 0, page);
  page.end("]");
  page.end("}");
  sink("\n");
}

std::string inspectJson(const Plan& plan) {
  std::string text;
  inspectJson(plan, [&](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace gpuc
