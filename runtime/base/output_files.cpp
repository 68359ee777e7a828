#include "runtime/base/output_files.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

namespace gpuc {
namespace {

namespace fs = std::filesystem;

Status cannotWrite(const std::string& path, const std::string& why) {
  return Status::error("cannot write " + path + ": " + why);
}

Status checkPlace(const std::string& path) {
  fs::path parent = fs::path(path).parent_path();
  std::string folder = parent.empty() ? "." : parent.string();
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) return cannotWrite(path, folder + " is not a folder");
  if (fs::is_directory(path, ignored)) return cannotWrite(path, "it is a folder");
  if (::access(folder.c_str(), W_OK) != 0)
    return cannotWrite(path, "the folder " + folder + " is not writable");
  return okStatus();
}

/// From the root. Of a path none of whose names is there yet weakly_canonical leaves as it is what it does
/// not begin with: "a" and "./a" would be two.
fs::path wholePath(const fs::path& path) {
  std::error_code failed;
  return fs::weakly_canonical(fs::absolute(path, failed), failed);
}

/// What a link leads to, also if that is not there yet.
fs::path followed(fs::path path) {
  constexpr int kMostLinks = 40;
  std::error_code failed;
  for (int i = 0; i < kMostLinks && fs::is_symlink(path, failed); ++i)
    path = path.parent_path() / fs::read_symlink(path, failed);
  return wholePath(path);
}

/// Also by another spelling or through a link. Devices take what many writers write.
bool isSameFile(const std::string& a, const std::string& b) {
  std::error_code failed;
  if (a == "-" || b == "-") return a == b;
  if (fs::exists(a, failed) && !fs::is_regular_file(a, failed)) return false;
  fs::path whole = followed(a);
  return (!whole.empty() && whole == followed(b)) || fs::equivalent(a, b, failed);
}

/// Whether `path` lies in a folder within `folder`, and not in `folder` itself.
bool isInFolderOf(const std::string& path, const std::string& folder) {
  std::error_code failed;
  if (path == "-" || !fs::is_directory(folder, failed)) return false;
  fs::path whole = wholePath(path), root = fs::canonical(folder, failed);
  auto [root_end, rest] = std::mismatch(root.begin(), root.end(), whole.begin(), whole.end());
  return !failed && root_end == root.end() && std::distance(rest, whole.end()) > 1;
}

/// Whether `folder`, which may not be there yet, must be one for `path` to lie in it.
bool isFolderOf(const std::string& folder, const std::string& path) {
  if (folder.empty() || path.empty() || folder == "-" || path == "-") return false;
  const fs::path root = followed(folder), whole = followed(path);
  return !root.empty() && root != whole &&
         std::mismatch(root.begin(), root.end(), whole.begin(), whole.end()).first == root.end();
}

bool isRead(const std::string& path, const std::string& input) {
  return !input.empty() && (isSameFile(path, input) || isInFolderOf(path, input));
}

}  // namespace

Status checkOutputFiles(std::span<const std::string> outputs, std::span<const std::string> inputs) {
  for (const std::string& path : outputs)
    if (!path.empty() && path != "-") GPUC_RETURN_IF_ERROR(checkPlace(path));
  return checkOutputsApart(outputs, inputs);
}

Status checkOutputsApart(std::span<const std::string> outputs, std::span<const std::string> inputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& path = outputs[i];
    if (path.empty()) continue;
    for (const std::string& input : inputs)
      if (path != "-" && isRead(path, input))
        return cannotWrite(path, "it is read, too; give the output another name");
    for (const std::string& other : outputs.first(i))
      if (isSameFile(path, other))
        return cannotWrite(path == "-" ? "stdout" : path, "two outputs go there; give each its own");
    for (const std::string& other : outputs)
      if (isFolderOf(path, other))
        return cannotWrite(path, "it is to be a folder, for " + other + "; give each its own");
  }
  return okStatus();
}

}  // namespace gpuc
