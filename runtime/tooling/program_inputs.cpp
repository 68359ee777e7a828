#include "runtime/tooling/program_inputs.h"

#include <cinttypes>
#include <cstring>
#include <map>
#include <optional>

#include "runtime/base/integer_range.h"
#include "runtime/data/formats.h"
#include "runtime/state/npy.h"

namespace gpuc {
namespace {

Status checkValues(const InputInfo& input, const std::byte* data, const std::string& path) {
  if (input.range < 0 || isFloat(input.spec.type)) return okStatus();
  const int64_t outside =
      firstOutside(data, input.spec.type, input.spec.elementCount(), input.range, input.ignored);
  if (outside < 0) return okStatus();
  return errorf("%s: element %" PRId64 " is %" PRId64 ", input '%s' takes 0 to %" PRId64, path.c_str(),
                outside, integerAt(data, input.spec.type, outside), input.spec.name.c_str(), input.range - 1);
}

Status readInput(const InputInfo& input, const std::string& path, std::byte* data) {
  GPUC_ASSIGN_OR_RETURN(NpyArray array, readNpy(path));
  if (array.spec.type != input.spec.type || array.spec.shape != input.spec.shape)
    return errorf("%s holds %s, input '%s' is %s%s", path.c_str(), array.spec.str().c_str(),
                  input.spec.name.c_str(), input.spec.str().c_str(),
                  array.spec.shape == input.spec.shape ? npyCure(input.spec.type).c_str() : "");
  std::memcpy(data, array.data.data(), array.data.size());
  return checkValues(input, data, path);
}

void makeUp(const InputInfo& input, size_t field, uint64_t seed, std::byte* data) {
  // The whole input is one sample: it may have no batch.
  InputSpec sample{.tensor = input.spec, .range = input.range < 0 ? 0 : input.range};
  sample.tensor.shape.insert(sample.tensor.shape.begin(), 1);
  fillSyntheticSample(sample, field, seed, 0, data);
}

std::string namesOf(const ProgramInfo& program) {
  std::string names;
  for (const InputInfo& input : program.inputs) names += (names.empty() ? "" : ", ") + input.spec.name;
  return names.empty() ? "none" : names;
}

/// NAME and FILE of NAME=FILE; none if either is missing.
std::optional<std::pair<std::string, std::string>> splitAtEquals(const std::string& text) {
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) return std::nullopt;
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

Result<std::map<std::string, std::string>> splitFiles(const ProgramInfo& program,
                                                      const std::vector<std::string>& files) {
  std::map<std::string, std::string> paths;
  for (const std::string& file : files) {
    auto parts = splitAtEquals(file);
    if (!parts) return checkInputFlags(files);
    const std::string& name = parts->first;
    bool known = false;
    for (const InputInfo& input : program.inputs) known |= input.spec.name == name;
    if (!known)
      return Status::error("entry '" + program.name + "' has no input '" + name +
                           "', it has: " + namesOf(program));
    if (!paths.insert(*parts).second) return Status::error("input '" + name + "' is given twice");
  }
  return paths;
}

}  // namespace

Status checkInputFlags(const std::vector<std::string>& files) {
  for (const std::string& file : files)
    if (!splitAtEquals(file)) return Status::error("--input=" + file + ": expected NAME=FILE.npy");
  return okStatus();
}

std::vector<std::string> inputPaths(const std::vector<std::string>& files) {
  std::vector<std::string> paths;
  for (const std::string& file : files)
    if (auto parts = splitAtEquals(file)) paths.push_back(parts->second);
  return paths;
}

std::byte* ProgramInputs::addRoom(const TensorSpec& spec) {
  const size_t bytes = static_cast<size_t>(spec.sizeBytes());
  return data_.emplace_back((bytes + sizeof(AlignedBlock) - 1) / sizeof(AlignedBlock)).data()->bytes;
}

Result<ProgramInputs> ProgramInputs::gather(const ProgramInfo& program, const std::vector<std::string>& files,
                                            uint64_t seed) {
  GPUC_ASSIGN_OR_RETURN(auto paths, splitFiles(program, files));
  ProgramInputs inputs;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const InputInfo& input = program.inputs[i];
    std::byte* data = inputs.addRoom(input.spec);
    if (auto path = paths.find(input.spec.name); path != paths.end())
      GPUC_RETURN_IF_ERROR(readInput(input, path->second, data));
    else
      makeUp(input, i, seed, data);
    inputs.views_.emplace_back(data, input.spec);
  }
  return inputs;
}

}  // namespace gpuc
