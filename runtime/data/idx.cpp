#include <sys/stat.h>

#include <cstring>

#include "runtime/base/file_kind.h"
#include "runtime/data/formats.h"
#include "runtime/data/gzip.h"
#include "runtime/state/mapped_file.h"

namespace gpuc {
namespace {

constexpr unsigned kUnsignedByte = 0x08;
constexpr const char *kImagesName = "-images-idx3-ubyte", *kLabelsName = "-labels-idx1-ubyte",
                     *kGzipSuffix = ".gz";

const char* idxTypeName(unsigned code) {
  constexpr std::pair<unsigned, const char*> kTypes[] = {
      {kUnsignedByte, "unsigned byte"}, {0x09, "signed byte"},  {0x0B, "16-bit integer"},
      {0x0C, "32-bit integer"},         {0x0D, "32-bit float"}, {0x0E, "64-bit float"}};
  for (const auto& [known, name] : kTypes)
    if (code == known) return name;
  return "unknown";
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
    return errorf("%s: not an IDX file: it begins with %02x %02x, expected 00 00%s", name.c_str(),
                  byteAt(bytes, 0), byteAt(bytes, 1), explainFileKind(bytes, FileRole::data).c_str());
  if (byteAt(bytes, 2) != kUnsignedByte)
    return errorf("%s: IDX element type 0x%02x (%s), expected 0x08 (unsigned byte)", name.c_str(),
                  byteAt(bytes, 2), idxTypeName(byteAt(bytes, 2)));
  if (byteAt(bytes, 3) != rank)
    return errorf("%s: IDX of rank %u, expected %zu", name.c_str(), byteAt(bytes, 3), rank);
  return okStatus();
}

/// What a header tells of the file.
struct IdxHeader {
  std::vector<int64_t> shape;
  size_t file_bytes = 0;  // header and data
};

constexpr size_t headerBytes(size_t rank) { return 4 + 4 * rank; }

/// `bytes` are the file's first, headerBytes(rank) of them if it has so many.
Result<IdxHeader> parseHeader(std::string_view bytes, size_t rank, const std::string& name) {
  GPUC_RETURN_IF_ERROR(checkMagic(bytes, rank, name));
  if (bytes.size() < headerBytes(rank))
    return errorf("%s: cut short: %zu bytes, an IDX header of rank %zu has %zu", name.c_str(), bytes.size(),
                  rank, headerBytes(rank));
  TensorSpec spec{name, DataType::ui8, {}};
  for (size_t i = 0; i < rank; ++i) spec.shape.push_back(bigEndian32(bytes, headerBytes(i)));
  int64_t count = 0;
  if (!checkedElementCount(spec.shape, count) || count > INT64_MAX - static_cast<int64_t>(headerBytes(rank)))
    return errorf("%s: the extents %s of its header are too large", name.c_str(), spec.str().c_str());
  return IdxHeader{std::move(spec.shape), headerBytes(rank) + static_cast<size_t>(count)};
}

/// An IDX file, unpacked if it is packed.
struct IdxFile {
  std::string path;  // the one that was found
  std::string bytes;
  std::vector<int64_t> shape;
};

/// Of a packed file no more is unpacked than its header tells of, and a byte to see whether it ends there.
Result<std::string> unpack(std::string_view packed, size_t rank, const std::string& path) {
  GPUC_ASSIGN_OR_RETURN(std::string begin, gunzip(packed, path, headerBytes(rank)));
  GPUC_ASSIGN_OR_RETURN(IdxHeader header, parseHeader(begin, rank, path));
  return gunzip(packed, path, header.file_bytes + 1);
}

/// `base`, or `base`.gz.
Result<IdxFile> readIdx(const std::string& base, size_t rank) {
  struct stat info;
  IdxFile idx{.path = base, .bytes = {}, .shape = {}};
  if (::stat(base.c_str(), &info) != 0) {
    idx.path = base + kGzipSuffix;
    if (::stat(idx.path.c_str(), &info) != 0)
      return Status::error("no such data: neither " + base + " nor " + idx.path + " exists");
  }
  GPUC_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(idx.path));
  std::string_view bytes = file.bytes();
  if (isGzip(bytes)) {
    GPUC_ASSIGN_OR_RETURN(idx.bytes, unpack(bytes, rank, idx.path));
    bytes = idx.bytes;
  }
  GPUC_ASSIGN_OR_RETURN(idx.shape, parseIdx(bytes, rank, idx.path));
  if (idx.bytes.empty()) idx.bytes = bytes;
  return idx;
}

class IdxDataset : public Dataset {
 public:
  IdxDataset(std::vector<DatasetField> fields, std::string images, std::string labels, int64_t size)
      : Dataset(size, std::move(fields)), images_(std::move(images)), labels_(std::move(labels)) {}

  Status copySample(int64_t row, size_t field, std::byte* destination) const override {
    constexpr size_t kImageHeader = 16, kLabelHeader = 8;
    const DatasetField& copied = fields()[field];
    const auto index = static_cast<size_t>(row), bytes = static_cast<size_t>(copied.sample.sizeBytes());
    if (field == 0)
      std::memcpy(destination, images_.data() + kImageHeader + index * bytes, bytes);
    else
      storeInteger(destination, copied.sample.type, 0, static_cast<uint8_t>(labels_[kLabelHeader + index]));
    return okStatus();
  }

 private:
  std::string images_;  // the whole file, header included: (size, rows, columns)
  std::string labels_;  // (size)
};

}  // namespace

Result<std::vector<int64_t>> parseIdx(std::string_view bytes, size_t rank, const std::string& name) {
  GPUC_ASSIGN_OR_RETURN(IdxHeader header, parseHeader(bytes, rank, name));
  TensorSpec spec{name, DataType::ui8, std::move(header.shape)};
  if (bytes.size() < header.file_bytes)
    return errorf("%s: cut short: %zu bytes, but its header says %s, which makes %zu", name.c_str(),
                  bytes.size(), spec.str().c_str(), header.file_bytes);
  if (bytes.size() > header.file_bytes)
    return errorf("%s: too long: its header says %s, which makes %zu bytes, but more follow", name.c_str(),
                  spec.str().c_str(), header.file_bytes);
  return std::move(spec.shape);
}

std::vector<std::string> idxPaths(const std::string& prefix) {
  std::vector<std::string> paths;
  for (const char* name : {kImagesName, kLabelsName})
    for (const char* suffix : {"", kGzipSuffix}) paths.push_back(prefix + name + suffix);
  return paths;
}

Result<std::unique_ptr<Dataset>> openIdx(const std::string& prefix, std::span<const InputSpec> inputs) {
  GPUC_ASSIGN_OR_RETURN(IdxFile images, readIdx(prefix + kImagesName, 3));
  GPUC_ASSIGN_OR_RETURN(IdxFile labels, readIdx(prefix + kLabelsName, 1));
  if (images.shape[0] != labels.shape[0])
    return errorf("%s has %lld images, but %s has %lld labels", images.path.c_str(),
                  static_cast<long long>(images.shape[0]), labels.path.c_str(),
                  static_cast<long long>(labels.shape[0]));
  if (images.shape[0] == 0) return Status::error(images.path + ": has no images");
  std::vector<DatasetField> fields = {
      {{"x", DataType::ui8, {images.shape[1], images.shape[2]}}, images.path},
      {{"labels", labelType(inputs), {}}, labels.path, /*may_idle=*/true},
  };
  return std::unique_ptr<Dataset>(
      new IdxDataset(std::move(fields), std::move(images.bytes), std::move(labels.bytes), images.shape[0]));
}

}  // namespace gpuc
