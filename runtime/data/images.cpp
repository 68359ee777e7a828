#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include "runtime/base/file.h"
#include "runtime/base/warn.h"
#include "runtime/data/decode_image.h"
#include "runtime/data/formats.h"
#include "runtime/data/scratch_file.h"

namespace gpuc {
namespace {

namespace fs = std::filesystem;

struct Picture {
  std::string path;
  int32_t label = 0;
};

struct Pictures {
  std::vector<std::string> classes;
  std::vector<Picture> all;  // by class, then by name
};

class ImageDataset : public Dataset {
 public:
  ImageDataset(std::vector<DatasetField> fields, ScratchFile pixels, Pictures pictures)
      : Dataset(static_cast<int64_t>(pictures.all.size()), std::move(fields)),
        pixels_(std::move(pixels)),
        classes_(std::move(pictures.classes)) {
    for (const Picture& picture : pictures.all) labels_.push_back(picture.label);
  }

  std::span<const std::string> classes() const override { return classes_; }

  Status copySample(int64_t row, size_t field, std::byte* destination) const override {
    const DatasetField& copied = fields()[field];
    const auto index = static_cast<size_t>(row), bytes = static_cast<size_t>(copied.sample.sizeBytes());
    if (field == 0)
      std::memcpy(destination, pixels_.bytes().data() + index * bytes, bytes);
    else
      storeInteger(destination, copied.sample.type, 0, labels_[index]);
    return okStatus();
  }

