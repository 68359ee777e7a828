#include "runtime/train/metrics_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "runtime/base/file.h"

namespace gpuc {
namespace {

constexpr size_t kBufferBytes = 64 * 1024;
constexpr std::chrono::seconds kMostDelay{1};

constexpr std::string_view kBegin = "{\"event\":\"";

/// What a line says of its place in training.
struct LinePlace {
  std::string_view event;
  int64_t step = 0;
};

/// Reads a line as MetricsLine writes them: event and step come first. Anything else is not ours.
std::optional<LinePlace> placeOf(std::string_view line) {
  constexpr std::string_view kStep = "\",\"step\":";
  if (!line.starts_with(kBegin) || !line.ends_with('}')) return std::nullopt;
  line.remove_prefix(kBegin.size());
  size_t quote = line.find(kStep);
  if (quote == std::string_view::npos) return std::nullopt;
  LinePlace place{line.substr(0, quote)};
  line.remove_prefix(quote + kStep.size());
  auto [stop, code] = std::from_chars(line.data(), line.data() + line.size(), place.step);
  if (code != std::errc()) return std::nullopt;
  return place;
}

bool isKept(std::string_view line, int64_t step) {
  std::optional<LinePlace> place = placeOf(line);
  if (!place || place->event == "end") return false;
  return place->event == "eval" ? place->step < step : place->step <= step;
}

}  // namespace

size_t keptMetricsBytes(std::string_view text, int64_t step) {
  size_t kept = 0;
  while (true) {
    size_t end = text.find('\n', kept);
    if (end == std::string_view::npos || !isKept(text.substr(kept, end - kept), step)) return kept;
    kept = end + 1;
  }
}

Result<int64_t> lastMetricsStep(const std::string& path) {
  struct stat info;
  if (path == "-" || ::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0)
    return 0;
  GPUC_ASSIGN_OR_RETURN(std::string text, readFile(path));
  size_t first_end = std::min(text.find('\n'), text.size());
  bool is_cut = first_end == text.size();  // a first line that was not written to its end
  std::string_view first = std::string_view(text).substr(0, is_cut ? kBegin.size() : first_end);
  if (is_cut ? !kBegin.starts_with(first) : !placeOf(first).has_value())
    return Status::error("cannot write metrics to " + path +
                         ": it holds something else, which would be lost; give --metrics another name");
  int64_t last = 0;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    if (auto place = placeOf(std::string_view(text).substr(begin, end - begin)))
      last = std::max(last, place->step);
  return last;
}

MetricsFile::MetricsFile(const std::string& path, int descriptor)
    : name_(path == "-" ? "stdout" : path), file_(descriptor) {
  buffer_.reserve(kBufferBytes);
}

Result<MetricsFile> MetricsFile::create(const std::string& path) {
  // stdout stays open when the file is closed.
  int descriptor = path == "-" ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                               : ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) return systemError("write", path);
  return MetricsFile(path, descriptor);
}

Result<MetricsFile> MetricsFile::resume(const std::string& path, int64_t step) {
  if (path == "-") return create(path);
  // O_APPEND is not asked for: the end is where the cut was made.
  int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) return systemError("write", path);
  MetricsFile file(path, descriptor);
  struct stat info;
  if (::fstat(descriptor, &info) != 0) return systemError("read", path);
  if (!S_ISREG(info.st_mode)) return file;  // a pipe or device has no lines to cut
  GPUC_ASSIGN_OR_RETURN(std::string text, readFile(path));
  off_t kept = static_cast<off_t>(keptMetricsBytes(text, step));
  if (::ftruncate(descriptor, kept) != 0 || ::lseek(descriptor, kept, SEEK_SET) != kept)
    return systemError("cut", path);
  return file;
}

Status MetricsFile::write(const MetricsLine& line) {
  const std::string_view text = line.text();
  if (buffer_.size() + text.size() > kBufferBytes) GPUC_RETURN_IF_ERROR(flush());
  buffer_.insert(buffer_.end(), text.begin(), text.end());
  if (std::chrono::steady_clock::now() - last_flush_ < kMostDelay) return okStatus();
  return flush();
}

Status MetricsFile::flush() {
  const off_t begin = ::lseek(file_.get(), 0, SEEK_CUR);
  Status written = writeAll(file_.get(), {buffer_.data(), buffer_.size()}, name_);
  if (!written.ok()) dropCutLine(begin);
  buffer_.clear();
  if (written.ok()) last_flush_ = std::chrono::steady_clock::now();
  return written;
}

/// A full disk takes a part of the last line, which no reader could read. Pipes and devices, and stdout,
/// which others write as well, keep what they have.
void MetricsFile::dropCutLine(off_t begin) {
  const off_t end = ::lseek(file_.get(), 0, SEEK_CUR);
  if (name_ == "stdout" || begin < 0 || end <= begin) return;
  const std::string_view taken(buffer_.data(), std::min(static_cast<size_t>(end - begin), buffer_.size()));
  const off_t whole = begin + static_cast<off_t>(taken.rfind('\n') + 1);  // none: npos + 1 is 0
  if (::ftruncate(file_.get(), whole) == 0) (void)::lseek(file_.get(), whole, SEEK_SET);
}

}  // namespace gpuc
