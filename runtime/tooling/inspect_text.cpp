#include <algorithm>
#include <cinttypes>

#include "runtime/plan/describe.h"
#include "runtime/tooling/command_text.h"
#include "runtime/tooling/inspect.h"

namespace gpuc {
namespace {

/// Columns that are as wide as their widest cell.
class Table {
 public:
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  std::string str() const {
    std::vector<size_t> widths;
    for (const auto& row : rows_)
      for (size_t c = 0; c < row.size(); ++c) {
        if (widths.size() <= c) widths.push_back(0);
        widths[c] = std::max(widths[c], row[c].size());
      }
    std::string text;
    for (const auto& row : rows_) {
      std::string line;
      for (size_t c = 0; c < row.size(); ++c)
        line += row[c] + std::string(widths[c] - row[c].size() + 2, ' ');
      text += "  " + line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return text;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string hex(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%" PRIx64, value);
  return text;
}

uint64_t countCommands(const flatbuffers::Vector<flatbuffers::Offset<fb::Command>>* commands) {
  uint64_t count = 0;
  for (const fb::Command* command : each(commands))
    count += command->work_as_Repeat() ? countCommands(command->work_as_Repeat()->commands()) : 1;
  return count;
}

std::string headline(const PlanInfo& info) {
  std::string text = info.name + " for " + nameOf(info.target) + " (" + info.target_name + "), batch " +
                     std::to_string(info.batch);
  if (info.global_batch != info.batch)
    text += ", " + std::to_string(info.global_batch) + " rows to an update";
  text += "\n";
  text += "arena " + std::to_string(info.arena_bytes) + " bytes, " + std::to_string(info.input_slots) +
          " input slots, seed " + std::to_string(info.seed) + ", gpuc " + info.compiler_version + "\n";
  for (const LibraryInfo& library : info.libraries)
    text += "calls " + library.name + " " + library.version + "\n";
  return text;
}

std::string entriesText(const Plan& plan) {
  std::string text = "\nentries\n";
  Table table;
  for (uint32_t i = 0; i < plan.info().programs.size(); ++i) {
    const ProgramInfo& program = plan.info().programs[i];
    const fb::Program& source = *plan.root().programs()->Get(i);
    uint64_t commands = 0;
    for (const fb::Stream* stream : each(source.streams())) commands += countCommands(stream->commands());
    table.add({program.name, std::to_string(commands) + " commands",
               std::to_string(countOf(source.streams())) + " streams",
               "peak " + std::to_string(program.peak_bytes)});
    for (const InputInfo& input : program.inputs)
      table.add({"  in", input.spec.name, input.spec.str(),
                 input.range < 0 ? "" : "in [0, " + std::to_string(input.range) + ")"});
    for (const TensorSpec& output : program.outputs) table.add({"  out", output.name, output.str()});
  }
  return text + table.str();
}

std::string variablesText(const PlanInfo& info) {
  Table table;
  for (const VariableInfo& variable : info.variables)
    table.add({variable.spec.name, variable.spec.str(), nameOf(variable.kind),
               std::to_string(variable.spec.sizeBytes()), hex(variable.offset), variable.initializer});
  return "\nvariables: name, type, kind, bytes, offset, initializer\n" + table.str();
}

std::string activationsText(const fb::Plan& plan) {
  Table table;
  for (const fb::Buffer* buffer : each(plan.buffers()))
    if (buffer->category() == fb::Category::activation)
      table.add({std::string(textOf(buffer->name())), describeTensor(*buffer, "").str(),
                 std::to_string(buffer->size()), hex(buffer->offset()),
                 std::string(textOf(buffer->location()))});
  return "\nactivations: name, type, bytes, offset, layer\n" + table.str();
}

}  // namespace

std::string inspectText(const Plan& plan, bool variables, bool activations) {
  std::string text = headline(plan.info()) + entriesText(plan);
  if (variables) text += variablesText(plan.info());
  if (activations) text += activationsText(plan.root());
  return text;
}

}  // namespace gpuc