 private:
  ScratchFile pixels_;  // (size, channels, height, width)
  std::vector<std::string> classes_;
  std::vector<int32_t> labels_;  // (size)
};

Result<ImageShape> pictureShape(const std::string& folder, std::span<const InputSpec> inputs) {
  const InputSpec* x = findInput(inputs, "x");
  if (!x) return Status::error(folder + ": the plan has no input x, which is what takes pictures");
  const std::vector<int64_t>& shape = x->tensor.shape;
  if (x->tensor.type != DataType::ui8 || shape.size() != 4 || (shape[1] != 1 && shape[1] != 3))
    return errorf("%s: the plan's input x is %s, but pictures feed ui8 of [batch, 1 or 3, height, width]",
                  folder.c_str(), x->tensor.str().c_str());
  return ImageShape{shape[1], shape[2], shape[3]};
}

/// The entries of a folder that `wanted` takes, by name in byte order.
Result<std::vector<fs::path>> sortedEntries(const fs::path& folder,
                                            bool (*wanted)(const fs::directory_entry&)) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator next(folder, error), end; !error && next != end; next.increment(error))
    if (wanted(*next)) entries.push_back(next->path());
  if (error) return Status::error(folder.string() + ": cannot be listed: " + error.message());
  std::sort(entries.begin(), entries.end(),
            [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  return entries;
}

bool isClassFolder(const fs::directory_entry& entry) {
  std::error_code ignored;
  return entry.is_directory(ignored) && entry.path().filename().native()[0] != '.';
}

std::string suffixOf(const fs::path& path) {
  std::string suffix = path.extension().string();
  std::transform(suffix.begin(), suffix.end(), suffix.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return suffix;
}

bool isPicture(const fs::directory_entry& entry) {
  const std::string suffix = suffixOf(entry.path());
  return suffix == ".png" || suffix == ".jpg" || suffix == ".jpeg";
}

/// What torchvision's ImageFolder would take besides: pictures of other formats, and folders within a class.
bool isLeftOut(const fs::directory_entry& entry) {
  static const std::set<std::string> formats = {".avif", ".bmp", ".gif",  ".heic", ".pgm",
                                                ".ppm",  ".tif", ".tiff", ".webp"};
  return isClassFolder(entry) || formats.contains(suffixOf(entry.path()));
}

void warnOfLeftOut(const std::string& folder, const std::vector<fs::path>& left_out) {
  if (left_out.empty()) return;
  const std::string more = left_out.size() > 1 ? " and " + std::to_string(left_out.size() - 1) + " more" : "";
  warn(folder + ": left out is " + left_out.front().string() + more +
       ": pictures of a class are the .png, .jpg and .jpeg files of its folder, not those of folders within");
}

/// A class that this folder lacks would shift the numbers of those behind it: training and evaluation would
/// mean different things by the same label.
Status checkClassCount(const std::string& folder, size_t classes, std::span<const InputSpec> inputs) {
  const InputSpec* labels = findInput(inputs, "labels");
  if (labels && labels->range > 0 && labels->range != static_cast<int64_t>(classes))
    return errorf("%s: has %zu class folders, but the plan's labels have %lld classes", folder.c_str(),
                  classes, static_cast<long long>(labels->range));
  return okStatus();
}

Result<Pictures> listPictures(const std::string& folder, std::span<const InputSpec> inputs) {
  GPUC_ASSIGN_OR_RETURN(std::vector<fs::path> classes, sortedEntries(folder, isClassFolder));
  if (classes.empty())
    return Status::error(folder + ": has no folders: expected one for each class, with its pictures inside");
  GPUC_RETURN_IF_ERROR(checkClassCount(folder, classes.size(), inputs));
  Pictures pictures;
  std::vector<fs::path> left_out;
  for (size_t label = 0; label < classes.size(); ++label) {
    GPUC_ASSIGN_OR_RETURN(std::vector<fs::path> files, sortedEntries(classes[label], isPicture));
    if (files.empty()) return Status::error(classes[label].string() + ": has no .png, .jpg or .jpeg files");
    for (const fs::path& file : files) pictures.all.push_back({file.string(), static_cast<int32_t>(label)});
    pictures.classes.push_back(classes[label].filename().string());
    GPUC_ASSIGN_OR_RETURN(std::vector<fs::path> others, sortedEntries(classes[label], isLeftOut));
    left_out.insert(left_out.end(), others.begin(), others.end());
  }
  warnOfLeftOut(folder, left_out);
  return pictures;
}

Status decodeFile(const std::string& path, const ImageShape& shape, std::byte* destination) {
  GPUC_ASSIGN_OR_RETURN(std::string bytes, readFile(path));
  return decodeImage(bytes, path, shape, reinterpret_cast<uint8_t*>(destination));
}

/// Decodes all of them, on all cores. Of several bad pictures the first in order is the error, whichever
/// thread comes upon one first.
Status decodeAll(const std::vector<Picture>& pictures, const ImageShape& shape, std::byte* pixels) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  size_t first_bad = pictures.size();
  Status error;
  auto work = [&] {
    for (size_t i = next++; i < pictures.size(); i = next++) {
      Status decoded =
          decodeFile(pictures[i].path, shape, pixels + i * static_cast<size_t>(shape.elementCount()));
      if (decoded.ok()) continue;
      std::lock_guard<std::mutex> lock(mutex);
      if (i < first_bad) {
        first_bad = i;
        error = decoded;
      }
      next = pictures.size();
    }
  };
  std::vector<std::thread> helpers;
  try {
    for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) helpers.emplace_back(work);
  } catch (const std::system_error&) {
    // As many as there are do all of it.
  }
  work();
  for (std::thread& helper : helpers) helper.join();
  return error;
}

}  // namespace

Result<std::unique_ptr<Dataset>> openImages(const std::string& folder, std::span<const InputSpec> inputs) {
  GPUC_ASSIGN_OR_RETURN(ImageShape shape, pictureShape(folder, inputs));
  GPUC_ASSIGN_OR_RETURN(Pictures pictures, listPictures(folder, inputs));
  std::vector<int64_t> extents = {static_cast<int64_t>(pictures.all.size()), shape.channels, shape.height,
                                  shape.width};
  int64_t bytes = 0;
  if (!checkedElementCount(extents, bytes)) return Status::error(folder + ": too many pixels to count");
  GPUC_ASSIGN_OR_RETURN(ScratchFile pixels, ScratchFile::create(static_cast<size_t>(bytes)));
  GPUC_RETURN_IF_ERROR(decodeAll(pictures.all, shape, pixels.bytes().data()));
  std::vector<DatasetField> fields = {
      {{"x", DataType::ui8, {shape.channels, shape.height, shape.width}}, folder},
      {{"labels", labelType(inputs), {}}, folder, /*may_idle=*/true},
  };
  return std::unique_ptr<Dataset>(
      new ImageDataset(std::move(fields), std::move(pixels), std::move(pictures)));
}

}  // namespace gpuc
