#include "runtime/state/binding.h"

#include <set>

#include "runtime/base/name_list.h"

namespace gpuc {
namespace {

/// "; missing a, b and 3 more", or nothing.
void appendList(std::string& text, const char* title, const std::vector<std::string>& items) {
  if (items.empty()) return;
  text += (text.empty() ? "" : "; ") + std::string(title) + " " + listOf(items);
}

}  // namespace

Result<std::vector<const SafetensorsFile::Entry*>> bindByName(std::span<const TensorSpec> variables,
                                                              const NamedTensors& files) {
  std::vector<const SafetensorsFile::Entry*> entries;
  std::vector<std::string> missing, mismatching, surplus;
  std::set<std::string_view> known;
  for (const TensorSpec& variable : variables) {
    known.insert(variable.name);
    const SafetensorsFile::Entry* entry = files.find(variable.name);
    entries.push_back(entry);
    if (!entry)
      missing.push_back(variable.name + " (" + variable.str() + ")");
    else if (entry->spec.type != variable.type || entry->spec.shape != variable.shape)
      mismatching.push_back(variable.name + " (" + entry->spec.str() + ", the plan has " + variable.str() +
                            ")" + files.whereIs(variable.name));
  }
  for (const SafetensorsFile::Entry* entry : files.all())
    if (!known.contains(entry->spec.name))
      surplus.push_back(entry->spec.name + " (" + entry->spec.str() + ")" + files.whereIs(entry->spec.name));
  std::string text;
  appendList(text, "missing", missing);
  appendList(text, "of another shape or type", mismatching);
  appendList(text, "unknown to the plan", surplus);
  if (!text.empty()) return Status::error(files.name() + " does not fit the plan's variables: " + text);
  return entries;
}

}  // namespace gpuc
