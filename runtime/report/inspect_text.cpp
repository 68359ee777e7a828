#include <cinttypes>

#include "runtime/base/integer_range.h"
#include "runtime/base/text_table.h"
#include "runtime/plan/describe.h"
#include "runtime/report/command_text.h"
#include "runtime/report/inspect.h"
#include "runtime/report/residuals.h"

namespace gpuc {
namespace {

std::string hex(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%" PRIx64, value);
  return text;
}

uint64_t countCommands(const Commands* commands) {
  uint64_t count = 0;
  for (const fb::Command* command : each(commands)) {
    const std::optional<CommandLoop> loop = loopOf(*command);
    count += loop ? countCommands(loop->commands) : 1;
  }
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

/// "in [0, 10), or -100, which is ignored"
std::string rangeText(const InputInfo& input) {
  if (input.range < 0) return "";
  std::string text = "in [0, " + std::to_string(input.range) + ")";
  return hasIgnored(input.range, input.ignored)
             ? text + ", or " + std::to_string(input.ignored) + ", which is ignored"
             : text;
}

void addEntries(const Plan& plan, const AddRow& add) {
  for (uint32_t i = 0; i < plan.info().programs.size(); ++i) {
    const ProgramInfo& program = plan.info().programs[i];
    const fb::Program& source = *plan.root().programs()->Get(i);
    uint64_t commands = 0;
    for (const fb::Stream* stream : each(source.streams())) commands += countCommands(stream->commands());
    add({program.name, std::to_string(commands) + " commands",
         std::to_string(countOf(source.streams())) + " streams",
         "peak " + std::to_string(program.peak_bytes)});
    for (const InputInfo& input : program.inputs)
      add({"  in", input.spec.name, input.spec.str(), rangeText(input)});
    for (const TensorSpec& output : program.outputs) add({"  out", output.name, output.str()});
  }
}

void addVariables(const PlanInfo& info, const AddRow& add) {
  for (const VariableInfo& variable : info.variables)
    add({variable.spec.name, variable.spec.str(), nameOf(variable.kind),
         std::to_string(variable.spec.sizeBytes()), hex(variable.offset), variable.initializer,
         variable.owner < 0 ? "" : "on rank " + std::to_string(variable.owner)});
}

void addActivations(const fb::Plan& plan, const std::vector<Residual>& residuals, const AddRow& add) {
  for (uint32_t i = 0; i < countOf(plan.buffers()); ++i) {
    const fb::Buffer& buffer = *plan.buffers()->Get(i);
    if (buffer.category() != fb::Category::activation) continue;
    const bool is_residual = residuals[i] != Residual::none;
    add({std::string(textOf(buffer.name())), describeTensor(buffer, "").str(), std::to_string(buffer.size()),
         hex(buffer.offset()), is_residual ? nameOf(residuals[i]) : "-",
         std::string(textOf(buffer.location())), std::string(textOf(buffer.source()))});
  }
}

/// "2 kept, 96 bytes, and 1 recomputed, 64 bytes": of those that the backward pass reads; "none", too, where
/// a plan does not say which commands are of it.
std::string residualsText(const fb::Plan& plan, const std::vector<Residual>& residuals) {
  auto sumOf = [&](Residual residual) {
    uint64_t count = 0, bytes = 0;
    for (uint32_t i = 0; i < residuals.size(); ++i)
      if (residuals[i] == residual) ++count, bytes += plan.buffers()->Get(i)->size();
    return std::to_string(count) + " " + nameOf(residual) + ", " + std::to_string(bytes) + " bytes";
  };
  const bool has_any = std::any_of(residuals.begin(), residuals.end(),
                                   [](Residual residual) { return residual != Residual::none; });
  return has_any ? sumOf(Residual::kept) + ", and " + sumOf(Residual::recomputed) : "none";
}

}  // namespace

void inspectText(const Plan& plan, bool variables, bool activations, const TextSink& sink) {
  sink(headline(plan.info()));
  if (plan.root().no_graphs()) sink("launches commands one by one, not as CUDA graphs\n");
  sink("\nentries\n");
  writeTable([&](const AddRow& add) { addEntries(plan, add); }, sink);
  if (variables) {
    sink("\nvariables: name, type, kind, bytes, offset, initializer\n");
    writeTable([&](const AddRow& add) { addVariables(plan.info(), add); }, sink);
  }
  if (activations) {
    const std::vector<Residual> residuals = residualsOf(plan.root());
    sink(
        "\nactivations: name, type, bytes, offset, kept or recomputed for the backward pass, layer, "
        "source\n");
    writeTable([&](const AddRow& add) { addActivations(plan.root(), residuals, add); }, sink);
    sink("for the backward pass: " + residualsText(plan.root(), residuals) + "\n");
  }
}

std::string inspectText(const Plan& plan, bool variables, bool activations) {
  std::string text;
  inspectText(plan, variables, activations, [&](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace gpuc
