// gpuc-import-onnx: an ONNX model as .mlir, and its weights as safetensors beside it.
#include <cstdio>
#include <filesystem>
#include <set>

#include "frontend/onnx/Onnx.h"
#include "frontend/onnx/reader/Reader.h"
#include "runtime/base/file.h"
#include "runtime/base/flags.h"
#include "runtime/base/output_files.h"
#include "runtime/base/parse.h"
#include "runtime/base/quote.h"
#include "runtime/base/text_table.h"
#include "runtime/base/tool_main.h"
#include "runtime/base/warn.h"
#include "runtime/state/safetensors.h"
#include "tools/llvm_errors.h"

namespace {

/// NAME=N of each --dim.
gpuc::Status parseDims(const std::vector<std::string>& texts, std::map<std::string, int64_t>& dims) {
  for (const std::string& text : texts) {
    size_t equals = text.rfind('=');
    gpuc::Result<int64_t> extent = gpuc::parseInt64(
        equals == std::string::npos ? std::string_view() : std::string_view(text).substr(equals + 1));
    if (equals == 0 || !extent.ok() || *extent < 1)
      return gpuc::Status::error("--dim: '" + text + "' is not NAME=N with N at least 1");
    if (!dims.emplace(text.substr(0, equals), *extent).second)
      return gpuc::Status::error("--dim: '" + text.substr(0, equals) + "' is given twice");
  }
  return gpuc::okStatus();
}

/// A dimension that the model does not have is a misspelt one.
gpuc::Status checkDims(const gpuc::onnx::Model& model, const std::map<std::string, int64_t>& dims) {
  std::set<std::string> known;
  std::string list;
  for (const gpuc::onnx::ValueInfo& input : model.graph.inputs)
    for (const gpuc::onnx::Extent& extent : input.shape.value_or(std::vector<gpuc::onnx::Extent>()))
      if (!extent.number && !extent.name.empty() && known.insert(extent.name).second)
        list += (list.empty() ? "'" : ", '") + extent.name + "'";
  for (const auto& [name, extent] : dims) {
    if (known.contains(name)) continue;
    std::string similar = gpuc::similarName(name, {known.begin(), known.end()});
    return gpuc::Status::error("--dim: the model has no open dimension '" + name + "'" +
                               (similar.empty() ? "" : "; did you mean '" + similar + "'?") +
                               (list.empty() ? ": all its extents are numbers" : "; it has " + list));
  }
  return gpuc::okStatus();
}

/// Lists the variables by what becomes of them in training, and their sums. What was meant to be frozen, or
/// trained, and is not, is seen here or never.
void listVariables(const std::vector<gpuc::onnx::ImportedVariable>& variables) {
  using Role = gpuc::onnx::ImportedVariable::Role;
  constexpr std::pair<Role, const char*> kRoles[] = {
      {Role::trained, "trained"}, {Role::statistic, "statistic"}, {Role::frozen, "frozen"}};
  auto rows = [&](const gpuc::AddRow& add) {
    for (auto [role, name] : kRoles)
      for (const gpuc::onnx::ImportedVariable& variable : variables)
        if (variable.role == role)
          add({name, gpuc::printable(variable.spec.name), variable.spec.str(),
               std::to_string(variable.spec.elementCount())});
  };
  std::string text = "variables\n";
  gpuc::writeTable(rows, [&](std::string_view line) { text += line; }, /*numbers=*/{3});
  const char* before = "in all ";
  for (auto [role, name] : kRoles) {
    int64_t count = 0, elements = 0;
    for (const gpuc::onnx::ImportedVariable& variable : variables) {
      count += variable.role == role;
      elements += variable.role == role ? variable.spec.elementCount() : 0;
    }
    if (count == 0 && role != Role::trained) continue;
    text += std::exchange(before, ", ") + std::to_string(count) + " " + name + " (" +
            std::to_string(elements) + (elements == 1 ? " number)" : " numbers)");
  }
  std::fputs((text + "\n").c_str(), stderr);
}

std::string weightsPath(const std::string& output) {
  return std::filesystem::path(output).replace_extension(".safetensors").string();
}

/// The module may not take the place of the model that it comes from, nor of its own weights.
gpuc::Status checkOutput(const std::string& input, const std::string& output) {
  if (output == "-") return gpuc::okStatus();
  std::error_code none;
  if (std::filesystem::equivalent(input, output, none) || output == weightsPath(output))
    return gpuc::Status::error("--output: '" + output + "' is where " +
                               (output == weightsPath(output) ? "the weights go" : "the model lies") +
                               "; give it a name that ends in .mlir");
  return gpuc::okStatus();
}

/// In the metadata of weights that an import wrote, which another may replace.
constexpr const char *kOriginKey = "origin", *kOrigin = "gpuc-import-onnx";

/// Weights of the same name are often there already, from where the model comes: they are not to be lost.
gpuc::Status checkWeights(const std::string& weights) {
  std::error_code none;
  if (!std::filesystem::exists(weights, none)) return gpuc::okStatus();
  gpuc::Result<gpuc::SafetensorsFile> file = gpuc::SafetensorsFile::open(weights);
  if (file.ok())
    if (auto origin = file->metadata().find(kOriginKey);
        origin != file->metadata().end() && origin->second == kOrigin)
      return gpuc::okStatus();
  return gpuc::Status::error("cannot write " + weights +
                             ": it is there already, and from no import; give --output another name");
}

/// Of what is written against what was read, files of external data included.
gpuc::Status checkFiles(const std::string& input, const gpuc::onnx::Model& model, const std::string& output,
                        bool hasWeights) {
  std::vector<std::string> inputs = model.externalFiles;
  inputs.push_back(input);
  bool writesWeights = hasWeights && output != "-";
  std::string outputs[] = {output, writesWeights ? weightsPath(output) : ""};
  GPUC_RETURN_IF_ERROR(gpuc::checkOutputFiles(outputs, inputs));
  return writesWeights ? checkWeights(weightsPath(output)) : gpuc::okStatus();
}

/// Weights first: a module is never there without them, nor they without it.
gpuc::Status write(const gpuc::onnx::ImportedModel& model, const std::string& output) {
  if (output == "-" || model.weights.empty()) return gpuc::writeFileAtomically(output, model.text);
  std::string weights = weightsPath(output);
  std::vector<gpuc::TensorView> tensors;
  for (const gpuc::onnx::HostTensorPtr& weight : model.weights)
    tensors.push_back({weight->spec, weight->bytes->data()});
  GPUC_RETURN_IF_ERROR(gpuc::writeSafetensors(weights, std::move(tensors), {{kOriginKey, kOrigin}}));
  gpuc::Status written = gpuc::writeFileAtomically(output, model.text);
  std::error_code none;
  if (!written.ok())
    std::filesystem::remove(weights, none);
  else
    std::fprintf(stderr, "weights (%zu) in %s: pass it to gpuc-run or gpuc-train as --variables\n",
                 model.weights.size(), gpuc::printable(weights).c_str());
  return written;
}

}  // namespace

