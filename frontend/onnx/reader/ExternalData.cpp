//===- ExternalData.cpp - Tensors that a model keeps in other files ---------===//

#include "frontend/onnx/reader/ExternalData.h"

#include "runtime/base/flags.h"
#include "runtime/base/parse.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace gpuc::onnx {
namespace fs = std::filesystem;

namespace {

Result<int64_t> number(const ExternalKeys &keys, const char *key, int64_t otherwise) {
  auto entry = keys.find(key);
  if (entry == keys.end())
    return otherwise;
  Result<int64_t> value = parseInt64(entry->second);
  if (!value.ok() || *value < 0)
    return Status::error(std::string("external data: ") + key + " '" + entry->second +
                         "' is no number of bytes");
  return value;
}

/// Where the data lie, with all links followed; an error if that is not inside the model's folder.
Result<fs::path> locate(const std::string &file, const std::string &location) {
  if (file == "-")
    return Status::error("external data: a model from stdin has no folder; give it as a file");
  std::error_code error;
  fs::path folder = fs::weakly_canonical(fs::absolute(file).parent_path(), error);
  fs::path path = error ? fs::path() : fs::weakly_canonical(folder / location, error);
  if (error)
    return Status::error("external data '" + location + "': " + error.message());
  auto [end, inside] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  if (end != folder.end() || inside == path.end())
    return Status::error("external data '" + location + "' lie outside the model's folder");
  return path;
}

} // namespace

Status addExternalKey(ExternalKeys &keys, const std::string &key, const std::string &value) {
  static const std::vector<std::string> known = {"location", "offset", "length", "checksum"};
  if (!keys.emplace(key, value).second)
    return Status::error("external data: " + key + " is given twice, '" + keys[key] + "' and '" + value +
                         "'");
  const std::string similar = similarName(key, known);
  if (similar.empty() || similar == key)
    return okStatus();
  return Status::error("external data have no key '" + key + "'; did you mean '" + similar + "'?");
}

Result<std::string> readExternalData(const std::string &file, const ExternalKeys &keys, int64_t length) {
  auto location = keys.find("location");
  if (location == keys.end() || location->second.empty())
    return Status::error("external data without a location");
  if (location->second.find('\0') != std::string::npos)
    return Status::error("external data whose location holds a NUL, which no file's name does");
  GPUC_ASSIGN_OR_RETURN(int64_t offset, number(keys, "offset", 0));
  GPUC_ASSIGN_OR_RETURN(int64_t given, number(keys, "length", length));
  if (given != length)
    return Status::error("external data '" + location->second + "' have " + std::to_string(given) +
                         " bytes, expected " + std::to_string(length));
  GPUC_ASSIGN_OR_RETURN(fs::path path, locate(file, location->second));
  std::error_code error;
  // Whoever opens a pipe waits for a writer.
  if (fs::exists(path, error) && !fs::is_regular_file(path, error))
    return Status::error("external data '" + location->second + "' is no regular file");
  uintmax_t size = fs::file_size(path, error);
  std::ifstream stream(path, std::ios::binary);
  if (error || !stream)
    return Status::error(
        "cannot read external data '" + location->second +
        "' beside the model: they belong to it, keep the two together (torch.onnx.export writes one "
        "file with external_data=False)");
  if (static_cast<uintmax_t>(offset) > size || static_cast<uintmax_t>(length) > size - offset)
    return Status::error("external data '" + location->second + "' has " + std::to_string(size) +
                         " bytes: cut short, " + std::to_string(length) + " were expected from byte " +
                         std::to_string(offset) + " on");
  std::string bytes(length, '\0');
  if (!stream.seekg(offset) || !stream.read(bytes.data(), length))
    return Status::error("cannot read external data '" + location->second + "'");
  return bytes;
}

} // namespace gpuc::onnx
