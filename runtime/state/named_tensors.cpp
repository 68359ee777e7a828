#include "runtime/state/named_tensors.h"

namespace gpuc {

NamedTensors::NamedTensors(const SafetensorsFile& file) { add(file); }

NamedTensors::NamedTensors(std::span<const SafetensorsFile> files) {
  for (const SafetensorsFile& file : files) add(file);
}

void NamedTensors::add(const SafetensorsFile& file) {
  name_ += (name_.empty() ? "" : " and ") + file.name();
  for (const SafetensorsFile::Entry& entry : file.tensors()) entries_[entry.spec.name] = {&file, &entry};
  ++files_;
}

const SafetensorsFile::Entry* NamedTensors::find(std::string_view name) const {
  auto entry = entries_.find(name);
  return entry == entries_.end() ? nullptr : entry->second.entry;
}

const SafetensorsFile* NamedTensors::fileOf(std::string_view name) const {
  auto entry = entries_.find(name);
  return entry == entries_.end() ? nullptr : entry->second.file;
}

std::string NamedTensors::whereIs(std::string_view name) const {
  auto entry = entries_.find(name);
  return entry == entries_.end() || files_ == 1 ? "" : " in " + entry->second.file->name();
}

std::vector<const SafetensorsFile::Entry*> NamedTensors::all() const {
  std::vector<const SafetensorsFile::Entry*> all;
  for (const auto& [name, place] : entries_) all.push_back(place.entry);
  return all;
}

Result<std::vector<SafetensorsFile>> openSafetensors(std::span<const std::string> paths) {
  std::vector<SafetensorsFile> files;
  for (const std::string& path : paths) {
    GPUC_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(path));
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace gpuc