static int tool(int argc, char** argv) {
  gpuc::endInOneLineOnLlvmErrors();
  std::string input;
  std::optional<std::string> output;
  std::vector<std::string> dimTexts;
  gpuc::onnx::ImportOptions options;
  gpuc::CommandLine cli("gpuc-import-onnx", "Turns an ONNX model into .mlir, its weights into variables.");
  cli.addPositional("FILE", &input, "the .onnx file; - is stdin");
  cli.addString(
         "output", &output, "FILE",
         "where to write the .mlir, and weights beside it as .safetensors; - is stdout, without weights "
         "(default: FILE with .mlir)")
      .shortName('o');
  cli.addStrings("dim", &dimTexts, "NAME=N", "the extent of a named dimension; may be repeated");
  cli.addStrings("freeze", &options.freeze, "NAME",
                 "a weight that is not trained, * standing for any text; may be repeated");
  cli.addStrings(
      "train", &options.train, "NAME",
      "a weight that is trained although it looks like a buffer, * standing for any text; may be repeated");
  cli.addBool("accept-folded", &options.acceptFolded,
              "trains a file whose exporter folded or left out parameters, as far as it goes");
  cli.addString("loss", &options.loss, "SPEC",
                "adds @loss and a recipe: cross_entropy (with @accuracy), nll, mse, l1, huber, smooth_l1 or "
                "bce_with_logits over the first output, with PyTorch's arguments as in "
                "cross_entropy:ignore_index=-100; or output:NAME, a loss that the model computes itself");
  if (std::optional<int> exitCode = cli.parse(argc, argv)) return *exitCode;

  if (gpuc::Status parsed = parseDims(dimTexts, options.dims); !parsed.ok())
    return cli.usageError(parsed.message());
  if (!options.loss.empty())
    if (gpuc::Status known = gpuc::onnx::checkLoss(options.loss); !known.ok())
      return cli.usageError("--loss: " + known.message());
  if (!output) output = input == "-" ? "-" : std::filesystem::path(input).replace_extension(".mlir").string();
  if (gpuc::Status apart = checkOutput(input, *output); !apart.ok()) return gpuc::exitStatus(apart);
  gpuc::Result<std::string> bytes = gpuc::readFile(input);
  if (!bytes.ok()) return gpuc::exitStatus(bytes.status());
  gpuc::Result<gpuc::onnx::Model> model = gpuc::onnx::parseModel(*bytes, input);
  if (!model.ok()) return gpuc::exitStatus(model.status());
  bytes->clear();
  bytes->shrink_to_fit();
  if (gpuc::Status known = checkDims(*model, options.dims); !known.ok()) return gpuc::exitStatus(known);

  gpuc::onnx::ImportedModel imported = gpuc::onnx::importModel(*model, options);
  for (const gpuc::onnx::Problem& problem : imported.problems)
    gpuc::exitStatus(gpuc::Status::error(input + ": " + problem.text));
  for (const std::string& warning : imported.warnings) gpuc::warn(input + ": " + warning);
  if (!imported.problems.empty()) return 1;
  if (gpuc::Status apart = checkFiles(input, *model, *output, !imported.weights.empty()); !apart.ok())
    return gpuc::exitStatus(apart);
  if (!imported.variables.empty()) listVariables(imported.variables);
  for (const std::string& note : imported.notes) std::fprintf(stderr, "%s\n", note.c_str());
  return gpuc::exitStatus(write(imported, *output));
}

int main(int argc, char** argv) { return gpuc::runTool(argc, argv, tool); }
