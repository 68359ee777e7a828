#include "runtime/data/idx.h"

#include <sys/stat.h>

#include <cstring>

#include "runtime/base/file.h"
#include "runtime/data/gzip.h"

namespace gpuc {
namespace {

constexpr int kUnsignedByte = 0x08;
constexpr const char *kImagesName = "-images-idx3-ubyte", *kLabelsName = "-labels-idx1-ubyte",
                     *kGzipSuffix = ".gz";

const char* idxTypeName(int code) {
  switch (code) {
    case 0x08:
      return "unsigned byte";
    case 0x09:
      return "signed byte";
    case 0x0B:
      return "16-bit integer";
    case 0x0C:
      return "32-bit integer";
    case 0x0D:
      return "32-bit float";
    case 0x0E:
      return "64-bit float";
    default:
      return "unknown";
  }
}

unsigned byteAt(std::string_view bytes, size_t index) { return static_cast<uint8_t>(bytes[index]); }

int64_t bigEndian32(std::string_view bytes, size_t index) {
  int64_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | byteAt(bytes, index + i);
  return value;
}

Status checkMagic(std::string_view bytes, size_t rank, const std::string& name) {
  if (bytes.size() < 4)
    return errorf("%s: cut short: %zu bytes, an IDX header has at least 4", name.c_str(), bytes.size());
  if (bytes[0] != 0 || bytes[1] != 0)
    return errorf("%s: not an IDX file: it begins with %02x %02x, expected 00 00", name.c_str(),
                  byteAt(bytes, 0), byteAt(bytes, 1));
  if (byteAt(bytes, 2) != kUnsignedByte)
    return errorf("%s: IDX element type 0x%02x (%s), expected 0x08 (unsigned byte)", name.c_str(),
                  byteAt(bytes, 2), idxTypeName(static_cast<int>(byteAt(bytes, 2))));
  if (byteAt(bytes, 3) != rank)
    return errorf("%s: IDX of rank %u, expected %zu", name.c_str(), byteAt(bytes, 3), rank);
  return okStatus();
}

/// The bytes of `base`, or of `base`.gz unpacked; `path` becomes the file that was found.
Result<std::string> readPlainOrGzip(const std::string& base, std::string& path) {
  struct stat info;
  path = base;
  if (::stat(base.c_str(), &info) != 0) {
    path = base + kGzipSuffix;
    if (::stat(path.c_str(), &info) != 0)
      return Status::error("no such data: neither " + base + " nor " + path + " exists");
  }
  GPUC_ASSIGN_OR_RETURN(std::string bytes, readFile(path));
  if (!isGzip(bytes)) return bytes;
  return gunzip(bytes, path);
}

class IdxDataset : public Dataset {
 public:
  IdxDataset(std::vector<DatasetField> fields, std::string images, std::string labels, int64_t size)
      : fields_(std::move(fields)), images_(std::move(images)), labels_(std::move(labels)), size_(size) {}

  int64_t size() const override { return size_; }
  std::span<const DatasetField> fields() const override { return fields_; }

  Status copyRows(std::span<const int64_t> rows, size_t field, std::byte* destination) const override {
    if (field == 0)
      copyImages(rows, destination);
    else
      copyLabels(rows, destination);
    return okStatus();
  }

 private:
  static constexpr size_t kImageHeader = 16, kLabelHeader = 8;

  void copyImages(std::span<const int64_t> rows, std::byte* destination) const {
    size_t image_bytes = static_cast<size_t>(fields_[0].sample.sizeBytes());
    for (int64_t row : rows) {
      std::memcpy(destination, images_.data() + kImageHeader + static_cast<size_t>(row) * image_bytes,
                  image_bytes);
      destination += image_bytes;
    }
  }

  void copyLabels(std::span<const int64_t> rows, std::byte* destination) const {
    for (int64_t row : rows) {
      int32_t label = static_cast<uint8_t>(labels_[kLabelHeader + static_cast<size_t>(row)]);
      std::memcpy(destination, &label, sizeof(label));
      destination += sizeof(label);
    }
  }

  std::vector<DatasetField> fields_;
  std::string images_;  // the whole file, header included: (size, rows, columns)
  std::string labels_;  // (size)
  int64_t size_;
};

}  // namespace

Result<std::vector<int64_t>> parseIdx(std::string_view bytes, size_t rank, const std::string& name) {
  GPUC_RETURN_IF_ERROR(checkMagic(bytes, rank, name));
  size_t header = 4 + 4 * rank;
  if (bytes.size() < header)
    return errorf("%s: cut short: %zu bytes, an IDX header of rank %zu has %zu", name.c_str(), bytes.size(),
                  rank, header);
  TensorSpec spec{name, DataType::ui8, {}};
  for (size_t i = 0; i < rank; ++i) spec.shape.push_back(bigEndian32(bytes, 4 + 4 * i));
  int64_t count = 0;
  if (!checkedElementCount(spec.shape, count))
    return errorf("%s: the extents %s of its header are too large", name.c_str(), spec.str().c_str());
  uint64_t expected = header + static_cast<uint64_t>(count);
  if (bytes.size() != expected)
    return errorf("%s: %s: %zu bytes, but its header says %s, which makes %llu", name.c_str(),
                  bytes.size() < expected ? "cut short" : "too long", bytes.size(), spec.str().c_str(),
                  static_cast<unsigned long long>(expected));
  return spec.shape;
}

std::vector<std::string> idxPaths(const std::string& prefix) {
  std::vector<std::string> paths;
  for (const char* name : {kImagesName, kLabelsName})
    for (const char* suffix : {"", kGzipSuffix}) paths.push_back(prefix + name + suffix);
  return paths;
}

Result<std::unique_ptr<Dataset>> openIdx(const std::string& prefix) {
  std::string images_path, labels_path;
  GPUC_ASSIGN_OR_RETURN(std::string images, readPlainOrGzip(prefix + kImagesName, images_path));
  GPUC_ASSIGN_OR_RETURN(std::vector<int64_t> image_shape, parseIdx(images, 3, images_path));
  GPUC_ASSIGN_OR_RETURN(std::string labels, readPlainOrGzip(prefix + kLabelsName, labels_path));
  GPUC_ASSIGN_OR_RETURN(std::vector<int64_t> label_shape, parseIdx(labels, 1, labels_path));
  if (image_shape[0] != label_shape[0])
    return errorf("%s has %lld images, but %s has %lld labels", images_path.c_str(),
                  static_cast<long long>(image_shape[0]), labels_path.c_str(),
                  static_cast<long long>(label_shape[0]));
  if (image_shape[0] == 0) return Status::error(images_path + ": has no images");
  std::vector<DatasetField> fields = {
      {{"x", DataType::ui8, {image_shape[1], image_shape[2]}}, images_path},
      {{"labels", DataType::i32, {}}, labels_path, /*may_idle=*/true},
  };
  return std::unique_ptr<Dataset>(
      new IdxDataset(std::move(fields), std::move(images), std::move(labels), image_shape[0]));
}

}  // namespace gpuc
