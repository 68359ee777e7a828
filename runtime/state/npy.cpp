#include "runtime/state/npy.h"

#include <cstring>
#include <optional>

#include "runtime/base/file.h"
#include "runtime/base/file_kind.h"
#include "runtime/base/quote.h"
#include "runtime/state/npy_header.h"

namespace gpuc {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

struct TypeCode {
  const char* descr;
  DataType type;
};
constexpr TypeCode kTypeCodes[] = {
    {"<f8", DataType::f64}, {"<f4", DataType::f32}, {"<f2", DataType::f16}, {"<i8", DataType::i64},
    {"<i4", DataType::i32}, {"|i1", DataType::i8},  {"|u1", DataType::ui8}, {"|b1", DataType::i1},
};

Result<DataType> typeOf(const std::string& descr) {
  for (const TypeCode& code : kTypeCodes) {
    if (descr == code.descr) return code.type;
    // Some writers put an order before single bytes, where none is needed.
    if (code.descr[0] == '|' && descr.size() == 3 && (descr[0] == '<' || descr[0] == '>') &&
        descr.substr(1) == code.descr + 1)
      return code.type;
  }
  if (!descr.empty() && descr[0] == '>')
    return Status::error("is big-endian (" + inQuotes(descr) + "); save a.astype(a.dtype.newbyteorder('<'))");
  return Status::error("has elements of type " + inQuotes(descr) +
                       ", known are f8 f4 f2 i8 i4 i1 u1 b1; save a.astype(…) of one of them");
}

struct Layout {
  NpyHeader header;
  size_t data_begin = 0;
};

uint64_t littleEndian(std::string_view bytes, size_t begin, size_t count) {
  uint64_t value = 0;
  for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[begin + i]);
  return value;
}

/// Magic (6), version (2), length of the dictionary (2 bytes in version 1, 4 since version 2), dictionary.
Result<Layout> parseLayout(std::string_view bytes) {
  if (!bytes.starts_with(kMagic))
    return Status::error("is not a .npy file (it does not begin with \\x93NUMPY)" +
                         explainFileKind(bytes, FileRole::data));
  if (bytes.size() < 10) return Status::error("cut short within its header");
  unsigned major = static_cast<uint8_t>(bytes[6]), minor = static_cast<uint8_t>(bytes[7]);
  if (major < 1 || major > 3 || minor != 0)
    return errorf("is of .npy version %u.%u, known are 1.0, 2.0 and 3.0", major, minor);
  size_t length_bytes = major == 1 ? 2 : 4, dictionary = 8 + length_bytes;
  if (bytes.size() < dictionary) return Status::error("cut short within its header");
  uint64_t length = littleEndian(bytes, 8, length_bytes);
  if (length > bytes.size() - dictionary) return Status::error("cut short within its header");
  GPUC_ASSIGN_OR_RETURN(NpyHeader header, parseNpyHeader(bytes.substr(dictionary, length)));
  return Layout{std::move(header), dictionary + length};
}

/// A byte other than 0 and 1 would be neither true nor false to compiled code.
Status checkBooleans(std::string_view data) {
  for (size_t i = 0; i < data.size(); ++i)
    if (static_cast<uint8_t>(data[i]) > 1)
      return errorf("has the byte %u at element %zu, a bool is 0 or 1", static_cast<uint8_t>(data[i]), i);
  return okStatus();
}

Result<NpyArray> parseArray(std::string_view bytes, const std::string& name) {
  GPUC_ASSIGN_OR_RETURN(Layout layout, parseLayout(bytes));
  GPUC_ASSIGN_OR_RETURN(DataType type, typeOf(layout.header.descr));
  if (layout.header.fortran_order)
    return Status::error("is in Fortran order; save numpy.ascontiguousarray(a)");
  NpyArray array{{name, type, layout.header.shape}, bytes.substr(layout.data_begin), {}};
  constexpr size_t kMostExtents = 64;  // NumPy's own limit
  if (array.spec.shape.size() > kMostExtents)
    return errorf("has %zu extents, arrays have at most %zu", array.spec.shape.size(), kMostExtents);
  int64_t count = 0;
  if (!checkedElementCount(array.spec.shape, count))
    return Status::error("has a shape of more elements than 64 bits can count: " + array.spec.str());
  size_t expected = static_cast<size_t>(array.spec.sizeBytes());
  if (array.data.size() != expected)
    return errorf("%s: %zu bytes of data, but its header says %s, which makes %zu",
                  array.data.size() < expected ? "cut short" : "too long", array.data.size(),
                  array.spec.str().c_str(), expected);
  if (type == DataType::i1) GPUC_RETURN_IF_ERROR(checkBooleans(array.data));
  return array;
}

const char* descrOf(DataType type) {
  if (type == DataType::bf16) return "<f4";
  for (const TypeCode& code : kTypeCodes)
    if (code.type == type) return code.descr;
  return "";
}

/// bf16 is the upper half of an f32.
std::string widenBfloat16(const void* data, int64_t count) {
  std::string wide(static_cast<size_t>(count) * 4, '\0');
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(wide.data() + i * 4 + 2, static_cast<const char*>(data) + i * 2, 2);
  return wide;
}

}  // namespace

std::string npyCure(DataType type) {
  for (const TypeCode& code : kTypeCodes)
    if (code.type == type) return std::string("; save a.astype('") + code.descr + "')";
  return "";
}

Result<NpyArray> parseNpy(std::string_view bytes, const std::string& name) {
  Result<NpyArray> array = parseArray(bytes, name);
  if (array.ok()) return array;
  return Status::error(name + ": " + array.message());
}

Result<NpyArray> readNpy(const std::string& path) {
  GPUC_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  GPUC_ASSIGN_OR_RETURN(NpyArray array, parseNpy(file.bytes(), path));
  array.file = std::move(file);
  return array;
}

std::string npyBytes(const TensorSpec& spec, const void* data) {
  std::string shape;
  for (int64_t extent : spec.shape) shape += std::to_string(extent) + ", ";
  // Python writes (3,) for one extent and (3, 4) for more.
  if (spec.shape.size() == 1) shape.pop_back();
  if (spec.shape.size() > 1) shape.resize(shape.size() - 2);
  std::string dictionary = std::string("{'descr': '") + descrOf(spec.type) +
                           "', 'fortran_order': False, 'shape': (" + shape + "), }";
  // Padded with blanks and a newline, so that the data begin at a multiple of 64.
  size_t unpadded = kMagic.size() + 4 + dictionary.size() + 1;
  dictionary.append((64 - unpadded % 64) % 64, ' ');
  dictionary += '\n';
  std::string bytes(kMagic);
  bytes += {'\x01', '\x00', static_cast<char>(dictionary.size() & 0xff),
            static_cast<char>(dictionary.size() >> 8)};
  bytes += dictionary;
  if (spec.type == DataType::bf16) return bytes + widenBfloat16(data, spec.elementCount());
  return bytes.append(static_cast<const char*>(data), static_cast<size_t>(spec.sizeBytes()));
}

Status writeNpy(const std::string& path, const TensorSpec& spec, const void* data) {
  return writeFileAtomically(path, npyBytes(spec, data));
}

}  // namespace gpuc
